/* SPDX-License-Identifier: BSD-3-Clause */
/* Work in streams other than copies and kernels, and queries of streams. */
#include "cuda_remote/runtime/default_stream.h"

#include <stdlib.h>

RUNTIME_API cudaError_t cudaStreamQuery(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamQuery(DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamSynchronize(DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamWaitEvent(DRIVER_STREAM(stream), event, flags));
}

RUNTIME_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamGetPriority(DRIVER_STREAM(stream), priority));
}

RUNTIME_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamGetFlags(DRIVER_STREAM(stream), flags));
}

RUNTIME_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long *id)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamGetId(DRIVER_STREAM(stream), id));
}

RUNTIME_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int *ordinal)
{
	CUdevice device;
	if (!ordinal)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = runtime_driver.cuStreamGetDevice(DRIVER_STREAM(stream), &device);
	if (result == CUDA_SUCCESS)
		*ordinal = runtime_device_ordinal(device);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamIsCapturing(DRIVER_STREAM(stream),
			(CUstreamCaptureStatus *)status));
}

_Static_assert(sizeof(cudaStreamAttrValue) == sizeof(CUstreamAttrValue), "a stream's attributes are passed through");

RUNTIME_API cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamCopyAttributes(DRIVER_STREAM(to), DRIVER_STREAM(from)));
}

RUNTIME_API cudaError_t cudaStreamGetAttribute(
		cudaStream_t stream, cudaStreamAttrID attribute, cudaStreamAttrValue *value)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamGetAttribute(DRIVER_STREAM(stream),
			(CUstreamAttrID)attribute, (CUstreamAttrValue *)value));
}

RUNTIME_API cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaStreamAttrID attribute,
					       const cudaStreamAttrValue *value)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamSetAttribute(DRIVER_STREAM(stream),
			(CUstreamAttrID)attribute, (const CUstreamAttrValue *)value));
}

struct callback {
	cudaStreamCallback_t function;
	cudaStream_t stream; /* as the program gave it */
	void *data;
};

static void CUDA_CB call_back(CUstream stream, CUresult status, void *data)
{
	struct callback callback = *(struct callback *)data;
	(void)stream;
	free(data);
	callback.function(callback.stream, runtime_error_translate(status), callback.data);
}

RUNTIME_API cudaError_t cudaStreamAddCallback(
		cudaStream_t stream, cudaStreamCallback_t function, void *data, unsigned flags)
{
	if (!function)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	struct callback *callback = malloc(sizeof *callback);
	if (!callback)
		return runtime_fail(cudaErrorMemoryAllocation);
	*callback = (struct callback){ function, stream, data };
	CUresult result = runtime_driver.cuStreamAddCallback(DRIVER_STREAM(stream), call_back, callback, flags);
	if (result != CUDA_SUCCESS)
		free(callback);
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *data)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuLaunchHostFunc(DRIVER_STREAM(stream), function, data));
}

RUNTIME_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void *pointer, size_t size, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamAttachMemAsync(DRIVER_STREAM(stream),
			runtime_address(pointer), size, flags));
}

RUNTIME_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventRecord(event, DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventRecordWithFlags(event, DRIVER_STREAM(stream), flags));
}

/* ---- memory in stream order ---- */

RUNTIME_API cudaError_t cudaMallocAsync(void **pointer, size_t size, cudaStream_t stream)
{
	CUdeviceptr address = 0;
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = size ? runtime_driver.cuMemAllocAsync(&address, size, DRIVER_STREAM(stream)) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaMallocFromPoolAsync(void **pointer, size_t size, cudaMemPool_t pool, cudaStream_t stream)
{
	CUdeviceptr address = 0;
	if (!pointer)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	if (error)
		return error;
	CUresult result = CUDA_SUCCESS;
	if (size)
		result = runtime_driver.cuMemAllocFromPoolAsync(&address, size, pool, DRIVER_STREAM(stream));
	if (result == CUDA_SUCCESS)
		*pointer = (void *)(uintptr_t)address;
	return runtime_done(result);
}

RUNTIME_API cudaError_t cudaFreeAsync(void *pointer, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	if (error || !pointer)
		return error;
	return runtime_done(runtime_driver.cuMemFreeAsync(runtime_address(pointer), DRIVER_STREAM(stream)));
}

RUNTIME_API cudaError_t cudaMemPrefetchAsync(const void *pointer, size_t size, struct cudaMemLocation location,
					     unsigned flags, cudaStream_t stream)
{
	cudaError_t error = runtime_enter();
	CUmemLocation where = { .type = (CUmemLocationType)location.type, .id = location.id };
	return error ? error : runtime_done(runtime_driver.cuMemPrefetchAsync_v2(runtime_address(pointer), size, where,
			flags, DRIVER_STREAM(stream)));
}

/* ---- the driver's own functions ---- */

_Static_assert((int)cudaEnableLegacyStream == (int)CU_GET_PROC_ADDRESS_LEGACY_STREAM &&
	       (int)cudaEnablePerThreadDefaultStream == (int)CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM &&
	       (int)cudaDriverEntryPointVersionNotSufficent == (int)CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
	       "flags and answers are passed through");

RUNTIME_API cudaError_t cudaGetDriverEntryPointByVersion(const char *symbol, void **function, unsigned version,
							 unsigned long long flags,
							 enum cudaDriverEntryPointQueryResult *status)
{
	CUdriverProcAddressQueryResult answer = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	if (!symbol || !function || flags > cudaEnablePerThreadDefaultStream)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_driver_open();
	if (error)
		return runtime_fail(error);
	*function = NULL;
	CUresult result = runtime_driver.cuGetProcAddress_v2(symbol, function, (int)version,
			flags == cudaEnableDefault ? PROC_ADDRESS_FLAG : (cuuint64_t)flags, &answer);
	if (status)
		*status = (enum cudaDriverEntryPointQueryResult)answer;
	/* A missing function is a valid result: NULL. */
	return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : runtime_done(result);
}

RUNTIME_API cudaError_t cudaGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
						enum cudaDriverEntryPointQueryResult *status)
{
	return cudaGetDriverEntryPointByVersion(symbol, function, CUDART_VERSION, flags, status);
}
