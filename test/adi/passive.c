/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Over verbs: the adapter executes puts and gets. The last rank calls no function of MPI while the others read and write its
 * memory, until a put tells it that they have ended: by messages, all would wait without end. Then the order of puts, flushes, accumulates
 * and messages.
 */
#include "test/adi/check_mpi.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#define RANKS 8
#define LONGS 100000
#define TURNS 100
#define MANY 300 /* puts without a flush: more than the queue pairs take */

struct memory {
	long values[LONGS];          /* to be read */
	long area[RANKS][LONGS / 4]; /* for each origin */
	long many[RANKS][MANY];
	long sum;
	_Atomic long done[RANKS];
};

static struct memory memory;
static int rank, size, target;
static MPI_Win win;

#define PLACE(member) ((MPI_Aint)offsetof(struct memory, member))

static MPI_Aint place_of(int origin, size_t from, size_t each)
{
	return (MPI_Aint)(from + (size_t)origin * each);
}

static long value_of(int origin, int i)
{
	return (long)origin * 1000003 + i * 7 + 1;
}

/* The first operation asks for the key of the target's memory, and the target's answer needs its help. */
static void get_the_key(void)
{
	long first;
	if (rank != target) {
		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
		MPI_Get(&first, 1, MPI_LONG, target, PLACE(values), 1, MPI_LONG, win);
		MPI_Win_unlock(target, win);
		CHECK(first == value_of(target, 0));
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

static void read_and_write(void)
{
	static long got[LONGS], own[LONGS / 4];
	MPI_Request request;
	MPI_Datatype every_other;
	MPI_Get(got, LONGS, MPI_LONG, target, PLACE(values), LONGS, MPI_LONG, win);
	MPI_Win_flush(target, win);
	for (int i = 0; i < LONGS; i++)
		CHECK(got[i] == value_of(target, i));
	for (int i = 0; i < LONGS / 4; i++)
		own[i] = value_of(rank, i);
	MPI_Rput(own, LONGS / 4, MPI_LONG, target, place_of(rank, offsetof(struct memory, area), sizeof memory.area[0]), LONGS / 4,
		 MPI_LONG, win, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	/* Data of the origin that are not contiguous. */
	MPI_Type_vector(LONGS / 4, 1, 2, MPI_LONG, &every_other);
	MPI_Type_commit(&every_other);
	memset(got, 0, sizeof got);
	MPI_Rget(got, 1, every_other, target, place_of(rank, offsetof(struct memory, area), sizeof memory.area[0]), LONGS / 4, MPI_LONG,
		 win, &request);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	for (int i = 0; i < LONGS / 4; i++)
		CHECK(got[2 * i] == value_of(rank, i) && got[2 * i + 1] == 0);
	for (int i = 0; i < LONGS / 2; i++)
		got[i] = value_of(rank, i / 2) + i % 2;
	MPI_Put(got, 1, every_other, target, place_of(rank, offsetof(struct memory, area), sizeof memory.area[0]), LONGS / 4, MPI_LONG,
		win);
	MPI_Win_flush(target, win);
	MPI_Type_free(&every_other);
}

static void without_the_target(void)
{
	long one = 1, numbers[MANY];
	if (rank == target) {
		for (int i = 0; i < size - 1; i++)
			while (atomic_load_explicit(&memory.done[i], memory_order_acquire) == 0)
				;
		for (int i = 0; i < size - 1; i++) {
			for (int j = 0; j < LONGS / 4; j++)
				CHECK(memory.area[i][j] == value_of(i, j));
			for (int j = 0; j < MANY; j++)
				CHECK(memory.many[i][j] == value_of(i, j));
		}
	} else {
		MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
		read_and_write();
		for (int i = 0; i < MANY; i++) {
			numbers[i] = value_of(rank, i);
			MPI_Put(&numbers[i], 1, MPI_LONG, target,
				place_of(rank, offsetof(struct memory, many), sizeof memory.many[0]) + i * (MPI_Aint)sizeof(long), 1, MPI_LONG,
				win);
		}
		MPI_Win_flush(target, win);
		MPI_Put(&one, 1, MPI_LONG, target, place_of(rank, offsetof(struct memory, done), sizeof memory.done[0]), 1, MPI_LONG, win);
		MPI_Win_unlock_all(win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* The target sees a put that was flushed when it has received a message that was sent after the flush. */
static void a_flushed_put_comes_before_a_message(void)
{
	long value;
	for (int turn = 0; turn < TURNS; turn++) {
		if (rank != target) {
			MPI_Aint at = place_of(rank, offsetof(struct memory, many), sizeof memory.many[0]);
			value = value_of(rank, turn + MANY);
			MPI_Win_lock(MPI_LOCK_SHARED, target, 0, win);
			MPI_Put(&value, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
			MPI_Win_flush(target, win);
			MPI_Send(&turn, 1, MPI_INT, target, 0, MPI_COMM_WORLD);
			MPI_Recv(&turn, 1, MPI_INT, target, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Win_unlock(target, win);
			continue;
		}
		for (int i = 0; i < size - 1; i++) {
			int theirs = -1;
			MPI_Recv(&theirs, 1, MPI_INT, i, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK(theirs == turn && memory.many[i][0] == value_of(i, turn + MANY));
			MPI_Send(&turn, 1, MPI_INT, i, 0, MPI_COMM_WORLD);
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
}

/* Accumulates go by messages, puts and gets by the adapter. A flush is the end of both. */
static void a_flush_waits_for_both_ways(void)
{
	long one = 1, sum = 0, put, got;
	if (rank != target) {
		MPI_Aint at = place_of(rank, offsetof(struct memory, many), sizeof memory.many[0]);
		MPI_Win_lock_all(0, win);
		for (int turn = 0; turn < TURNS; turn++) {
			put = value_of(rank, turn);
			MPI_Put(&put, 1, MPI_LONG, target, at, 1, MPI_LONG, win);
			MPI_Accumulate(&one, 1, MPI_LONG, target, PLACE(sum), 1, MPI_LONG, MPI_SUM, win);
			MPI_Win_flush(target, win);
			/* By the other way each. */
			MPI_Fetch_and_op(NULL, &got, MPI_LONG, target, at, MPI_NO_OP, win);
			MPI_Get(&sum, 1, MPI_LONG, target, PLACE(sum), 1, MPI_LONG, win);
			MPI_Win_flush(target, win);
			CHECK(got == put && sum > turn);
		}
		MPI_Win_unlock_all(win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == target)
		CHECK(memory.sum == (long)TURNS * (size - 1));
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size > 1 && size <= RANKS);
	target = size - 1;
	for (int i = 0; i < LONGS; i++)
		memory.values[i] = value_of(rank, i);
	MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	get_the_key();
	without_the_target();
	a_flushed_put_comes_before_a_message();
	a_flush_waits_for_both_ways();
	MPI_Win_free(&win);
	/* Once more, at the same place: the keys of the window before are void. */
	MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	get_the_key();
	a_flushed_put_comes_before_a_message();
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
