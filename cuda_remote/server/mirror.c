/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory of a client on another host (cuda_remote/mirror/mirror.h). The driver must place memory at the client's
 * addresses, and the worker must be able to read and write device memory itself, as with the software GPU. A call that fetches or brings changes needs no stream: CUDA's rule is that the host
 * uses such memory only while the device does not.
 */
#include "cuda_remote/server/internal.h"

#include "cuda_remote/mirror/mirror.h"
#include "cuda_remote/server/peer/link.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mirror_table table;

CUresult serve_managed_info(struct server_call *call)
{
	server_order_release(call);
	uint64_t answer = server_memory_is_placed() && server_limit(SERVER_LIMIT_PINNED) && peer_memory_is_direct();
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
	server_limit_return(SERVER_LIMIT_PINNED, mirror->size);
	mirror_remove(&table, mirror);
}

CUresult serve_managed_make(struct server_call *call)
{
	struct rc_wire_place args;
	if (!server_take_into(call, &args, sizeof args) || !args.bytes || args.address % RC_MIRROR_PAGE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!server_memory_is_placed() || !peer_memory_is_direct())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!server_limit_take(SERVER_LIMIT_PINNED, args.bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = server_memory_place(args.address, args.bytes);
	if (result != CUDA_SUCCESS) {
		server_limit_return(SERVER_LIMIT_PINNED, args.bytes);
		return result;
	}
	clear(args.address, args.bytes);
	pthread_mutex_lock(&lock);
	bool added = mirror_add(&table, &(struct mirror){ .address = args.address, .size = args.bytes,
							  .owner = call->thread->current });
	pthread_mutex_unlock(&lock);
	if (added)
		return CUDA_SUCCESS;
	server_limit_return(SERVER_LIMIT_PINNED, args.bytes);
	driver.cuMemFree_v2(args.address);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

/* From now on no call finds the mirror. Work that was issued earlier may still use its memory, so the driver waits. */
CUresult serve_managed_free(struct server_call *call)
{
	struct rc_wire_address args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, args.address);
	bool found = mirror && mirror->address == args.address;
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
	if (!driver.cuLibraryGetManaged || !server_memory_is_placed() || !peer_memory_is_direct())
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
	bool sound = true;
	pthread_mutex_lock(&lock);
	while (sound && (bytes = mirror_next(&at, stop, &record))) {
		const struct mirror *mirror = mirror_find(&table, record.address);
		sound = mirror && mirror_store(mirror, &record, bytes);
	}
	pthread_mutex_unlock(&lock);
	return sound && at == stop ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* Makes records from this address on. Returns the address to go on from, or 0. Under the lock. */
static uint64_t collect(uint64_t from, struct mirror_changes *changes)
{
	const struct mirror *mirror = mirror_at_or_after(&table, from);
	if (!mirror)
		return 0;
	uint64_t offset = from > mirror->address ? (from - mirror->address) / RC_MIRROR_PAGE * RC_MIRROR_PAGE : 0;
	for (; mirror < table.list + table.n; mirror++, offset = 0) {
		offset = mirror_collect(mirror, offset, changes);
		if (offset < mirror->size)
			return mirror->address + offset;
	}
	return 0;
}

CUresult serve_managed_pull(struct server_call *call)
{
	struct rc_wire_pull args;
	struct rc_wire_pulled answer;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	/* There is room before the twins take over what is sent. */
	uint8_t *room = server_give(call, 1, RC_MIRROR_PULL);
	if (!room)
		return CUDA_ERROR_OUT_OF_MEMORY;
	server_order_release(call);
	struct mirror_changes changes = { .bytes = room + sizeof answer, .room = RC_MIRROR_PULL - sizeof answer };
	pthread_mutex_lock(&lock);
	answer.next = collect(args.from, &changes);
	pthread_mutex_unlock(&lock);
	memcpy(room, &answer, sizeof answer);
	call->out_len = sizeof answer + changes.used;
	return CUDA_SUCCESS;
}
