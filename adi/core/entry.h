/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every MPI function does at its begin and end: it checks that MPI is initialised, and takes the library's lock if
 * the program asked for MPI_THREAD_MULTIPLE. Generated bindings call these functions; so do bindings written by hand.
 */
#ifndef ADI_CORE_ENTRY_H
#define ADI_CORE_ENTRY_H

#include "adi/core/error.h"

#define ADI_LIKELY(condition) __builtin_expect(!!(condition), 1)

/* Makes MPI_name a weak name of the PMPI_name defined above it. */
#define ADI_PROFILED(name) extern __typeof__(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name)))

/* Both are written only while no other thread can be inside. */
extern bool adi_running;  /* between initialisation and finalisation, of the world model or of a session */
extern bool adi_threaded; /* MPI_THREAD_MULTIPLE */

/* The lock is recursive: callbacks of the program may call MPI. adi_yield lets other threads enter: while a thread waits
 * in progress it calls adi_yield between two polls. */
void adi_lock(void);
void adi_unlock(void);
/* Takes the lock if it is free. Does not count as a thread of the program (adi_several_threads). */
bool adi_try_lock(void);
void adi_yield(void);
/* Whether another thread waits for the lock. A thread that holds it and would sleep must not then. */
bool adi_others_wait(void);
/* Whether more than one thread has ever taken the lock: a program may ask for MPI_THREAD_MULTIPLE and have one thread. Call it
 * with the lock held. */
bool adi_several_threads(void);

int adi_error_not_running(void) __attribute__((cold));

/* Returns an error class. If it is MPI_SUCCESS, the caller must call adi_leave. */
static inline int adi_enter(void)
{
	if (!ADI_LIKELY(adi_running))
		return adi_error_not_running();
	if (!ADI_LIKELY(!adi_threaded))
		adi_lock();
	return MPI_SUCCESS;
}

static inline void adi_leave(void)
{
	if (!ADI_LIKELY(!adi_threaded))
		adi_unlock();
}

/* Checks of arguments. Each returns an error class and names the argument. */
int adi_check_pointer(const void *pointer, const char *argument);
int adi_check_count(MPI_Count count, const char *argument);
/* A value that does not fit the int of the caller's result. */
int adi_error_too_large(MPI_Count value, const char *argument);

#endif
