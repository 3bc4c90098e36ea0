/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A million small messages to a rank that does not receive: neither side's memory grows beyond a bound, and all messages
 * arrive, in order. Arguments: number of messages, bound in KB. HEADRACE_MPI_UNEXPECTED sets the receiver's part.
 */
#include "test/adi/check_mpi.h"

#include <stdlib.h>
#include <string.h>

enum {
	WINDOW = 1000,  /* sends in flight: beyond the credits each of them waits for its receive */
	TESTS = 100000,
};

/* A line of /proc/self/status, in KB. */
static long status_kb(const char *name)
{
	char line[256];
	long kb = -1;
	FILE *file = fopen("/proc/self/status", "r");
	CHECK(file);
	while (kb < 0 && fgets(line, sizeof line, file))
		if (!strncmp(line, name, strlen(name)))
			kb = atol(line + strlen(name) + 1);
	fclose(file);
	CHECK(kb > 0);
	return kb;
}

/* Whether a send is complete after many tests. The answer decides only when the receiver begins. */
static bool completes(MPI_Request *request)
{
	int done = 0;
	for (int i = 0; i < TESTS && !done; i++)
		MPI_Test(request, &done, MPI_STATUS_IGNORE);
	return done;
}

/* Sends until a send does not complete: the credits are used up. Only then the receiver begins to receive. */
static void send_all(int n)
{
	static MPI_Request request[WINDOW];
	static int value[WINDOW];
	bool told = false;
	for (int i = 0; i < WINDOW; i++)
		request[i] = MPI_REQUEST_NULL;
	for (int i = 0; i < n; i++) {
		int slot = i % WINDOW;
		if (!told && !completes(&request[slot])) {
			printf("%d messages were sent before the first was received\n", i - WINDOW);
			MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
			told = true;
		}
		MPI_Wait(&request[slot], MPI_STATUS_IGNORE);
		value[slot] = i;
		MPI_Isend(&value[slot], 1, MPI_INT, 1, 0, MPI_COMM_WORLD, &request[slot]);
	}
	if (!told)
		MPI_Send(NULL, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
	MPI_Waitall(WINDOW, request, MPI_STATUSES_IGNORE);
}

/* Waits for the last message of the flood's first part, so all others before it are unexpected; then receives all in order. */
static void receive_all(int n)
{
	MPI_Recv(NULL, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	for (int i = 0; i < n; i++) {
		int value = -1;
		MPI_Recv(&value, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(value == i);
	}
}

int main(int argc, char **argv)
{
	int rank;
	CHECK(argc == 3);
	int n = atoi(argv[1]);
	long bound = atol(argv[2]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Barrier(MPI_COMM_WORLD);
	long before = status_kb("VmRSS");
	if (rank == 0)
		send_all(n);
	else
		receive_all(n);
	long grown = status_kb("VmHWM") - before;
	printf("rank %d: memory grew by %ld KB at most\n", rank, grown);
	if (grown > bound) {
		printf("rank %d: the bound is %ld KB\n", rank, bound);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	MPI_Finalize();
	return 0;
}
