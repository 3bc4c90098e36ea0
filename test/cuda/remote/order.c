/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call that blocks in the driver until a kernel or a host function ends holds up no call of another thread. Otherwise
 * these programs, which run with a local driver, would hang.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#define LONG_COPY 300000u /* bytes; more than a copy that is sent with its call */

static CUcontext context;
static CUstream blocked, other;
static CUdeviceptr flag;

/* ---- a kernel spins on a flag that this thread sets while another thread is inside a blocking call ---- */

static CUdeviceptr victim, second;
static CUmodule victim_module;
static CUmemoryPool victim_pool;
static bool entered, returned; /* atomic */

static void free_memory(void)
{
	OK(cuMemFree(victim));
}

static void unload(void)
{
	OK(cuModuleUnload(victim_module));
}

static void copy_between(void)
{
	OK(cuMemcpyPeer(victim, context, second, context, 1000));
}

static void destroy_pool(void)
{
	OK(cuMemPoolDestroy(victim_pool));
}

static void *call(void *argument)
{
	void (*function)(void) = *(void (**)(void))argument;
	OK(cuCtxSetCurrent(context));
	__atomic_store_n(&entered, true, __ATOMIC_RELEASE);
	function();
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Gives the other thread time to be inside its call. The test passes also if that takes longer. */
static void await_caller(void)
{
	while (!__atomic_load_n(&entered, __ATOMIC_ACQUIRE))
		sched_yield();
	for (int i = 0; i < 50 && !__atomic_load_n(&returned, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
}

static void while_a_kernel_spins(void (*function)(void))
{
	static uint8_t there[LONG_COPY], back[LONG_COPY];
	pthread_t thread;
	uint32_t one = 1;
	CUdeviceptr memory;
	entered = returned = false;
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuMemAlloc(&memory, LONG_COPY));
	OK(cuCtxSynchronize());
	OK(launch("wait", blocked, &flag, NULL));
	CHECK(!pthread_create(&thread, NULL, call, &function));
	await_caller();
	memset(there, 3, sizeof there);
	OK(cuMemcpyHtoDAsync(memory, there, LONG_COPY, other));
	OK(cuMemcpyDtoHAsync(back, memory, LONG_COPY, other));
	OK(cuStreamSynchronize(other));
	CHECK(!memcmp(there, back, LONG_COPY));
	CHECK(cuStreamQuery(blocked) == CUDA_ERROR_NOT_READY);
	OK(cuMemcpyHtoDAsync(flag, &one, 4, other)); /* lets the kernel end */
	OK(cuStreamSynchronize(other));
	OK(cuStreamSynchronize(blocked));
	pthread_join(thread, NULL);
	OK(cuMemFree(memory));
}

/* What a thread has freed it can allocate again, and is told that it is free. */
static void freed_memory_is_free(void)
{
	size_t before, after, total, size;
	for (int round = 0; round < 20; round++) {
		OK(cuMemGetInfo(&before, &total));
		size = before / 4 * 3;
		OK(cuMemAlloc(&victim, size));
		OK(launch("nothing", blocked, NULL, NULL));
		OK(cuMemFree(victim));
		OK(cuMemAlloc(&victim, size));
		OK(launch("nothing", blocked, NULL, NULL));
		OK(cuMemFree(victim));
		OK(cuMemGetInfo(&after, &total));
		CHECK(before == after);
	}
}

/* cuMemFree waits for the work before it, also in streams that wait for no other: its caller may rely on that. */
static void free_waits_for_work(void)
{
	const size_t size = 64u << 20;
	OK(cuMemAlloc(&second, size));
	for (int round = 0; round < 5; round++) {
		OK(cuMemAlloc(&victim, 4096));
		OK(cuMemsetD8Async(second, (unsigned char)round, size, blocked));
		OK(cuMemFree(victim));
		OK(cuStreamQuery(blocked));
	}
	OK(cuMemFree(second));
}

/* ---- a context is destroyed while a host function in it needs another thread ---- */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool running, may_return;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static void wait_for_the_other(void *argument)
{
	(void)argument;
	pthread_mutex_lock(&host.lock);
	host.running = true;
	pthread_cond_broadcast(&host.changed);
	while (!host.may_return)
		pthread_cond_wait(&host.changed, &host.lock);
	pthread_mutex_unlock(&host.lock);
}

static void *destroyer(void *argument)
{
	CUcontext own;
	CUstream stream;
	(void)argument;
	OK(cuCtxCreate(&own, NULL, 0, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(stream, wait_for_the_other, NULL));
	pthread_mutex_lock(&host.lock);
	while (!host.running)
		pthread_cond_wait(&host.changed, &host.lock);
	pthread_mutex_unlock(&host.lock);
	__atomic_store_n(&entered, true, __ATOMIC_RELEASE);
	OK(cuCtxDestroy(own));
	__atomic_store_n(&returned, true, __ATOMIC_RELEASE);
	return NULL;
}

static void context_with_a_host_function(void)
{
	static uint8_t there[LONG_COPY], back[LONG_COPY];
	pthread_t thread;
	CUdeviceptr memory;
	entered = returned = false;
	CHECK(!pthread_create(&thread, NULL, destroyer, NULL));
	await_caller();
	OK(cuMemAlloc(&memory, LONG_COPY));
	memset(there, 5, sizeof there);
	OK(cuMemcpyHtoD(memory, there, LONG_COPY));
	OK(cuMemcpyDtoH(back, memory, LONG_COPY));
	CHECK(!memcmp(there, back, LONG_COPY));
	OK(cuMemFree(memory));
	pthread_mutex_lock(&host.lock);
	host.may_return = true;
	pthread_cond_broadcast(&host.changed);
	pthread_mutex_unlock(&host.lock);
	pthread_join(thread, NULL);
}

int main(void)
{
	CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE } };
	context = start();
	kernel("wait");
	OK(cuStreamCreate(&blocked, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&flag, 4));
	for (int round = 0; round < 5; round++) {
		OK(cuMemAlloc(&victim, 4096));
		while_a_kernel_spins(free_memory);
		OK(cuModuleLoadData(&victim_module, "double\nnothing\n"));
		while_a_kernel_spins(unload);
		OK(cuMemAlloc(&victim, 4096));
		OK(cuMemAlloc(&second, 4096));
		while_a_kernel_spins(copy_between);
		OK(cuMemFree(second));
		OK(cuMemFree(victim));
		OK(cuMemPoolCreate(&victim_pool, &properties));
		while_a_kernel_spins(destroy_pool);
	}
	freed_memory_is_free();
	free_waits_for_work();
	context_with_a_host_function();
	OK(cuMemFree(flag));
	return 0;
}
