/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With HEADRACE_MPI_PROGRESS_THREAD=1: the last rank calls no function of MPI until the others have got and changed its memory,
 * which they tell it by a put into this memory. Without the thread all wait without end.
 */
#include "test/adi/check_mpi.h"

#include <stdatomic.h>
#include <stddef.h>

#define VALUES 100000

int main(int argc, char **argv)
{
	int rank, size;
	static long got[VALUES];
	static struct memory {
		_Atomic long done; /* how many ranks have ended */
		long sum;
		long values[VALUES];
	} memory;
	MPI_Win win;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < VALUES; i++)
		memory.values[i] = rank == size - 1 ? i : -1;
	MPI_Win_create(&memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
	if (rank < size - 1) {
		long one = 1, old = -1;
		MPI_Win_lock(MPI_LOCK_SHARED, size - 1, 0, win);
		MPI_Get(got, VALUES, MPI_LONG, size - 1, offsetof(struct memory, values), VALUES, MPI_LONG, win);
		MPI_Fetch_and_op(&one, &old, MPI_LONG, size - 1, offsetof(struct memory, sum), MPI_SUM, win);
		MPI_Win_flush(size - 1, win);
		for (int i = 0; i < VALUES; i++)
			CHECK(got[i] == i);
		CHECK(old >= 0 && old < size - 1);
		MPI_Accumulate(&one, 1, MPI_LONG, size - 1, offsetof(struct memory, done), 1, MPI_LONG, MPI_SUM, win);
		MPI_Win_unlock(size - 1, win);
	} else {
		while (atomic_load_explicit(&memory.done, memory_order_relaxed) < size - 1)
			;
	}
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == size - 1)
		CHECK(memory.sum == size - 1);
	MPI_Win_free(&win);
	MPI_Finalize();
	return 0;
}
