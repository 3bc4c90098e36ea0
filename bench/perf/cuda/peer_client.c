/* SPDX-License-Identifier: BSD-3-Clause */
/* The CUDA program of headrace-perf peer: copies between its first and its last device. */
#include "config.h"
#include "peer_copies.h"

#include "cuda_driver.h"
#include "cuda_run.h"
#include "endpoint.h"
#include "stats.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COPIES 8 /* of a stream, if they are not too long */
#define STREAM_BYTES (64u << 20)
#define LEAST 3  /* samples of each size */

static struct cuda_driver d;
static CUcontext from_context, to_context;
static CUdeviceptr from, to;
static CUstream stream;

static void set_up(size_t largest)
{
	int devices;
	cuda_driver_open(&d);
	cuda_check(d.init(0), "cuInit");
	cuda_check(d.device_count(&devices), "cuDeviceGetCount");
	if (devices < 2) {
		fprintf(stderr, "headrace-perf: want two GPUs, of two servers\n");
		exit(EXIT_FAILURE);
	}
	cuda_check(d.retain(&from_context, 0), "cuDevicePrimaryCtxRetain");
	cuda_check(d.retain(&to_context, devices - 1), "cuDevicePrimaryCtxRetain");
	cuda_check(d.set_current(to_context), "cuCtxSetCurrent");
	cuda_check(d.alloc(&to, largest), "cuMemAlloc");
	cuda_check(d.set_current(from_context), "cuCtxSetCurrent");
	cuda_check(d.alloc(&from, largest), "cuMemAlloc");
	cuda_check(d.stream_create(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
}

/* The time of n copies, issued one after another, until all are there. */
static double copies(size_t size, unsigned n)
{
	double start = now_seconds();
	for (unsigned i = 0; i < n; i++)
		cuda_check(d.copy_peer_async(to, to_context, from, from_context, size, stream), "cuMemcpyPeerAsync");
	cuda_check(d.stream_synchronize(stream), "cuStreamSynchronize");
	return now_seconds() - start;
}

static double processor_seconds(void)
{
	struct timespec time;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void measure(size_t size, double seconds, struct peer_result *result)
{
	double end = now_seconds() + seconds;
	unsigned n = size > STREAM_BYTES / COPIES ? STREAM_BYTES / size + 1 : COPIES;
	copies(size, 2);
	result->n = 0;
	while (result->n < PEER_SAMPLES && (result->n < LEAST || now_seconds() < end))
		result->us[result->n++] = 1e6 * copies(size, 1);
	double before = processor_seconds();
	result->stream_MBps = 1e-6 * (double)size * n / copies(size, n);
	result->client_s_per_GB = 1e9 * (processor_seconds() - before) / ((double)size * n);
}

int measure_peer_client(const struct options *options)
{
	struct peer_result result;
	size_t largest = 0;
	for (unsigned i = 0; i < options->sizes; i++)
		largest = options->size[i] > largest ? options->size[i] : largest;
	set_up(largest);
	CUresult first = d.copy_peer_async(to, to_context, from, from_context, largest, stream);
	if (first == CUDA_SUCCESS)
		first = d.stream_synchronize(stream);
	if (first == CUDA_ERROR_NOT_SUPPORTED)
		exit(CUDA_RUN_MISSING);
	cuda_check(first, "cuMemcpyPeerAsync");
	/* The first copies wait for the links of both directions, and use memory for the first time. */
	copies(largest, 2);
	cuda_check(d.copy_peer_async(from, from_context, to, to_context, largest, stream), "cuMemcpyPeerAsync");
	copies(largest, 1);
	for (unsigned i = 0; i < options->sizes; i++) {
		measure(options->size[i], options->seconds, &result);
		control_write(options->result_fd, &result, sizeof result);
	}
	return 0;
}
