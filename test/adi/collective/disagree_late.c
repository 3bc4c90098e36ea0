/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A broadcast of two ranks. The root's count and the receiver's count disagree, and the root starts as many further
 * collectives as it can before the receiver returns. The root sleeps until the receiver ends its part of the broadcast.
 * Then the receiver's call that wakes the root, which this program replaces, returns only when the root has overwritten
 * the slot of the broadcast in the shared segment.
 */
#define _GNU_SOURCE
#include "../check_mpi.h"

#include <dlfcn.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FURTHER 16 /* broadcasts of the root: the slots of a rank in the segment */
#define MOST 700000

static int rank;
static bool armed;
static int woken;
static struct {
	_Atomic int asleep;  /* the root sleeps before its last broadcast */
	_Atomic int further; /* broadcasts of the root since */
} *shared;
static char buf[MOST];

/* Visible, so that the library calls it. A call with fewer arguments passes what happens to be in the other registers on. */
__attribute__((visibility("default"))) long syscall(long number, ...)
{
	static long (*real)(long number, ...);
	long argument[6];
	va_list list;
	va_start(list, number);
	for (int i = 0; i < 6; i++)
		argument[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_futex && armed && rank == 0 && argument[1] == FUTEX_WAIT) {
		_Atomic uint32_t *word = (_Atomic uint32_t *)argument[0];
		shared->asleep = 1;
		while (*word == (uint32_t)argument[2])
			sched_yield();
		return 0;
	}
	if (number == SYS_futex && armed && rank == 1 && argument[1] == FUTEX_WAKE && argument[2] == INT32_MAX) {
		woken++;
		while (shared->further < FURTHER)
			sched_yield();
		return 0;
	}
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "syscall");
	return real(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
}

static void root(int bytes)
{
	int one;
	CHECK(MPI_Bcast(buf, bytes, MPI_BYTE, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
	for (int i = 1; i <= FURTHER; i++) {
		one = i;
		armed = i == FURTHER;
		CHECK(MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS);
		shared->further = i;
	}
	armed = false;
}

static void receiver(int bytes)
{
	while (!shared->asleep)
		sched_yield();
	armed = true;
	int class = MPI_Bcast(buf, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
	armed = false;
	CHECK(class == MPI_ERR_TRUNCATE && woken == 1);
	for (int i = 1; i <= FURTHER; i++) {
		int one = 0;
		CHECK(MPI_Bcast(&one, 1, MPI_INT, 0, MPI_COMM_WORLD) == MPI_SUCCESS && one == i);
	}
}

static void disagree(int roots, int receivers)
{
	if (rank == 0)
		shared->asleep = shared->further = 0;
	woken = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		root(roots);
	else
		receiver(receivers);
	MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
	int ranks, unit;
	MPI_Aint bytes;
	MPI_Win win;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	CHECK(ranks == 2);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Win_allocate_shared(rank == 0 ? sizeof *shared : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &shared, &win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &shared);
	for (int i = 0; i < 3; i++) /* the segment is made at the third collective */
		MPI_Barrier(MPI_COMM_WORLD);
	disagree(8, 16);   /* both use the segment */
	disagree(8, MOST); /* the receiver expects a message */
	MPI_Win_free(&win);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
