/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server reports of a session: its calls, and the device memory that it holds. */
#include "cuda_remote/door/door.h"
#include "cuda_remote/door/server_name.h"
#include "test/cuda/softgpu/driver.h"

#define MIB ((size_t)1 << 20)
#define CALLS 100

/* This process's session in a report of the server. */
static rc_door_session_t reported(void)
{
	static rc_door_report_t report;
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
	end();
	return 0;
}
