/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that exchange no messages have no connection. The first argument selects the case; demand.sh counts the
 * connections.
 *	ring      each rank passes a token to the next rank
 *	pair      ranks 0 and 1 exchange a message, the others none
 *	late      a rank computes for a long time while the first message from it (rank 0) or to it (rank 3) is pending
 *	gone      rank 1 is killed before its first message; the other ranks check the error of their sends and receives
 *	finalize  as gone, but the other ranks only call MPI_Finalize
 */
#include "test/adi/check_mpi.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static void exchange(int with)
{
	int mine = rank, theirs = -1;
	MPI_Request request;
	MPI_Irecv(&theirs, 1, MPI_INT, with, 0, MPI_COMM_WORLD, &request);
	MPI_Send(&mine, 1, MPI_INT, with, 0, MPI_COMM_WORLD);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	CHECK(theirs == with);
}

static void ring(void)
{
	int token = 0, next = (rank + 1) % size, previous = (rank + size - 1) % size;
	for (int lap = 0; lap < 3; lap++) {
		if (rank == 0)
			MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
		MPI_Recv(&token, 1, MPI_INT, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		token++;
		if (rank != 0)
			MPI_Send(&token, 1, MPI_INT, next, 0, MPI_COMM_WORLD);
	}
	CHECK(rank != 0 || token == 3 * size);
}

/* Spends time outside MPI: three times the time-out that demand.sh sets. */
static void be_away(void)
{
	usleep(900000);
}

static void late(void)
{
	int value = 7;
	MPI_Request request;
	if (rank == 0) { /* starts a send, computes, completes it */
		MPI_Isend(&value, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, &request);
		be_away();
		MPI_Wait(&request, MPI_STATUS_IGNORE);
	} else if (rank == 1) {
		MPI_Recv(&value, 1, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	} else if (rank == 2) { /* sends to a rank that computes */
		MPI_Send(&value, 1, MPI_INT, 3, 1, MPI_COMM_WORLD);
	} else if (rank == 3) {
		be_away();
		MPI_Recv(&value, 1, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
}

static void gone(bool finalize)
{
	int value = 0;
	if (rank == 1)
		kill(getpid(), SIGKILL);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* of MPI_Finalize */
	if (!finalize && rank == 0)
		CHECK(MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
	if (!finalize)
		CHECK(MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_ERR_PROC_ABORTED);
	if (finalize)
		MPI_Finalize();
	printf("rank %d: came to the end\n", rank);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (!strcmp(argv[1], "ring"))
		ring();
	else if (!strcmp(argv[1], "pair") && rank < 2)
		exchange(1 - rank);
	else if (!strcmp(argv[1], "late"))
		late();
	else if (!strcmp(argv[1], "gone") || !strcmp(argv[1], "finalize"))
		gone(!strcmp(argv[1], "finalize"));
	MPI_Finalize();
	return 0;
}
