/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocking collectives whose counts disagree, among ranks that share a segment. No rank may wait without end, at least one rank
 * returns MPI_ERR_TRUNCATE (unless a rank counts no data), all others MPI_SUCCESS or MPI_ERR_TRUNCATE, and the collectives after it
 * work. A barrier in which a rank calls another collective does not succeed before all ranks have called it.
 */
#include "../check_mpi.h"

#include <string.h>

#define MOST 700000 /* bytes of a block; more than two steps of the segment */
static int rank, ranks, number;
static char *out, *in;

/* Correct collectives of several kinds. Their data depend on `number`, so that data of an earlier collective are noticed. */
static void works(void)
{
	int n = 40000 + number % 7, expected = 0;
	number++;
	memset(out, number + rank, (size_t)n);
	memset(in, 0, (size_t)(n * ranks));
	CHECK(MPI_Allgather(out, n, MPI_BYTE, in, n, MPI_BYTE, MPI_COMM_WORLD) == MPI_SUCCESS);
	for (int i = 0; i < ranks; i++)
		CHECK(in[i * n] == (char)(number + i) && in[(i + 1) * n - 1] == (char)(number + i));
	memset(in, rank ? 0 : number, 8);
	CHECK(MPI_Bcast(in, 8, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS && in[7] == (char)number);
	memset(in, rank == 1 ? number : 0, 300000);
	CHECK(MPI_Bcast(in, 300000, MPI_BYTE, 1, MPI_COMM_WORLD) == MPI_SUCCESS);
	CHECK(in[0] == (char)number && in[299999] == (char)number);
	int mine = number * (rank + 1), sum;
	for (int i = 0; i < ranks; i++)
		expected += number * (i + 1);
	CHECK(MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) == MPI_SUCCESS && sum == expected);
	CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
}

/* The arguments of the v forms: a block for each rank, MOST bytes apart. */
static int counts[64], displs[64], others[64], other_displs[64];

static void blocks(int *count, int *displ, int bytes)
{
	for (int i = 0; i < ranks; i++) {
		count[i] = bytes;
		displ[i] = i * MOST;
	}
}

