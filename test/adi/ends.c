/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job ends without MPI_Finalize. The first argument selects the case.
 *	abort     rank 1 calls MPI_Abort with 42 while the others wait for its message
 *	fatal     rank 1 makes an error, and the default error handler ends the job
 *	die       rank 1 is killed while the others wait for its message; they check the error and exit with status 0
 *	leave     rank 1 exits without MPI_Finalize
 */
#include "test/adi/check_mpi.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int rank, value = 0;
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	CHECK(argc == 2);
	MPI_Barrier(MPI_COMM_WORLD);
	if (rank == 1 && !strcmp(argv[1], "abort"))
		MPI_Abort(MPI_COMM_WORLD, 42);
	if (rank == 1 && !strcmp(argv[1], "fatal"))
		MPI_Send(&value, 1, MPI_INT, 1000, 0, MPI_COMM_WORLD);
	if (rank == 1 && !strcmp(argv[1], "die"))
		kill(getpid(), SIGKILL);
	if (rank == 1)
		_exit(0);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	int named = MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	CHECK(named == MPI_ERR_PROC_ABORTED);
	CHECK(MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD) == MPI_ERR_PROC_ABORTED);
	printf("rank %d: told that rank 1 is gone\n", rank);
	fflush(stdout);
	_exit(0);
}
