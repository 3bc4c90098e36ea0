/* SPDX-License-Identifier: BSD-3-Clause */
/* The inside of a schedule: for schedule.c, which builds it, and run.c, which runs it. */
#ifndef ADI_COLLECTIVE_SCHEDULE_PRIVATE_H
#define ADI_COLLECTIVE_SCHEDULE_PRIVATE_H

#include "adi/collective/schedule.h"

enum step_kind { STEP_ROUND, STEP_SEND, STEP_RECEIVE, STEP_COPY, STEP_REDUCE, STEP_CALL };

struct schedule_step {
	uint8_t kind;          /* enum step_kind */
	bool inside;           /* a message inside the local group of an intercommunicator */
	int rank;              /* a message's peer */
	void *buf;             /* a message's; a copy's destination; what a reduction changes; a call's argument */
	MPI_Count count;       /* elements of buf */
	struct adi_type *type; /* of buf; holds a reference; NULL: none */
	const void *from;      /* copy, reduction */
	MPI_Count from_count;  /* copy */
	union {
		struct adi_type *from_type; /* copy; holds a reference */
		struct adi_op *op;          /* reduction; holds a reference */
		int (*function)(void *argument);
	} of;
};

struct adi_schedule {
	struct adi_task task;
	bool registered; /* as a task */

	/* Written by the builder. */
	struct schedule_step *step;
	size_t steps, room;
	size_t in_round, most;  /* messages of the round that is being built, of the largest round */
	struct block *memory;
	struct schedule_place {
		struct adi_comm *comm; /* holds a reference; NULL: not used */
		int tag;
	} place[2];             /* 1: inside the local group of an intercommunicator */
	bool inside;            /* place of the steps that are added next */
	struct adi_view *view;  /* how they name ranks; NULL: as the communicator does */
	bool failed;            /* no memory while it was built */
	int root;               /* of a broadcast or scatter; -1: another collective */
	void (*at_end)(void *argument, int class);
	void *at_end_argument;

	/* While it runs. */
	size_t next;                 /* the first step that has not begun */
	struct adi_request *request; /* [requests]: messages of the current round, in order */
	size_t requests;
	size_t begun, done;          /* messages of the current round; done are complete, in order */
	size_t round;                /* its first step */
	int class;                   /* the first error */
	bool has_text;               /* a local step has called adi_error for it */
	struct adi_request *handle;  /* the program's request; NULL: a blocking collective */

	struct adi_schedule *next_in_pool;
};

/*
 * Gives a schedule the tags of its messages. Blocking and nonblocking collectives are counted apart: two ranks may start them in
 * different orders, as with MPICH, although MPI 5.0, section 6.12, wants the same order. Persistent ones are nonblocking.
 */
void adi_schedule_take_tags(struct adi_schedule *schedule, bool blocking);
/* Frees a schedule that is not running. */
void adi_schedule_free(struct adi_schedule *schedule);

#endif
