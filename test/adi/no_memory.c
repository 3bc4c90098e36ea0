/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receives of long messages for which there is no memory: they fail with MPI_ERR_NO_MEM, the sends are complete, and later messages
 * arrive. This program replaces realloc, with which the library enlarges its table of receives in progress.
 */
#include "test/adi/check_mpi.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 40, BYTES = 200000 };

static int refused;
static bool refuse;

void *__libc_realloc(void *memory, size_t bytes);

/* Visible, so that the library calls it. */
__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes)
{
	if (!refuse)
		return __libc_realloc(memory, bytes);
	refused++;
	errno = ENOMEM;
	return NULL;
}

/* Announces all messages, and answers only when the receiver has seen all of them. */
static void sender(char *data, _Atomic int *seen)
{
	MPI_Request request[MESSAGES];
	for (int i = 0; i < MESSAGES; i++) {
		memset(data + i * BYTES, i, BYTES);
		MPI_Isend(data + i * BYTES, BYTES, MPI_BYTE, 1, i, MPI_COMM_WORLD, &request[i]);
	}
	MPI_Send(NULL, 0, MPI_BYTE, 1, MESSAGES, MPI_COMM_WORLD);
	while (!*seen)
		sched_yield();
	MPI_Waitall(MESSAGES, request, MPI_STATUSES_IGNORE);
}

static void receiver(char *data, _Atomic int *seen)
{
	MPI_Request request[MESSAGES];
	int failures = 0;
	for (int i = 0; i < MESSAGES; i++)
		MPI_Irecv(data + i * BYTES, BYTES, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request[i]);
	refuse = true;
	MPI_Recv(NULL, 0, MPI_BYTE, 0, MESSAGES, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	*seen = 1;
	for (int i = 0; i < MESSAGES; i++) {
		int class = MPI_Wait(&request[i], MPI_STATUS_IGNORE);
		CHECK(class == MPI_SUCCESS || class == MPI_ERR_NO_MEM);
		CHECK(class || (data[i * BYTES] == (char)i && data[(i + 1) * BYTES - 1] == (char)i));
		failures += class != MPI_SUCCESS;
	}
	refuse = false;
	CHECK(failures > 0 && failures <= refused);
	printf("%d of %d receives had no memory\n", failures, MESSAGES);
}

int main(int argc, char **argv)
{
	int rank, unit;
	MPI_Aint bytes;
	MPI_Win win;
	_Atomic int *seen;
	char *data = malloc((size_t)MESSAGES * BYTES);
	CHECK(data);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Win_allocate_shared(rank == 0 ? sizeof *seen : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &seen, &win);
	MPI_Win_shared_query(win, 0, &bytes, &unit, &seen);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 0)
		sender(data, seen);
	else
		receiver(data, seen);
	int value = rank == 0 ? 7 : 0;
	MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
	CHECK(value == 7);
	MPI_Win_free(&win);
	free(data);
	MPI_Finalize();
	return EXIT_SUCCESS;
}
