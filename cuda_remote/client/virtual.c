/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management: reservations of addresses, memory, mappings. The client keeps what is mapped where, so that
 * copies and fills are checked at the call. It releases memory at the server when neither a handle nor a mapping of the
 * program is left: so cuMemRetainAllocationHandle needs no call.
 */
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/window.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ATTEMPTS 16 /* to find addresses that are free in both processes */

/* Of one CUmemGenericAllocationHandle. */
struct memory {
	uint64_t handle;
	unsigned handles, mappings; /* that the program has */
	CUmemAllocationProp properties;
};

struct mapping {
	uint64_t base, size;
	struct memory *memory;
	unsigned long long access; /* the most that a device has: CUmemAccess_flags */
};

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER; /* held by each call here; guards the struct memory */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* guards the table, for those who only read it */
static struct mapping *mappings; /* ascending */
static size_t n_mappings, room;

/* ---- the table ---- */

/* Index of the first mapping that ends above address. Under the lock. */
static size_t at_or_above(uint64_t address)
{
	size_t low = 0, high = n_mappings;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (mappings[middle].base + mappings[middle].size <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static CUresult mapping_add(uint64_t base, uint64_t size, struct memory *memory)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (n_mappings == room) {
		struct mapping *larger = realloc(mappings, (room ? 2 * room : 64) * sizeof *mappings);
		if (larger) {
			mappings = larger;
			room = room ? 2 * room : 64;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS) {
		size_t at = at_or_above(base);
		memmove(mappings + at + 1, mappings + at, (n_mappings - at) * sizeof *mappings);
		mappings[at] = (struct mapping){ base, size, memory, CU_MEM_ACCESS_FLAGS_PROT_NONE };
		n_mappings++;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* Removes the first mapping in the range. NULL: there is none. */
static struct memory *mapping_take(uint64_t base, uint64_t size)
{
	struct memory *memory = NULL;
	pthread_mutex_lock(&lock);
	size_t at = at_or_above(base);
	if (at < n_mappings && mappings[at].base >= base && mappings[at].base - base < size) {
		memory = mappings[at].memory;
		memmove(mappings + at, mappings + at + 1, (n_mappings - at - 1) * sizeof *mappings);
		n_mappings--;
	}
	pthread_mutex_unlock(&lock);
	return memory;
}

bool rc_virtual_covers(uint64_t address, uint64_t size, unsigned long long access)
{
	uint64_t end = address + size;
	pthread_mutex_lock(&lock);
	for (size_t at = at_or_above(address); address < end && at < n_mappings && mappings[at].base <= address &&
					       mappings[at].access >= access; at++)
		address = mappings[at].base + mappings[at].size;
	pthread_mutex_unlock(&lock);
	return address >= end;
}

bool rc_virtual_device(uint64_t address, CUdevice *device)
{
	pthread_mutex_lock(&lock);
	size_t at = at_or_above(address);
	bool found = at < n_mappings && mappings[at].base <= address;
	if (found)
		*device = mappings[at].memory->properties.location.id;
	pthread_mutex_unlock(&lock);
	return found;
}

bool rc_virtual_mapping(uint64_t address, uint64_t *base, uint64_t *size, unsigned long long *handle_types)
{
	pthread_mutex_lock(&lock);
	size_t at = at_or_above(address);
	bool found = at < n_mappings && mappings[at].base <= address;
	if (found) {
		*base = mappings[at].base;
		*size = mappings[at].size;
		*handle_types = mappings[at].memory->properties.requestedHandleTypes;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- reservations ---- */

/* Keeps other memory of the process out of the addresses. CUDA_ERROR_ALREADY_MAPPED: there is some already. */
static CUresult take_addresses(struct rc_link *link, uint64_t address, uint64_t bytes)
{
	if (!rc_window_reserve_at(address, bytes))
		return CUDA_ERROR_ALREADY_MAPPED;
	CUresult result = rc_memory_add(&(struct rc_span){ .base = address, .size = bytes, .kind = RC_MEMORY_DEVICE,
							   .session = link->session, .reserved = true,
							   .context = (CUcontext)(uintptr_t)link->session->primary });
	if (result != CUDA_SUCCESS)
		rc_window_release(address, bytes);
	return result;
}

/* The driver does not know which addresses the program uses. If it chooses such, it is asked again, and holds them meanwhile. */
static CUresult reserve(struct rc_link *link, const struct rc_wire_reserve *wanted, unsigned tries, uint64_t *address)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_reserve call;
	} message = { .call = *wanted };
	struct {
		struct rc_wire_call head;
		struct rc_wire_range call;
	} back = { .call = { 0, wanted->bytes } };
	CUresult result = rc_link_call(link, RC_CALL_virtual_reserve, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof back.call.address)
		return rc_link_broken(link, RC_CALL_virtual_reserve);
	memcpy(&back.call.address, link->reply, sizeof back.call.address);
	result = take_addresses(link, back.call.address, wanted->bytes);
	if (result == CUDA_SUCCESS) {
		*address = back.call.address;
		return CUDA_SUCCESS;
	}
	if (result == CUDA_ERROR_ALREADY_MAPPED && tries > 1)
		result = reserve(link, wanted, tries - 1, address);
	else if (result == CUDA_ERROR_ALREADY_MAPPED)
		result = CUDA_ERROR_OUT_OF_MEMORY;
	rc_link_call(link, RC_CALL_virtual_unreserve, 0, &back.head, sizeof back, NULL, 0);
	return result;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint, unsigned long long flags)
{
	struct rc_link *link;
	CUresult result = rc_link_get(&(struct rc_route){ NULL, 0, false }, false, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!address || !size || (alignment & (alignment - 1)) || flags)
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t found;
	result = reserve(link, &(struct rc_wire_reserve){ size, alignment, hint }, ATTEMPTS, &found);
	if (result == CUDA_SUCCESS)
		*address = found;
	return result;
}

/* The reservation that holds address, and a connection to its server. */
static CUresult reservation(CUdeviceptr address, struct rc_span *span, struct rc_link **link)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find(address, span) || !span->reserved)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_link_get(&(struct rc_route){ span->session, (uint64_t)(uintptr_t)span->context, true }, false, link);
}

static CUresult range_call(struct rc_link *link, enum rc_call function, CUdeviceptr address, size_t size)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_range call;
	} message = { .call = { address, size } };
	return rc_link_call(link, function, 0, &message.head, sizeof message, NULL, 0);
}

