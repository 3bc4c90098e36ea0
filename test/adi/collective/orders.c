/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orders COUNTER: barriers between broadcasts and scatters, blocking and nonblocking, that the ranks start in different orders. If
 * there are more ranks than processors, the root of the collective behind the last barrier leaves the next barrier first, and here
 * ranks differ in which rank this is. No rank may leave a barrier before all ranks have entered it, and none may wait without end.
 * All ranks count their entries in the shared file COUNTER.
 */
#include "test/adi/check_mpi.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define TURNS 300

static int rank, size;
static int *entered;

static unsigned next(unsigned *state)
{
	*state = *state * 1664525 + 1013904223;
	return *state >> 16;
}

static void barrier(int turn, int late)
{
	if (late == rank)
		usleep(500);
	__atomic_add_fetch(entered, 1, __ATOMIC_SEQ_CST);
	MPI_Barrier(MPI_COMM_WORLD);
	CHECK(__atomic_load_n(entered, __ATOMIC_SEQ_CST) >= (turn + 1) * size);
}

static void blocking(int root, int turn)
{
	int value = rank == root ? turn : -1;
	MPI_Bcast(&value, 1, MPI_INT, root, MPI_COMM_WORLD);
	CHECK(value == turn);
}

/* Starts one of two persistent broadcasts, a broadcast or a scatter. *value is to be `turn` when it is complete. */
static void start(unsigned kind, int root, int turn, MPI_Request persistent, int *value, int *all, MPI_Request *request)
{
	*request = persistent;
	*value = rank == root ? turn : -1;
	for (int i = 0; i < size; i++)
		all[i] = turn;
	if (kind == 0)
		MPI_Start(request);
	else if (kind == 1)
		MPI_Ibcast(value, 1, MPI_INT, root, MPI_COMM_WORLD, request);
	else
		MPI_Iscatter(all, 1, MPI_INT, value, 1, MPI_INT, root, MPI_COMM_WORLD, request);
}

static void turn(int number, unsigned same, unsigned own, MPI_Request persistent, int *value, int *all)
{
	unsigned kind = same % 3;
	int first = (int)(same / 4 % (unsigned)size), second = kind == 0 ? 0 : (int)(same / 64 % (unsigned)size);
	MPI_Request request;
	barrier(number, same / 1024 % 2 ? (int)(same / 16 % (unsigned)size) : -1);
	if (own % 2)
		blocking(first, number);
	start(kind, second, number, persistent, value, all, &request);
	if (!(own % 2))
		blocking(first, number);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(*value == number);
}

int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	CHECK(argc == 2);
	int fd = open(argv[1], O_RDWR | O_CREAT, 0600), value, *all = calloc((size_t)size, sizeof *all);
	CHECK(all && fd >= 0 && ftruncate(fd, sizeof *entered) == 0);
	entered = mmap(NULL, sizeof *entered, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(entered != MAP_FAILED);
	MPI_Request persistent;
	MPI_Bcast_init(&value, 1, MPI_INT, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &persistent);
	unsigned same = 1, own = (unsigned)rank + 2;
	for (int i = 0; i < TURNS; i++) {
		unsigned all_alike = next(&same);
		turn(i, all_alike, next(&own), persistent, &value, all);
	}
	MPI_Request_free(&persistent);
	if (rank == 0)
		printf("orders: %d ranks, %d turns: correct\n", size, TURNS);
	free(all);
	MPI_Finalize();
	return 0;
}
