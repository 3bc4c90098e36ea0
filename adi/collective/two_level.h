/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two-level collectives of ranks on several machines: the ranks of each machine use messages of shared memory, and one rank of each
 * machine, its leader, exchanges messages with the leaders of the other machines. Each level is an algorithm for one level, among
 * some of the ranks (struct adi_view). Which rank is on which machine is exchanged by one of the first blocking collectives of a
 * communicator (node_segment.c). Nonblocking and persistent collectives have two levels from then on. But ranks may start them in
 * different orders with blocking ones (schedule_private.h), so a rank can have started more of them than another one when the
 * machines are exchanged. So the ranks also agree on the largest number that any of them has started: nonblocking and persistent
 * collectives below this number have one level at all ranks, the others two.
 */
#ifndef ADI_COLLECTIVE_TWO_LEVEL_H
#define ADI_COLLECTIVE_TWO_LEVEL_H

#include "adi/collective/reduction.h"

/* The machines of a communicator, in the order of their lowest ranks. */
struct adi_levels {
	int machines;
	int mine;      /* machine of this process */
	bool blocks;   /* the ranks of each machine follow each other: the order of machines and places is the order of ranks */
	int *machine;  /* [size]: of each rank */
	int *place;    /* [size]: of each rank among the ranks of its machine */
	int *first;    /* [machines]: lowest rank */
	int *ranks;    /* [machines]: number of ranks */
	int *local;    /* [ranks[mine]]: ranks of this machine */
};

/* Exchanges the machines. Collective. *levels is NULL if there is one machine, or no machine with two ranks. Returns an error
 * class. */
int adi_levels_make(struct adi_comm *comm, struct adi_levels **levels);
void adi_levels_free(struct adi_levels *levels);

/* *levels: the levels if this blocking collective has the two-level algorithm, else NULL. All ranks get the same answer; the
 * machines may be exchanged now. After adi_node_use has said no. Returns an error class: if the exchange has failed at this rank,
 * other ranks may know the machines. */
int adi_two_level_use(struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered,
		      const struct adi_levels **levels);
/* The same for a nonblocking or persistent collective: if the machines are known. */
int adi_two_level_known(const struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered,
			const struct adi_levels **levels);

/* A collective in two levels. The steps that are added next are of the ranks of this machine, or of the leaders. */
struct adi_two_level {
	struct adi_schedule *schedule;
	const struct adi_levels *levels;
	struct adi_view *local, *leaders; /* leaders: NULL if this rank is no leader */
	int top;                          /* the leader's place on this machine */
	int root;                         /* the root's machine */
};

/* The root is the leader of its machine, and the lowest rank is on other machines. False: no memory, which the schedule
 * remembers. */
bool adi_two_level_start(struct adi_two_level *way, struct adi_schedule *schedule, const struct adi_levels *levels, int root);

void adi_two_level_barrier(struct adi_schedule *schedule, const struct adi_levels *levels);
void adi_two_level_bcast(struct adi_schedule *schedule, const struct adi_levels *levels, void *buf, MPI_Count count,
			 struct adi_type *type, int root);
void adi_two_level_reduce(struct adi_schedule *schedule, const struct adi_levels *levels, const struct adi_reduction *reduction,
			  int root);
void adi_two_level_allreduce(struct adi_schedule *schedule, const struct adi_levels *levels, const struct adi_reduction *reduction);

#endif