CUresult cuMemAddressFree(CUdeviceptr address, size_t size)
{
	struct rc_span span;
	struct rc_link *link;
	CUresult result = reservation(address, &span, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (span.base != address || span.size != size)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&calls);
	result = range_call(link, RC_CALL_virtual_unreserve, address, size);
	if (result == CUDA_SUCCESS) {
		rc_memory_remove(address);
		rc_window_release(address, size);
	}
	pthread_mutex_unlock(&calls);
	return result;
}

/* ---- memory ---- */

CUresult virtual_done_create(CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *properties,
			     unsigned long long flags)
{
	(void)size;
	(void)flags;
	struct memory *memory = malloc(sizeof *memory);
	if (!memory)
		return CUDA_ERROR_OUT_OF_MEMORY; /* the memory exists as long as the session */
	*memory = (struct memory){ *handle, 1, 0, *properties };
	rc_handle_attach(*handle, memory);
	return CUDA_SUCCESS;
}

/* The memory of a handle that the program has not released. Under calls. */
static struct memory *memory_of(CUmemGenericAllocationHandle handle)
{
	struct memory *memory = rc_handle_data(RC_KIND_ALLOCATION, handle);
	return memory && memory->handles ? memory : NULL;
}

/* Ends the memory at the server if the program has neither a handle nor a mapping of it. After a failure it is kept. Under
 * calls. */
static CUresult end_unused(struct rc_link *link, struct memory *memory)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_memory call;
	} message = { .call = { memory->handle } };
	if (memory->handles || memory->mappings)
		return CUDA_SUCCESS;
	CUresult result = rc_link_call(link, RC_CALL_virtual_release, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS) {
		rc_handle_delete(memory->handle);
		free(memory);
	}
	return result;
}

