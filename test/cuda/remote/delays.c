/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delays ROUNDS MEGABYTES: asynchronous copies in three streams at a time, each from the host to one server, from there to the
 * next server, and back to the host from there. Each copy waits for the one before it by its stream or by an event of the other
 * server; the program waits only at the end of a round. Contents differ from place to place and from round to round.
 */
#include "test/cuda/softgpu/driver.h"

#define STREAMS 3
#define SHIFTS 4096u /* words */

static size_t bytes;
static CUcontext contexts[STREAMS];
static CUstream streams[STREAMS], back_streams[STREAMS];
static CUevent events[STREAMS];
static CUdeviceptr sources[STREAMS], targets[STREAMS]; /* of stream i: on server i, on server (i + 1) % STREAMS */
static uint32_t *pattern, *back[STREAMS];

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
		OK(cuMemcpyHtoDAsync(sources[i], content(round, i), bytes, streams[i]));
		OK(cuMemcpyPeerAsync(targets[i], contexts[next], sources[i], contexts[i], bytes, streams[i]));
		OK(cuEventRecord(events[i], streams[i]));
		use(next);
		OK(cuStreamWaitEvent(back_streams[next], events[i], 0));
		OK(cuMemcpyDtoHAsync(back[i], targets[i], bytes, back_streams[next]));
	}
	for (int i = 0; i < STREAMS; i++) {
		use(i);
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
	OK(cuInit(0));
	set_up();
	for (uint32_t i = 0; i < rounds; i++) {
		one_round(i);
		if (i % 100 == 99)
			fprintf(stderr, "%u rounds\n", i + 1);
	}
	return 0;
}
