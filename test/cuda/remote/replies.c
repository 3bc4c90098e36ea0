/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy that waits returns its own bytes although the client makes other calls over the connection before it reads the reply. Two
 * servers over TCP: after the copy, the client fetches what the second server has changed in managed memory. Before that call it
 * asks the first server whether it has made a change of the source of an asynchronous copy.
 */
#include "test/cuda/softgpu/driver.h"

enum { BYTES = 100 };

int main(void)
{
	CUcontext context = start(), second;
	CUdeviceptr flag, device, source, managed;
	CUstream held, by;
	uint8_t *pinned, found[BYTES];
	uint32_t word = 1;
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuCtxSetCurrent(context));
	OK(cuMemHostAlloc((void **)&pinned, BYTES, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemAlloc(&source, BYTES));
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuMemsetD8(source, 7, BYTES));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&by, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	OK(cuCtxSynchronize());
	OK(cuCtxSetCurrent(second));
	OK(cuMemsetD8Async(managed, 3, BYTES, NULL));
	OK(cuCtxSetCurrent(context));
	hold(held, flag);
	memset(pinned, 1, BYTES);
	OK(cuMemcpyHtoDAsync(device, pinned, BYTES, held));
	memset(pinned, 4, BYTES);
	OK(cuMemcpyDtoHAsync(found, source, BYTES, by));
	for (int i = 0; i < BYTES; i++)
		CHECK(found[i] == 7);
	OK(cuMemcpyHtoDAsync(flag, &word, 4, by));
	OK(cuStreamSynchronize(held));
	OK(cuMemcpyDtoH(found, device, BYTES));
	for (int i = 0; i < BYTES; i++)
		CHECK(found[i] == 4);
	return 0;
}
