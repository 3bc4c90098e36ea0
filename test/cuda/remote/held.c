/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to the device in a stream that is held. They hold up no other thread, also when the thread that copies has to
 * wait; when the stream goes on, every byte arrives.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

enum { SIZE = 100001, COPIES = 40, EARLY = 16 }; /* EARLY: copies that must not wait for the device */

static CUcontext context;
static CUstream held, other;
static CUdeviceptr gate, memory;
static unsigned done;
static bool reused; /* the copies have the same source, which each call has read when it returns: pageable memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static uint8_t pattern(size_t copy, size_t i)
{
	return (uint8_t)(copy * 37 + i * 11 + (i >> 8));
}

static void *copier(void *argument)
{
	OK(cuCtxSetCurrent(context));
	for (size_t copy = 0; copy < COPIES; copy++) {
		uint8_t *host = (uint8_t *)argument + (reused ? 0 : copy * SIZE);
		for (size_t i = 0; i < SIZE; i++)
			host[i] = pattern(copy, i);
		OK(cuMemcpyHtoDAsync(memory + copy * SIZE, host, SIZE, held));
		pthread_mutex_lock(&lock);
		done++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void others_go_on(uint8_t *host)
{
	pthread_t thread;
	uint8_t *back = malloc((size_t)COPIES * SIZE), small[64];
	done = 0;
	OK(cuMemsetD32(gate, 0, 1));
	OK(cuMemsetD8(memory, 0, (size_t)COPIES * SIZE));
	OK(cuCtxSynchronize());
	OK(cuStreamWaitValue32(held, gate, 1, CU_STREAM_WAIT_VALUE_EQ));
	CHECK(!pthread_create(&thread, NULL, copier, host));
	pthread_mutex_lock(&lock);
	while (done < EARLY)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	/* These wait for an answer, in the order of all calls. */
	EXPECT(cuStreamQuery(held), CUDA_ERROR_NOT_READY);
	OK(cuMemcpyDtoHAsync(small, memory, sizeof small, other));
	OK(cuStreamSynchronize(other));
	CHECK(small[1] == 0);
	OK(cuStreamWriteValue32(other, gate, 1, 0));
	pthread_join(thread, NULL);
	OK(cuStreamSynchronize(held));
	OK(cuMemcpyDtoH(back, memory, (size_t)COPIES * SIZE));
	for (size_t copy = 0; copy < COPIES; copy++)
		for (size_t i = 0; i < SIZE; i++)
			CHECK(back[copy * SIZE + i] == pattern(copy, i));
	free(back);
}

/* Copies back, whose chunks use the slots that copies to the device have left or still hold. */
static void both_ways(uint8_t *host)
{
	enum { BYTES = 3 << 20 };
	uint8_t *back = malloc(BYTES);
	CHECK(back);
	for (size_t round = 0; round < 12; round++) {
		size_t up = round % 2 ? BYTES : SIZE, down = round % 3 ? BYTES : SIZE;
		for (size_t i = 0; i < up; i++)
			host[i] = pattern(round, i);
		OK(cuMemcpyHtoDAsync(memory, host, up, held));
		OK(cuMemcpyDtoHAsync(back, memory, down, held));
		for (size_t i = 0; i < down && i < up; i++)
			CHECK(back[i] == pattern(round, i));
	}
	free(back);
}

int main(void)
{
	uint8_t *pageable = malloc(4 << 20), *registered = malloc(4 << 20);
	context = start();
	CHECK(pageable && registered);
	OK(cuMemAlloc(&gate, 4));
	OK(cuMemAlloc(&memory, (size_t)COPIES * SIZE));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostRegister(registered, 4 << 20, 0));
	reused = true;
	others_go_on(pageable);
	both_ways(pageable);
	reused = false;
	others_go_on(registered);
	both_ways(registered);
	OK(cuMemHostUnregister(registered));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(other));
	OK(cuMemFree(gate));
	OK(cuMemFree(memory));
	free(pageable);
	free(registered);
	end();
	return 0;
}
