/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server reports: a session's calls and device memory, and the daemon's counters. */
#include "cuda_remote/door/door.h"
#include "cuda_remote/door/server_name.h"
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>

#define MIB ((size_t)1 << 20)
#define CALLS 100

static rc_door_report_t report;

/* This process's session in a report of the server. */
static rc_door_session_t reported(void)
{
	rc_door_connect_t ask = { 0 };
	rc_door_welcome_t welcome;
	size_t servers;
	CHECK(rc_server_parse(getenv("HEADRACE_SERVER"), &ask.server, 1, &servers) == 0);
	/* A call that waits is served after all calls before it. */
	OK(cuCtxSynchronize());
	CHECK(rc_door_ask_report(&ask, &welcome, &report) == 0);
	CHECK(report.count == 1 && report.hidden == 0);
	CHECK(!strcmp(report.session[0].program, "usage"));
	return report.session[0];
}

static const struct rc_counters *counted(void)
{
	reported();
	return &report.counters;
}

static uint64_t connections; /* of the process, before it starts a thread */

static void *call(void *context)
{
	OK(cuCtxSetCurrent(context));
	OK(cuCtxSynchronize());
	const struct rc_counters *now = counted();
	CHECK(now->connections == connections + 1 && now->connections_total == connections + 1);
	return NULL;
}

/* Launches, bytes, memory of the GPU, connections. */
static void traffic(void)
{
	static uint8_t bytes[3 * MIB];
	const struct rc_counters *now = counted();
	CUdeviceptr a, b;
	CUcontext context;
	pthread_t thread;
	CHECK(now->gpus == 1 && now->sessions == 1 && now->sessions_total == 1);
	connections = now->connections;
	CHECK(now->kernel_launches_total == 0 && now->to_devices_total == 0 && now->from_devices_total == 0);
	CHECK(now->gpu[0].used == 0 && now->gpu[0].granted <= 64 * MIB && now->gpu[0].quota == 64 * MIB);
	OK(cuMemAlloc(&a, 4 * MIB));
	OK(cuMemAlloc(&b, 4 * MIB));
	CHECK(counted()->gpu[0].used == 8 * MIB && now->gpu[0].granted >= 8 * MIB);
	OK(cuMemcpyHtoD(a, bytes, sizeof bytes));
	OK(cuMemcpyHtoD(b, bytes, 100));
	OK(cuMemcpyDtoD(b, a, sizeof bytes));
	OK(cuMemcpyDtoH(bytes, b, MIB));
	CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = bytes, .srcPitch = 100, .dstPitch = 256,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = a, .WidthInBytes = 70, .Height = 30 };
	OK(cuMemcpy2D(&rows));
	CHECK(counted()->to_devices_total == sizeof bytes + 100 + 2100);
	CHECK(now->from_devices_total == MIB);
	OK(cuMemcpyDtoH(bytes, b, 64)); /* nothing else is under way */
	CHECK(counted()->from_devices_total == MIB + 64);
	for (int i = 0; i < 5; i++)
		OK(launch("nothing", NULL, NULL, NULL));
	CHECK(counted()->kernel_launches_total == 5);
	OK(cuCtxGetCurrent(&context));
	CHECK(pthread_create(&thread, NULL, call, context) == 0);
	pthread_join(thread, NULL);
	OK(cuMemFree(a));
	OK(cuMemFree(b));
}

int main(void)
{
	CUdeviceptr a, b;
	CUcontext primary = start(), second;
	size_t free_bytes, total;
	CHECK(reported().memory == 0);
	OK(cuMemAlloc(&a, 8 * MIB));
	OK(cuMemAlloc(&b, 4 * MIB));
	CHECK(reported().memory == 12 * MIB);
	OK(cuMemFree(b));
	CHECK(reported().memory == 8 * MIB);
	OK(cuMemFreeAsync(a, NULL));
	CHECK(reported().memory == 0);

	/* The memory of a context ends with it. */
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuMemAlloc(&a, 2 * MIB));
	CHECK(reported().memory == 2 * MIB);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	CHECK(reported().memory == 0);

	uint64_t before = reported().calls;
	for (int i = 0; i < CALLS; i++)
		OK(cuMemGetInfo(&free_bytes, &total));
	uint64_t after = reported().calls;
	CHECK(after >= before + CALLS && after <= before + CALLS + 10);
	traffic();
	end();
	return 0;
}
