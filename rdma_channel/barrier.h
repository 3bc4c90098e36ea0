/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An asymmetric barrier between put and sleep. A put stores data and then loads the peer's "armed" flag. A side that
 * goes to sleep stores its flag and then loads the data. Each needs a barrier between its store and its load; otherwise
 * each can miss the other's store. Puts are frequent and sleeps are rare, so the sleeping side bears the whole cost: it
 * calls membarrier(2) with MEMBARRIER_CMD_GLOBAL_EXPEDITED (Linux 4.16), which makes every processor that runs a
 * registered process execute a full barrier. A put only keeps the compiler from reordering.
 *
 * If the kernel refuses the registration, with HEADRACE_MEMBARRIER=0, or if a side's channel has HR_CHANNEL_SLEEPS, both
 * sides use a full fence. At connection set-up each side tells the other whether it calls the heavy barrier; a put uses the
 * light barrier only if both sides do.
 */
#ifndef HR_BARRIER_H
#define HR_BARRIER_H

#include <stdbool.h>

/* Registers this process. *heavy: it is registered, and hr_barrier_heavy calls membarrier. -EINVAL: HEADRACE_MEMBARRIER
 * is out of range. Any thread, any number of times. */
int hr_barrier_register(bool *heavy);

/* For the side that goes to sleep: orders all earlier stores before all later loads, with respect to the light barriers
 * of other processes. */
void hr_barrier_heavy(void);

/* For put. both_heavy: this side and the peer call the heavy barrier. */
static inline void hr_barrier_light(bool both_heavy)
{
	if (both_heavy)
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
	else
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

#endif
