/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launches of CUDA 3.2 and before: block shape, shared memory and parameters are set in the function by separate calls and
 * stay set. The settings are the client's; the launch itself is cuLaunchKernel.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETERS_MAX 32764u /* bytes: PTX ISA, kernel function parameters */

struct rc_old_launch {
	int block[3];
	unsigned shared;
	unsigned size; /* of the parameters that were set */
	unsigned char parameters[PARAMETERS_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards what every function has set */

/* Outputs the function's settings and the current device; holds the lock unless it fails. */
static CUresult enter(CUfunction function, struct rc_old_launch **settings, struct rc_device **device)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_device_get(context->device, device);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_kernel *kernel = rc_kernel_find((uint64_t)(uintptr_t)function);
	if (!kernel)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	if (!kernel->old_launch)
		kernel->old_launch = calloc(1, sizeof *kernel->old_launch);
	*settings = kernel->old_launch;
	if (*settings)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&lock);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool block_fits(const struct rc_device *device, const int *block)
{
	uint64_t threads = 1;
	for (int i = 0; i < 3; i++) {
		if (block[i] < 1 || (unsigned)block[i] > device->max_block[i])
			return false;
		threads *= (unsigned)block[i];
	}
	return threads <= device->max_threads;
}

CUresult cuFuncSetBlockShape(CUfunction function, int x, int y, int z)
{
	const int block[3] = { x, y, z };
	struct rc_old_launch *settings;
	struct rc_device *device;
	CUresult result = enter(function, &settings, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (block_fits(device, block))
		memcpy(settings->block, block, sizeof block);
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuFuncSetSharedSize(CUfunction function, unsigned bytes)
{
	struct rc_old_launch *settings;
	struct rc_device *device;
	CUresult result = enter(function, &settings, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (bytes <= device->max_shared_optin)
		settings->shared = bytes;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuParamSetSize(CUfunction function, unsigned bytes)
{
	struct rc_old_launch *settings;
	struct rc_device *device;
	CUresult result = enter(function, &settings, &device);
	if (result != CUDA_SUCCESS)
		return result;
	if (bytes <= PARAMETERS_MAX)
		settings->size = bytes;
	else
		result = CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuParamSetv(CUfunction function, int offset, void *bytes, unsigned count)
{
	struct rc_old_launch *settings;
	struct rc_device *device;
	CUresult result = enter(function, &settings, &device);
	if (result != CUDA_SUCCESS)
		return result;
	bool fits = offset >= 0 && (unsigned)offset <= PARAMETERS_MAX && count <= PARAMETERS_MAX - (unsigned)offset;
	if (!fits || (count && !bytes))
		result = CUDA_ERROR_INVALID_VALUE;
	else if (count)
		memcpy(settings->parameters + offset, bytes, count);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuParamSeti(CUfunction function, int offset, unsigned value)
{
	return cuParamSetv(function, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction function, int offset, float value)
{
	return cuParamSetv(function, offset, &value, sizeof value);
}

/* Every kernel of a module can use all its texture references: nothing to set. */
CUresult cuParamSetTexRef(CUfunction function, int unit, CUtexref reference)
{
	struct rc_old_launch *settings;
	struct rc_device *device;
	CUresult result = enter(function, &settings, &device);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_unlock(&lock);
	bool known = rc_handle_check(RC_KIND_TEXTURE_REF, (uint64_t)(uintptr_t)reference) == CUDA_SUCCESS;
	return unit == CU_PARAM_TR_DEFAULT && known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
	struct rc_old_launch *settings, *mine = malloc(sizeof *mine);
	struct rc_device *device;
	CUresult result = mine ? enter(function, &settings, &device) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		*mine = *settings; /* a launch may wait, and then other threads may set their functions */
		pthread_mutex_unlock(&lock);
		if (width < 1 || height < 1)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	if (result == CUDA_SUCCESS) {
		size_t size = mine->size;
		void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, mine->parameters, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
				  CU_LAUNCH_PARAM_END };
		result = cuLaunchKernel(function, (unsigned)width, (unsigned)height, 1, (unsigned)mine->block[0],
					(unsigned)mine->block[1], (unsigned)mine->block[2], mine->shared, stream, NULL, extra);
	}
	free(mine);
	return result;
}

CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
	return cuLaunchGridAsync(function, width, height, CU_STREAM_LEGACY);
}

CUresult cuLaunch(CUfunction function)
{
	return cuLaunchGrid(function, 1, 1);
}
