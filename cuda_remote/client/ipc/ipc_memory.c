/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IPC of device memory. The worker opens a handle and chooses the address, which the client then keeps free of other memory of
 * the process. Memory that a context has opened twice has one address, and is mapped until it is closed twice.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "cuda_remote/client/window.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

struct opened {
	struct opened *next;
	uint64_t address, end;
	const struct rc_session *session;
	unsigned references;
};

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER; /* held while memory is opened or closed */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* guards the list */
static struct opened *opened;

_Static_assert(sizeof(struct rc_wire_shared) == sizeof(CUipcMemHandle) &&
	       sizeof(struct rc_wire_shared) == sizeof(CUipcEventHandle), "a handle is CUDA's");

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_address call;
	} message = { .call = { pointer } };
	struct rc_route route = { NULL, 0, false };
	struct rc_context *context;
	struct rc_span span;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!handle || !rc_memory_find(pointer, &span) || !rc_memory_exportable(&span))
		return CUDA_ERROR_INVALID_VALUE;
	result = rc_route_address(&route, pointer);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&route, true, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_ipc_get_memory, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != sizeof *handle)
		result = rc_link_broken(link, RC_CALL_ipc_get_memory);
	if (result == CUDA_SUCCESS)
		memcpy(handle, link->reply, sizeof *handle);
	return result;
}

/* ---- the list ---- */

static uint64_t first_page(uint64_t address)
{
	return address & ~(uint64_t)(PAGE - 1);
}

/* Where the memory is in the list, or the list's end. Under the lock. */
static struct opened **find(const struct rc_session *session, uint64_t address)
{
	struct opened **at = &opened;
	while (*at && ((*at)->address != address || (*at)->session != session))
		at = &(*at)->next;
	return at;
}

/* Counts one more open. False: the memory is not in the list. */
static bool open_again(const struct rc_session *session, uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct opened *found = *find(session, address);
	if (found)
		found->references++;
	pthread_mutex_unlock(&lock);
	return found;
}

void rc_ipc_gone(const struct rc_span *span)
{
	pthread_mutex_lock(&lock);
	struct opened **at = find(span->session, span->base), *gone = *at;
	if (gone)
		*at = gone->next;
	pthread_mutex_unlock(&lock);
	if (gone)
		rc_window_release(first_page(gone->address), gone->end - first_page(gone->address));
	free(gone);
}

/* CUDA_ERROR_MAP_FAILED: the process has other memory at the address. */
static CUresult keep(const struct rc_session *session, const struct rc_span *span)
{
	uint64_t start = first_page(span->base), end = first_page(span->base + span->size + PAGE - 1);
	struct opened *entry = malloc(sizeof *entry);
	if (!entry)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!rc_window_reserve_at(start, end - start)) {
		free(entry);
		return CUDA_ERROR_MAP_FAILED;
	}
	CUresult result = rc_memory_add(span);
	if (result != CUDA_SUCCESS) {
		rc_window_release(start, end - start);
		free(entry);
		return result == CUDA_ERROR_ALREADY_MAPPED ? CUDA_ERROR_MAP_FAILED : result;
	}
	pthread_mutex_lock(&lock);
	*entry = (struct opened){ opened, span->base, end, session, 1 };
	opened = entry;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult rc_ipc_keep(struct rc_link *link, enum rc_call call, const struct rc_wire_opened *memory, bool pooled)
{
	struct rc_span span = { .base = memory->address, .size = memory->bytes, .kind = RC_MEMORY_DEVICE,
				.session = link->session, .context = rc_context_current(), .imported = true, .pooled = pooled };
	if (!span.base || !span.size || span.base > UINT64_MAX - 2 * PAGE || span.size > UINT64_MAX - 2 * PAGE - span.base)
		return rc_link_broken(link, call);
	if (open_again(link->session, span.base))
		return pooled ? rc_link_broken(link, call) : CUDA_SUCCESS;
	CUresult result = keep(link->session, &span);
	if (result == CUDA_ERROR_MAP_FAILED)
		hr_log(HR_LOG_ERROR, "server %s: memory of another process is at %#llx, where the program has other memory; run "
		       "the program again", link->server, (unsigned long long)span.base);
	return result;
}

/* ---- opening and closing ---- */

static CUresult close_memory(struct rc_link *link, uint64_t address)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_address call;
	} message = { .call = { address } };
	return rc_link_call(link, RC_CALL_ipc_close_memory, 0, &message.head, sizeof message, NULL, 0);
}

static CUresult open_memory(struct rc_link *link, const CUipcMemHandle *handle, unsigned flags, CUdeviceptr *pointer)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_open call;
	} message = { .call = { .flags = flags } };
	struct rc_wire_opened answer;
	memcpy(&message.call.handle, handle, sizeof *handle);
	CUresult result = rc_link_call(link, RC_CALL_ipc_open_memory, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != sizeof answer)
		return rc_link_broken(link, RC_CALL_ipc_open_memory);
	memcpy(&answer, link->reply, sizeof answer);
	result = rc_ipc_keep(link, RC_CALL_ipc_open_memory, &answer, false);
	if (result == CUDA_SUCCESS)
		*pointer = answer.address;
	else
		(void)close_memory(link, answer.address);
	return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	struct rc_context *context;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (!pointer || flags & ~(unsigned)CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&calls);
	result = open_memory(link, &handle, flags, pointer);
	pthread_mutex_unlock(&calls);
	return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags)
{
	return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

/* Counts one open less; true if it was the last one. */
static bool is_last(const struct rc_session *session, uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct opened *found = *find(session, address);
	bool last = found && !--found->references;
	pthread_mutex_unlock(&lock);
	return last;
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
	struct rc_context *context;
	struct rc_span span;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&calls);
	if (!rc_memory_find(pointer, &span) || !span.imported || span.pooled || span.base != pointer || span.context != context->handle) {
		pthread_mutex_unlock(&calls);
		return CUDA_ERROR_INVALID_VALUE;
	}
	rc_peer_settle_allocation(pointer);
	result = close_memory(link, pointer);
	if (result == CUDA_SUCCESS && is_last(span.session, pointer)) {
		rc_memory_remove(pointer);
		rc_ipc_gone(&span);
	}
	pthread_mutex_unlock(&calls);
	return result;
}
