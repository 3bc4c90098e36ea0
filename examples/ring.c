/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring [ROUNDS]: a token goes round all ranks; each rank adds its number. Rank 0 checks the sum and prints the time of a hop.
 *	hrmpicc ring.c -o ring && mpirun -n 4 ./ring
 */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	int rank, size, rounds = argc > 1 ? atoi(argv[1]) : 1000;
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (rounds <= 0) {
		if (rank == 0)
			fprintf(stderr, "usage: ring [ROUNDS]   (at least 1)\n");
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
	}

	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	long token = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	double begin = MPI_Wtime();
	for (int round = 0; round < rounds; round++) {
		if (rank == 0) {
			MPI_Request arrival; /* a ring of one sends to itself */
			long sent = token;
			MPI_Irecv(&token, 1, MPI_LONG, previous, round, MPI_COMM_WORLD, &arrival);
			MPI_Send(&sent, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
			MPI_Wait(&arrival, MPI_STATUS_IGNORE);
		} else {
			MPI_Recv(&token, 1, MPI_LONG, previous, round, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			token += rank;
			MPI_Send(&token, 1, MPI_LONG, next, round, MPI_COMM_WORLD);
		}
	}
	double hop = (MPI_Wtime() - begin) / rounds / size;

	int status = EXIT_SUCCESS;
	if (rank == 0) {
		long want = (long)rounds * size * (size - 1) / 2;
		if (token != want) {
			fprintf(stderr, "ring: the token is %ld, want %ld\n", token, want);
			status = EXIT_FAILURE;
		} else {
			printf("ring: %d ranks, %d rounds, %.2f us a hop\n", size, rounds, 1e6 * hop);
		}
	}
	MPI_Finalize();
	return status;
}
