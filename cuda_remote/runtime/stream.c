/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and events: creation, destruction, queries. Runtime and driver use the same bits for flags. */
#include "cuda_remote/runtime/runtime.h"

_Static_assert(cudaStreamNonBlocking == CU_STREAM_NON_BLOCKING && cudaEventBlockingSync == CU_EVENT_BLOCKING_SYNC &&
	       cudaEventDisableTiming == CU_EVENT_DISABLE_TIMING && cudaEventInterprocess == CU_EVENT_INTERPROCESS,
	       "flags are passed through");

RUNTIME_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
	if (!stream)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamCreate(stream, flags));
}

RUNTIME_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
	return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

RUNTIME_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
	if (!stream)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamCreateWithPriority(stream, flags, priority));
}

RUNTIME_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	/* The default streams cannot be destroyed. */
	if (!stream || stream == cudaStreamLegacy || stream == cudaStreamPerThread)
		return runtime_fail(cudaErrorInvalidResourceHandle);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuStreamDestroy_v2(stream));
}

RUNTIME_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
	if (!event)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventCreate(event, flags));
}

RUNTIME_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
	return cudaEventCreateWithFlags(event, cudaEventDefault);
}

RUNTIME_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventQuery(event));
}

RUNTIME_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventSynchronize(event));
}

RUNTIME_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventDestroy_v2(event));
}

RUNTIME_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
	if (!milliseconds)
		return runtime_fail(cudaErrorInvalidValue);
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuEventElapsedTime_v2(milliseconds, start, end));
}

RUNTIME_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuIpcGetEventHandle((CUipcEventHandle *)handle, event));
}

RUNTIME_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
	CUipcEventHandle driver;
	cudaError_t error = runtime_enter();
	__builtin_memcpy(&driver, &handle, sizeof driver);
	return error ? error : runtime_done(runtime_driver.cuIpcOpenEventHandle(event, driver));
}
