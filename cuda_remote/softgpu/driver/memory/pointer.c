/* SPDX-License-Identifier: BSD-3-Clause */
/* What a pointer points to. */
#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/driver/memory/pool.h"
#include "cuda_remote/softgpu/driver/memory/virtual.h"
#include "cuda_remote/softgpu/space/space.h"

#include <string.h>

/* Size of an attribute's value; 0: unknown attribute. */
static size_t attribute_size(CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		return sizeof(uint64_t);
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		return sizeof(uint32_t);
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
		return sizeof(bool);
	default:
		return 0;
	}
}

static CUdevice visible_device(const softgpu_allocation_t *found)
{
	CUcontext owner = (CUcontext)(uintptr_t)found->owner;
	if (handle_valid(owner, HANDLE_CONTEXT))
		return owner->device;
	for (CUdevice i = 0; !owner && i < device_count(); i++)
		if (device_physical(i) == found->device)
			return i;
	return CU_DEVICE_INVALID;
}

/* For virtual memory the range is that of the reservation, as mappings in it may change. */
static uint64_t range_of(const softgpu_allocation_t *found, bool size)
{
	CUdeviceptr base = found->base;
	size_t bytes = found->size;
	if (found->kind == SOFTGPU_SPACE_MAPPED)
		virtual_reservation(found->base, &base, &bytes);
	return size ? bytes : base;
}

/*
 * Outputs the value of an attribute for a pointer into an allocation. False: the allocation does not have the
 * attribute.
 */
static bool value_of(CUpointer_attribute attribute, CUdeviceptr pointer, const softgpu_allocation_t *found,
		     uint64_t *value)
{
	bool managed = found->kind == SOFTGPU_SPACE_MANAGED;
	bool host = found->kind == SOFTGPU_SPACE_HOST || found->kind == SOFTGPU_SPACE_REGISTERED;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*value = (uint64_t)(uintptr_t)found->owner;
		return true;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*value = pointer;
		return true;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		*value = pointer;
		return host || managed;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*value = found->id;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*value = managed;
		return true;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*value = (uint64_t)(int64_t)visible_device(found);
		return true;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*value = (uint64_t)(uintptr_t)found->pool;
		return true;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*value = range_of(found, attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*value = found->base;
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*value = found->size;
		return true;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*value = found->sync_memops;
		return true;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*value = found->kind == SOFTGPU_SPACE_DEVICE && !found->pool && !found->imported;
		return true;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*value = found->pool ? pool_handle_types(found->pool) : 0;
		if (found->kind == SOFTGPU_SPACE_MAPPED)
			*value = virtual_handle_types(found->base);
		return true;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*value = 1;
		return true;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*value = found->hidden    ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE
			 : found->read_only ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
					  : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
		return true;
	default:
		*value = 0; /* features that no allocation here has */
		return true;
	}
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUresult result = init_check();
	if (result)
		return result;
	softgpu_allocation_t found;
	uint64_t value;
	size_t size = attribute_size(attribute);
	if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!data || !size || !softgpu_space_find(ptr, &found) || !value_of(attribute, ptr, &found, &value))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(data, &value, size);
	return CUDA_SUCCESS;
}

/*
 * Unlike cuPointerGetAttribute, this call succeeds for any pointer: unknown values become 0, NULL or an invalid device.
 */
CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
				CUdeviceptr ptr)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < numAttributes; i++)
		if (!data[i] || !attribute_size(attributes[i]))
			return CUDA_ERROR_INVALID_VALUE;
	softgpu_allocation_t found;
	bool known = softgpu_space_find(ptr, &found);
	for (unsigned i = 0; i < numAttributes; i++) {
		uint64_t value;
		if (!known || !value_of(attributes[i], ptr, &found, &value))
			value = attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (uint64_t)CU_DEVICE_INVALID : 0;
		memcpy(data[i], &value, attribute_size(attributes[i]));
	}
	return CUDA_SUCCESS;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	softgpu_allocation_t found;
	/* The only one that can be set. */
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !softgpu_space_find(ptr, &found) ||
	    !softgpu_space_set_sync(found.base, *(const unsigned *)value != 0))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
