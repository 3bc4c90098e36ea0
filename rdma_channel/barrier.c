/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers the process for membarrier(2), and the heavy side of the barrier. */
#include "rdma_channel/barrier.h"

#include "rdma_channel/base/setting.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

HR_SETTING(membarrier_wanted, "HEADRACE_MEMBARRIER", "1", 0, 1,
	   "1: membarrier(2) by the side that sleeps; 0: a fence in every put");

static bool registered;

int hr_barrier_register(bool *heavy)
{
	uint64_t wanted;
	int error = hr_setting_u64(&membarrier_wanted, &wanted);
	if (error)
		return error;
	*heavy = false;
	if (!wanted)
		return 0;
	bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	/* Relaxed: only tells a later hr_barrier_heavy which call to use; a stale false means a call that
	 * connections opened before this one did not count on. */
	__atomic_store_n(&registered, done, __ATOMIC_RELAXED);
	*heavy = done;
	return 0;
}

void hr_barrier_heavy(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&registered, __ATOMIC_RELAXED))
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
