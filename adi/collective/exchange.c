/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchange of blocks between all pairs of peers. In step s a rank sends to the rank s after it and receives from the rank s before
 * it. Steps that together stay below the limits run in one round of the schedule: many small blocks are under way together
 * ("spread"), large ones one by one (pairwise exchange). The rounds of different ranks need not begin at the same step. There is no
 * deadlock: the ranks in the lowest unfinished step wait only for ranks whose round contains this step.
 */
#include "adi/collective/blocks.h"

#define ROUND_STEPS 32         /* steps of one round */
/* To send and to receive in one round, unless one step has more. At the end of a round a rank waits for the slowest of its peers,
 * and if ranks share processors until that peer gets one. */
#define ROUND_BYTES (4 << 20)
#define COPIES_BYTES (256 << 10) /* the same in place: bytes that are copied away */

/* Returns false if the step belongs into a new round. most: bytes of a round. */
static bool load_step(struct adi_load *load, MPI_Count bytes, MPI_Count most)
{
	bool fits = !load->steps || (load->steps < ROUND_STEPS && load->bytes + bytes <= most);
	if (!fits)
		*load = (struct adi_load){ 0 };
	load->steps++;
	load->bytes += bytes;
	return fits;
}

void adi_exchange_step(struct adi_schedule *schedule, struct adi_load *load, MPI_Count bytes)
{
	if (!load_step(load, bytes, ROUND_BYTES))
		adi_schedule_round(schedule);
}

void adi_exchange(struct adi_schedule *schedule, const struct adi_comm *comm, const struct adi_blocks *send,
		  const struct adi_blocks *receive)
{
	int peers = adi_peers(comm), n = peers > comm->size ? peers : comm->size;
	struct adi_load load = { 0 };
	for (int step = 0; step < n; step++) {
		int to = (comm->rank + step) % n, from = (comm->rank + n - step) % n;
		if (!comm->inter && !step)
			continue;
		MPI_Count bytes = (to < peers ? adi_block_bytes(send, to) : 0) +
				  (from < peers ? adi_block_bytes(receive, from) : 0);
		if (!bytes)
			continue;
		adi_exchange_step(schedule, &load, bytes);
		if (from < peers)
			adi_block_receive(schedule, receive, from, from);
		if (to < peers)
			adi_block_send(schedule, send, to, to);
	}
	if (!comm->inter)
		adi_block_copy(schedule, send, comm->rank, receive, comm->rank);
}

/* The steps of one round of an exchange in place: the blocks are copied away, then exchanged. */
static void exchange_copies(struct adi_schedule *schedule, const struct adi_blocks *blocks, const int *partner, int n, char *copy)
{
	char *to = copy;
	for (int i = 0; i < n; i++) {
		adi_blocks_pack(schedule, blocks, partner[i], 1, to);
		to += adi_block_bytes(blocks, partner[i]);
	}
	to = copy;
	for (int i = 0; i < n; i++) {
		MPI_Count bytes = adi_block_bytes(blocks, partner[i]);
		adi_block_receive(schedule, blocks, partner[i], partner[i]);
		adi_schedule_send(schedule, to, bytes, adi_type_byte, partner[i]);
		to += bytes;
	}
	adi_schedule_round(schedule);
}

/* Memory for the copies of any round: one that is full, or has one large block. */
static MPI_Count copies_bytes(const struct adi_blocks *blocks, int n)
{
	MPI_Count all = 0, largest = 0;
	for (int i = 0; i < n; i++) {
		MPI_Count bytes = adi_block_bytes(blocks, i);
		all += bytes;
		if (bytes > largest)
			largest = bytes;
	}
	MPI_Count round = all < COPIES_BYTES ? all : COPIES_BYTES;
	return round > largest ? round : largest;
}

/* In step s the ranks whose sum is s modulo n exchange with each other. */
void adi_exchange_in_place(struct adi_schedule *schedule, const struct adi_comm *comm, const struct adi_blocks *blocks)
{
	int n = comm->size, partner[ROUND_STEPS], steps = 0;
	MPI_Count bytes = copies_bytes(blocks, n);
	char *copy = bytes ? adi_schedule_memory(schedule, bytes) : NULL;
	if (!copy)
		return;
	struct adi_load load = { 0 };
	for (int step = 0; step < n; step++) {
		int peer = (step + n - comm->rank) % n;
		if (peer == comm->rank || !adi_block_bytes(blocks, peer))
			continue;
		if (!load_step(&load, adi_block_bytes(blocks, peer), COPIES_BYTES)) {
			exchange_copies(schedule, blocks, partner, steps, copy);
			steps = 0;
		}
		partner[steps++] = peer;
	}
	exchange_copies(schedule, blocks, partner, steps, copy);
}
