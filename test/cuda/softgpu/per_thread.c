/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs compiled for per-thread default streams: each thread's NULL stream is its own, and ends with the thread. */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "driver.h"

#include <pthread.h>

static uint32_t *record, *flag; /* pinned */
static CUdeviceptr log_at, flag_at;
static CUcontext context;

static void in_a_thread(void *(*body)(void *))
{
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, body, NULL));
	CHECK(!pthread_join(thread, NULL));
}

static void *is_not_held_up(void *unused)
{
	(void)unused;
	CUdeviceptr device;
	uint32_t back = 0;
	unsigned long long id, legacy;
	OK(cuCtxSetCurrent(context));
	append(NULL, log_at, 5);
	OK(cuStreamSynchronize(NULL));
	CHECK(record[0] == 1 && record[1] == 5);
	OK(cuMemAlloc(&device, 4));
	OK(cuMemsetD32(device, 9, 1));
	OK(cuMemcpyDtoH(&back, device, 4));
	CHECK(back == 9);
	OK(cuStreamGetId(NULL, &id));
	OK(cuStreamGetId(CU_STREAM_LEGACY, &legacy));
	CHECK(id != legacy);
	return NULL; /* its memory is not freed: that would wait for the blocked stream */
}

static void threads_do_not_wait_for_each_other(void)
{
	hold(NULL, flag_at);
	in_a_thread(is_not_held_up);
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	/* The legacy stream waits for both. */
	append(CU_STREAM_LEGACY, log_at, 6);
	EXPECT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(CU_STREAM_LEGACY));
	CHECK(record[0] == 2 && record[2] == 6);
}

static void *leaves_work_behind(void *unused)
{
	(void)unused;
	OK(cuCtxSetCurrent(context));
	hold(NULL, flag_at);
	append(NULL, log_at, 7);
	return NULL;
}

static void a_thread_that_ends_leaves_its_work_to_be_done(void)
{
	memset(record, 0, 64);
	*flag = 0;
	in_a_thread(leaves_work_behind);
	CHECK(record[0] == 0);
	let_go(flag);
	OK(cuCtxSynchronize());
	CHECK(record[0] == 1 && record[1] == 7);
}

int main(void)
{
	void *memory;
	context = start();
	OK(cuMemHostAlloc(&memory, 4096, 0));
	memset(memory, 0, 4096);
	record = memory;
	flag = record + 512;
	log_at = (CUdeviceptr)(uintptr_t)record;
	flag_at = (CUdeviceptr)(uintptr_t)flag;
	kernel("append");
	threads_do_not_wait_for_each_other();
	a_thread_that_ends_leaves_its_work_to_be_done();
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
