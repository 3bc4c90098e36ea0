/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that kernels use at the host's address: mapped | far | all | used | refused | occupied | unmapped HOW. With "far"
 * the server is reached over TCP. So it is with "all" and "used", and the memory is not asked for as mapped; with "used"
 * cuMemHostGetDevicePointer maps it. With "refused" the worker maps no memory, and the device says that it cannot. With "occupied" the worker has
 * other memory where the client's addresses for such memory begin. With "unmapped" a kernel gets memory that it cannot use.
 */
#include "test/cuda/softgpu/driver.h"
#include "test/cuda/softgpu/host_to_host.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>

enum { LOG = 1 << 20 };

static CUcontext context;
static CUstream stream, other;
static bool far;
static unsigned host_flags = CU_MEMHOSTALLOC_DEVICEMAP;

static int attribute(CUdevice_attribute which)
{
	int value;
	OK(cuDeviceGetAttribute(&value, which, 0));
	return value;
}

static uint32_t *mapped(size_t bytes)
{
	void *memory;
	CUdeviceptr device;
	OK(cuMemHostAlloc(&memory, bytes, host_flags));
	OK(cuMemHostGetDevicePointer(&device, memory, 0));
	CHECK(device == (uintptr_t)memory);
	memset(memory, 0, bytes);
	return memory;
}

static CUdeviceptr at(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

/* A word that streams can be held with. A kernel sees only words of its device change while it runs, if that is far. */
static CUdeviceptr new_flag(void)
{
	CUdeviceptr flag;
	if (!far)
		return at(mapped(4));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32Async(flag, 0, 1, other));
	OK(cuStreamSynchronize(other));
	return flag;
}

static void set_flag(CUdeviceptr flag)
{
	if (far)
		OK(cuMemsetD32Async(flag, 1, 1, other));
	else
		let_go((uint32_t *)(uintptr_t)flag);
}

static void free_flag(CUdeviceptr flag)
{
	OK(far ? cuMemFree(flag) : cuMemFreeHost((void *)(uintptr_t)flag));
}

/* A kernel waits for what the host writes, and the host for what a kernel writes, without a call between. */
static void host_and_kernel_talk(void)
{
	uint32_t *words = mapped(4096);
	for (uint32_t round = 1; round <= 20; round++) {
		uint32_t go = round * 2;
		CUdeviceptr there = at(&words[1]);
		OK(launch("meet", stream, &there, &go)); /* adds 1 and waits for the host's 1 */
		while (__atomic_load_n(&words[1], __ATOMIC_ACQUIRE) != round * 2 - 1)
			sched_yield();
		__atomic_add_fetch(&words[1], 1, __ATOMIC_RELEASE);
		OK(cuStreamSynchronize(stream));
	}
	OK(cuMemFreeHost(words));
}

/* A kernel writes whole allocations of several sizes, and nothing beyond them: two share a page of the window. */
static void sizes(void)
{
	static const uint32_t bytes[] = { 1, 4096, 5000, 1 << 20, (1 << 20) + 1, 5 << 20 };
	uint8_t *memory[6];
	for (int i = 0; i < 6; i++)
		memory[i] = (uint8_t *)mapped(bytes[i]);
	for (int i = 0; i < 6; i++) {
		CUdeviceptr there = at(memory[i]);
		uint32_t n = bytes[i];
		OK(launch("write", stream, &there, &n));
	}
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < 6; i++) {
		for (uint32_t b = 0; b < bytes[i]; b++)
			CHECK(memory[i][b] == 0xA5);
		OK(cuMemFreeHost(memory[i]));
	}
}

