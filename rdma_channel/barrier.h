/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The asymmetric barrier of going to sleep. Who puts, stores data and then loads the peer's "armed" flag; who goes to
 * sleep stores its flag and then loads the data. Both need a barrier between store and load, or each can miss the
 * other's store. Putting is frequent and sleeping is rare, so all of the cost goes to the sleeper: its membarrier(2)
 * makes every processor that runs a registered process execute a full barrier, and the putter only keeps the compiler
 * from reordering. (MEMBARRIER_CMD_GLOBAL_EXPEDITED, Linux 4.16.)
 *
 * Where the kernel refuses it (or HEADRACE_MEMBARRIER=0) both sides use a full fence. Each side tells the other once,
 * when they connect, which kind it has; the light side is allowed only where both have the heavy one.
 */
#ifndef HR_BARRIER_H
#define HR_BARRIER_H

#include <stdbool.h>

/* Registers this process; *heavy: it sleeps with membarrier. -EINVAL: HEADRACE_MEMBARRIER is out of range. Any thread,
 * repeatedly. */
int hr_barrier_register(bool *heavy);

/* The sleeper's side: orders the stores before it, before the loads behind it, against light barriers of all others. */
void hr_barrier_heavy(void);

/* The putter's side. both_heavy: this process and the peer are registered. */
static inline void hr_barrier_light(bool both_heavy)
{
	if (both_heavy)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
