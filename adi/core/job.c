/* SPDX-License-Identifier: BSD-3-Clause */
/* The job: its ranks, their machines, the engine, and the order in which the units start and end. */
#include "adi/core/job.h"

#include "adi/collective/schedule.h"
#include "adi/comm/comm.h"
#include "adi/core/info_env.h"
#include "adi/message/request.h"
#include "adi/window/window.h"
#include "rdma_channel/card.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct adi_job adi_job = { .size = 1 };

/* Numbers the machines: ranks with the same kernel and network namespace can open each other's shared memory. A rank whose
 * card cannot be decoded gets a machine of its own. */
static int number_nodes(const hr_card_t *cards)
{
	int size = adi_job.size, nodes = 0;
	struct machine {
		uint64_t boot, netns;
	} *machine = malloc((size_t)size * sizeof *machine);
	adi_job.node = malloc((size_t)size * sizeof *adi_job.node);
	if (!machine || !adi_job.node) {
		free(machine);
		return -ENOMEM;
	}
	for (int i = 0; i < size; i++) {
		struct hr_identity identity;
		int node = nodes;
		if (!hr_card_decode(&cards[i], &identity)) {
			machine[nodes] = (struct machine){ identity.host.boot, identity.host.netns };
			for (node = 0; memcmp(&machine[node], &machine[nodes], sizeof *machine); node++)
				;
		} else {
			memset(&machine[nodes], 0, sizeof *machine);
		}
		adi_job.node[i] = node;
		nodes += node == nodes;
	}
	free(machine);
	return 0;
}

/* Adds all other ranks to the engine, as connections on demand: in a large job most pairs of ranks exchange no
 * messages. */
static int add_all(const hr_card_t *cards)
{
	for (int i = 0; i < adi_job.size; i++) {
		adi_job.peer[i].rank = i;
		if (i == adi_job.rank)
			continue;
		int error = ch3_add(adi_job.engine, &cards[i], &adi_job.peer[i], &adi_job.peer[i].vc);
		if (error)
			return error;
	}
	return 0;
}

static int meet_peers(const hr_card_t *card)
{
	hr_card_t *cards = calloc((size_t)adi_job.size, sizeof *cards);
	adi_job.peer = calloc((size_t)adi_job.size, sizeof *adi_job.peer);
	int error = cards && adi_job.peer ? adi_launch_exchange(card, cards, adi_job.size) : -ENOMEM;
	if (!error)
		error = number_nodes(cards);
	if (!error)
		error = add_all(cards);
	free(cards);
	return error;
}

static int start_engine(hr_card_t *card)
{
	/* A rank may compute for a long time between two MPI calls. Connections to it must not time out meanwhile. */
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_PATIENT;
	int error = ch3_open(&attr, &adi_job.engine, card);
	if (error)
		return error;
	adi_progress_start();
	error = adi_meet_prepare();
	if (!error)
		error = adi_messages_start();
	return error ? error : adi_windows_start();
}

/* Every failure ends the process, so nothing is undone. */
int adi_job_start(void)
{
	hr_card_t card;
	int error = adi_launch_init(&adi_job.rank, &adi_job.size, &adi_job.local_size);
	if (error)
		return adi_error_below(error, "the process manager");
	adi_job.oversubscribed = adi_job.local_size > sysconf(_SC_NPROCESSORS_ONLN);
	error = start_engine(&card);
	if (error)
		return adi_error_below(error, "opening the channel");
	error = meet_peers(&card);
	if (error)
		return adi_error_below(error, "exchanging addresses with the other ranks");
	return adi_comms_start();
}

void adi_job_end(void)
{
	adi_error_on(NULL);
	adi_windows_end();
	ch3_close(adi_job.engine);
	adi_job.engine = NULL;
	adi_progress_end();
	adi_messages_end();
	adi_comms_end();
	adi_schedules_end();
	adi_attributes_end();
	adi_objects_end();
	free(adi_job.peer);
	free(adi_job.node);
	adi_job.peer = NULL;
	adi_job.node = NULL;
	adi_launch_finalize();
}
