/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many more nonblocking sends than a rank may announce, to a rank that receives late: its memory stays below a bound, and the
 * messages keep their order. A receive, a probe, a barrier and a new communicator do not wait for the messages that are held. Sends
 * that are held can be cancelled and freed. Arguments: number of sends, bound in KB. HEADRACE_MPI_UNEXPECTED=0: none is eager.
 */
#include "test/adi/check_mpi.h"

#include <stdlib.h>
#include <string.h>

static int rank, n;
static MPI_Request *request;
static long *value;

/* Returns the peak resident memory of the process, KB. */
static long most_kb(void)
{
	char line[256];
	long kb = -1;
	FILE *file = fopen("/proc/self/status", "r");
	CHECK(file);
	while (kb < 0 && fgets(line, sizeof line, file))
		if (!strncmp(line, "VmHWM:", 6))
			kb = atol(line + 6);
	fclose(file);
	CHECK(kb > 0);
	return kb;
}

static void send_all(int tag)
{
	for (int i = 0; i < n; i++) {
		value[i] = i;
		MPI_Isend(&value[i], 1, MPI_LONG, 1, tag, MPI_COMM_WORLD, &request[i]);
	}
}

static void receive_all(int tag)
{
	for (int i = 0; i < n; i++) {
		long got = -1;
		MPI_Status status;
		MPI_Recv(&got, 1, MPI_LONG, i % 3 ? 0 : MPI_ANY_SOURCE, i % 2 ? tag : MPI_ANY_TAG, MPI_COMM_WORLD, &status);
		CHECK(got == i && status.MPI_SOURCE == 0 && status.MPI_TAG == tag);
	}
}

/* The messages that create a communicator do not wait, and do not make the receiver permit all others. */
static void create(int tag)
{
	MPI_Group group;
	MPI_Comm comm;
	MPI_Comm_group(MPI_COMM_WORLD, &group);
	MPI_Comm_create_group(MPI_COMM_WORLD, group, tag, &comm);
	MPI_Comm_free(&comm);
	MPI_Group_free(&group);
}

/* The receiver is in a barrier, with messages, while all is sent. */
static void bounded(long bound)
{
	long before = most_kb();
	if (rank == 0)
		send_all(0);
	MPI_Barrier(MPI_COMM_WORLD);
	create(0);
	if (rank == 1 && bound) {
		printf("the receiver takes %ld KB for %d messages\n", most_kb() - before, n);
		CHECK(most_kb() - before < bound);
	}
	if (rank == 0)
		MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	else
		receive_all(0);
}

/* The last message has another tag and is received first. */
static void behind(bool probe, int source)
{
	int last = -1;
	if (rank == 0) {
		send_all(1);
		MPI_Send(&n, 1, MPI_INT, 1, 2, MPI_COMM_WORLD);
		MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
		return;
	}
	MPI_Status status;
	if (probe)
		MPI_Probe(source, 2, MPI_COMM_WORLD, &status);
	MPI_Recv(&last, 1, MPI_INT, source, 2, MPI_COMM_WORLD, &status);
	CHECK(last == n && status.MPI_TAG == 2);
	receive_all(1);
}

/* A buffered send that is held has no number yet, so its cancellation fails; it must not cancel another message. */
static void cancel_buffered(void)
{
	static char buffer[1000 + MPI_BSEND_OVERHEAD];
	MPI_Request buffered;
	MPI_Buffer_attach(buffer, sizeof buffer);
	MPI_Ibsend(&n, 1, MPI_INT, 1, 5, MPI_COMM_WORLD, &buffered);
	MPI_Cancel(&buffered);
	MPI_Wait(&buffered, MPI_STATUS_IGNORE);
}

/* Cancels the last sends, which are held, frees others, and leaves gaps. */
static void cancel_and_free(void)
{
	int end = n / 2, cancelled;
	if (rank == 1) {
		MPI_Barrier(MPI_COMM_WORLD);
		for (int i = 0; i < end; i++) {
			long got = -1;
			MPI_Recv(&got, 1, MPI_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			CHECK(got == i);
		}
		int last = 0;
		MPI_Recv(&last, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		CHECK(last == n);
		MPI_Recv(NULL, 0, MPI_LONG, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		return;
	}
	send_all(3);
	cancel_buffered();
	for (int i = n - 1; i >= end; i--) {
		MPI_Status status;
		MPI_Cancel(&request[i]);
		if (i < n - 10)
			continue;
		MPI_Wait(&request[i], &status); /* the receiver is in a barrier, and these are held: it has no part in that */
		MPI_Test_cancelled(&status, &cancelled);
		CHECK(cancelled);
	}
	for (int i = end - 100; i < end; i++)
		MPI_Request_free(&request[i]);
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	MPI_Send(NULL, 0, MPI_LONG, 1, 3, MPI_COMM_WORLD);
	void *detached;
	int bytes;
	MPI_Buffer_detach(&detached, &bytes);
}

/* Credits that come while messages are held do not let a later message overtake them. */
static void mixed(void)
{
	if (rank == 0) {
		for (int i = 0; i < n; i++) {
			value[i] = i;
			if (i % 5)
				MPI_Issend(&value[i], 1, MPI_LONG, 1, 4, MPI_COMM_WORLD, &request[i]);
			else
				MPI_Isend(&value[i], 1, MPI_LONG, 1, 4, MPI_COMM_WORLD, &request[i]);
		}
		MPI_Waitall(n, request, MPI_STATUSES_IGNORE);
	} else {
		receive_all(4);
	}
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	n = atoi(argv[1]);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	if (rank == 0) {
		request = malloc((size_t)n * sizeof *request);
		value = malloc((size_t)n * sizeof *value);
		CHECK(request && value);
	}
	bounded(atol(argv[2]));
	for (int i = 0; i < 4; i++)
		behind(i & 1, i & 2 ? MPI_ANY_SOURCE : 0);
	n = n < 30000 ? n : 30000; /* a cancelled send is searched for */
	cancel_and_free();
	mixed();
	mixed();
	free(request);
	free(value);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
