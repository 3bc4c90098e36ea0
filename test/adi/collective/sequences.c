/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequences [TURNS]: blocking collectives of all kinds one after another, with roots and lengths that change. Most turns have no
 * barrier between them, so fast ranks run ahead of slow ones as far as the memory of the shared segment allows.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

#define LENGTHS (sizeof length / sizeof *length)
static const size_t length[] = { 8, 40, 56, 4096, 8192, 8200, 30000, 65536, 100000, 262144, 300000, 1100000 };
#define LONGEST 1100000

static int rank, size;
static unsigned char *from, *to; /* a block of each rank */

/* The same numbers at all ranks. */
static unsigned next(void)
{
	static unsigned state = 1;
	state = state * 1664525 + 1013904223;
	return state >> 16;
}

static unsigned seed(int sender, int receiver, int turn)
{
	return (unsigned)(sender * 59 + receiver * 17 + turn);
}

static void bcast(size_t bytes, int root, int turn)
{
	fill(to, bytes, seed(rank, 0, turn));
	MPI_Bcast(to, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	CHECK(filled(to, bytes, seed(root, 0, turn)));
}

static void scatter(size_t bytes, int root, int turn)
{
	for (int i = 0; rank == root && i < size; i++)
		fill(from + (size_t)i * bytes, bytes, seed(root, i, turn));
	MPI_Scatter(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	CHECK(filled(to, bytes, seed(root, rank, turn)));
}

static void gather(size_t bytes, int root, int turn)
{
	fill(from, bytes, seed(rank, root, turn));
	MPI_Gather(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, root, MPI_COMM_WORLD);
	for (int i = 0; rank == root && i < size; i++)
		CHECK(filled(to + (size_t)i * bytes, bytes, seed(i, root, turn)));
}

static void allgather(size_t bytes, int root, int turn)
{
	(void)root;
	fill(from, bytes, seed(rank, 0, turn));
	MPI_Allgather(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		CHECK(filled(to + (size_t)i * bytes, bytes, seed(i, 0, turn)));
}

static void alltoall(size_t bytes, int root, int turn)
{
	(void)root;
	for (int i = 0; i < size; i++)
		fill(from + (size_t)i * bytes, bytes, seed(rank, i, turn));
	MPI_Alltoall(from, (int)bytes, MPI_BYTE, to, (int)bytes, MPI_BYTE, MPI_COMM_WORLD);
	for (int i = 0; i < size; i++)
		CHECK(filled(to + (size_t)i * bytes, bytes, seed(i, rank, turn)));
}

/* Sums of bytes that do not overflow: each rank adds its number. */
static void fill_terms(size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		from[i] = (unsigned char)((size_t)rank + i % 7);
}

static void check_sums(size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		CHECK(to[i] == (unsigned char)((size_t)(size * (size - 1) / 2) + (size_t)size * (i % 7)));
}

static void reduce(size_t bytes, int root, int turn)
{
	(void)turn;
	fill_terms(bytes);
	MPI_Reduce(from, to, (int)bytes, MPI_UINT8_T, MPI_SUM, root, MPI_COMM_WORLD);
	if (rank == root)
		check_sums(bytes);
}

static void allreduce(size_t bytes, int root, int turn)
{
	(void)root;
	(void)turn;
	fill_terms(bytes);
	MPI_Allreduce(from, to, (int)bytes, MPI_UINT8_T, MPI_SUM, MPI_COMM_WORLD);
	check_sums(bytes);
}

static void barrier(size_t bytes, int root, int turn)
{
	(void)bytes;
	(void)root;
	(void)turn;
	MPI_Barrier(MPI_COMM_WORLD);
}

static void (*const kind[])(size_t bytes, int root, int turn) = {
	bcast, scatter, gather, allgather, alltoall, reduce, allreduce, barrier,
};

/* A few calls of one kind with one root, so that a sender can run ahead; then others. */
int main(int argc, char **argv)
{
	int turns = argc > 1 ? atoi(argv[1]) : 400;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	from = malloc((size_t)size * LONGEST);
	to = malloc((size_t)size * LONGEST);
	CHECK(from && to);
	for (int turn = 0; turn < turns;) {
		unsigned which = next() % (sizeof kind / sizeof *kind), root = next() % (unsigned)size, repeats = 1 + next() % 6;
		bool meets = next() % 4 == 0;
		for (unsigned i = 0; i < repeats && turn < turns; i++, turn++) {
			if (meets)
				MPI_Barrier(MPI_COMM_WORLD);
			kind[which](length[next() % LENGTHS], (int)root, turn);
		}
	}
	free(from);
	free(to);
	MPI_Finalize();
	return 0;
}
