/* SPDX-License-Identifier: BSD-3-Clause */
/* HEADRACE_SOFTGPU_BUS_MBPS: copies between host and device take at least the time of that bandwidth. */
#include "driver.h"

#include <time.h>

enum { BYTES = 40000 }; /* 40 ms at 1 MB/s */

static double since_ms(const struct timespec *begin)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - begin->tv_sec) * 1e3 + (double)(now.tv_nsec - begin->tv_nsec) / 1e6;
}

int main(void)
{
	static char host[BYTES], back[BYTES];
	struct timespec begin;
	CUdeviceptr a, b;
	CUstream stream;
	setenv("HEADRACE_SOFTGPU_BUS_MBPS", "1", 1);
	start();
	OK(cuMemAlloc(&a, BYTES));
	OK(cuMemAlloc(&b, BYTES));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	memset(host, 7, BYTES);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	OK(cuMemcpyHtoD(a, host, BYTES));
	CHECK(since_ms(&begin) >= 40);
	OK(cuMemcpyDtoD(b, a, BYTES));
	clock_gettime(CLOCK_MONOTONIC, &begin);
	OK(cuMemcpyDtoHAsync(back, b, BYTES, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(since_ms(&begin) >= 40);
	CHECK(!memcmp(host, back, BYTES));
	end();
	return 0;
}
