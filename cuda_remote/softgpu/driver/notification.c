/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous notifications (cuDeviceRegisterAsyncNotification), and what RDMA adapters have written. The one
 * notification there is tells that a process has used more of a device than its budget; here the budget is the whole
 * device, and an allocation beyond it fails. So callbacks are registered, and none is ever called.
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
 * Device memory is the host's: what an adapter has written there, and told, every processor reads. That is the order
 * the devices tell of (CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING), in which there is nothing to wait for.
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
