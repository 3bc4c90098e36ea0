/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory of a client on another host (cuda_remote/mirror/mirror.h). The memory must be at the client's addresses. If
 * the worker can read and write device memory itself, as with the software GPU, it compares the memory with its twin; else
 * kernels do that (placed/device_mirror.h). A call that fetches or brings changes needs no stream: CUDA's rule is that the
 * host uses such memory only while the device does not.
 */
#include "cuda_remote/server/internal.h"

#include "cuda_remote/mirror/mirror.h"
#include "cuda_remote/server/peer/link.h"
#include "cuda_remote/server/placed/device_mirror.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mirror_table table;
static uint64_t both; /* a byte that client and device have both changed, for the next answer to managed_pull; under the lock */

static bool is_virtual(void)
{
	return server_memory_is_virtual();
}

/* The worker reads and writes the mirrors' memory itself. */
static bool is_direct(void)
{
	return !is_virtual() && peer_memory_is_direct();
}

CUresult serve_managed_info(struct server_call *call)
{
	server_order_release(call);
	uint64_t answer = server_memory_is_placed() && server_limit(SERVER_LIMIT_PINNED) && (is_virtual() || is_direct());
	/* The probe of device memory makes another context current. */
	call->thread->context = 0;
	driver.cuCtxSetCurrent(NULL);
	return server_give_bytes(call, &answer, sizeof answer);
}

/* The driver's memory is what an earlier allocation has left. Pages that are zero already are only read, as most pages of a
 * large allocation take no memory of the host before they are written. */
static void clear(uint64_t address, uint64_t bytes)
{
	static const uint8_t zeros[RC_MIRROR_PAGE];
	uint8_t *at = (uint8_t *)(uintptr_t)address;
	for (uint64_t offset = 0; offset < bytes; offset += RC_MIRROR_PAGE) {
		size_t n = bytes - offset < RC_MIRROR_PAGE ? bytes - offset : RC_MIRROR_PAGE;
		if (memcmp(at + offset, zeros, n))
			memset(at + offset, 0, n);
	}
}

static void end(struct mirror *mirror)
{
	struct device_mirror *device = mirror->device;
	if (both - mirror->address < mirror->size) /* the address may be that of other memory when the client is told */
		both = 0;
	server_limit_return(SERVER_LIMIT_PINNED, mirror->size);
	mirror_remove(&table, mirror);
	device_mirror_free(device);
}