static void attributes(void)
{
	uint8_t *memory = (uint8_t *)mapped(6000);
	CUdeviceptr device, there = at(memory + 100);
	void *host;
	unsigned type, flags;
	bool is;
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, there));
	CHECK(device == there);
	OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, there));
	CHECK(host == memory + 100);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, there));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_MAPPED, there));
	CHECK(is);
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, there));
	CHECK(!is);
	OK(cuMemHostGetFlags(&flags, memory));
	CHECK(flags == (host_flags | CU_MEMHOSTALLOC_DEVICEMAP));
	EXPECT(cuMemHostGetDevicePointer(&device, memory, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemHostGetDevicePointer(&device, &device, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(memory));
	EXPECT(cuMemHostGetDevicePointer(&device, memory, 0), CUDA_ERROR_INVALID_VALUE);
	/* Memory without the flag is mapped too: the address space is unified. */
	OK(cuMemAllocHost(&host, 64));
	OK(cuMemHostGetDevicePointer(&device, host, 0));
	CHECK(device == at(host));
	OK(cuMemFreeHost(host));
}

/* The device pointer is valid where a call takes the address of device memory, in the order of streams. */
static void copies_and_fills(void)
{
	uint32_t *words = mapped(LOG), value = 7;
	CUdeviceptr device, flag = new_flag();
	OK(cuMemAlloc(&device, LOG));
	hold(stream, flag);
	OK(cuMemsetD32Async(at(words), 5, LOG / 4, stream));
	OK(cuMemcpyDtoDAsync(device, at(words), LOG, stream));
	OK(cuMemsetD32Async(at(words), 6, LOG / 4, stream));
	CHECK(words[0] == 0);
	set_flag(flag);
	OK(cuMemcpyHtoDAsync(at(words), &value, 4, stream)); /* both are host memory: the call may wait for the stream */
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 7 && words[1] == 6 && words[LOG / 4 - 1] == 6);
	OK(cuMemcpyDtoH(words, device, LOG));
	CHECK(words[0] == 5 && words[LOG / 4 - 1] == 5);
	EXPECT(cuMemcpyDtoD(device, at(words) + 1, LOG), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
	OK(cuMemFreeHost(words));
	free_flag(flag);
}

/* Between two kernels the host changes a part that the first kernel does not use, without a wait. */
static void in_turns(void)
{
	uint32_t *words = mapped(LOG), bytes = 4;
	CUdeviceptr flag = new_flag(), first = at(&words[0]), second = at(&words[2000]), copy;
	uint32_t *plain = calloc(1, LOG);
	CHECK(plain);
	OK(cuMemAlloc(&copy, LOG));
	words[2001] = 1;
	hold(stream, flag);
	OK(launch("write", stream, &first, &bytes));
	words[2001] = 2;
	words[1] = 3;
	OK(launch("write", stream, &second, &bytes));
	OK(cuMemcpyHtoDAsync(copy, words, LOG, stream));
	set_flag(flag);
	OK(cuStreamSynchronize(stream));
	CHECK(words[0] == 0xA5A5A5A5 && words[1] == 3 && words[2000] == 0xA5A5A5A5 && words[2001] == 2);
	OK(cuMemcpyDtoH(plain, copy, LOG));
	CHECK(!memcmp(plain, words, LOG));
	free(plain);
	OK(cuMemFree(copy));
	OK(cuMemFreeHost(words));
	free_flag(flag);
}

static void *let_kernels_go(void *flag)
{
	OK(cuCtxSetCurrent(context));
	set_flag(*(const CUdeviceptr *)flag);
	return NULL;
}

/* Memory that a kernel uses is freed once the kernel has ended; the next allocation may have its address. */
static void freed_in_use(void)
{
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t *words = mapped(8192), bytes = 8192;
		CUdeviceptr there = at(words), flag = new_flag();
		pthread_t thread;
		hold(stream, flag);
		OK(launch("write", stream, &there, &bytes));
		CHECK(!pthread_create(&thread, NULL, let_kernels_go, &flag));
		OK(cuMemFreeHost(words));
		OK(cuStreamQuery(stream));
		uint32_t *again = mapped(8192);
		for (int i = 0; i < 2048; i++)
			CHECK(!again[i]);
		pthread_join(thread, NULL);
		OK(cuMemFreeHost(again));
		free_flag(flag);
	}
}

