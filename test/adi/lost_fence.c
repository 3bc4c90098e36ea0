/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process manager's fence in MPI_Finalize (adi/meet.c). The argument selects the case:
 *	dead   rank 1 is killed before, and the fence never ends; MPI_Finalize of the other ranks returns an error
 *	slow   rank 1 calls MPI_Finalize late, when the others have opened connections to watch each other; then the
 *	       fence ends, and no rank gets an error
 */
#include "test/adi/check_mpi.h"

#include <dlfcn.h>
#include <pmix.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static bool lose;

/* Replaces the function of the PMIx library, which uses it for the fence of MPI_Init too. */
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
	MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN); /* of MPI_Finalize */
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
	_exit(0); /* without exit handlers: a fence of PMIx may still be pending */
}
