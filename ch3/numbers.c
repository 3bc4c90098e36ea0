/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual connections on demand to numbered peers, whose cards are fetched when they are needed. */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>

int ch3_number(ch3_t *engine, uint32_t number, uint32_t n, uint32_t build, ch3_find_fn find, void *context, hr_card_t *card)
{
	if (number >= n || engine->numbers.vc)
		return -EINVAL;
	engine->numbers.vc = calloc(n, sizeof *engine->numbers.vc);
	if (!engine->numbers.vc)
		return -ENOMEM;
	engine->numbers.n = n;
	engine->numbers.build = build;
	engine->numbers.find = find;
	engine->numbers.context = context;
	hr_channel_label(engine->channel, (struct hr_label){ number, build }, card);
	return 0;
}

int ch3_add_number(ch3_t *engine, uint32_t number, void *user, ch3_vc_t **vc)
{
	if (number >= engine->numbers.n)
		return -EINVAL;
	if (engine->numbers.vc[number])
		return -EEXIST;
	ch3_vc_t *added = ch3_vc_new(engine, user);
	if (!added)
		return -ENOMEM;
	added->number = number;
	engine->numbers.vc[number] = added;
	*vc = added;
	return 0;
}

static bool build_differs(const struct ch3_numbers *numbers, const struct hr_label *label)
{
	if (label->build == numbers->build)
		return false;
	hr_log(HR_LOG_ERROR, "ch3: process %u has another build of Headrace (%08x) than this process (%08x); start all processes with "
	       "the same build", label->number, label->build, numbers->build);
	return true;
}

int ch3_numbers_find(ch3_vc_t *vc)
{
	struct ch3_numbers *numbers = &vc->engine->numbers;
	hr_card_t card;
	hr_log(HR_LOG_DEBUG, "ch3: asking for the card of process %u", vc->number);
	int error = numbers->find(numbers->context, vc->number, &card);
	if (error)
		return error;
	struct hr_label label;
	if (hr_card_label(&card, &label) || label.number != vc->number) {
		hr_log(HR_LOG_ERROR, "ch3: the card that was found for process %u is not the card of process %u", vc->number,
		       vc->number);
		return -EPROTO;
	}
	if (build_differs(numbers, &label))
		return -EPROTO;
	return ch3_peers_add(&vc->engine->peers, &card, vc);
}

/* The peer is in the job: its hello names the uid in this process's card, which is a secret of the job (wireup.h). So the number
 * in its card is believed, unless the card of this number is known and is another one. */
ch3_vc_t *ch3_numbers_incoming(ch3_t *engine, const hr_card_t *card)
{
	struct hr_label label;
	if (!engine->numbers.n || hr_card_label(card, &label) || label.number >= engine->numbers.n ||
	    build_differs(&engine->numbers, &label))
		return NULL;
	ch3_vc_t *vc = engine->numbers.vc[label.number];
	return vc && !vc->peer && !ch3_peers_add(&engine->peers, card, vc) ? vc : NULL;
}