/* Loads the kernels of the current context, unless they are there. The lock is free meanwhile. */
static CUresult make_ready(CUcontext context)
{
	struct device_mirror_engine *loaded;
	pthread_mutex_lock(&lock);
	bool ready = device_mirror_is_ready(context);
	pthread_mutex_unlock(&lock);
	CUresult result = ready ? CUDA_SUCCESS : device_mirror_load(context, &loaded);
	if (ready || result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	device_mirror_use(loaded);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

/* Adds a mirror in new memory. */
static CUresult add(struct mirror *mirror)
{
	CUresult result = CUDA_SUCCESS;
	if (is_direct())
		clear(mirror->address, mirror->size);
	else
		result = make_ready(mirror->owner);
	pthread_mutex_lock(&lock);
	if (!is_direct() && result == CUDA_SUCCESS)
		result = device_mirror_new(mirror, &mirror->device);
	bool added = result == CUDA_SUCCESS && mirror_add(&table, mirror);
	if (!added)
		device_mirror_free(mirror->device);
	pthread_mutex_unlock(&lock);
	return added || result != CUDA_SUCCESS ? result : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult serve_managed_make(struct server_call *call)
{
	struct rc_wire_place args;
	if (!server_take_into(call, &args, sizeof args) || !args.bytes || args.address % RC_MIRROR_PAGE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!server_memory_is_placed() || (!is_virtual() && !is_direct()))
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver.cuCtxSetCurrent(call->thread->current); /* the probe may have made another one current */
	if (result != CUDA_SUCCESS)
		return result;
	if (!server_limit_take(SERVER_LIMIT_PINNED, args.bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	result = server_memory_place(args.address, args.bytes);
	if (result == CUDA_SUCCESS) {
		server_order_release(call); /* kernels may be loaded, and the client waits */
		struct mirror mirror = { .address = args.address, .size = args.bytes, .owner = call->thread->current };
		result = add(&mirror);
		if (result != CUDA_SUCCESS)
			driver.cuMemFree_v2(args.address);
	}
	if (result != CUDA_SUCCESS)
		server_limit_return(SERVER_LIMIT_PINNED, args.bytes);
	return result;
}

CUresult server_mirror_add_host(uint64_t address, uint64_t bytes)
{
	/* The kernel notices what the software GPU writes, as that runs in this process. It does not notice what a GPU writes. */
	const struct mirror mirror = { .address = address, .size = bytes,
				       .shared_pages = !is_direct() || address % RC_MIRROR_PAGE };
	if (!server_limit_take(SERVER_LIMIT_PINNED, bytes)) /* of the twin */
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	bool added = mirror_add(&table, &mirror);
	pthread_mutex_unlock(&lock);
	if (!added)
		server_limit_return(SERVER_LIMIT_PINNED, bytes);
	return added ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void server_mirror_end_host(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, address);
	if (mirror && mirror->address == address)
		end(mirror);
	pthread_mutex_unlock(&lock);
}

/* From now on no call finds the mirror. Work that was issued earlier may still use its memory, so the driver waits. */
CUresult serve_managed_free(struct server_call *call)
{
	struct rc_wire_address args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, args.address);
	bool found = mirror && mirror->address == args.address && mirror->owner; /* without: of pinned memory */
	if (found)
		end(mirror);
	pthread_mutex_unlock(&lock);
	if (!found)
		return CUDA_ERROR_INVALID_VALUE;
	server_order_release(call);
	return driver.cuMemFree_v2(args.address);
}

bool server_mirror_at(uint64_t address)
{
	pthread_mutex_lock(&lock);
	bool found = table.n && mirror_find(&table, address);
	pthread_mutex_unlock(&lock);
	return found;
}

void server_mirrors_synchronize(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

void server_mirrors_forget(CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = table.n; i--;)
		if (table.list[i].owner == context)
			end(&table.list[i]);
	device_mirrors_forget(context);
	pthread_mutex_unlock(&lock);
}

void server_mirrors_forget_library(const void *library)
{
	pthread_mutex_lock(&lock);
	for (size_t i = table.n; i--;)
		if (table.list[i].module == library)
			end(&table.list[i]);
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static CUresult add_variable(const struct mirror *variable)
{
	const struct mirror *known = mirror_find(&table, variable->address);
	if (known)
		return known->address == variable->address && known->module == variable->module ? CUDA_SUCCESS :
												   CUDA_ERROR_INVALID_VALUE;
	if (!server_limit_take(SERVER_LIMIT_PINNED, variable->size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (mirror_add(&table, variable))
		return CUDA_SUCCESS;
	server_limit_return(SERVER_LIMIT_PINNED, variable->size);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The driver's managed memory is memory of the host too, and the host may use it while kernels run. */
static bool host_shares_variables(void)
{
	int value;
	for (uint32_t i = 0; i < worker.gpus; i++)
		if (!driver.cuDeviceGetAttribute ||
		    driver.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, worker.device[i]) ||
		    !value)
			return false;
	return true;
}

/* A variable in the current context. The client asks where it is, and calls again when it can take changes. The first value is
 * found as a change. */
CUresult serve_managed_variable(struct server_call *call)
{
	struct rc_wire_global args;
	void *library;
	if (!server_take_into(call, &args, sizeof args) || args.name > 65535 || args.mirror > 1)
		return CUDA_ERROR_INVALID_VALUE;
	const char *text = server_take(call, args.name, 1);
	CUresult result = server_object(RC_KIND_LIBRARY, args.module, &library);
	if (result != CUDA_SUCCESS || !text)
		return text ? result : CUDA_ERROR_INVALID_VALUE;
	if (!driver.cuLibraryGetManaged || !server_memory_is_placed() || (!host_shares_variables() && !peer_memory_is_direct()))
		return CUDA_ERROR_NOT_SUPPORTED;
	result = driver.cuCtxSetCurrent(call->thread->current); /* the probe of device memory may have made another one current */
	char *name = strndup(text, args.name);
	if (!name)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUdeviceptr address = 0;
	size_t size = 0;
	if (result == CUDA_SUCCESS)
		result = driver.cuLibraryGetManaged(&address, &size, library, name);
	free(name);
	if (result == CUDA_SUCCESS && size && args.mirror) {
		pthread_mutex_lock(&lock);
		result = add_variable(&(struct mirror){ .address = address, .size = size, .owner = call->thread->current,
							.module = library, .shared_pages = true });
		pthread_mutex_unlock(&lock);
	}
	uint64_t found[2] = { address, size };
	return result == CUDA_SUCCESS ? server_give_bytes(call, found, sizeof found) : result;
}

CUresult serve_managed_push(struct server_call *call)
{
	const uint8_t *at = call->in, *stop = call->in + call->in_len, *bytes;
	struct rc_wire_change record;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	while (result == CUDA_SUCCESS && (bytes = mirror_next(&at, stop, &record))) {
		const struct mirror *mirror = mirror_find(&table, record.address);
		if (mirror && mirror->device)
			result = device_mirror_store(mirror, &record, bytes);
		else if (!mirror || !mirror_store(mirror, &record, bytes, &both))
			result = CUDA_ERROR_INVALID_VALUE;
	}
	CUresult flushed = device_mirror_flush();
	pthread_mutex_unlock(&lock);
	if (is_virtual())
		(void)driver.cuCtxSetCurrent(call->thread->current);
	if (result == CUDA_SUCCESS)
		result = at == stop ? flushed : CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* Makes records from this address on. *next: the address to go on from, or 0. Under the lock. */
static CUresult collect(uint64_t from, struct mirror_changes *changes, uint64_t *next)
{
	CUresult result = CUDA_SUCCESS;
	const struct mirror *mirror = mirror_at_or_after(&table, from);
	*next = 0;
	if (!mirror)
		return CUDA_SUCCESS;
	uint64_t offset = from > mirror->address ? (from - mirror->address) / RC_MIRROR_PAGE * RC_MIRROR_PAGE : 0;
	for (; mirror < table.list + table.n && result == CUDA_SUCCESS; mirror++, offset = 0) {
		if (mirror->device)
			result = device_mirror_collect(mirror, offset, changes, &offset);
		else
			offset = mirror_collect(mirror, offset, changes);
		if (offset < mirror->size) {
			*next = mirror->address + offset;
			return result;
		}
	}
	return result;
}

CUresult serve_managed_pull(struct server_call *call)
{
	struct rc_wire_pull args;
	struct rc_wire_pulled answer = { 0 };
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	/* There is room before the twins take over what is sent. */
	uint8_t *room = server_give(call, 1, RC_MIRROR_PULL);
	if (!room)
		return CUDA_ERROR_OUT_OF_MEMORY;
	server_order_release(call);
	struct mirror_changes changes = { .bytes = room + sizeof answer, .room = RC_MIRROR_PULL - sizeof answer };
	pthread_mutex_lock(&lock);
	CUresult result = args.from ? CUDA_SUCCESS : device_mirrors_scan(&table); /* the parts after the first are of the same scan */
	if (result == CUDA_SUCCESS)
		result = collect(args.from, &changes, &answer.next);
	CUresult flushed = device_mirror_flush();
	if (result == CUDA_SUCCESS)
		result = flushed;
	if (result == CUDA_SUCCESS) {
		answer.both = both;
		both = 0;
	}
	pthread_mutex_unlock(&lock);
	if (is_virtual())
		(void)driver.cuCtxSetCurrent(call->thread->current);
	call->out_len = 0;
	if (result != CUDA_SUCCESS)
		return result;
	memcpy(room, &answer, sizeof answer);
	call->out_len = sizeof answer + changes.used;
	return CUDA_SUCCESS;
}
