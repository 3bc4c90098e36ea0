/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ping-pong between ranks 2k and 2k+1. Prints half the round-trip time (median and 99th percentile) and the bandwidth.
 * Checks the contents. Builds with the compiler wrapper of any MPI library, so that libraries can be compared.
 *
 *	pingpong [ITERATIONS [LARGEST]]
 */
#include "test/adi/check_mpi.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* Measures one message size. Stores the round-trip times, in seconds, in time[0..n-1]. */
static void measure(int rank, int peer, char *bytes, int len, double *time, int n)
{
	for (int i = -n / 10 - 1; i < n; i++) {
		unsigned char mark = (unsigned char)(i + len);
		double start = MPI_Wtime();
		if (rank % 2 == 0) {
			if (len > 0)
				bytes[0] = bytes[len - 1] = (char)mark;
			MPI_Send(bytes, len, MPI_CHAR, peer, 1, MPI_COMM_WORLD);
			MPI_Recv(bytes, len, MPI_CHAR, peer, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK(len < 2 || bytes[0] == (char)mark);
			CHECK(len < 2 || (unsigned char)bytes[len - 1] == (unsigned char)~mark);
		} else {
			MPI_Recv(bytes, len, MPI_CHAR, peer, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK(len == 0 || (unsigned char)bytes[len - 1] == mark);
			if (len > 1)
				bytes[len - 1] = (char)~mark;
			MPI_Send(bytes, len, MPI_CHAR, peer, 2, MPI_COMM_WORLD);
		}
		if (i >= 0)
			time[i] = MPI_Wtime() - start;
	}
}

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(size % 2 == 0);
	int iterations = argc > 1 ? atoi(argv[1]) : 200, largest = argc > 2 ? atoi(argv[2]) : 1 << 20;
	char *bytes = calloc(1, (size_t)largest + 1);
	double *time = calloc((size_t)iterations, sizeof *time);
	if (rank == 0)
		printf("%10s %12s %12s %10s  (%d ranks, %d iterations)\n", "bytes", "median us", "p99 us", "MB/s", size,
		       iterations);
	for (int len = 0; len <= largest; len = len ? len * 8 : 8) {
		int n = len > 65536 && iterations > 20 ? iterations / 10 : iterations;
		MPI_Barrier(MPI_COMM_WORLD);
		measure(rank, rank ^ 1, bytes, len, time, n);
		qsort(time, (size_t)n, sizeof *time, by_value);
		double median = time[n / 2] / 2 * 1e6;
		if (rank == 0)
			printf("%10d %12.2f %12.2f %10.1f\n", len, median, time[n * 99 / 100] / 2 * 1e6, len / median);
	}
	free(bytes);
	free(time);
	MPI_Finalize();
	return 0;
}
