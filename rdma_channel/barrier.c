/* SPDX-License-Identifier: BSD-3-Clause */
/* The asymmetric barrier: registration for membarrier(2), and the heavy side. */
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
	/* Relaxed: a later hr_barrier_heavy reads it to choose its call. If it reads an old false, only connections
	 * opened before this registration are affected, and their peers do not rely on membarrier. */
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
