/* SPDX-License-Identifier: BSD-3-Clause */
/* Many ranks: they start, reduce, pass a message round, and end. Argument: bound of the memory of a rank, KB; 0: none. */
#include "test/adi/check_mpi.h"

#include <stdlib.h>
#include <sys/resource.h>

int main(int argc, char **argv)
{
	int rank, size, token = -1;
	long sum, most;
	CHECK(argc == 2);
	long bound = atol(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (long i = 0; i < 4; i++) {
		long mine = rank + i;
		MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
		CHECK(sum == (long)size * (size - 1) / 2 + i * size);
	}
	int next = (rank + 1) % size, previous = (rank + size - 1) % size;
	MPI_Sendrecv(&rank, 1, MPI_INT, next, 0, &token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(token == previous);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	MPI_Reduce(&usage.ru_maxrss, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
	if (rank == 0) {
		printf("%d ranks, %ld KB of memory at most\n", size, most);
		CHECK(!bound || most <= bound);
	}
	MPI_Finalize();
	return 0;
}
