/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management: address reservations, memory handles, mappings and access rights. */
#include "cuda_remote/softgpu/driver/memory/virtual.h"

#include "cuda_remote/softgpu/driver/device/device.h"
#include "cuda_remote/handle.h"
#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/softgpu/space/shared.h"
#include "cuda_remote/softgpu/space/space.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#define PURPOSE "vmm"

/* One CUmemGenericAllocationHandle. */
typedef struct memory {
	handle_t handle;
	CUmemAllocationProp properties;
	uint64_t size;
	int file;
	int physical;        /* the device that it is charged to; -1: none, for host memory and imported memory */
	unsigned handles;    /* under the lock: references that the program has to release */
	unsigned references; /* under the lock: one for all handles together, one for each mapping */
} memory_t;

typedef struct mapping {
	struct mapping *next;
	memory_t *memory;
	uint64_t base, size;
	unsigned char access[SOFTGPU_MAX_DEVICES]; /* CUmemAccess_flags of each visible device */
	unsigned char host_access;
} mapping_t;

typedef struct reservation {
	struct reservation *next;
	uint64_t base, size;
	mapping_t *mappings; /* ascending */
} reservation_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static reservation_t *reservations;

static bool whole_pages(uint64_t value)
{
	return !(value & (SOFTGPU_SPACE_PAGE - 1));
}

/* With the lock held. */
static reservation_t *find_reservation(uint64_t address)
{
	reservation_t *found = reservations;
	while (found && address - found->base >= found->size)
		found = found->next;
	return found;
}

static mapping_t *find_mapping(uint64_t address)
{
	const reservation_t *reservation = find_reservation(address);
	mapping_t *found = reservation ? reservation->mappings : NULL;
	while (found && address - found->base >= found->size)
		found = found->next;
	return found;
}

static void drop(memory_t *memory)
{
	if (--memory->references)
		return;
	close(memory->file);
	if (memory->physical >= 0)
		softgpu_space_discharge(memory->physical, memory->size);
	handle_release(memory);
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
			     unsigned long long flags)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!ptr || !size || !whole_pages(size) || (alignment & (alignment - 1)) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	reservation_t *reservation = calloc(1, sizeof *reservation);
	if (!reservation)
		return CUDA_ERROR_OUT_OF_MEMORY;
	reservation->size = size;
	if (softgpu_space_reserve(size, alignment, addr, &reservation->base)) {
		free(reservation);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ptr = reservation->base;
	pthread_mutex_lock(&lock);
	reservation->next = reservations;
	reservations = reservation;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
	CUresult result = init_check();
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	reservation_t **at = &reservations;
	while (*at && (*at)->base != ptr)
		at = &(*at)->next;
	reservation_t *found = *at;
	if (found && found->size == size && !found->mappings)
		*at = found->next;
	else
		found = NULL;
	pthread_mutex_unlock(&lock);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_space_unreserve(ptr, size);
	free(found);
	return CUDA_SUCCESS;
}

