/* SPDX-License-Identifier: BSD-3-Clause */
/* The primary context of each device, in which the CUDA runtime works. */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/space/space.h"

static struct primary {
	CUcontext context; /* NULL while inactive */
	unsigned references, flags;
} primaries[SOFTGPU_MAX_DEVICES];
static pthread_mutex_t primaries_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guards what primary_default_stream reads. primaries_lock is held while a context ends, which may take long. */
static pthread_mutex_t stream_lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream default_streams[SOFTGPU_MAX_DEVICES]; /* by device; NULL while there is no primary context */

static CUresult check(CUdevice device)
{
	CUresult result = init_check();
	if (result)
		return result;
	return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static void set_default_stream(const struct primary *primary, CUstream stream)
{
	pthread_mutex_lock(&stream_lock);
	default_streams[primary - primaries] = stream;
	pthread_mutex_unlock(&stream_lock);
}

CUstream primary_default_stream(int physical)
{
	CUstream stream = NULL;
	pthread_mutex_lock(&stream_lock);
	for (CUdevice device = 0; device < device_count(); device++)
		if (device_physical(device) == physical)
			stream = default_streams[device];
	if (stream)
		queue_stream_hold(stream);
	pthread_mutex_unlock(&stream_lock);
	return stream;
}

static void deactivate(struct primary *primary)
{
	set_default_stream(primary, NULL);
	context_destroy(primary->context);
	primary->context = NULL;
	primary->references = 0;
}

CUresult primary_retain(CUdevice dev, CUresult (*use)(CUcontext primary, void *with), void *with)
{
	CUresult result = check(dev);
	if (result)
		return result;
	pthread_mutex_lock(&primaries_lock);
	struct primary *primary = &primaries[dev];
	if (!primary->context) {
		result = context_new(dev, primary->flags, true, &primary->context);
		if (!result)
			set_default_stream(primary, primary->context->group.legacy);
	}
	if (!result) {
		primary->references++;
		result = use(primary->context, with);
		if (result && !--primary->references)
			deactivate(primary);
	}
	pthread_mutex_unlock(&primaries_lock);
	return result;
}

static CUresult tell(CUcontext primary, void *output)
{
	*(CUcontext *)output = primary;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	CUresult result = check(dev);
	if (result)
		return result;
	return pctx ? primary_retain(dev, tell, pctx) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult result = check(dev);
	if (result)
		return result;
	pthread_mutex_lock(&primaries_lock);
	struct primary *primary = &primaries[dev];
	if (!primary->references)
		result = CUDA_ERROR_INVALID_CONTEXT;
	else if (!--primary->references)
		deactivate(primary);
	pthread_mutex_unlock(&primaries_lock);
	return result;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUresult result = check(dev);
	if (result)
		return result;
	pthread_mutex_lock(&primaries_lock);
	if (primaries[dev].context)
		deactivate(&primaries[dev]);
	pthread_mutex_unlock(&primaries_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult result = check(dev);
	if (result)
		return result;
	if (!context_flags_valid(flags))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primaries_lock);
	primaries[dev].flags = flags;
	if (primaries[dev].context)
		__atomic_store_n(&primaries[dev].context->flags, flags, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&primaries_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult result = check(dev);
	if (result)
		return result;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primaries_lock);
	*active = primaries[dev].context != NULL;
	*flags = primaries[dev].context ? __atomic_load_n(&primaries[dev].context->flags, __ATOMIC_RELAXED)
					: primaries[dev].flags;
	pthread_mutex_unlock(&primaries_lock);
	return CUDA_SUCCESS;
}
