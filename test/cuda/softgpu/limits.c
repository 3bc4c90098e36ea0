/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits and hints that the device stores and returns, and functions that programs find by name. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>

static size_t limit(CUlimit which)
{
	size_t value;
	OK(cuCtxGetLimit(&value, which));
	return value;
}

static void launches_that_wait_may_be_any_number(void)
{
	CHECK(limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == 2048);
	OK(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT, 4096));
	CHECK(limit(CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT) == 4096);
	EXPECT(cuCtxSetLimit(CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH, 2), CUDA_ERROR_UNSUPPORTED_LIMIT);
}

static void persisting_accesses_are_a_hint_within_the_cache(void)
{
	int cache, most, window;
	OK(cuDeviceGetAttribute(&cache, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 0));
	OK(cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE, 0));
	OK(cuDeviceGetAttribute(&window, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE, 0));
	CHECK(most <= cache && window <= cache && (most > 0) == (cache > 0));
	CHECK(limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == 0);
	OK(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most));
	CHECK(limit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE) == (size_t)most);
	EXPECT(cuCtxSetLimit(CU_LIMIT_PERSISTING_L2_CACHE_SIZE, (size_t)most + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxResetPersistingL2Cache());
}

static void every_name_can_be_looked_up_in_the_library(void)
{
	static const char *const names[] = { "cuInit", "cuProfilerInitialize", "cuProfilerStart", "cuProfilerStop",
					     "cuCtxResetPersistingL2Cache", "cuGetProcAddress_v2" };
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!dlsym(RTLD_DEFAULT, names[i])) {
			fprintf(stderr, "%s is not exported\n", names[i]);
			exit(1);
		}
}

int main(void)
{
	start();
	launches_that_wait_may_be_any_number();
	persisting_accesses_are_a_hint_within_the_cache();
	every_name_can_be_looked_up_in_the_library();
	return 0;
}
