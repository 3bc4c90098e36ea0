/* SPDX-License-Identifier: BSD-3-Clause */
#include "rdma_channel/barrier.h"

#include "rdma_channel/base/setting.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

HR_SETTING(membarrier_wanted, "HEADRACE_MEMBARRIER", "1", 0, 1,
	   "1: sleepers pay for the barrier that puts need (membarrier); 0: every put pays");

static bool registered;

bool hr_barrier_register(void)
{
	uint64_t wanted;
	if (hr_setting_u64(&membarrier_wanted, &wanted) < 0 || !wanted)
		return false;
	bool done = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
	/* Relaxed: only tells a later hr_barrier_heavy which call to use; a stale false means a call that
	 * connections opened before this one did not count on. */
	__atomic_store_n(&registered, done, __ATOMIC_RELAXED);
	return done;
}

void hr_barrier_heavy(void)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&registered, __ATOMIC_RELAXED))
		syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