static int call(const char *name, int mine, int usual)
{
	int root = ranks - 1, odd = 0; /* the rank whose counts differ */
	blocks(counts, displs, mine);
	blocks(others, other_displs, usual);
	/* The other ranks expect the usual bytes of the odd one. In the v forms only one block is wrong. */
	if (!strcmp(name, "bcast"))
		return MPI_Bcast(out, mine, MPI_BYTE, root, MPI_COMM_WORLD);
	if (!strcmp(name, "bcast from odd"))
		return MPI_Bcast(out, mine, MPI_BYTE, odd, MPI_COMM_WORLD);
	if (!strcmp(name, "reduce"))
		return MPI_Reduce(out, in, mine, MPI_BYTE, MPI_BOR, root, MPI_COMM_WORLD);
	if (!strcmp(name, "allreduce"))
		return MPI_Allreduce(out, in, mine, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
	if (!strcmp(name, "reduce_scatter_block"))
		return MPI_Reduce_scatter_block(out, in, mine, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
	if (!strcmp(name, "gather"))
		return MPI_Gather(out, mine, MPI_BYTE, in, usual, MPI_BYTE, root, MPI_COMM_WORLD);
	if (!strcmp(name, "scatter"))
		return MPI_Scatter(out, usual, MPI_BYTE, in, mine, MPI_BYTE, root, MPI_COMM_WORLD);
	if (!strcmp(name, "allgather"))
		return MPI_Allgather(out, mine, MPI_BYTE, in, mine, MPI_BYTE, MPI_COMM_WORLD);
	if (!strcmp(name, "alltoall"))
		return MPI_Alltoall(out, mine, MPI_BYTE, in, mine, MPI_BYTE, MPI_COMM_WORLD);
	if (!strcmp(name, "gatherv"))
		return MPI_Gatherv(out, mine, MPI_BYTE, in, others, displs, MPI_BYTE, root, MPI_COMM_WORLD);
	if (!strcmp(name, "scatterv"))
		return MPI_Scatterv(out, others, displs, MPI_BYTE, in, mine, MPI_BYTE, root, MPI_COMM_WORLD);
	if (!strcmp(name, "allgatherv")) {
		for (int i = 0; i < ranks; i++)
			counts[i] = i == odd ? mine : usual;
		return MPI_Allgatherv(out, rank == odd ? mine : usual, MPI_BYTE, in, counts, displs, MPI_BYTE, MPI_COMM_WORLD);
	}
	CHECK(!strcmp(name, "alltoallv"));
	for (int i = 0; i < ranks; i++)
		counts[i] = i == rank || rank != odd || i != root ? usual : mine; /* only the block from odd to root */
	return MPI_Alltoallv(out, counts, displs, MPI_BYTE, in, others, other_displs, MPI_BYTE, MPI_COMM_WORLD);
}

static void disagree(const char *name, int odd, int usual)
{
	int class = call(name, rank == 0 ? odd : usual, usual), worst;
	if (class != MPI_SUCCESS && class != MPI_ERR_TRUNCATE)
		fprintf(stderr, "%s: %d and %d bytes: error class %d\n", name, odd, usual, class);
	CHECK(class == MPI_SUCCESS || class == MPI_ERR_TRUNCATE);
	CHECK(MPI_Allreduce(&class, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD) == MPI_SUCCESS);
	/* A rank without data need not look at the data of others. */
	if (worst != MPI_ERR_TRUNCATE && odd && usual)
		fprintf(stderr, "%s: %d and %d bytes: no rank has seen it\n", name, odd, usual);
	CHECK(worst == MPI_ERR_TRUNCATE || !odd || !usual);
	works();
}

/* If ranks share processors, rank 0, the root of the broadcast behind the last barrier, leaves the barrier first. It gets an error,
 * as rank 1 calls an allreduce. So its end must not tell the last rank that rank 2 has entered. Rank 2 enters when the last rank has
 * left. */
static void disagree_in_barrier(void)
{
	long value = 1, sum;
	int class, told = MPI_ERR_TRUNCATE, last = ranks - 1;
	for (int i = 0; i < 5; i++) {
		CHECK(MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS);
		CHECK(MPI_Bcast(&value, 1, MPI_LONG, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
	}
	if (rank == 2)
		MPI_Recv(&told, 1, MPI_INT, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	if (rank == 1)
		class = MPI_Allreduce(&value, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
	else
		class = MPI_Barrier(MPI_COMM_WORLD);
	if (rank == last)
		MPI_Send(&class, 1, MPI_INT, 2, 0, MPI_COMM_WORLD);
	CHECK(class == MPI_ERR_TRUNCATE && told == MPI_ERR_TRUNCATE);
	works();
}

int main(int argc, char **argv)
{
	static const char *const names[] = {
		"bcast", "bcast from odd", "reduce", "allreduce", "reduce_scatter_block", "gather", "scatter", "allgather",
		"alltoall", "gatherv", "scatterv", "allgatherv", "alltoallv",
	};
	/* Around the sizes at which the number of steps, or the way, changes. */
	static const int sizes[] = { 0, 8, 20000, 100000, MOST };
	enum { SIZES = sizeof sizes / sizeof *sizes };
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	out = calloc((size_t)ranks, MOST);
	in = calloc((size_t)ranks, MOST);
	CHECK(out && in && ranks > 1 && ranks <= 64);
	for (int i = 0; i < 3; i++) /* the segment is made at the third collective */
		works();
	for (size_t name = 0; name < sizeof names / sizeof *names; name++)
		for (int a = 0; a < SIZES; a++)
			for (int b = 0; b < SIZES; b++)
				if (a != b)
					disagree(names[name], sizes[a], sizes[b]);
	if (ranks > 3)
		disagree_in_barrier();
	free(out);
	free(in);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
