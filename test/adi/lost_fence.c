/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process manager that loses the last fence. The argument:
 *	dead   rank 1 is killed before; the others are told in MPI_Finalize, and end
 *	slow   rank 1 comes late, after the others have begun to watch; then the fence ends, and nobody sees an error
 */
#include "test/adi/check_mpi.h"

#include <dlfcn.h>
#include <pmix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool lose;

/* In place of the library's. MPI_Init's fence is one of its, too. */
pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[], size_t ninfo,
			    pmix_op_cbfunc_t cbfunc, void *cbdata)
{
	if (lose)
		return PMIX_SUCCESS;
	pmix_status_t (*next)(const pmix_proc_t *, size_t, const pmix_info_t *, size_t, pmix_op_cbfunc_t, void *);
	*(void **)&next = dlsym(RTLD_NEXT, "PMIx_Fence_nb");
	CHECK(next);
	return next(procs, nprocs, info, ninfo, cbfunc, cbdata);
}

int main(int argc, char **argv)
{
	int rank, class, wanted = MPI_SUCCESS;
	CHECK(argc == 2);
	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	if (!strcmp(argv[1], "dead")) {
		if (rank == 1)
			kill(getpid(), SIGKILL);
		lose = true;
		wanted = MPI_ERR_PROC_ABORTED;
	} else if (rank == 1) {
		sleep(7);
	}
	class = MPI_Finalize();
	printf("rank %d: %s\n", rank, class == wanted ? "as it should be" : "WRONG");
	fflush(stdout);
	_exit(0); /* mpirun need not hear that PMIx has been left in the middle */
}
