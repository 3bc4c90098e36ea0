/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/softgpu/driver/managed.h"

#include "cuda_remote/softgpu/driver/context.h"
#include "cuda_remote/softgpu/driver/device.h"
#include "cuda_remote/softgpu/memory/space.h"

static CUresult check_range(CUdeviceptr address, size_t bytes)
{
	softgpu_allocation_t found;
	if (!bytes || !softgpu_space_find(address, &found) || found.kind != SOFTGPU_SPACE_MANAGED ||
	    bytes > found.size - (address - found.base))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult managed_check(CUdeviceptr address, size_t bytes, const CUmemLocation *location)
{
	CUresult result = check_range(address, bytes);
	if (result)
		return result;
	switch (location->type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_valid(location->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Advice may be followed or not, by its contract; there is only one place where the memory can be. */
CUresult cuMemAdvise_v2(CUdeviceptr devPtr, size_t count, CUmem_advise advice, CUmemLocation location)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	switch (advice) {
	case CU_MEM_ADVISE_SET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
	case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
		return check_range(devPtr, count);
	case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
	case CU_MEM_ADVISE_SET_ACCESSED_BY:
	case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
		return managed_check(devPtr, count, &location);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
