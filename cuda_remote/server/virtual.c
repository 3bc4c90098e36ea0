/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management. The session's quota is charged with memory from its creation to its release. The client may
 * release memory only when it has unmapped it: else the memory would stay, and nobody would be charged.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>

/* The worker's data of a handle of kind ALLOCATION. */
struct allocation {
	CUmemGenericAllocationHandle object;
	uint64_t bytes;
	uint32_t gpu;      /* whose quota is charged */
	unsigned mappings;
};

struct mapping {
	struct mapping *next;
	uint64_t base, bytes;
	struct allocation *allocation;
};

/* Calls are served in the call order, which guards all this. */
static struct mapping *mappings;

CUresult serve_virtual_reserve(struct server_call *call)
{
	struct rc_wire_reserve args;
	CUdeviceptr address;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemAddressReserve || !driver.cuMemAddressFree)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemAddressReserve(&address, args.bytes, args.alignment, args.hint, 0);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &address, sizeof address) : result;
}

CUresult serve_virtual_unreserve(struct server_call *call)
{
	struct rc_wire_range args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	return driver.cuMemAddressFree ? driver.cuMemAddressFree(args.address, args.bytes) : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult create(const struct rc_args_cuMemCreate *args, const CUmemAllocationProp *properties,
		       struct allocation *allocation)
{
	if (!server_quota_charge(allocation->gpu, args->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuMemCreate(&allocation->object, args->size, properties, args->flags);
	if (result == CUDA_SUCCESS) {
		result = server_object_bind(RC_KIND_ALLOCATION, args->handle, (void *)(uintptr_t)allocation->object, allocation);
		if (result == CUDA_SUCCESS) {
			server_usage_add(args->size);
			return CUDA_SUCCESS;
		}
		driver.cuMemRelease(allocation->object);
	}
	server_quota_release(allocation->gpu, args->size);
	return result;
}

CUresult serve_virtual_create(struct server_call *call)
{
	struct rc_args_cuMemCreate args;
	CUmemAllocationProp properties;
	if (!server_take_into(call, &args, sizeof args) || !server_take_into(call, &properties, sizeof properties))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemCreate || !driver.cuMemRelease || !driver.cuMemMap || !driver.cuMemUnmap)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint32_t number = (uint32_t)properties.location.id;
	CUresult result = server_read_CUmemAllocationProp(&properties);
	if (result != CUDA_SUCCESS)
		return result;
	struct allocation *allocation = calloc(1, sizeof *allocation);
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->bytes = args.size;
	allocation->gpu = server_quota_index(number);
	result = create(&args, &properties, allocation);
	if (result != CUDA_SUCCESS)
		free(allocation);
	return result;
}

CUresult serve_virtual_properties(struct server_call *call)
{
	struct rc_wire_memory args;
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_INVALID };
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation *allocation = server_object_data(RC_KIND_ALLOCATION, args.memory);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemGetAllocationPropertiesFromHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemGetAllocationPropertiesFromHandle(&properties, allocation->object);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &properties.allocFlags, sizeof properties.allocFlags) : result;
}

CUresult serve_virtual_release(struct server_call *call)
{
	struct rc_wire_memory args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation *allocation = server_object_data(RC_KIND_ALLOCATION, args.memory);
	if (!allocation || allocation->mappings)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver.cuMemRelease(allocation->object);
	if (result != CUDA_SUCCESS)
		return result;
	server_object_unbind(args.memory);
	server_quota_release(allocation->gpu, allocation->bytes);
	server_usage_sub(allocation->bytes);
	free(allocation);
	return CUDA_SUCCESS;
}

CUresult serve_virtual_map(struct server_call *call)
{
	struct rc_wire_map args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation *allocation = server_object_data(RC_KIND_ALLOCATION, args.memory);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	struct mapping *mapping = malloc(sizeof *mapping);
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = driver.cuMemMap(args.address, args.bytes, args.offset, allocation->object, 0);
	if (result != CUDA_SUCCESS) {
		free(mapping);
		return result;
	}
	*mapping = (struct mapping){ mappings, args.address, args.bytes, allocation };
	mappings = mapping;
	allocation->mappings++;
	return CUDA_SUCCESS;
}

CUresult serve_virtual_unmap(struct server_call *call)
{
	struct rc_wire_range args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemUnmap)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemUnmap(args.address, args.bytes);
	if (result != CUDA_SUCCESS)
		return result;
	/* The driver has unmapped whole mappings only. */
	for (struct mapping **at = &mappings, *mapping; (mapping = *at);) {
		if (mapping->base < args.address || mapping->base - args.address >= args.bytes) {
			at = &mapping->next;
			continue;
		}
		*at = mapping->next;
		mapping->allocation->mappings--;
		free(mapping);
	}
	return CUDA_SUCCESS;
}