/* Kernels still find memory that was pinned in a context that was reset since. */
static void after_reset(void)
{
	uint32_t *log = mapped(4096), value = 9;
	CUdeviceptr there = at(log);
	CUmodule module;
	CUfunction append;
	OK(cuDevicePrimaryCtxReset(0));
	context = start();
	OK(cuModuleLoadData(&module, test_program("double\nappend\n")));
	OK(cuModuleGetFunction(&append, module, "append"));
	void *parameters[] = { &there, &value };
	OK(cuLaunchKernel(append, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	CHECK(log[0] == 1 && log[1] == 9);
	OK(cuMemFreeHost(log));
}

/* The memory of a device that is far ends with its context. Then the host's copy is plain memory. */
static void after_reset_far(void)
{
	uint32_t *words = mapped(4096), value = 9;
	CUdeviceptr there = at(&words[0]), device;
	OK(launch("increase", stream, &there, &value));
	OK(cuStreamSynchronize(stream));
	OK(cuDevicePrimaryCtxReset(0));
	context = start();
	CHECK(words[0] == 9);
	words[1] = 5;
	EXPECT(cuMemHostGetDevicePointer(&device, words, 0), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuMemsetD32(there, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAlloc(&device, 4096));
	OK(cuMemcpyHtoD(device, words, 4096));
	memset(words, 0, 4096);
	OK(cuMemcpyDtoH(words, device, 4096));
	CHECK(words[0] == 9 && words[1] == 5);
	OK(cuMemFree(device));
	OK(cuMemFreeHost(words));
}

static void refused(void)
{
	void *memory;
	CUdeviceptr device;
	CHECK(!attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
	CHECK(!attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED));
	EXPECT(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemHostAlloc(&memory, 4096, 0));
	EXPECT(cuMemHostGetDevicePointer(&device, memory, 0), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, at(memory)), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD8(at(memory), 1, 4096), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeHost(memory));
}

/* A kernel on another host gets the address of pinned memory that is not mapped: it fails, and a line names parameter and cause. */
static void unmapped(const char *how)
{
	static uint32_t registered[1024];
	void *memory = registered;
	uint32_t bytes = 4;
	if (!strcmp(how, "registered"))
		OK(cuMemHostRegister(registered, sizeof registered, 0));
	else
		OK(cuMemHostAlloc(&memory, 4096, 0));
	CUdeviceptr there = (CUdeviceptr)(uintptr_t)memory, none = 0;
	EXPECT(cuMemsetD32Async(0, 0, 2, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(launch("write", NULL, &there, &bytes));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	/* So do an allocation, and fills of the null pointer by a program that did not look at the allocation's result. */
	EXPECT(cuMemAlloc(&none, 8), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemsetD32Async(none, 0, 2, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemsetD2D8(none, 8, 0, 4, 2), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The first and later memory, of both kinds and several sizes, freed in another order and allocated again. */
static void occupied(void)
{
	static const size_t sizes[] = { 64, 64 << 10, 3 << 20 };
	void *memory[3];
	CUdeviceptr managed;
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 3; i++)
			memory[i] = mapped(sizes[i]);
		OK(cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL));
		for (int i = 0; i < 3; i++) {
			OK(cuMemsetD8(at(memory[i]), (unsigned char)(i + 1), sizes[i]));
			CHECK(((uint8_t *)memory[i])[0] == i + 1 && ((uint8_t *)memory[i])[sizes[i] - 1] == i + 1);
			OK(cuMemFreeHost(memory[i]));
		}
		OK(cuMemFree(managed));
	}
}

int main(int argc, char **argv)
{
	context = start();
	if (argc > 1 && !strcmp(argv[1], "occupied")) {
		occupied();
		return 0;
	}
	if (argc > 2 && !strcmp(argv[1], "unmapped")) {
		unmapped(argv[2]);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "refused")) {
		refused();
		return 0;
	}
	CHECK(attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) == 1);
	bool used = argc > 1 && !strcmp(argv[1], "used");
	if (used || (argc > 1 && !strcmp(argv[1], "all")))
		host_flags = CU_MEMHOSTALLOC_PORTABLE;
	far = argc > 1 && (!strcmp(argv[1], "far") || host_flags != CU_MEMHOSTALLOC_DEVICEMAP);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	if (!far)
		host_and_kernel_talk();
	sizes();
	attributes();
	copies_and_fills();
	host_to_host(stream);
	in_turns();
	freed_in_use();
	if (far && !used)
		after_reset_far();
	else
		after_reset();
	return 0;
}
