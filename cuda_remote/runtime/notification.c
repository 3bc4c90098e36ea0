/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from the driver: its log, and asynchronous notifications. Also flushes of RDMA writes. */
#include "cuda_remote/runtime/runtime.h"

_Static_assert(sizeof(cudaLogLevel) == sizeof(CUlogLevel) && (int)cudaLogLevelWarning == (int)CU_LOG_LEVEL_WARNING &&
	       sizeof(cudaAsyncNotificationInfo_t) == sizeof(CUasyncNotificationInfo) &&
	       (int)cudaFlushGPUDirectRDMAWritesToOwner == (int)CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER,
	       "callbacks and arguments are passed through");

/* The log works before any other use of the driver, and may say why the driver failed. */
RUNTIME_API cudaError_t cudaLogsRegisterCallback(cudaLogsCallback_t callback, void *data,
						 cudaLogsCallbackHandle *handle)
{
	cudaError_t error = runtime_driver_open();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuLogsRegisterCallback(
			(CUlogsCallback)(void (*)(void))callback, data, handle));
}

RUNTIME_API cudaError_t cudaLogsUnregisterCallback(cudaLogsCallbackHandle handle)
{
	cudaError_t error = runtime_driver_open();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuLogsUnregisterCallback(handle));
}

RUNTIME_API cudaError_t cudaLogsCurrent(cudaLogIterator *iterator, unsigned flags)
{
	cudaError_t error = runtime_driver_open();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuLogsCurrent(iterator, flags));
}

RUNTIME_API cudaError_t cudaLogsDumpToFile(cudaLogIterator *iterator, const char *path, unsigned flags)
{
	cudaError_t error = runtime_driver_open();
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuLogsDumpToFile(iterator, path, flags));
}

RUNTIME_API cudaError_t cudaLogsDumpToMemory(cudaLogIterator *iterator, char *buffer, size_t *size, unsigned flags)
{
	cudaError_t error = runtime_driver_open();
	return error ? runtime_fail(error)
		     : runtime_done(runtime_driver.cuLogsDumpToMemory(iterator, buffer, size, flags));
}

RUNTIME_API cudaError_t cudaDeviceRegisterAsyncNotification(int ordinal, cudaAsyncCallback callback, void *data,
							    cudaAsyncCallbackHandle_t *handle)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceRegisterAsyncNotification(
			device, (CUasyncCallback)(void (*)(void))callback, data, (CUasyncCallbackHandle *)handle));
}

RUNTIME_API cudaError_t cudaDeviceUnregisterAsyncNotification(int ordinal, cudaAsyncCallbackHandle_t handle)
{
	CUdevice device;
	cudaError_t error = runtime_device(ordinal, &device);
	return error ? runtime_fail(error) : runtime_done(runtime_driver.cuDeviceUnregisterAsyncNotification(
			device, (CUasyncCallbackHandle)handle));
}

RUNTIME_API cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(enum cudaFlushGPUDirectRDMAWritesTarget target,
							   enum cudaFlushGPUDirectRDMAWritesScope scope)
{
	cudaError_t error = runtime_enter();
	return error ? error : runtime_done(runtime_driver.cuFlushGPUDirectRDMAWrites(
			(CUflushGPUDirectRDMAWritesTarget)target, (CUflushGPUDirectRDMAWritesScope)scope));
}
