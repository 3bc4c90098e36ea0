/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges with so many bytes that a rank needs several rounds for them: alltoallv, blocking, nonblocking, persistent and in place.
 * The lengths of the blocks differ, some are 0, so the rounds of the ranks begin at different steps.
 */
#include "test/adi/check_mpi.h"

#include <string.h>

#define LENGTHS (sizeof length / sizeof *length)
static const int length[] = { 1500000, 40, 700000, 3000000, 0, 900000, 66000 };

static int rank, size;
static int *out, *out_at, *in, *in_at;
static unsigned char *from, *to;

static int bytes_of(int sender, int receiver, int turn)
{
	return length[(size_t)(sender * 3 + receiver * 5 + turn) % LENGTHS];
}

/* In place, two ranks send each other the same number of bytes. */
static int bytes_of_pair(int a, int b, int turn)
{
	return a < b ? bytes_of(a, b, turn) : bytes_of(b, a, turn);
}

static unsigned seed(int sender, int receiver, int turn)
{
	return (unsigned)(sender * 59 + receiver * 17 + turn);
}

/* Places of blocks one behind the other. Returns their bytes. */
static size_t place(const int *bytes, int *at)
{
	int end = 0;
	for (int i = 0; i < size; i++) {
		at[i] = end;
		end += bytes[i];
	}
	return (size_t)end;
}

static void set_lengths(int turn)
{
	for (int i = 0; i < size; i++) {
		out[i] = bytes_of(rank, i, turn);
		in[i] = bytes_of(i, rank, turn);
	}
}

static void allocate(void)
{
	from = malloc(place(out, out_at) + 1);
	to = calloc(place(in, in_at) + 1, 1);
	CHECK(from && to);
}

static void check(int turn)
{
	for (int i = 0; i < size; i++)
		CHECK(filled(to + in_at[i], (size_t)in[i], seed(i, rank, turn)));
	free(from);
	free(to);
}

static void exchange(int form, int turn)
{
	MPI_Request request;
	set_lengths(turn);
	allocate();
	for (int i = 0; i < size; i++)
		fill(from + out_at[i], (size_t)out[i], seed(rank, i, turn));
	if (form == 0) {
		MPI_Alltoallv(from, out, out_at, MPI_BYTE, to, in, in_at, MPI_BYTE, MPI_COMM_WORLD);
	} else if (form == 1) {
		MPI_Ialltoallv(from, out, out_at, MPI_BYTE, to, in, in_at, MPI_BYTE, MPI_COMM_WORLD, &request);
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else {
		MPI_Alltoallv_init(from, out, out_at, MPI_BYTE, to, in, in_at, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL,
				   &request);
		for (int i = 0; i < 2; i++) {
			memset(to, 0, (size_t)in_at[size - 1] + (size_t)in[size - 1]);
			MPI_Start(&request);
			MPI_Wait(&request, MPI_STATUS_IGNORE);
		}
		MPI_Request_free(&request);
	}
	check(turn);
}

static void exchange_in_place(int turn)
{
	for (int i = 0; i < size; i++)
		out[i] = in[i] = bytes_of_pair(rank, i, turn);
	allocate();
	for (int i = 0; i < size; i++)
		fill(to + in_at[i], (size_t)in[i], seed(rank, i, turn));
	MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_BYTE, to, in, in_at, MPI_BYTE, MPI_COMM_WORLD);
	check(turn);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int *memory = calloc(4 * (size_t)size, sizeof *memory);
	CHECK(memory);
	out = memory;
	out_at = out + size;
	in = out_at + size;
	in_at = in + size;
	/* A communicator's first collectives do not use the shared segment yet. */
	for (int i = 0; i < 3; i++)
		MPI_Barrier(MPI_COMM_WORLD);
	for (int turn = 0; turn < 4; turn++) {
		exchange(turn % 3, turn);
		exchange_in_place(turn);
	}
	if (rank == 0)
		printf("rounds: %d ranks: correct\n", size);
	free(memory);
	MPI_Finalize();
	return 0;
}
