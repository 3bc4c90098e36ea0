/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contenders that are an MPI, Headrace's (compare_hrmpi) and an installed one (compare_mpi): PROGRAM FOLDER NAME, two
 * ranks under mpirun.
 * Windows are MPI_Isend and MPI_Irecv with one MPI_Waitall, as in the OSU benchmarks.
 */
#include "cells.h"

#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#define TAG 1

struct mpi {
	int peer;
	MPI_Request requests[1024];
};

static void mpi_send(void *context, const void *bytes, size_t len)
{
	MPI_Send(bytes, (int)len, MPI_CHAR, ((struct mpi *)context)->peer, TAG, MPI_COMM_WORLD);
}

static void mpi_receive(void *context, void *bytes, size_t len)
{
	MPI_Recv(bytes, (int)len, MPI_CHAR, ((struct mpi *)context)->peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void mpi_send_window(void *context, const void *bytes, size_t len, unsigned count)
{
	struct mpi *mpi = context;
	for (unsigned i = 0; i < count; i++)
		MPI_Isend(bytes, (int)len, MPI_CHAR, mpi->peer, TAG, MPI_COMM_WORLD, &mpi->requests[i]);
	MPI_Waitall((int)count, mpi->requests, MPI_STATUSES_IGNORE);
}

static void mpi_receive_window(void *context, char *bytes, size_t len, size_t stride, unsigned count,
			       void (*arrived)(const void *bytes, size_t len))
{
	struct mpi *mpi = context;
	for (unsigned i = 0; i < count; i++)
		MPI_Irecv(bytes + i * stride, (int)len, MPI_CHAR, mpi->peer, TAG, MPI_COMM_WORLD, &mpi->requests[i]);
	if (!arrived) {
		MPI_Waitall((int)count, mpi->requests, MPI_STATUSES_IGNORE);
		return;
	}
	for (unsigned i = 0; i < count; i++) {
		MPI_Wait(&mpi->requests[i], MPI_STATUS_IGNORE);
		arrived(bytes + i * stride, len);
	}
}

int main(int argc, char **argv)
{
	struct mpi mpi;
	int rank, size;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* if mpirun is killed, this process must not go on spinning */
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	if (argc != 3 || size != 2) {
		fprintf(stderr, "usage: mpirun -n 2 %s FOLDER NAME (started by compare.py)\n", argv[0]);
		MPI_Abort(MPI_COMM_WORLD, EXIT_FAILURE);
		return EXIT_FAILURE;
	}
	mpi.peer = !rank;
	cells_pin(rank);
	const struct contender contender = { &mpi, NULL, mpi_send, mpi_receive, mpi_send_window, mpi_receive_window };
	cells_serve(&contender, rank, argv[1], argv[2]);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
