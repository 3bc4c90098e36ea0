/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bounds the number of messages that are announced (sent by rendezvous) and that no receive has matched. Beyond the bound, further
 * messages to the peer stay with the sender, in order, and the sender says so (ADI_PACKET_HOLDS). The receiver then permits more
 * announcements (ADI_PACKET_MORE): when receives have matched half of the permitted ones, or when a receive or a probe is waiting
 * for a message that has not arrived. So the bound does not keep a receive from a message behind many others, and a receiver that
 * waits for nothing has bounded memory. Messages of collectives, and those that create communicators, are never held, and
 * count.
 */
#include "adi/message/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The header of ADI_PACKET_HOLDS and ADI_PACKET_MORE. Numbers of announcements since the connection was set up. */
struct announcements {
	uint64_t number; /* HOLDS: sender: those so far; receiver: checks it. MORE: receiver: the permitted ones; sender: the limit */
};
static_assert(sizeof(struct announcements) == 8, "wire format");

struct adi_hold *adi_hold;
unsigned adi_holders;

/* If this fails, the connection fails. */
static void tell(int world, unsigned type, uint64_t number)
{
	struct announcements header = { number };
	ch3_send(adi_job.peer[world].vc, type, &header, sizeof header, NULL, 0, CH3_SEND_COPY, NULL);
}

/* ---- the sender ---- */

static void say_that_held(int world)
{
	struct adi_hold *hold = &adi_hold[world];
	if (hold->told)
		return;
	hold->told = true;
	tell(world, ADI_PACKET_HOLDS, hold->announced);
}

void adi_hold_append(int world, struct adi_request *request)
{
	struct adi_hold *hold = &adi_hold[world];
	request->withheld = true;
	request->next = NULL;
	*(hold->first ? &hold->last->next : &hold->first) = request;
	hold->last = request;
	adi_flow_freeze(world);
	say_that_held(world);
}

static struct adi_request *pop(struct adi_hold *hold)
{
	struct adi_request *request = hold->first;
	hold->first = request->next;
	request->withheld = false;
	return request;
}

static void go_on(int world)
{
	struct adi_hold *hold = &adi_hold[world];
	while (hold->first && hold->announced < hold->permitted) {
		struct adi_request *request = pop(hold);
		bool freed = request->freed;
		request->freed = false; /* it may complete, but it stays in place */
		adi_send_held(request);
		request->freed = freed;
		if (freed)
			adi_request_drop(request);
	}
	if (hold->first)
		say_that_held(world);
	else
		adi_flow_thaw(world);
}

void adi_hold_remove(struct adi_request *request)
{
	struct adi_hold *hold = &adi_hold[request->world];
	struct adi_request *before = NULL, **link = &hold->first;
	while (*link != request) {
		before = *link;
		link = &before->next;
	}
	*link = request->next;
	if (hold->last == request)
		hold->last = before;
	request->withheld = false;
	if (!hold->first)
		adi_flow_thaw(request->world);
}

static int violation(const struct adi_peer *peer)
{
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent an invalid number of announcements", peer->rank);
	return -EPROTO;
}

static bool read_header(const ch3_incoming_t *incoming, struct announcements *header)
{
	if (incoming->header_len != sizeof *header || incoming->payload_len)
		return false;
	memcpy(header, incoming->header, sizeof *header);
	return true;
}

static int on_more(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_hold *hold = &adi_hold[peer->rank];
	struct announcements header;
	if (!read_header(incoming, &header) || !hold->told || header.number <= hold->permitted)
		return violation(peer);
	hold->permitted = header.number;
	hold->told = false;
	go_on(peer->rank);
	return 0;
}

/* ---- the receiver ---- */

static void permit(int world, uint64_t number)
{
	struct adi_hold *hold = &adi_hold[world];
	hold->granted = number;
	hold->holds = false;
	adi_holders--;
	tell(world, ADI_PACKET_MORE, number);
}

/* Receives have matched half of the permitted announcements. */
static bool few_left(const struct adi_hold *hold)
{
	return hold->granted <= hold->matched + ADI_HOLD_MOST / 2;
}

void adi_hold_matched(int world)
{
	struct adi_hold *hold = &adi_hold[world];
	hold->matched++;
	if (hold->holds && few_left(hold))
		permit(world, hold->matched + ADI_HOLD_MOST);
}

/* All announcements that were permitted have arrived. */
void adi_hold_wanted(int source)
{
	int first = source == MPI_ANY_SOURCE ? 0 : source, last = source == MPI_ANY_SOURCE ? adi_job.size - 1 : source;
	for (int i = first; i <= last && adi_holders; i++)
		if (adi_hold[i].holds)
			permit(i, adi_hold[i].arrived + ADI_HOLD_MOST);
}

static int on_holds(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_hold *hold = &adi_hold[peer->rank];
	struct announcements header;
	if (!read_header(incoming, &header) || hold->holds || header.number != hold->arrived || hold->arrived < hold->granted)
		return violation(peer);
	hold->holds = true;
	adi_holders++;
	if (few_left(hold))
		permit(peer->rank, hold->matched + ADI_HOLD_MOST);
	else if (adi_receive_waits(peer->rank))
		adi_hold_wanted(peer->rank);
	return 0;
}

/* ---- deaths, start and end ---- */

void adi_hold_lost(const struct adi_peer *peer)
{
	struct adi_hold *hold = &adi_hold[peer->rank];
	while (hold->first)
		adi_send_complete(pop(hold), adi_class(peer->error));
	adi_holders -= hold->holds;
	hold->holds = false;
}

int adi_hold_start(void)
{
	adi_holders = 0;
	adi_hold = calloc((size_t)adi_job.size, sizeof *adi_hold);
	if (!adi_hold)
		return -ENOMEM;
	for (int i = 0; i < adi_job.size; i++)
		adi_hold[i].permitted = adi_hold[i].granted = ADI_HOLD_MOST;
	int error = ch3_register(adi_job.engine, ADI_PACKET_HOLDS, on_holds, NULL);
	return error ? error : ch3_register(adi_job.engine, ADI_PACKET_MORE, on_more, NULL);
}

void adi_hold_end(void)
{
	free(adi_hold);
	adi_hold = NULL;
}
