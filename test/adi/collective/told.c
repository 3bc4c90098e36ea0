/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of messages in which the count of rank 1 differs. The result of each rank needs the data of all ranks, but not all
 * ranks exchange messages with rank 1. No rank may return MPI_SUCCESS: its result would be wrong. The collectives after it work.
 * Nonblocking collectives always use messages.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

#define MOST 60000 /* elements */
#define RANKS_MAX 16

static int rank, size;
static long *out, *in;

static int allreduce(int count, MPI_Request *request)
{
	return MPI_Iallreduce(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, request);
}

static int allgather(int count, MPI_Request *request)
{
	return MPI_Iallgather(out, count, MPI_LONG, in, count, MPI_LONG, MPI_COMM_WORLD, request);
}

static int reduce_scatter_block(int count, MPI_Request *request)
{
	return MPI_Ireduce_scatter_block(out, in, count, MPI_LONG, MPI_SUM, MPI_COMM_WORLD, request);
}

static void works(void)
{
	for (int i = 0; i < MOST; i++)
		out[i] = rank + i;
	CHECK(MPI_Allreduce(out, in, MOST, MPI_LONG, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS);
	for (int i = 0; i < MOST; i++)
		CHECK(in[i] == size * (size - 1) / 2 + (long)size * i);
}

static void disagree(const char *name, int (*start)(int count, MPI_Request *request), int usual, int odd)
{
	MPI_Request request;
	CHECK(start(rank == 1 ? odd : usual, &request) == MPI_SUCCESS);
	int class = MPI_Wait(&request, MPI_STATUS_IGNORE);
	if (class != MPI_ERR_TRUNCATE)
		fprintf(stderr, "%s, %d and %d elements: error class %d at rank %d\n", name, usual, odd, class, rank);
	CHECK(class == MPI_ERR_TRUNCATE);
	works();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*start)(int count, MPI_Request *request);
	} collectives[] = {
		{ "allreduce", allreduce }, { "allgather", allgather }, { "reduce_scatter_block", reduce_scatter_block },
	};
	/* With one algorithm for both counts. */
	static const int counts[][2] = { { 1, 2 }, { 2, 1 }, { 500, 501 }, { 40001, 40000 } };
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size > 1 && size <= RANKS_MAX);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	out = calloc((size_t)size * MOST, sizeof *out);
	in = calloc((size_t)size * MOST, sizeof *in);
	CHECK(out && in);
	for (size_t i = 0; i < sizeof collectives / sizeof *collectives; i++)
		for (size_t j = 0; j < sizeof counts / sizeof *counts; j++)
			disagree(collectives[i].name, collectives[i].start, counts[j][0], counts[j][1]);
	free(out);
	free(in);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
