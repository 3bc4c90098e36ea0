/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies in the default stream between the memories of two devices, and what they are ordered with. */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>

#define DEVICES 3
#define BYTES (2u << 20)
#define WORDS (BYTES / 4)

static CUcontext contexts[DEVICES];
static uint32_t *flag; /* pinned */

static void use(int device)
{
	OK(cuCtxSetCurrent(contexts[device]));
}

static void hold_default(int device)
{
	use(device);
	__atomic_store_n(flag, 0, __ATOMIC_RELAXED);
	OK(cuStreamWaitValue32(NULL, (CUdeviceptr)(uintptr_t)flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void expect_word(CUdeviceptr at, uint32_t value)
{
	uint32_t found;
	OK(cuMemcpyDtoH(&found, at, 4));
	CHECK(found == value);
}

/* A copy comes after the earlier work of both default streams, and before their later work. */
static void ordered_with_both(CUdeviceptr to, CUdeviceptr from, int held, int current, size_t bytes)
{
	use(0);
	OK(cuMemsetD32(from, 1, WORDS));
	use(1);
	OK(cuMemsetD32(to, 2, WORDS));
	OK(cuCtxSynchronize());
	use(0);
	OK(cuCtxSynchronize());
	hold_default(held);
	use(0);
	OK(cuMemsetD32Async(from, 7, WORDS, NULL));
	use(1);
	OK(cuMemsetD32Async(to, 5, WORDS, NULL));
	use(current);
	OK(cuMemcpyDtoDAsync(to, from, bytes, NULL));
	use(0);
	OK(cuMemsetD32Async(from, 8, WORDS, NULL));
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	use(1);
	OK(cuMemsetD32Async(to, 9, 1, NULL));
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(NULL));
	expect_word(to, 9);
	expect_word(to + 4, 7);
	expect_word(to + bytes - 4, 7);
	expect_word(to + BYTES - 4, bytes == BYTES ? 7 : 5);
	use(0);
	OK(cuStreamSynchronize(NULL));
	expect_word(from, 8);
}

static CUdeviceptr map_memory(int device)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { CU_MEM_LOCATION_TYPE_DEVICE, device } };
	CUmemAccessDesc access[DEVICES];
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at;
	OK(cuMemCreate(&memory, BYTES, &properties, 0));
	OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	OK(cuMemMap(at, BYTES, 0, memory, 0));
	for (int i = 0; i < DEVICES; i++)
		access[i] = (CUmemAccessDesc){ { CU_MEM_LOCATION_TYPE_DEVICE, i }, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	OK(cuMemSetAccess(at, BYTES, access, DEVICES));
	OK(cuMemRelease(memory));
	return at;
}

static CUdeviceptr of_pool(int device)
{
	CUmemoryPool pool;
	CUdeviceptr at;
	use((device + 1) % DEVICES); /* whose context allocates is of no matter */
	OK(cuDeviceGetDefaultMemPool(&pool, device));
	OK(cuMemAllocFromPoolAsync(&at, BYTES, pool, NULL));
	OK(cuCtxSynchronize());
	return at;
}

static void all_shapes(CUdeviceptr to, CUdeviceptr from)
{
	static const size_t sizes[] = { 8, 100000, BYTES };
	for (int held = 0; held < 2; held++)
		for (int current = 0; current < DEVICES; current++)
			for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
				ordered_with_both(to, from, held, current, sizes[i]);
}

/* Opposite copies of two threads wait for each other's streams, and never in a circle. */
static CUdeviceptr opposite[2];

static void *copy_often(void *argument)
{
	int from = *(int *)argument;
	use(from);
	for (int i = 0; i < 300; i++)
		OK(cuMemcpyDtoDAsync(opposite[1 - from], opposite[from], i % 2 ? 64 : BYTES / 2, NULL));
	OK(cuStreamSynchronize(NULL));
	return NULL;
}

static void opposite_copies(void)
{
	pthread_t threads[2];
	int which[2] = { 0, 1 };
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, copy_often, &which[i]));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

/* Virtual memory outlives the primary context of its device, whose default stream ends and begins again meanwhile. */
static void *reset_often(void *unused)
{
	CUcontext again;
	(void)unused;
	for (int i = 0; i < 200; i++) {
		OK(cuDevicePrimaryCtxReset(1));
		OK(cuDevicePrimaryCtxRetain(&again, 1));
		CHECK(!cuCtxSetCurrent(again) && !cuMemsetD32Async(opposite[1], 3, WORDS, NULL));
	}
	return NULL;
}

static void resets(CUdeviceptr to, CUdeviceptr from)
{
	pthread_t thread;
	opposite[1] = map_memory(1);
	CHECK(!pthread_create(&thread, NULL, reset_often, NULL));
	use(0);
	for (int i = 0; i < 2000; i++)
		OK(cuMemcpyDtoDAsync(to, from, i % 2 ? 64 : BYTES / 2, NULL));
	CHECK(!pthread_join(thread, NULL));
	use(0);
	OK(cuCtxSynchronize());
}

/* Two contexts of one device have default streams that are not ordered with each other. */
static void of_one_device(void)
{
	CUcontext second;
	CUdeviceptr memory;
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuMemAlloc(&memory, 4096));
	hold_default(0);
	OK(cuCtxSetCurrent(second));
	OK(cuMemcpyDtoDAsync(opposite[0], memory, 64, NULL));
	OK(cuStreamSynchronize(NULL));
	let_go(flag);
	use(0);
	OK(cuCtxSynchronize());
	OK(cuCtxDestroy(second));
}

int main(void)
{
	CUdeviceptr plain[2], mapped[2];
	void *memory;
	setenv("HEADRACE_SOFTGPU_DEVICES", "3", 1);
	OK(cuInit(0));
	for (int i = DEVICES - 1; i >= 0; i--) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		use(i);
		if (i < 2)
			OK(cuMemAlloc(&plain[i], BYTES));
	}
	OK(cuMemHostAlloc(&memory, 64, 0));
	flag = memory;
	all_shapes(plain[1], plain[0]);
	for (int i = 0; i < 2; i++)
		mapped[i] = map_memory(i);
	all_shapes(mapped[1], mapped[0]);
	all_shapes(of_pool(1), of_pool(0));
	opposite[0] = plain[0];
	opposite[1] = plain[1];
	opposite_copies();
	of_one_device();
	resets(mapped[1], plain[0]);
	for (int i = 0; i < DEVICES; i++)
		cuDevicePrimaryCtxReset(i);
	return 0;
}
