/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives of two ranks, beside programs that use all processors. A rank that waits must sleep and be woken: if it only
 * yields, all other programs run before it looks again. The first rank starts the programs.
 */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAMS 4 /* on each processor */
#define ROUNDS 5000000 /* at most; the two ranks make thousands of them before another program runs */
#define SLEEPS 10

static pid_t *programs;
static long n_programs;

static void fail(const char *what)
{
	fprintf(stderr, "FAILED: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
}

static void start_programs(void)
{
	n_programs = PROGRAMS * sysconf(_SC_NPROCESSORS_ONLN);
	programs = calloc((size_t)n_programs, sizeof *programs);
	if (!programs)
		fail("calloc");
	for (long i = 0; i < n_programs; i++) {
		programs[i] = fork();
		if (programs[i] < 0)
			fail("fork");
		if (programs[i] > 0)
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			__asm__ volatile("");
	}
}

static void end_programs(void)
{
	for (long i = 0; i < n_programs; i++) {
		kill(programs[i], SIGKILL);
		waitpid(programs[i], NULL, 0);
	}
	free(programs);
}

/* How often this thread has given up its processor to wait. */
static long sleeps(void)
{
	struct rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

int main(int argc, char **argv)
{
	int rank, size, enough = 0, round = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	for (int i = 0; i < 20; i++) /* the segment is made */
		MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		start_programs();
	long before = sleeps();
	for (; round < ROUNDS && !enough; round++) {
		int mine[2] = { sleeps() - before >= SLEEPS, rank + round }, sums[2];
		MPI_Allreduce(mine, sums, 2, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
		if (sums[1] != size * (size - 1) / 2 + size * round)
			fail("MPI_Allreduce");
		enough = sums[0] > 0;
	}
	if (!enough)
		fail("no rank has slept in its waits");
	if (rank == 0)
		end_programs();
	MPI_Finalize();
	return EXIT_SUCCESS;
}
