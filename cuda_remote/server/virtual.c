/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management. The session's quota is charged with memory from its creation to its release. The client may
 * release memory only when it has unmapped it: else the memory would stay, and nobody would be charged. Memory that was released
 * while a process holds a descriptor of it is charged until the descriptor is closed (ipc/meeting.h).
 */
#include "cuda_remote/server/ipc/meeting.h"

#include <stdlib.h>
#include <string.h>

/* The worker's data of a handle of kind ALLOCATION. */
struct allocation {
	struct allocation *next, **link; /* link: the pointer to this one */
	CUmemGenericAllocationHandle object;
	uint64_t bytes;
	uint32_t gpu;      /* whose quota is charged */
	unsigned mappings;
	bool imported;     /* memory of another session, which is charged there */
	uint64_t id;       /* of exported memory: unique in the worker; else 0 */
};

struct mapping {
	struct mapping *next;
	uint64_t base, bytes;
	struct allocation *allocation;
};

/* Calls are served in the call order, which guards all this. */
static struct mapping *mappings;

/* All allocations. Imports are not in the call order. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct allocation *allocations;

static struct allocation *allocation_new(void)
{
	struct allocation *allocation = calloc(1, sizeof *allocation);
	if (!allocation)
		return NULL;
	pthread_mutex_lock(&lock);
	allocation->next = allocations;
	if (allocations)
		allocations->link = &allocation->next;
	allocation->link = &allocations;
	allocations = allocation;
	pthread_mutex_unlock(&lock);
	return allocation;
}

static void allocation_free(struct allocation *allocation)
{
	pthread_mutex_lock(&lock);
	*allocation->link = allocation->next;
	if (allocation->next)
		allocation->next->link = allocation->link;
	pthread_mutex_unlock(&lock);
	free(allocation);
}

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
			server_usage_add(allocation->gpu, args->size);
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
	struct allocation *allocation = allocation_new();
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	allocation->bytes = args.size;
	allocation->gpu = server_quota_index(number);
	result = create(&args, &properties, allocation);
	if (result != CUDA_SUCCESS)
		allocation_free(allocation);
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

/* Memory that other sessions may import, as they get to know it. */
struct exported {
	uint64_t bytes, id;
	uint8_t zero[CU_IPC_HANDLE_SIZE - 16];
};
static_assert(sizeof(struct exported) == CU_IPC_HANDLE_SIZE, "in the place of a driver's handle");

CUresult serve_virtual_export(struct server_call *call)
{
	static uint64_t last_id; /* under the call order */
	struct rc_wire_memory args;
	struct rc_wire_shared handle;
	int file;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	struct allocation *allocation = server_object_data(RC_KIND_ALLOCATION, args.memory);
	if (!allocation)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation->imported || !driver.cuMemExportToShareableHandle)
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuMemExportToShareableHandle(&file, allocation->object,
							      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (!allocation->id)
		allocation->id = ++last_id;
	struct exported native = { .bytes = allocation->bytes, .id = allocation->id };
	result = meeting_export_file(MEETING_ALLOCATION, &native, file, &handle);
	return result == CUDA_SUCCESS ? server_give_bytes(call, &handle, sizeof handle) : result;
}

/* The session's number of the device that the memory is on. */
static CUresult device_of(CUmemGenericAllocationHandle object, uint32_t *number)
{
	CUmemAllocationProp properties;
	CUresult result = driver.cuMemGetAllocationPropertiesFromHandle(&properties, object);
	if (result != CUDA_SUCCESS)
		return result;
	for (*number = 0; *number < worker.gpus; ++*number)
		if (properties.location.type == CU_MEM_LOCATION_TYPE_DEVICE && worker.device[*number] == properties.location.id)
			return CUDA_SUCCESS;
	return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult import(const struct rc_wire_import *args, struct allocation *allocation, struct rc_wire_imported *answer)
{
	struct meeting_found found;
	struct exported native;
	CUresult result = meeting_import(MEETING_ALLOCATION, &args->handle, &found);
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(&native, found.native, sizeof native);
	result = driver.cuMemImportFromShareableHandle(&allocation->object, (void *)(intptr_t)found.file,
						       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	meeting_done(&found);
	if (result != CUDA_SUCCESS)
		return result;
	*answer = (struct rc_wire_imported){ .bytes = native.bytes };
	result = device_of(allocation->object, &answer->device);
	allocation->gpu = server_quota_index(answer->device < worker.gpus ? answer->device : 0);
	allocation->bytes = native.bytes;
	allocation->imported = true;
	if (result == CUDA_SUCCESS && !server_quota_charge(allocation->gpu, allocation->bytes))
		result = CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS) {
		result = server_object_bind(RC_KIND_ALLOCATION, args->object, (void *)(uintptr_t)allocation->object, allocation);
		if (result != CUDA_SUCCESS)
			server_quota_release(allocation->gpu, allocation->bytes);
	}
	if (result != CUDA_SUCCESS)
		driver.cuMemRelease(allocation->object);
	return result;
}

CUresult serve_virtual_import(struct server_call *call)
{
	struct rc_wire_import args;
	struct rc_wire_imported answer;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuMemImportFromShareableHandle || !driver.cuMemGetAllocationPropertiesFromHandle || !driver.cuMemRelease ||
	    !driver.cuMemMap || !driver.cuMemUnmap)
		return CUDA_ERROR_NOT_SUPPORTED;
	struct allocation *allocation = allocation_new();
	if (!allocation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	server_order_release(call); /* another worker answers */
	CUresult result = import(&args, allocation, &answer);
	if (result != CUDA_SUCCESS) {
		allocation_free(allocation);
		return result;
	}
	return server_give_bytes(call, &answer, sizeof answer);
}

/* The driver has released the memory. */
static void end(struct allocation *allocation)
{
	struct exported native = { .bytes = allocation->bytes, .id = allocation->id };
	if (!allocation->id || !meeting_end_held(MEETING_ALLOCATION, &native, allocation->gpu, allocation->bytes)) {
		server_quota_release(allocation->gpu, allocation->bytes);
		if (!allocation->imported)
			server_usage_sub(allocation->gpu, allocation->bytes);
	}
	allocation_free(allocation);
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
	end(allocation);
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

void server_virtual_finish(void)
{
	for (const struct mapping *at = mappings; at; at = at->next)
		driver.cuMemUnmap(at->base, at->bytes);
	while (allocations) {
		driver.cuMemRelease(allocations->object);
		end(allocations);
	}
}
