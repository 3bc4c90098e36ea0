/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delays ROUNDS MEGABYTES: asynchronous copies in three streams at a time, each from the host to one server, from there to the
 * next server, and back to the host from there. Each copy waits for the one before it by its stream or by an event of the other
 * server; the program waits only at the end of a round. Contents differ from place to place and from round to round. If a round
 * takes more than 200 s, the program says which one and what it waits for, and ends.
 */
#include "test/cuda/softgpu/driver.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define STREAMS 3
#define SHIFTS 4096u /* words */
#define LIMIT 200    /* seconds of a round */

static size_t bytes;
static CUcontext contexts[STREAMS];
static CUstream streams[STREAMS], back_streams[STREAMS];
static CUevent events[STREAMS];
static CUdeviceptr sources[STREAMS], targets[STREAMS]; /* of stream i: on server i, on server (i + 1) % STREAMS */
static uint32_t *pattern, *back[STREAMS];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static uint32_t round_now;   /* under the lock */
static bool all_ended;       /* under the lock */
static const char *call_now; /* atomic, as the next */
static int place_now;

/* The call that comes next, for the server of that number. */
static void at(const char *call, int place)
{
	__atomic_store_n(&place_now, place, __ATOMIC_RELAXED);
	__atomic_store_n(&call_now, call, __ATOMIC_RELEASE);
}

static void *watch(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&lock);
	while (!all_ended) {
		struct timespec until;
		uint32_t began = round_now;
		int error = 0;
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += LIMIT;
		while (!all_ended && began == round_now && error != ETIMEDOUT)
			error = pthread_cond_timedwait(&ended, &lock, &until);
		if (all_ended || began != round_now)
			continue;
		const char *call = __atomic_load_n(&call_now, __ATOMIC_ACQUIRE);
		fprintf(stderr, "round %u of %zu MB is not over after %d s: in %s, server %d\n", began, bytes >> 20, LIMIT, call,
			__atomic_load_n(&place_now, __ATOMIC_RELAXED));
		_Exit(1);
	}
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The rounds up to this number are over. */
static void tell_watch(uint32_t rounds, bool all)
{
	pthread_mutex_lock(&lock);
	round_now = rounds;
	all_ended = all;
	pthread_cond_signal(&ended);
	pthread_mutex_unlock(&lock);
}

static void use(int device)
{
	OK(cuCtxSetCurrent(contexts[device]));
}

static void set_up(void)
{
	for (int i = 0; i < STREAMS; i++) {
		OK(cuDevicePrimaryCtxRetain(&contexts[i], i));
		use(i);
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuStreamCreate(&back_streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
		OK(cuMemAlloc(&sources[i], bytes));
		OK(cuMemAlloc(&targets[(i + STREAMS - 1) % STREAMS], bytes));
		OK(cuMemHostAlloc((void **)&back[i], bytes, CU_MEMHOSTALLOC_PORTABLE));
	}
	OK(cuMemHostAlloc((void **)&pattern, bytes + 4 * SHIFTS, CU_MEMHOSTALLOC_PORTABLE));
	for (uint32_t i = 0; i < (uint32_t)(bytes / 4) + SHIFTS; i++)
		pattern[i] = i * 2654435761u;
}

static const uint32_t *content(uint32_t round, int i)
{
	return pattern + (round * STREAMS + (uint32_t)i) * 7 % SHIFTS;
}

static void one_round(uint32_t round)
{
	for (int i = 0; i < STREAMS; i++) {
		int next = (i + 1) % STREAMS;
		use(i);
		at("the copy from the host", i);
		OK(cuMemcpyHtoDAsync(sources[i], content(round, i), bytes, streams[i]));
		at("the copy to the next server", i);
		OK(cuMemcpyPeerAsync(targets[i], contexts[next], sources[i], contexts[i], bytes, streams[i]));
		at("the record of the event", i);
		OK(cuEventRecord(events[i], streams[i]));
		use(next);
		at("the wait for the event of the server before it", next);
		OK(cuStreamWaitEvent(back_streams[next], events[i], 0));
		at("the copy to the host", next);
		OK(cuMemcpyDtoHAsync(back[i], targets[i], bytes, back_streams[next]));
	}
	for (int i = 0; i < STREAMS; i++) {
		use(i);
		at("the wait for the stream that copies to the host", i);
		OK(cuStreamSynchronize(back_streams[i]));
	}
	for (int i = 0; i < STREAMS; i++) {
		CHECK(!memcmp(back[i], content(round, i), bytes));
		memset(back[i], 0xee, 4096);
		memset((char *)back[i] + bytes - 4096, 0xee, 4096);
	}
}

int main(int argc, char **argv)
{
	uint32_t rounds = argc == 3 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
	bytes = argc == 3 ? strtoul(argv[2], NULL, 10) << 20 : 0;
	if (!rounds || !bytes)
		return 2;
	pthread_t watcher;
	at("set-up", 0);
	CHECK(!pthread_create(&watcher, NULL, watch, NULL));
	OK(cuInit(0));
	set_up();
	for (uint32_t i = 0; i < rounds; i++) {
		one_round(i);
		tell_watch(i + 1, false);
		if (i % 100 == 99)
			fprintf(stderr, "%u rounds\n", i + 1);
	}
	tell_watch(rounds, true);
	pthread_join(watcher, NULL);
	return 0;
}
