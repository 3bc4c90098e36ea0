/* SPDX-License-Identifier: BSD-3-Clause */
/* cuInit, and the check that every other call begins with. */
#include "cuda_remote/softgpu/driver/init.h"

#include "cuda_remote/softgpu/driver/device/device.h"

#include <pthread.h>

enum { STATE_NEW, STATE_READY, STATE_FORKED };

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static int state; /* STATE_*; only the change to STATE_READY orders memory: the devices' tables come before it */
static __thread bool in_callback;

/*
 * Worker threads and their locks do not survive a fork. So, as with CUDA, a child may not use what its parent opened.
 */
static void forget_in_child(void)
{
	int ready = STATE_READY;
	__atomic_compare_exchange_n(&state, &ready, STATE_FORKED, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

CUresult cuInit(unsigned int flags)
{
	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	/* Pairs with the release below. */
	int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	if (now != STATE_NEW)
		return now == STATE_READY ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&init_lock);
	if (state == STATE_NEW)
		result = device_open();
	if (!result && state == STATE_NEW) {
		pthread_atfork(NULL, NULL, forget_in_child);
		/* Orders the devices' tables before the state; pairs with the acquires here and in init_check. */
		__atomic_store_n(&state, STATE_READY, __ATOMIC_RELEASE);
	}
	pthread_mutex_unlock(&init_lock);
	return result;
}

CUresult init_check(void)
{
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) != STATE_READY)
		return CUDA_ERROR_NOT_INITIALIZED;
	return in_callback ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult init_check_handle(const void *handle, enum handle_kind kind)
{
	CUresult result = init_check();
	return result || handle_valid(handle, kind) ? result : CUDA_ERROR_INVALID_HANDLE;
}

void init_in_callback(bool inside)
{
	in_callback = inside;
}

CUresult cuDriverGetVersion(int *version)
{
	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

/*
 * The software GPU has no profiler to start or stop. Unlike cuda.h, cudaProfiler.h does not export its functions: the
 * attribute does.
 */
__attribute__((visibility("default"))) CUresult cuProfilerStart(void)
{
	return init_check();
}

__attribute__((visibility("default"))) CUresult cuProfilerStop(void)
{
	return init_check();
}
