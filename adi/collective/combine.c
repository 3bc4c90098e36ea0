/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the reduction algorithms share: partial results of neighbouring ranges of ranks are combined in the order of the ranks, so
 * that operations which do not commute are correct, and so that all ranks compute the same result to the last bit.
 */
#include "adi/collective/reduction.h"

int adi_check_buffer(const void *buf, MPI_Count count, const struct adi_type *type, bool in_place, const char *argument)
{
	if (buf == MPI_IN_PLACE && !in_place)
		return adi_error(MPI_ERR_BUFFER, "%s is MPI_IN_PLACE; this is not valid here", argument);
	if (adi_type_lacks_buffer(buf, count, type))
		return adi_error(MPI_ERR_BUFFER, "%s is NULL; valid: the address of %lld elements", argument, (long long)count);
	return MPI_SUCCESS;
}

void adi_reduction_hold(const struct adi_reduction *reduction)
{
	adi_object_retain(&reduction->type->object);
	if (reduction->op) /* NULL: none is needed where nothing is reduced */
		adi_object_retain(&reduction->op->object);
}

void adi_reduction_release(const struct adi_reduction *reduction)
{
	adi_type_release(reduction->type);
	if (reduction->op)
		adi_op_release(reduction->op);
}

int adi_reduction_take(struct adi_reduction *reduction, MPI_Count count, MPI_Datatype datatype, struct adi_op *op)
{
	*reduction = (struct adi_reduction){ .count = count, .op = op };
	int class = adi_check_count(count, "count");
	if (!class)
		class = adi_type_take_committed(datatype, "datatype", &reduction->type);
	return class ? class : adi_op_check(op, reduction->type);
}

int adi_reduction_buffers(struct adi_reduction *reduction, const void *send, void *receive, bool in_place)
{
	int class = adi_check_buffer(send, reduction->count, reduction->type, in_place, "sendbuf");
	if (!class)
		class = adi_check_buffer(receive, reduction->count, reduction->type, false, "recvbuf");
	if (class)
		return class;
	if (send == receive && reduction->count > 0 && !reduction->type->contents)
		return adi_error(MPI_ERR_BUFFER, "sendbuf and recvbuf are the same buffer; valid: MPI_IN_PLACE");
	reduction->send = send == MPI_IN_PLACE ? receive : send;
	reduction->receive = receive;
	return MPI_SUCCESS;
}

void adi_vector_start(struct adi_vector *vector, struct adi_schedule *schedule, const struct adi_reduction *reduction)
{
	MPI_Count count = reduction->count;
	*vector = (struct adi_vector){ .schedule = schedule, .reduction = reduction, .hi = count };
	vector->mine = reduction->receive ? reduction->receive : adi_schedule_elements(schedule, count, reduction->type);
	vector->fresh = reduction->op->commutative && reduction->send != vector->mine;
	if (!vector->fresh)
		adi_schedule_copy(schedule, reduction->send, count, reduction->type, vector->mine, count, reduction->type);
}

const char *adi_vector_source(const struct adi_vector *vector)
{
	return vector->fresh ? vector->reduction->send : vector->mine;
}

char *adi_vector_target(struct adi_vector *vector)
{
	if (vector->fresh)
		return vector->mine;
	if (!vector->other)
		vector->other = adi_schedule_elements(vector->schedule, vector->reduction->count, vector->reduction->type);
	return vector->other;
}

void adi_vector_combine(struct adi_vector *vector, MPI_Count at, MPI_Count n, bool lower)
{
	const struct adi_reduction *reduction = vector->reduction;
	char *mine = adi_vector_at(vector, vector->mine, at), *other = adi_vector_at(vector, vector->other, at);
	if (vector->fresh) {
		const char *own = adi_vector_at(vector, reduction->send, at);
		adi_schedule_reduce(vector->schedule, own, mine, n, reduction->type, reduction->op);
		vector->fresh = false;
		return;
	}
	if (!lower || reduction->op->commutative) {
		adi_schedule_reduce(vector->schedule, other, mine, n, reduction->type, reduction->op);
		return;
	}
	adi_schedule_reduce(vector->schedule, mine, other, n, reduction->type, reduction->op);
	char *swapped = vector->mine;
	vector->mine = vector->other;
	vector->other = swapped;
}

int adi_vector_rank(const struct adi_vector *vector, int number)
{
	return number < vector->extra ? 2 * number + 1 : number + vector->extra;
}

void adi_vector_fold(struct adi_vector *vector)
{
	const struct adi_comm *comm = adi_schedule_comm(vector->schedule);
	const struct adi_reduction *reduction = vector->reduction;
	int rank = comm->rank;
	for (vector->power = 1; vector->power <= comm->size / 2;)
		vector->power *= 2;
	vector->extra = comm->size - vector->power;
	if (rank >= 2 * vector->extra) {
		vector->rank = rank - vector->extra;
	} else if (rank % 2 == 0) {
		vector->rank = -1;
		adi_schedule_send(vector->schedule, adi_vector_source(vector), reduction->count, reduction->type, rank + 1);
		adi_schedule_round(vector->schedule);
	} else {
		vector->rank = rank / 2;
		adi_schedule_receive(vector->schedule, adi_vector_target(vector), reduction->count, reduction->type, rank - 1);
		adi_schedule_round(vector->schedule);
		adi_vector_combine(vector, 0, reduction->count, false);
	}
}

/* One step of halving: which half of [lo, hi) the rank keeps. */
static void keep_half(int number, int mask, MPI_Count *lo, MPI_Count *hi)
{
	MPI_Count middle = *lo + (*hi - *lo) / 2;
	if (number & mask)
		*lo = middle;
	else
		*hi = middle;
}

void adi_vector_part(const struct adi_vector *vector, int number, int steps, MPI_Count *lo, MPI_Count *hi)
{
	*lo = 0;
	*hi = vector->reduction->count;
	for (int step = 0; step < steps; step++)
		keep_half(number, 1 << step, lo, hi);
}

void adi_vector_halve(struct adi_vector *vector)
{
	struct adi_type *type = vector->reduction->type;
	struct adi_schedule *schedule = vector->schedule;
	for (int mask = 1; mask < vector->power; mask *= 2) {
		int number = vector->rank ^ mask, partner = adi_vector_rank(vector, number);
		MPI_Count lo = vector->lo, hi = vector->hi, away_lo = lo, away_hi = hi;
		keep_half(vector->rank, mask, &lo, &hi);
		keep_half(number, mask, &away_lo, &away_hi);
		if (hi > lo)
			adi_schedule_receive(schedule, adi_vector_at(vector, adi_vector_target(vector), lo), hi - lo, type,
					     partner);
		if (away_hi > away_lo)
			adi_schedule_send(schedule, adi_vector_at(vector, adi_vector_source(vector), away_lo), away_hi - away_lo,
					  type, partner);
		adi_schedule_round(schedule);
		vector->lo = lo;
		vector->hi = hi;
		adi_vector_combine(vector, lo, hi - lo, vector->rank < number);
	}
}
