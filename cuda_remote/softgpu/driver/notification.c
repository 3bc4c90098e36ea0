/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous notifications (cuDeviceRegisterAsyncNotification) and cuFlushGPUDirectRDMAWrites. CUDA's only
 * notification says that a process exceeds its memory budget of a device. Here the budget is the whole device, and an
 * allocation beyond it fails: callbacks are registered but never called.
 */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"

struct CUasyncCallbackEntry_st {
	handle_t handle;
	CUdevice device;
};

static CUresult check(CUdevice device)
{
	CUresult result = init_check();
	if (result)
		return result;
	return device_valid(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuDeviceRegisterAsyncNotification(CUdevice device, CUasyncCallback callbackFunc, void *userData,
					   CUasyncCallbackHandle *callback)
{
	(void)userData;
	CUresult result = check(device);
	if (result)
		return result;
	if (!callbackFunc || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	CUasyncCallbackHandle entry = handle_new(HANDLE_NOTIFICATION, sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	entry->device = device;
	*callback = entry;
	return CUDA_SUCCESS;
}

CUresult cuDeviceUnregisterAsyncNotification(CUdevice device, CUasyncCallbackHandle callback)
{
	CUresult result = check(device);
	if (result)
		return result;
	if (!handle_valid(callback, HANDLE_NOTIFICATION) || callback->device != device || !handle_retire(callback))
		return CUDA_ERROR_INVALID_VALUE;
	handle_release(callback);
	return CUDA_SUCCESS;
}

/*
 * Device memory is host memory: once an adapter has announced its writes, every processor sees them. The attribute
 * CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING says so; there is nothing to flush.
 */
CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target, CUflushGPUDirectRDMAWritesScope scope)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	bool known = scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER ||
		     scope == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES;
	return target == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX && known ? CUDA_SUCCESS
										     : CUDA_ERROR_INVALID_VALUE;
}
