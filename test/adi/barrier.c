/* SPDX-License-Identifier: BSD-3-Clause */
/* No rank leaves a barrier before all ranks have entered it. All ranks count their entries in a shared file, the first
 * argument. In each round another rank enters late. */
#include "test/adi/check_mpi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define ROUNDS 200

int main(int argc, char **argv)
{
	int rank, size;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(argc == 2);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
	CHECK(fd >= 0 && ftruncate(fd, sizeof(int)) == 0);
	int *entered = mmap(NULL, sizeof *entered, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(entered != MAP_FAILED);
	for (int round = 0; round < ROUNDS; round++) {
		if (round % size == rank)
			usleep(1000);
		__atomic_add_fetch(entered, 1, __ATOMIC_SEQ_CST);
		MPI_Barrier(MPI_COMM_WORLD);
		CHECK(__atomic_load_n(entered, __ATOMIC_SEQ_CST) >= (round + 1) * size);
	}
	if (rank == 0)
		printf("barrier: %d ranks, %d rounds: correct\n", size, ROUNDS);
	MPI_Finalize();
	return 0;
}
