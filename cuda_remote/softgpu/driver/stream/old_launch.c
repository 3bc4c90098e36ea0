/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launches of CUDA 3.2 and before: block shape, shared memory and parameters are set in the function by separate calls
 * and stay set. cuLaunchKernel does not change them, which its contract permits.
 */
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/stream/launch.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct old_launch {
	unsigned block[3];
	unsigned dynamic_shared;
	unsigned size; /* of the parameters that were set */
	unsigned char parameters[DEVICE_PARAMETER_BYTES];
};

/* Guards what every function has set. */
static pthread_mutex_t old_lock = PTHREAD_MUTEX_INITIALIZER;

/* Outputs the function and its settings; holds the lock unless it fails. */
static CUresult enter(CUfunction handle, struct old_launch **settings, CUfunction *output)
{
	CUcontext context;
	CUfunction function;
	CUresult result = context_enter(&context);
	if (!result)
		result = function_resolve(handle, context, &function);
	if (result)
		return result;
	pthread_mutex_lock(&old_lock);
	if (!function->old_launch)
		function->old_launch = calloc(1, sizeof *function->old_launch);
	*settings = function->old_launch;
	*output = function;
	if (*settings)
		return CUDA_SUCCESS;
	pthread_mutex_unlock(&old_lock);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* Stores a value at an offset of the function's settings, if it is allowed. */
static CUresult set(CUfunction handle, bool allowed, size_t offset, const void *value, size_t size)
{
	struct old_launch *settings;
	CUresult result = enter(handle, &settings, &handle);
	if (result)
		return result;
	if (!allowed)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (size)
		memcpy((unsigned char *)settings + offset, value, size);
	pthread_mutex_unlock(&old_lock);
	return result;
}

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	const unsigned block[3] = { (unsigned)x, (unsigned)y, (unsigned)z };
	bool allowed = x >= 1 && y >= 1 && z >= 1 && x <= DEVICE_MAX_THREADS && y <= DEVICE_MAX_THREADS &&
		       z <= DEVICE_MAX_BLOCK_Z && x * y <= DEVICE_MAX_THREADS / z;
	return set(hfunc, allowed, offsetof(struct old_launch, block), block, sizeof block);
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	return set(hfunc, bytes <= DEVICE_SHARED_OPTIN, offsetof(struct old_launch, dynamic_shared), &bytes,
		   sizeof bytes);
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	return set(hfunc, numbytes <= DEVICE_PARAMETER_BYTES, offsetof(struct old_launch, size), &numbytes,
		   sizeof numbytes);
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	bool allowed = offset >= 0 && (!numbytes || ptr) && (unsigned)offset <= DEVICE_PARAMETER_BYTES &&
		       numbytes <= DEVICE_PARAMETER_BYTES - (unsigned)offset;
	return set(hfunc, allowed, offsetof(struct old_launch, parameters) + (unsigned)offset, ptr, numbytes);
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
	return cuParamSetv(hfunc, offset, &value, sizeof value);
}

/* Every kernel of a module can use all its texture references: nothing to set. */
CUresult cuParamSetTexRef(CUfunction hfunc, int texunit, CUtexref hTexRef)
{
	struct old_launch *settings;
	CUresult result = enter(hfunc, &settings, &hfunc);
	if (result)
		return result;
	pthread_mutex_unlock(&old_lock);
	return texunit == CU_PARAM_TR_DEFAULT && handle_valid(hTexRef, HANDLE_TEXTURE_REFERENCE) ? CUDA_SUCCESS
											 : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	struct old_launch *settings;
	CUstream stream;
	CUresult result = enter(f, &settings, &f);
	if (result)
		return result;
	size_t size = settings->size;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, settings->parameters,
			  CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END };
	launch_shape_t shape = { .grid = { (unsigned)grid_width, (unsigned)grid_height, 1 },
				 .dynamic_shared = settings->dynamic_shared };
	memcpy(shape.block, settings->block, sizeof shape.block);
	if (grid_width < 1 || grid_height < 1)
		result = CUDA_ERROR_INVALID_VALUE;
	else
		result = launch_submit(f, &shape, hStream, NULL, extra, NULL, &stream);
	pthread_mutex_unlock(&old_lock);
	return result;
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	return cuLaunchGridAsync(f, grid_width, grid_height, CU_STREAM_LEGACY);
}

CUresult cuLaunch(CUfunction f)
{
	return cuLaunchGrid(f, 1, 1);
}
