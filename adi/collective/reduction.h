/* SPDX-License-Identifier: BSD-3-Clause */
/* Builders of the reductions. Each adds steps to a schedule; ranks are those of adi_schedule_comm(schedule). */
#ifndef ADI_COLLECTIVE_REDUCTION_H
#define ADI_COLLECTIVE_REDUCTION_H

#include "adi/collective/schedule.h"
#include "adi/collective/select.h"
#include "adi/core/array.h"

/* The arguments of a reduction, checked. send is the same as receive if the call was in place. */
struct adi_reduction {
	const void *send;
	void *receive; /* where it is not significant: NULL */
	MPI_Count count;
	struct adi_type *type;
	struct adi_op *op;
};

/* Takes type and op, and checks count. Returns an error class. */
int adi_reduction_take(struct adi_reduction *reduction, MPI_Count count, MPI_Datatype datatype, struct adi_op *op);
/* Checks a buffer that is significant: not NULL if there are data of a predefined type, MPI_IN_PLACE only if in_place. */
int adi_check_buffer(const void *buf, MPI_Count count, const struct adi_type *type, bool in_place, const char *argument);
/* Checks sendbuf and recvbuf, both significant, and stores them. in_place: sendbuf may be MPI_IN_PLACE. */
int adi_reduction_buffers(struct adi_reduction *reduction, const void *send, void *receive, bool in_place);

/* Hold type and op. While a blocking collective waits, another thread may free them. */
void adi_reduction_hold(const struct adi_reduction *reduction);
void adi_reduction_release(const struct adi_reduction *reduction);

static inline size_t adi_reduction_bytes(const struct adi_reduction *reduction)
{
	return (size_t)(reduction->count * reduction->type->size);
}

void adi_build_reduce(struct adi_schedule *schedule, const struct adi_reduction *reduction, int root);
void adi_build_allreduce(struct adi_schedule *schedule, const struct adi_reduction *reduction);
void adi_build_bcast(struct adi_schedule *schedule, void *buf, MPI_Count count, struct adi_type *type, int root);
void adi_build_barrier(struct adi_schedule *schedule);

/* ---- for the algorithms: combine.c ---- */

/* A vector that is being reduced: mine has this rank's partial result, other is for what arrives. Ranks that take part have new
 * numbers 0..power-1, power a power of two, in the order of their ranks. If the operation commutes and the call is not in place,
 * the vector is fresh at first: the partial result is still in the send buffer, and what arrives first goes to mine, where it is
 * combined with the send buffer. This saves a copy. */
struct adi_vector {
	struct adi_schedule *schedule;
	const struct adi_reduction *reduction;
	bool fresh;
	char *mine, *other; /* other: NULL until it is needed */
	int rank;          /* the new number; -1: this rank has given its data to the next one */
	int power, extra;  /* 2 * extra ranks at the begin have become extra ones */
	MPI_Count lo, hi;  /* elements of mine that are valid */
};

/* Prepares the buffers: mine is the receive buffer if there is one. */
void adi_vector_start(struct adi_vector *vector, struct adi_schedule *schedule, const struct adi_reduction *reduction);
/* From where the next step sends, and where it receives. */
const char *adi_vector_source(const struct adi_vector *vector);
char *adi_vector_target(struct adi_vector *vector);
/* Combines what arrived, elements [at, at + n), with the partial result: as mine op other if lower, i.e. if mine comes from lower
 * ranks. May exchange the two buffers. The rest of a fresh vector is lost. */
void adi_vector_combine(struct adi_vector *vector, MPI_Count at, MPI_Count n, bool lower);
/* Reduces the number of ranks to a power of two. */
void adi_vector_fold(struct adi_vector *vector);
/* The rank of a new number. */
int adi_vector_rank(const struct adi_vector *vector, int number);
/* Recursive halving: [lo, hi) becomes this rank's part, which is reduced over all. */
void adi_vector_halve(struct adi_vector *vector);
/* The part of a rank after some steps of halving. */
void adi_vector_part(const struct adi_vector *vector, int number, int steps, MPI_Count *lo, MPI_Count *hi);
static inline char *adi_vector_at(const struct adi_vector *vector, const char *base, MPI_Count element)
{
	return (char *)base + element * vector->reduction->type->extent;
}

#endif
