/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that kernels use by its address, although the program did not ask for mapped memory: CUDA's unified addressing
 * allows it. If the server is on another host, the memory becomes a mirror (cuda_remote/mirror/mirror.h) when a call first
 * shows that the device uses it: a launch with its address among the parameters, a fill, cuMemHostGetDevicePointer. The
 * worker has memory of its own at the same addresses, which its driver has pinned. From then on copies of the memory are made
 * by the worker.
 *
 * The program may write the memory meanwhile. Both twins begin with zeros, so what differs from zeros travels as a change.
 */
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"

#include "rdma_channel/base/setting.h"

#include <string.h>

HR_SETTING(map_setting, "HEADRACE_MAP_HOST_MEMORY", "2", 0, 2,
	   "pinned memory that kernels of a server on another host can use: 0: mapped memory; 1: all of cuMemHostAlloc and "
	   "cuMemAllocHost; 2: any, from the first call on that shows that the device uses it");
static pthread_once_t setting_once = PTHREAD_ONCE_INIT;
static uint64_t setting;

/* One thread makes a mirror at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void read_setting(void)
{
	if (hr_setting_u64(&map_setting, &setting))
		setting = RC_MAP_USED;
}

enum rc_host_mapping rc_host_mapping(void)
{
	pthread_once(&setting_once, read_setting);
	return (enum rc_host_mapping)setting;
}

/* Why the memory cannot become a mirror; NULL: it may be possible. */
static const char *obstacle(struct rc_session *session, const struct rc_span *span)
{
	if (rc_host_mapping() != RC_MAP_USED)
		return "HEADRACE_MAP_HOST_MEMORY is not 2";
	if (session->local && span->kind != RC_MEMORY_REGISTERED)
		return "its server has not mapped it";
	if (span->placing)
		return "it was mapped in a context that has ended, or for another server";
	if (span->promoted)
		return "kernels of another server use it";
	if (span->shared_with || span->slab)
		return "a server of this host has mapped it";
	if (span->refused)
		return "the server cannot map it: it has other memory at that address, or more than its HEADRACE_SESSION_PINNED";
	return rc_mirror_supported(session) ? NULL : "the server does not support it";
}

bool rc_promote_possible(struct rc_session *session, const struct rc_span *span)
{
	return session && span->kind >= RC_MEMORY_HOST && !obstacle(session, span);
}

/* pinned_mirror; handle 0: only asks whether the addresses are free. The failures of earlier calls are left to the program's
 * calls. */
static CUresult make(struct rc_session *session, uint64_t address, uint64_t bytes, uint64_t handle)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pin call;
	} message = { .call = { handle, bytes, address, RC_PIN_WHOLE, 0 } };
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	bool own = link->own;
	link->own = true;
	result = rc_link_call(link, RC_CALL_pinned_mirror, 0, &message.head, sizeof message, NULL, 0);
	link->own = own;
	return result;
}

/* pinned_free or pinned_wait. */
static CUresult end(struct rc_session *session, enum rc_call function, uint64_t handle)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pinned_free call;
	} message = { .call = { handle, 0 } };
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	size_t len = sizeof message.head + (function == RC_CALL_pinned_free ? sizeof message.call : 0);
	return result == CUDA_SUCCESS ? rc_link_call(link, function, 0, &message.head, len, NULL, 0) : result;
}

/* Under the lock. */
static CUresult promote(struct rc_session *session, struct rc_span *span)
{
	uint64_t handle;
	CUresult result = rc_handle_new(RC_KIND_PINNED, session, &handle);
	if (result != CUDA_SUCCESS)
		return result;
	result = make(session, span->base, span->size, handle);
	if (result != CUDA_SUCCESS) {
		rc_handle_delete(handle);
		(void)rc_memory_promoted(span->base, NULL, 0);
		return result;
	}
	span->session = session;
	span->pinned = handle;
	span->promoted = true;
	if (rc_mirror_begin(span) && rc_memory_promoted(span->base, session, handle))
		return CUDA_SUCCESS;
	rc_mirror_end(span->base);
	(void)end(session, RC_CALL_pinned_free, handle);
	rc_handle_delete(handle);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult rc_promote(struct rc_session *session, uint64_t address, const char **reason)
{
	struct rc_span span;
	CUresult result = CUDA_SUCCESS;
	*reason = NULL;
	if (!session || !rc_memory_find(address, &span) || span.kind < RC_MEMORY_HOST)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!(span.mapped_by >> session->index & 1)) {
		pthread_mutex_lock(&lock);
		bool found = rc_memory_find(address, &span);
		bool done = found && span.mapped_by >> session->index & 1;
		*reason = done ? NULL : found ? obstacle(session, &span) : "it was freed";
		if (!done && !*reason)
			result = promote(session, &span);
		pthread_mutex_unlock(&lock);
		if (!done && !*reason && result != CUDA_SUCCESS)
			*reason = "the server has other memory at that address, or more than its HEADRACE_SESSION_PINNED";
	}
	if (*reason)
		return CUDA_ERROR_NOT_SUPPORTED;
	/* Copies that began before move bytes between the device and this process's memory. Another thread may have begun one. */
	if (span.promoted && rc_copy_any_later())
		rc_copy_await_memory(span.base, span.size);
	return CUDA_SUCCESS;
}

CUresult rc_promote_end(struct rc_span *span)
{
	CUresult waited = end(span->session, RC_CALL_pinned_wait, span->pinned);
	rc_mirror_ending(span->base, true);
	/* Also after a failure: the worker must not report changes of a mirror that this process does not have any more. */
	CUresult ended = end(span->session, RC_CALL_pinned_free, span->pinned);
	rc_mirror_end(span->base);
	rc_handle_delete(span->pinned);
	span->promoted = false;
	span->pinned = span->mapped_by = 0;
	span->session = NULL;
	return waited != CUDA_SUCCESS ? waited : ended;
}

/* ---- addresses ---- */

/* True if all servers' workers could map memory there. */
static bool is_free_there(uint64_t address, uint64_t bytes)
{
	struct rc_process *process;
	bool free_there = rc_process_get(&process) == CUDA_SUCCESS;
	for (unsigned i = 0; free_there && i < process->sessions; i++) {
		struct rc_session *session = &process->session[i];
		if (rc_mirror_supported(session))
			free_there = make(session, address, bytes, 0) != CUDA_ERROR_ALREADY_MAPPED;
	}
	return free_there;
}

/* The software GPU of a worker may have reserved all addresses of a window, so the first allocation in each GB is tried. */
#define TRIED ((uint64_t)1 << 30)
#define ATTEMPTS 8

uint64_t rc_promote_place(uint64_t bytes)
{
	static uint64_t tried; /* the last address that was tried, or 0; atomic */
	if (rc_host_mapping() != RC_MAP_USED)
		return 0;
	for (unsigned attempt = 0; attempt < ATTEMPTS; attempt++) {
		uint64_t address = rc_shared_take(bytes), before = __atomic_load_n(&tried, __ATOMIC_RELAXED);
		if (!address || (before && address / TRIED == before / TRIED && bytes <= TRIED))
			return address;
		if (is_free_there(address, bytes)) {
			__atomic_store_n(&tried, address, __ATOMIC_RELAXED);
			return address;
		}
		rc_shared_avoid(address); /* its addresses are not used again */
	}
	return 0;
}
