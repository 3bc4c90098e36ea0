/* SPDX-License-Identifier: BSD-3-Clause */
/* For the tests of the driver: copies between host memories, of all kinds and by several calls. */
#ifndef TEST_CUDA_SOFTGPU_HOST_TO_HOST_H
#define TEST_CUDA_SOFTGPU_HOST_TO_HOST_H

#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>
#include <unistd.h>

enum host_kind { HOST_MAPPED, HOST_OTHER_MAPPED, HOST_USED, HOST_PINNED, HOST_REGISTERED, HOST_PAGEABLE, HOST_KINDS };

static bool host_has_run; /* the host function before the copy */

static void host_late(void *unused)
{
	(void)unused;
	usleep(20000);
	__atomic_store_n(&host_has_run, true, __ATOMIC_SEQ_CST);
}

static bool is_device_too(unsigned kind)
{
	return kind == HOST_MAPPED || kind == HOST_OTHER_MAPPED || kind == HOST_USED;
}

/* False: there is no such copy between memory of these kinds. */
static bool host_copy(CUstream stream, uint8_t *const memory[], unsigned to, unsigned from, size_t size, unsigned form)
{
	CUDA_MEMCPY2D box = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = memory[from], .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = memory[to], .WidthInBytes = size, .Height = 1 };
	CUdeviceptr there = (CUdeviceptr)(uintptr_t)memory[to], here = (CUdeviceptr)(uintptr_t)memory[from];
	bool device_to = is_device_too(to), device_from = is_device_too(from);
	if ((form == 2 && !device_from) || (form == 3 && !device_to) || (form == 4 && !(device_to && device_from)))
		return false;
	switch (form) {
	case 0:
		OK(cuMemcpyAsync(there, here, size, stream));
		break;
	case 1:
		OK(cuMemcpy2DAsync(&box, stream));
		break;
	case 2:
		OK(cuMemcpyDtoHAsync(memory[to], here, size, stream));
		break;
	case 3:
		OK(cuMemcpyHtoDAsync(there, memory[from], size, stream));
		break;
	default:
		OK(cuMemcpyDtoDAsync(there, here, size, stream));
	}
	return true;
}

/* CUDA makes a copy from host memory to host memory during the call, also an asynchronous one: when the call returns, the earlier
 * work of the stream and the copy are complete, also for streams that do not wait for this one. So it is for mapped memory, for
 * memory that a fill has shown to be used by the device, and for pageable memory. */
static void host_to_host(CUstream stream)
{
	enum { SIZE = 100000 };
	uint8_t *memory[HOST_KINDS], value = 0;
	OK(cuMemHostAlloc((void **)&memory[HOST_MAPPED], SIZE, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostAlloc((void **)&memory[HOST_OTHER_MAPPED], SIZE, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostAlloc((void **)&memory[HOST_USED], SIZE, 0));
	OK(cuMemsetD8((CUdeviceptr)(uintptr_t)memory[HOST_USED], 0, SIZE));
	OK(cuMemHostAlloc((void **)&memory[HOST_PINNED], SIZE, 0));
	CHECK((memory[HOST_REGISTERED] = malloc(SIZE)) && (memory[HOST_PAGEABLE] = malloc(SIZE)));
	OK(cuMemHostRegister(memory[HOST_REGISTERED], SIZE, 0));
	for (unsigned to = 0; to < HOST_KINDS; to++)
		for (unsigned from = 0; from < HOST_KINDS; from++)
			for (unsigned form = 0; form < 5; form++) {
				size_t size = form % 2 ? 100 : SIZE;
				if (to == from)
					continue;
				memset(memory[from], ++value, SIZE);
				memset(memory[to], 0, SIZE);
				host_has_run = false;
				OK(cuLaunchHostFunc(stream, host_late, NULL));
				if (!host_copy(stream, memory, to, from, size, form)) {
					OK(cuStreamSynchronize(stream));
					continue;
				}
				if (!__atomic_load_n(&host_has_run, __ATOMIC_SEQ_CST))
					fprintf(stderr, "from kind %u to kind %u, form %u: the call did not wait\n", from, to, form);
				CHECK(__atomic_load_n(&host_has_run, __ATOMIC_SEQ_CST));
				CHECK(memory[to][0] == value && !memcmp(memory[to], memory[from], size));
				memset(memory[to], 0xEE, SIZE); /* no copy comes later */
				OK(cuStreamSynchronize(stream));
				CHECK(memory[to][0] == 0xEE && memory[to][size - 1] == 0xEE);
			}
	OK(cuMemHostUnregister(memory[HOST_REGISTERED]));
	free(memory[HOST_REGISTERED]);
	free(memory[HOST_PAGEABLE]);
	for (unsigned i = HOST_MAPPED; i <= HOST_PINNED; i++)
		OK(cuMemFreeHost(memory[i]));
}

#endif
