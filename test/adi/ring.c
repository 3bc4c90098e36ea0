/* SPDX-License-Identifier: BSD-3-Clause */
/* A token passes around all ranks. Each rank adds one to every element of the token. Sizes from 0 to 4 MB, or to the
 * first argument, in elements. */
#include "test/adi/check_mpi.h"

#define LAPS 3

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	int most = argc > 1 ? atoi(argv[1]) : 1 << 20, laps_done = 0;
	int *token = calloc((size_t)most + 1, sizeof *token);
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	for (int n = 0; n <= most; n = n ? n * 4 : 1) {
		for (int i = 0; i < n; i++)
			token[i] = i;
		for (int lap = 0; lap < LAPS; lap++) {
			MPI_Status status;
			int count;
			if (rank == 0)
				MPI_Send(token, n, MPI_INT, next, n, MPI_COMM_WORLD);
			MPI_Recv(token, n, MPI_INT, previous, n, MPI_COMM_WORLD, &status);
			MPI_Get_count(&status, MPI_INT, &count);
			CHECK(count == n && status.MPI_SOURCE == previous && status.MPI_TAG == n);
			for (int i = 0; i < n; i++)
				CHECK(token[i] == i + (lap * size) + (rank == 0 ? size - 1 : rank - 1));
			for (int i = 0; i < n; i++)
				token[i]++;
			if (rank != 0)
				MPI_Send(token, n, MPI_INT, next, n, MPI_COMM_WORLD);
			laps_done++;
		}
	}
	MPI_Barrier(MPI_COMM_WORLD);
	free(token);
	if (rank == 0)
		printf("ring: %d ranks, %d laps, up to %d elements: correct\n", size, laps_done, most);
	MPI_Finalize();
	return 0;
}