static CUresult check_properties(const CUmemAllocationProp *prop)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		return device_valid(prop->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
				       CUmemAllocationGranularity_flags option)
{
	CUresult result = init_check();
	if (!result)
		result = check_properties(prop);
	if (result)
		return result;
	if (!granularity || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*granularity = SOFTGPU_SPACE_PAGE;
	return CUDA_SUCCESS;
}

/* Owns file and the charge from now on; closes and returns them if it fails. */
static CUresult new_memory(const CUmemAllocationProp *prop, uint64_t size, int file, int physical,
			   CUmemGenericAllocationHandle *handle)
{
	memory_t *memory = handle_new(HANDLE_MEMORY, sizeof *memory);
	if (!memory) {
		close(file);
		if (physical >= 0)
			softgpu_space_discharge(physical, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory->properties = *prop;
	memory->size = size;
	memory->file = file;
	memory->physical = physical;
	memory->handles = memory->references = 1;
	*handle = (CUmemGenericAllocationHandle)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop,
		     unsigned long long flags)
{
	CUresult result = init_check();
	if (!result)
		result = check_properties(prop);
	if (result)
		return result;
	if (!handle || !size || !whole_pages(size) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	bool on_device = prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	int physical = on_device ? device_physical(prop->location.id) : -1;
	if (on_device && softgpu_space_charge(physical, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	int file = softgpu_shared_file(PURPOSE, physical, size);
	if (file < 0) {
		if (on_device)
			softgpu_space_discharge(physical, size);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Compression is optional: cuMemGetAllocationPropertiesFromHandle returns what was granted. */
	CUmemAllocationProp granted = *prop;
	granted.allocFlags.compressionType = CU_MEM_ALLOCATION_COMP_NONE;
	granted.allocFlags.gpuDirectRDMACapable = 0;
	return new_memory(&granted, size, file, physical, handle);
}

/* The memory behind a program's handle; NULL: invalid handle. With the lock held. */
static memory_t *of_handle(CUmemGenericAllocationHandle handle)
{
	memory_t *memory = (memory_t *)(uintptr_t)handle;
	return handle_valid(memory, HANDLE_MEMORY) && memory->handles ? memory : NULL;
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult result = init_check();
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	memory_t *memory = of_handle(handle);
	if (memory && !--memory->handles) {
		/* While the memory is mapped, cuMemRetainAllocationHandle may make the handle valid again. */
		if (memory->references == 1)
			handle_retire(memory);
		drop(memory);
	}
	pthread_mutex_unlock(&lock);
	return memory ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	const mapping_t *mapping = find_mapping((uint64_t)(uintptr_t)addr);
	if (mapping) {
		if (!mapping->memory->handles++)
			mapping->memory->references++;
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)mapping->memory;
	}
	pthread_mutex_unlock(&lock);
	return mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop, CUmemGenericAllocationHandle handle)
{
	CUresult result = init_check();
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	const memory_t *memory = of_handle(handle);
	if (memory && prop)
		*prop = memory->properties;
	pthread_mutex_unlock(&lock);
	return memory && prop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
				      CUmemAllocationHandleType handleType, unsigned long long flags)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!shareableHandle || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	pthread_mutex_lock(&lock);
	const memory_t *memory = of_handle(handle);
	int file = -1;
	if (!memory || !(memory->properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))
		result = CUDA_ERROR_INVALID_VALUE;
	else if ((file = fcntl(memory->file, F_DUPFD_CLOEXEC, 0)) < 0)
		result = CUDA_ERROR_OPERATING_SYSTEM;
	pthread_mutex_unlock(&lock);
	if (!result)
		*(int *)shareableHandle = file;
	return result;
}

/* The visible device with this index in the machine; device 0 if the program does not see it. */
static CUdevice visible(int physical)
{
	for (CUdevice device = 0; device < device_count(); device++)
		if (device_physical(device) == physical)
			return device;
	return 0;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
					CUmemAllocationHandleType shHandleType)
{
	CUresult result = init_check();
	if (result)
		return result;
	int physical, file = (int)(intptr_t)osHandle;
	uint64_t size;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!softgpu_shared_check(file, PURPOSE, &physical, &size) || !size || !whole_pages(size))
		return CUDA_ERROR_INVALID_VALUE;
	int own = fcntl(file, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR };
	prop.location.type = physical < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
	prop.location.id = physical < 0 ? 0 : visible(physical);
	return new_memory(&prop, size, own, -1, handle);
}

/* Inserts a mapping in its reservation. False: it overlaps another mapping. */
static bool insert(reservation_t *reservation, mapping_t *mapping)
{
	mapping_t **at = &reservation->mappings;
	while (*at && (*at)->base + (*at)->size <= mapping->base)
		at = &(*at)->next;
	if (*at && (*at)->base < mapping->base + mapping->size)
		return false;
	mapping->next = *at;
	*at = mapping;
	return true;
}

static void take_out(reservation_t *reservation, mapping_t *mapping)
{
	mapping_t **at = &reservation->mappings;
	while (*at != mapping)
		at = &(*at)->next;
	*at = mapping->next;
}

/* Not accessible until cuMemSetAccess. With the lock held. */
static CUresult map(mapping_t *mapping, uint64_t offset)
{
	reservation_t *reservation = find_reservation(mapping->base);
	memory_t *memory = mapping->memory;
	if (!reservation || mapping->size > reservation->size - (mapping->base - reservation->base) ||
	    offset > memory->size || mapping->size > memory->size - offset || !insert(reservation, mapping))
		return CUDA_ERROR_INVALID_VALUE;
	softgpu_allocation_t want = { .base = mapping->base, .size = mapping->size, .kind = SOFTGPU_SPACE_MAPPED,
				      .device = memory->physical < 0 ? 0 : memory->physical, .hidden = true };
	if (softgpu_space_map(&want, mapping->base, memory->file, offset)) {
		take_out(reservation, mapping);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	memory->references++;
	return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
		  unsigned long long flags)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!size || !whole_pages(ptr) || !whole_pages(size) || !whole_pages(offset) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	mapping_t *mapping = calloc(1, sizeof *mapping);
	if (!mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	mapping->base = ptr;
	mapping->size = size;
	mapping->memory = of_handle(handle);
	result = mapping->memory ? map(mapping, offset) : CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_unlock(&lock);
	if (result)
		free(mapping);
	return result;
}

/*
 * The first of the mappings that together cover exactly the range, or NULL. The others follow in the reservation's
 * list. With the lock held.
 */
static mapping_t *exactly(uint64_t base, uint64_t size, reservation_t **reservation)
{
	*reservation = find_reservation(base);
	mapping_t *first = find_mapping(base);
	if (!first || first->base != base || !size)
		return NULL;
	const mapping_t *next = first;
	uint64_t end = base;
	while (next && next->base == end && end - base < size) {
		end += next->size;
		next = next->next;
	}
	return end - base == size ? first : NULL;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
	CUresult result = init_check();
	if (result)
		return result;
	reservation_t *reservation;
	pthread_mutex_lock(&lock);
	mapping_t *mapping = exactly(ptr, size, &reservation);
	result = mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (mapping_t *next; mapping && mapping->base - ptr < size; mapping = next) {
		next = mapping->next;
		softgpu_space_free(mapping->base);
		take_out(reservation, mapping);
		if (mapping->memory->references == 1)
			handle_retire(mapping->memory);
		drop(mapping->memory);
		free(mapping);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool is_host(const CUmemLocation *location)
{
	return location->type == CU_MEM_LOCATION_TYPE_HOST || location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
	       location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult check_access(const CUmemAccessDesc *desc)
{
	bool device = desc->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
	if (device && !device_valid(desc->location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	bool flags = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
		     desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return (device || is_host(&desc->location)) && flags ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* All devices share one view of memory: kernels may access whatever any device may access. */
static void apply_access(const mapping_t *mapping)
{
	unsigned most = mapping->host_access;
	for (int i = 0; i < SOFTGPU_MAX_DEVICES; i++)
		most |= mapping->access[i];
	softgpu_space_set_access(mapping->base, !most, most == CU_MEM_ACCESS_FLAGS_PROT_READ);
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!desc || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count && !result; i++)
		result = check_access(&desc[i]);
	if (result)
		return result;
	reservation_t *reservation;
	pthread_mutex_lock(&lock);
	mapping_t *mapping = exactly(ptr, size, &reservation);
	result = mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
	for (; mapping && mapping->base - ptr < size; mapping = mapping->next) {
		for (size_t i = 0; i < count; i++)
			if (is_host(&desc[i].location))
				mapping->host_access = (unsigned char)desc[i].flags;
			else
				mapping->access[desc[i].location.id] = (unsigned char)desc[i].flags;
		apply_access(mapping);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!flags || !location)
		return CUDA_ERROR_INVALID_VALUE;
	CUmemAccessDesc desc = { .location = *location };
	result = check_access(&desc);
	if (result)
		return result;
	pthread_mutex_lock(&lock);
	const mapping_t *mapping = find_mapping(ptr);
	if (mapping)
		*flags = is_host(location) ? mapping->host_access : mapping->access[location->id];
	pthread_mutex_unlock(&lock);
	return mapping ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool virtual_covers(CUdeviceptr address, size_t bytes, bool write)
{
	bool covered = true;
	uint64_t end = address + bytes;
	pthread_mutex_lock(&lock);
	while (covered && address < end) {
		const mapping_t *mapping = find_mapping(address);
		softgpu_allocation_t found;
		covered = mapping && softgpu_space_find(address, &found) && !found.hidden &&
			  !(write && found.read_only);
		if (covered)
			address = mapping->base + mapping->size;
	}
	pthread_mutex_unlock(&lock);
	return covered;
}

bool virtual_reservation(CUdeviceptr address, CUdeviceptr *base, size_t *bytes)
{
	pthread_mutex_lock(&lock);
	const reservation_t *found = find_reservation(address);
	if (found) {
		*base = found->base;
		*bytes = found->size;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

unsigned virtual_handle_types(CUdeviceptr address)
{
	pthread_mutex_lock(&lock);
	const mapping_t *mapping = find_mapping(address);
	unsigned types = mapping ? mapping->memory->properties.requestedHandleTypes : 0;
	pthread_mutex_unlock(&lock);
	return types;
}
