/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that the client makes of its own accord beside the program's.
 *
 * A copy that waits returns its own bytes although the client makes other calls over the connection before it reads the reply. Two
 * servers over TCP: after the copy, the client fetches what the second server has changed in managed memory. Before that call it
 * asks the first server whether it has made a change of the source of an asynchronous copy.
 *
 * late: the thread of the second server's data connection begins when the client already fetches changes from that server
 * (late_threads.c). The fetch waits for bytes that this connection brings.
 */
#include "test/cuda/softgpu/driver.h"

#include <time.h>

enum { BYTES = 100 };

static void late(CUcontext first)
{
	enum { LONG = 1 << 20 };
	CUcontext second;
	CUdeviceptr on_first, on_second, managed;
	uint8_t *pinned;
	OK(cuMemAlloc(&on_first, BYTES));
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	OK(cuMemAllocManaged(&managed, BYTES, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemHostAlloc((void **)&pinned, LONG, CU_MEMHOSTALLOC_PORTABLE));
	OK(cuMemAlloc(&on_second, LONG));
	OK(cuMemsetD8(on_second, 5, LONG));
	OK(cuMemsetD8Async(managed, 3, BYTES, NULL));
	OK(cuMemcpyDtoHAsync(pinned, on_second, LONG, NULL)); /* opens the data connection */
	OK(cuCtxSetCurrent(first));
	OK(cuMemsetD8Async(on_first, 1, BYTES, NULL));
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL); /* the second server has begun to send */
	OK(cuCtxSynchronize()); /* fetches from the second server too */
	OK(cuCtxSetCurrent(second));
	OK(cuCtxSynchronize());
	CHECK(*(volatile uint8_t *)(uintptr_t)managed == 3);
	CHECK(pinned[0] == 5 && pinned[LONG - 1] == 5);
}

int main(int argc, char **argv)
{
	CUcontext context = start(), second;
	if (argc > 1 && !strcmp(argv[1], "late")) {
		late(context);
		return 0;
	}
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
