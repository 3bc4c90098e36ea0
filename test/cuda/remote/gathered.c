/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that the client gathers before it sends them, in a session over TCP with a worker on the same host: gathered all | few | long.
 * With "few" only the launches, which the script counts the sends of; with "long" only asynchronous copies, whose sends the
 * preloaded object counts for each thread.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "test/cuda/softgpu/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <time.h>

enum { ROUNDS = 200, LAUNCHES = 2000, MOST = 20 };

static CUcontext context;
static CUstream stream;
static uint32_t *word; /* mapped, as the worker is on this host */

static void increase(uint32_t n)
{
	CUdeviceptr there = (CUdeviceptr)(uintptr_t)word;
	OK(launch("increase", stream, &there, &n));
}

static uint32_t now(void)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* Without a further call, all launches leave. */
static void leave_by_themselves(void)
{
	uint32_t wanted = now();
	for (uint32_t round = 0; round < ROUNDS; round++) {
		for (uint32_t i = 0; i <= round % MOST; i++, wanted++)
			increase(1);
		while (now() != wanted)
			sched_yield();
	}
}

static void *launch_some(void *argument)
{
	OK(cuCtxSetCurrent(context));
	for (uint32_t i = 0; i < *(uint32_t *)argument; i++)
		increase(1);
	return NULL;
}

/* What a thread has launched before it ends, another thread's synchronisation waits for. */
static void ended_threads(void)
{
	uint32_t wanted = now();
	for (uint32_t round = 1; round <= MOST; round++) {
		pthread_t thread;
		CHECK(!pthread_create(&thread, NULL, launch_some, &round));
		pthread_join(thread, NULL);
		OK(cuStreamSynchronize(stream));
		wanted += round;
		CHECK(now() == wanted);
	}
}

static int turn; /* atomic */

static void wait_turn(int mine)
{
	while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine)
		sched_yield();
}

static void *launch_in_turns(void *unused)
{
	(void)unused;
	OK(cuCtxSetCurrent(context));
	for (int round = 0; round < ROUNDS; round++) {
		wait_turn(2 * round);
		for (int i = 0; i < MOST; i++)
			increase(1);
		__atomic_store_n(&turn, 2 * round + 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* The same for a thread that goes on. */
static void another_thread(void)
{
	uint32_t wanted = now();
	pthread_t thread;
	CHECK(!pthread_create(&thread, NULL, launch_in_turns, NULL));
	for (int round = 0; round < ROUNDS; round++) {
		wait_turn(2 * round + 1);
		OK(cuStreamSynchronize(stream));
		wanted += MOST;
		CHECK(now() == wanted);
		__atomic_store_n(&turn, 2 * round + 2, __ATOMIC_RELEASE);
	}
	pthread_join(thread, NULL);
}

/* Memory is made, filled, used and freed by calls that do not wait, with some that do and long ones between. */
static void among_others(void)
{
	enum { WORDS = 50000 };
	static uint32_t host[WORDS];
	for (uint32_t round = 0; round < ROUNDS; round++) {
		CUdeviceptr memory, other;
		uint32_t back = 0, words = round % 3 ? 16 : WORDS;
		CUevent event;
		OK(cuMemAlloc(&memory, sizeof host));
		OK(cuMemAlloc(&other, sizeof host + 4));
		OK(cuMemsetD32Async(other, round, WORDS, stream));
		host[words - 1] = round;
		OK(cuMemcpyHtoDAsync(memory, host, words * 4, stream));
		host[words - 1] = UINT32_MAX; /* the call has read it */
		OK(cuMemcpyDtoDAsync(other + 4, memory, words * 4, stream));
		CUdeviceptr last = other + words * 4;
		uint32_t n = 5;
		OK(launch("increase", stream, &last, &n));
		OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		OK(cuMemcpyDtoH(&back, last, 4));
		CHECK(back == round + 5);
		OK(cuEventDestroy(event));
		OK(cuMemFree(memory));
		OK(cuMemFree(other));
	}
}

/* Without ThreadSanitizer: the library receives the bytes as plain memory. */
__attribute__((no_sanitize("thread"))) static bool has_arrived(const volatile uint32_t *at, uint32_t value)
{
	return *at == value;
}

/* The call of a long asynchronous copy sends nothing itself, in either direction, even if it comes alone. Without a further
 * call its bytes arrive. The memory is registered, so that the worker does not share it. */
static void long_copies(void)
{
	enum { BYTES = 32 << 20 };
	unsigned (*sends)(void) = (unsigned (*)(void))dlsym(RTLD_DEFAULT, "sends_of_thread");
	uint32_t *host = malloc(BYTES);
	CUdeviceptr memory;
	CHECK(sends && host);
	memset(host, 1, BYTES);
	OK(cuMemHostRegister(host, BYTES, 0));
	OK(cuMemAlloc(&memory, BYTES));
	for (uint32_t round = 0; round < 5; round++) {
		host[BYTES / 4 - 1] = round;
		OK(cuMemcpyHtoDAsync(memory, host, BYTES, stream)); /* the first one opens the data connection */
		OK(cuStreamSynchronize(stream));
		/* A call shortly after another one is gathered in any case: the next one has to come alone. */
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		unsigned before = sends();
		OK(cuMemcpyHtoDAsync(memory, host, BYTES, stream));
		CHECK(sends() == before);
		OK(cuStreamSynchronize(stream));
		CHECK(sends() > before);
		host[BYTES / 4 - 1] = UINT32_MAX;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
		before = sends();
		OK(cuMemcpyDtoHAsync(host, memory, BYTES, stream));
		CHECK(sends() == before);
		while (!has_arrived(&host[BYTES / 4 - 1], round))
			sched_yield();
		OK(cuStreamSynchronize(stream));
	}
	OK(cuMemHostUnregister(host));
	OK(cuMemFree(memory));
	free(host);
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	context = start();
	void *memory;
	OK(cuMemHostAlloc(&memory, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	word = memory;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	*word = 0;
	kernel("increase");
	uint32_t before = now();
	for (int i = 0; i < LAUNCHES; i++)
		increase(1);
	OK(cuStreamSynchronize(stream));
	CHECK(now() == before + LAUNCHES);
	if (!strcmp(argv[1], "long"))
		long_copies();
	if (!strcmp(argv[1], "all")) {
		leave_by_themselves();
		ended_threads();
		another_thread();
		among_others();
	}
	OK(cuStreamDestroy(stream));
	OK(cuMemFreeHost(word));
	return 0;
}
