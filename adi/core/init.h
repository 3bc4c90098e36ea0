/* SPDX-License-Identifier: BSD-3-Clause */
/* What the world model (init.c) and sessions (session.c) share: the job runs while either is in use. */
#ifndef ADI_CORE_INIT_H
#define ADI_CORE_INIT_H

#include <stdbool.h>

/* Starts the job if it does not run, and raises the level of thread support to level. Returns an error class; after an error
 * the process cannot use MPI. adi_job_leave is called for each success. */
int adi_job_enter(int thread_level);
/* The last user leaves. With at_once the job ends here, after all ranks have come here. Otherwise it ends when the process exits
 * or MPI_Finalize is called: another session may follow, and peers may still need this process's engine. Returns an error
 * class. */
int adi_job_leave(bool at_once);

#endif
