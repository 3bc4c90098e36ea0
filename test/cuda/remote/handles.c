/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A handle is given again while the worker still has calls to issue that name the object before. The worker maps pinned memory
 * outside of the call order, so the memory's handle must not have the place of an event that the worker has yet to make.
 */
#include "test/cuda/softgpu/driver.h"

/* The calls before the event take the worker longer than to map memory. The memory is no part of larger memory. */
enum { ROUNDS = 20, CALLS_BEFORE = 20000, BYTES = 3 << 20 };

int main(void)
{
	CUevent before, event;
	void *memory;
	start();
	OK(cuEventCreate(&before, CU_EVENT_DISABLE_TIMING));
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < CALLS_BEFORE; i++)
			OK(cuEventRecord(before, NULL));
		OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
		OK(cuEventDestroy(event));
		OK(cuMemHostAlloc(&memory, BYTES, 0));
		OK(cuCtxSynchronize());
		OK(cuMemFreeHost(memory));
	}
	OK(cuEventDestroy(before));
	OK(cuCtxSynchronize());
	return 0;
}
