/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests between servers work with: contexts, streams and memory of three GPUs, and streams that are held. */
#include "test/cuda/remote/peer.h"

#include <unistd.h>

struct place places[DEVICES];
uint32_t *there, *back;

void use(int device)
{
	OK(cuCtxSetCurrent(places[device].context));
}

void set_up(void)
{
	there = malloc(BYTES);
	back = malloc(BYTES);
	for (int i = 0; i < DEVICES; i++) {
		struct place *place = &places[i];
		OK(cuDevicePrimaryCtxRetain(&place->context, i));
		use(i);
		OK(cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING));
		OK(cuStreamCreate(&place->other, CU_STREAM_NON_BLOCKING));
		OK(cuEventCreate(&place->event, 0));
		OK(cuMemAlloc(&place->memory, BYTES));
	}
}

void tear_down(struct place *place)
{
	OK(cuCtxSetCurrent(place->context));
	OK(cuMemFree(place->memory));
	OK(cuEventDestroy(place->event));
	OK(cuStreamDestroy(place->other));
	OK(cuStreamDestroy(place->stream));
	OK(cuCtxSynchronize());
}

void fill(uint32_t seed)
{
	for (uint32_t i = 0; i < WORDS; i++)
		there[i] = i * 2654435761u + seed;
}

void expect_at(CUdeviceptr at, const void *bytes, size_t size)
{
	memset(back, 0xee, size);
	OK(cuMemcpyDtoH(back, at, size));
	CHECK(!memcmp(back, bytes, size));
}

void expect_word(CUdeviceptr at, uint32_t value)
{
	uint32_t found;
	OK(cuMemcpyDtoH(&found, at, 4));
	CHECK(found == value);
}

static void hold_function(void *argument)
{
	struct held *held = argument;
	pthread_mutex_lock(&held->lock);
	while (!held->released)
		pthread_cond_wait(&held->changed, &held->lock);
	pthread_mutex_unlock(&held->lock);
}

void hold_stream(struct held *held, CUstream stream)
{
	pthread_mutex_init(&held->lock, NULL);
	pthread_cond_init(&held->changed, NULL);
	held->released = false;
	OK(cuLaunchHostFunc(stream, hold_function, held));
}

void release(struct held *held)
{
	pthread_mutex_lock(&held->lock);
	held->released = true;
	pthread_cond_broadcast(&held->changed);
	pthread_mutex_unlock(&held->lock);
}

void note_late(void *done)
{
	usleep(20000); /* time in which a call that does not wait would return */
	__atomic_store_n((bool *)done, true, __ATOMIC_RELEASE);
}