static CUresult handle_link(CUmemGenericAllocationHandle handle, struct rc_link **link)
{
	struct rc_route route = { NULL, 0, false };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (rc_route_handle(&route, RC_KIND_ALLOCATION, handle) != CUDA_SUCCESS)
		return CUDA_ERROR_INVALID_VALUE;
	return rc_link_get(&route, false, link);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	struct rc_link *link;
	CUresult result = handle_link(handle, &link);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&calls);
	struct memory *memory = memory_of(handle);
	if (memory)
		memory->handles--;
	result = memory ? end_unused(link, memory) : CUDA_ERROR_INVALID_VALUE;
	if (memory && result != CUDA_SUCCESS)
		memory->handles++;
	pthread_mutex_unlock(&calls);
	return result;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&calls);
	pthread_mutex_lock(&lock);
	size_t at = at_or_above((uint64_t)(uintptr_t)address);
	bool found = at < n_mappings && mappings[at].base <= (uint64_t)(uintptr_t)address;
	if (found) {
		mappings[at].memory->handles++;
		*handle = mappings[at].memory->handle;
	}
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&calls);
	return found ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties, CUmemGenericAllocationHandle handle)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_memory call;
	} message = { .call = { handle } };
	struct rc_link *link;
	CUresult result = handle_link(handle, &link);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&calls);
	struct memory *memory = memory_of(handle);
	if (!memory || !properties)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_virtual_properties, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != sizeof properties->allocFlags)
		result = rc_link_broken(link, RC_CALL_virtual_properties);
	if (result == CUDA_SUCCESS) {
		*properties = memory->properties;
		memcpy(&properties->allocFlags, link->reply, sizeof properties->allocFlags); /* what the driver has granted */
	}
	pthread_mutex_unlock(&calls);
	return result;
}

/* ---- mappings ---- */

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_map call;
	} message = { .call = { address, size, offset, handle } };
	struct rc_span span;
	struct rc_link *link;
	CUresult result = reservation(address, &span, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (flags || !size || size > span.size - (address - span.base))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&calls);
	struct memory *memory = memory_of(handle);
	if (!memory || rc_handle_session(handle) != span.session)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_virtual_map, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS) {
		result = mapping_add(address, size, memory);
		if (result == CUDA_SUCCESS)
			memory->mappings++;
		else
			range_call(link, RC_CALL_virtual_unmap, address, size);
	}
	pthread_mutex_unlock(&calls);
	return result;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
	struct rc_span span;
	struct rc_link *link;
	struct memory *memory;
	CUresult result = reservation(address, &span, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (size > span.size - (address - span.base))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&calls);
	result = range_call(link, RC_CALL_virtual_unmap, address, size);
	while (result == CUDA_SUCCESS && (memory = mapping_take(address, size))) {
		memory->mappings--;
		result = end_unused(link, memory);
	}
	pthread_mutex_unlock(&calls);
	return result;
}

CUresult virtual_check_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count)
{
	struct rc_span span;
	if (!list || !count || !rc_memory_find(address, &span) || !span.reserved || size > span.size - (address - span.base))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/*
 * The most access that a device has to the mapping at address, after the call with this list. A device that the list does not
 * name keeps its own: the server knows it.
 */
static unsigned long long most_access(uint64_t address, const CUmemAccessDesc *list, size_t count)
{
	unsigned long long most = CU_MEM_ACCESS_FLAGS_PROT_NONE, flags;
	struct rc_process *process;
	for (size_t i = 0; i < count; i++)
		most = list[i].flags > most ? list[i].flags : most;
	if (most == CU_MEM_ACCESS_FLAGS_PROT_READWRITE || rc_process_get(&process) != CUDA_SUCCESS)
		return most;
	for (int i = 0; i < process->devices; i++) {
		CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i };
		if (cuMemGetAccess(&flags, &device, address) == CUDA_SUCCESS && flags > most)
			most = flags;
	}
	return most;
}

CUresult virtual_done_access(CUdeviceptr address, size_t size, const CUmemAccessDesc *list, size_t count)
{
	/* Mappings of the range may differ in what the devices had that the list does not name. */
	for (CUdeviceptr next = address, end = address + size; next < end;) {
		unsigned long long access = most_access(next, list, count);
		pthread_mutex_lock(&lock);
		size_t at = at_or_above(next);
		bool mapped = at < n_mappings && mappings[at].base < end;
		if (mapped && mappings[at].base <= next)
			mappings[at].access = access;
		next = !mapped ? end : mappings[at].base <= next ? mappings[at].base + mappings[at].size : mappings[at].base;
		pthread_mutex_unlock(&lock);
	}
	return CUDA_SUCCESS;
}
