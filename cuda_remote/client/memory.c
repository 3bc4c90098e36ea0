/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of allocations, sorted by address: memory of devices, managed memory and pinned host memory. Fills of device
 * memory.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static struct rc_span *spans;
static size_t n_spans, room;
static uint64_t next_id;
static bool any_unmapped; /* atomic */

/* Index of the first span whose base is above address. Under the lock. */
static size_t above(uint64_t address)
{
	size_t low = 0, high = n_spans;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (spans[middle].base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The span that holds address. Under the lock. */
static struct rc_span *find(uint64_t address)
{
	size_t i = above(address);
	return i && address - spans[i - 1].base < spans[i - 1].size ? &spans[i - 1] : NULL;
}

bool rc_memory_find(uint64_t address, struct rc_span *span)
{
	pthread_rwlock_rdlock(&lock);
	struct rc_span *found = find(address);
	if (found && found->freed)
		found = NULL;
	if (found)
		*span = *found;
	pthread_rwlock_unlock(&lock);
	return found;
}

/* Under the lock. */
static void span_remove(struct rc_span *span)
{
	size_t i = (size_t)(span - spans);
	memmove(span, span + 1, (n_spans - i - 1) * sizeof *spans);
	n_spans--;
}

/* True if part of the span is in the table. A server has no two allocations at one address. So an older one of the same
 * server has ended: another thread is inside the call that ends it, of a module or a context. It is removed. Under the lock. */
static bool in_use(const struct rc_span *span)
{
	uint64_t last = span->base + (span->size ? span->size - 1 : 0);
	if (last < span->base)
		return true;
	for (;;) {
		struct rc_span *found = find(span->base);
		if (!found && above(last) == above(span->base))
			return false;
		if (!found)
			found = &spans[above(span->base)];
		if (!span->session || found->session != span->session)
			return true;
		span_remove(found);
	}
}

bool rc_memory_any_unmapped(void)
{
	return __atomic_load_n(&any_unmapped, __ATOMIC_RELAXED);
}

CUresult rc_memory_add(const struct rc_span *span)
{
	CUresult result = CUDA_SUCCESS;
	pthread_rwlock_wrlock(&lock);
	if (in_use(span))
		result = CUDA_ERROR_ALREADY_MAPPED;
	else if (n_spans == room) {
		struct rc_span *larger = realloc(spans, (room ? 2 * room : 64) * sizeof *spans);
		if (larger) {
			spans = larger;
			room = room ? 2 * room : 64;
		} else {
			result = CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	if (result == CUDA_SUCCESS) {
		size_t at = above(span->base);
		memmove(spans + at + 1, spans + at, (n_spans - at) * sizeof *spans);
		spans[at] = *span;
		spans[at].id = ++next_id;
		n_spans++;
		if (span->kind >= RC_MEMORY_HOST && !span->mapped_by)
			__atomic_store_n(&any_unmapped, true, __ATOMIC_RELAXED);
	}
	pthread_rwlock_unlock(&lock);
	if (result == CUDA_SUCCESS && span->session && span->kind <= RC_MEMORY_MANAGED)
		rc_peer_expect(span->session);
	return result;
}

bool rc_memory_remove(uint64_t base)
{
	pthread_rwlock_wrlock(&lock);
	size_t i = above(base);
	bool found = i && spans[i - 1].base == base;
	if (found)
		span_remove(&spans[i - 1]);
	pthread_rwlock_unlock(&lock);
	return found;
}

void rc_memory_forget_module(CUmodule module)
{
	rc_mirror_module_end(module);
	pthread_rwlock_wrlock(&lock);
	size_t kept = 0;
	for (size_t i = 0; i < n_spans; i++)
		if (!spans[i].module || spans[i].module != module)
			spans[kept++] = spans[i];
	n_spans = kept;
	pthread_rwlock_unlock(&lock);
}

/* Mapped host memory of a server on another host stays memory of the host. Under the lock. */
static void unmap_host(CUcontext context)
{
	for (size_t i = 0; i < n_spans; i++)
		if (spans[i].kind == RC_MEMORY_HOST && rc_mirror_is(&spans[i]) && !spans[i].promoted && spans[i].context == context)
			spans[i].mapped_by = 0;
}

/* Removes the spans of a context that has ended, and outputs those of which more than the span is to be forgotten, at most `most`.
 * The others of these stay for the next call. */
static size_t take_of_context(CUcontext context, struct rc_span *gone, size_t most)
{
	size_t kept = 0, n = 0;
	pthread_rwlock_wrlock(&lock);
	unmap_host(context);
	for (size_t i = 0; i < n_spans; i++) {
		const struct rc_span *span = &spans[i];
		/* Host memory that a pool keeps goes too: devices cannot access it any more. */
		bool of_host = span->kind > RC_MEMORY_GLOBAL && !(span->freed && span->host_pool);
		bool stays = of_host || span->context != context || span->reserved;
		bool has_more = span->kind > RC_MEMORY_GLOBAL ||
				((span->placing || span->imported || span->kind == RC_MEMORY_MANAGED) && !span->module);
		if (!stays && has_more && n < most)
			gone[n++] = *span;
		else if (stays || has_more)
			spans[kept++] = *span;
	}
	n_spans = kept;
	pthread_rwlock_unlock(&lock);
	return n;
}

static void forget_span(const struct rc_span *span, bool is_free)
{
	if (span->host_pool)
		rc_host_pool_gone(span);
	if (span->kind > RC_MEMORY_GLOBAL)
		(void)rc_host_end(span);
	else if (!is_free)
		return;
	else if (rc_mirror_is(span))
		rc_mirror_unmap(span);
	else if (span->placing)
		rc_placing_gone(span);
	else if (span->imported)
		rc_ipc_gone(span);
	else
		(void)rc_managed_end(span);
}

void rc_memory_forget_context(CUcontext context, bool is_free)
{
	struct rc_span gone[32];
	const size_t most = sizeof gone / sizeof *gone;
	size_t n;
	rc_mirror_context_end(context);
	do {
		n = take_of_context(context, gone, most);
		for (size_t i = 0; i < n; i++)
			forget_span(&gone[i], is_free);
	} while (n == most);
}

static CUresult check_device(uint64_t address, uint64_t size, unsigned long long access)
{
	struct rc_span span;
	const char *reason;
	if (!size)
		return CUDA_SUCCESS;
	if (!rc_memory_find(address, &span))
		return CUDA_ERROR_INVALID_VALUE;
	if (span.kind > RC_MEMORY_GLOBAL && !span.mapped_by && rc_promote(rc_context_session(), address, &reason) == CUDA_SUCCESS)
		(void)rc_memory_find(address, &span);
	if ((span.kind > RC_MEMORY_GLOBAL && !span.mapped_by) ||
	    size > span.size - (address - span.base))
		return CUDA_ERROR_INVALID_VALUE;
	/* Another thread may have promoted it. Copies that began before go to and from this process's memory. */
	if (span.promoted && rc_copy_any_later())
		rc_copy_await_memory(address, size);
	return !span.reserved || rc_virtual_covers(address, size, access) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult rc_memory_check_device(uint64_t address, uint64_t size)
{
	return check_device(address, size, CU_MEM_ACCESS_FLAGS_PROT_READ);
}

CUresult rc_memory_check_written(uint64_t address, uint64_t size)
{
	return check_device(address, size, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

bool rc_memory_is_device(uint64_t address)
{
	struct rc_span span;
	return rc_memory_find(address, &span) && (span.kind <= RC_MEMORY_GLOBAL || (span.mapped_by && rc_mirror_is(&span)));
}

bool rc_memory_promoted(uint64_t base, struct rc_session *session, uint64_t pinned)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find(base);
	bool found = span && span->base == base && span->kind >= RC_MEMORY_HOST;
	if (found && session) {
		span->session = session;
		span->pinned = pinned;
		span->mapped_by = 1ull << session->index;
	}
	if (found) {
		span->promoted = session;
		span->refused = !session;
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

void rc_memory_set_of_graph(uint64_t base)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find(base);
	if (span)
		span->of_graph = true;
	pthread_rwlock_unlock(&lock);
}

bool rc_memory_exportable(const struct rc_span *span)
{
	return span->kind == RC_MEMORY_DEVICE && !span->pooled && !span->reserved && !span->imported && !span->of_graph;
}

void rc_memory_set_synchronous(uint64_t address, bool synchronous)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *found = find(address);
	if (found)
		found->synchronous = synchronous;
	pthread_rwlock_unlock(&lock);
}

bool rc_memory_take(uint64_t base, enum rc_memory_kind kind, struct rc_span *taken)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find(base);
	bool found = span && span->base == base && span->kind == kind && !span->reserved && !span->of_graph && !span->freed &&
		     (!span->imported || span->pooled);
	if (found) {
		*taken = *span;
		span_remove(span);
	}
	pthread_rwlock_unlock(&lock);
	return found;
}

/* The allocation of a pool of host_pool.c. Under the lock. */
static struct rc_span *find_pooled(uint64_t base, uint64_t id, bool freed)
{
	struct rc_span *span = find(base);
	return span && span->base == base && span->id == id && span->host_pool && span->freed == freed ? span : NULL;
}

bool rc_memory_mark_freed(uint64_t base, uint64_t id)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find_pooled(base, id, false);
	if (span)
		span->freed = true;
	pthread_rwlock_unlock(&lock);
	return span;
}

bool rc_memory_freed(uint64_t base, uint64_t id)
{
	pthread_rwlock_rdlock(&lock);
	struct rc_span *span = find_pooled(base, id, true);
	pthread_rwlock_unlock(&lock);
	return span;
}

bool rc_memory_unfree(uint64_t base, uint64_t id)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find_pooled(base, id, true);
	if (span) {
		span->freed = span->synchronous = false;
		span->id = ++next_id;
	}
	pthread_rwlock_unlock(&lock);
	return span;
}

bool rc_memory_take_freed(uint64_t base, uint64_t id, struct rc_span *taken)
{
	pthread_rwlock_wrlock(&lock);
	struct rc_span *span = find_pooled(base, id, true);
	if (span) {
		*taken = *span;
		span_remove(span);
	}
	pthread_rwlock_unlock(&lock);
	return span;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *size, CUdeviceptr pointer)
{
	struct rc_span span;
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find(pointer, &span)) /* memory of the host has an address for devices too */
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = span.base;
	if (size)
		*size = span.size;
	return CUDA_SUCCESS;
}

/* ---- memsets: within one allocation, aligned to the element ---- */

/* A program that did not look at a failed allocation's result passes its null pointer. If the allocation failed as the context
 * has an error that stays, CUDA returns that error here too. */
static CUresult refuse(void)
{
	CUresult stays = rc_memory_health();
	return stays == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : stays;
}

static CUresult memset_check(CUdeviceptr to, size_t element, size_t n)
{
	uint64_t bytes;
	if (to % element || __builtin_mul_overflow((uint64_t)n, (uint64_t)element, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	return rc_memory_check_written(to, bytes) == CUDA_SUCCESS ? CUDA_SUCCESS : refuse();
}

static CUresult memset_check_2d(CUdeviceptr to, size_t pitch, size_t element, size_t width, size_t height)
{
	uint64_t row;
	if (to % element || pitch % element || __builtin_mul_overflow((uint64_t)width, (uint64_t)element, &row))
		return CUDA_ERROR_INVALID_VALUE;
	if (!row || !height)
		return CUDA_SUCCESS;
	struct rc_wire_box box = { to, pitch, 0, row, height, 1 };
	uint64_t extent = rc_box_extent(&box);
	if (!extent || (height > 1 && row > pitch))
		return CUDA_ERROR_INVALID_VALUE;
	return rc_memory_check_written(to, extent) == CUDA_SUCCESS ? CUDA_SUCCESS : refuse();
}

/* A fill that is not asynchronous, in memory that the host may use when the call returns, is sent as an asynchronous one and awaited:
 * a driver waits in its call, and the worker would execute no other call meanwhile, not even the one that lets the stream go on. */
static CUresult memset_now(CUresult checked)
{
	return checked == CUDA_SUCCESS ? rc_capture_now() : checked;
}

CUresult memset_check_d8(CUdeviceptr to, unsigned char value, size_t n)
{
	CUresult result = memset_now(memset_check(to, 1, n));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD8Async(to, value, n, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d16(CUdeviceptr to, unsigned short value, size_t n)
{
	CUresult result = memset_now(memset_check(to, 2, n));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD16Async(to, value, n, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d32(CUdeviceptr to, unsigned value, size_t n)
{
	CUresult result = memset_now(memset_check(to, 4, n));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD32Async(to, value, n, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d2d8(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height)
{
	CUresult result = memset_now(memset_check_2d(to, pitch, 1, width, height));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD2D8Async(to, pitch, value, width, height, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d2d16(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height)
{
	CUresult result = memset_now(memset_check_2d(to, pitch, 2, width, height));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD2D16Async(to, pitch, value, width, height, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d2d32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height)
{
	CUresult result = memset_now(memset_check_2d(to, pitch, 4, width, height));
	return result == CUDA_SUCCESS && rc_managed_waits(to) ?
		       rc_managed_answer(cuMemsetD2D32Async(to, pitch, value, width, height, CU_STREAM_LEGACY)) :
		       result;
}

CUresult memset_check_d8_async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream)
{
	CUresult result = memset_check(to, 1, n);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, 0, value, 1, n, 1) : result;
}

CUresult memset_check_d16_async(CUdeviceptr to, unsigned short value, size_t n, CUstream stream)
{
	CUresult result = memset_check(to, 2, n);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, 0, value, 2, n, 1) : result;
}

CUresult memset_check_d32_async(CUdeviceptr to, unsigned value, size_t n, CUstream stream)
{
	CUresult result = memset_check(to, 4, n);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, 0, value, 4, n, 1) : result;
}

CUresult memset_check_d2d8_async(CUdeviceptr to, size_t pitch, unsigned char value, size_t width, size_t height,
				 CUstream stream)
{
	CUresult result = memset_check_2d(to, pitch, 1, width, height);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, pitch, value, 1, width, height) : result;
}

CUresult memset_check_d2d16_async(CUdeviceptr to, size_t pitch, unsigned short value, size_t width, size_t height,
				  CUstream stream)
{
	CUresult result = memset_check_2d(to, pitch, 2, width, height);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, pitch, value, 2, width, height) : result;
}

CUresult memset_check_d2d32_async(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
				  CUstream stream)
{
	CUresult result = memset_check_2d(to, pitch, 4, width, height);
	return result == CUDA_SUCCESS ? rc_capture_fill(stream, to, pitch, value, 4, width, height) : result;
}
