/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The streams of captures. A stream gets a record when a capture or a launch of a graph first needs it. CUDA's own streams
 * have a record for each context (legacy) or each context and thread (per-thread), which stay until the process ends.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/graph/graph_client.h"
#include "cuda_remote/client/green/green.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/stream.h"
#include "cuda_remote/graph/capture.h"

#include <pthread.h>
#include <stdlib.h>

struct CUstream_st {
	CUstream next;
	uint64_t handle;      /* as the program names it */
	CUcontext context;
	CUgreenCtx green;     /* in which it was made, or NULL */
	uint64_t thread;      /* whose default stream it is, or 0 */
	bool legacy, blocking;
	unsigned references;  /* atomic; the list's, and one for each capture */
	struct capture_stream *capture; /* under the captures' lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUstream first; /* those in use */
static uint64_t threads;
static __thread uint64_t this_thread __attribute__((tls_model("initial-exec")));

static uint64_t thread_number(void)
{
	if (!this_thread)
		this_thread = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return this_thread;
}

/* Under the lock. */
static CUstream find(uint64_t handle, CUcontext context, uint64_t thread)
{
	CUstream stream = first;
	while (stream && (stream->handle != handle || stream->context != context || stream->thread != thread))
		stream = stream->next;
	return stream;
}

static CUresult find_or_make(const struct CUstream_st *want, CUstream *stream)
{
	pthread_mutex_lock(&lock);
	*stream = find(want->handle, want->context, want->thread);
	if (!*stream && (*stream = malloc(sizeof **stream))) {
		**stream = *want;
		(*stream)->references = 1;
		(*stream)->next = first;
		first = *stream;
	}
	pthread_mutex_unlock(&lock);
	return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult rc_capture_stream(CUstream given, CUstream *stream)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t handle = (uint64_t)(uintptr_t)(given ? given : CU_STREAM_LEGACY);
	struct CUstream_st want = { .handle = handle, .context = context->handle, .blocking = true };
	if (rc_stream_is_special(handle)) {
		want.legacy = given != CU_STREAM_PER_THREAD;
		want.thread = want.legacy ? 0 : thread_number();
	} else {
		struct rc_stream *known = rc_handle_data(RC_KIND_STREAM, handle);
		if (!known)
			return rc_green_orphan(handle) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_HANDLE;
		want.context = known->context;
		want.green = known->green;
		want.blocking = !(known->flags & CU_STREAM_NON_BLOCKING);
	}
	return find_or_make(&want, stream);
}

uint64_t rc_capture_stream_handle(CUstream stream)
{
	return stream->handle;
}

static void stream_ended(CUstream stream)
{
	capture_stream_destroyed(stream);
	graph_driver_stream_release(stream);
}

void rc_capture_context_ended(CUcontext context)
{
	CUstream ended = NULL;
	pthread_mutex_lock(&lock);
	for (CUstream *at = &first; *at;) {
		CUstream stream = *at;
		if (stream->context != context) {
			at = &stream->next;
			continue;
		}
		*at = stream->next;
		stream->next = ended;
		ended = stream;
	}
	pthread_mutex_unlock(&lock);
	while (ended) {
		CUstream stream = ended;
		ended = stream->next;
		stream_ended(stream);
	}
}

/* The loop does not stop at the first capture: all of them are invalidated. */
CUresult rc_capture_refuse_green(CUgreenCtx green)
{
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	for (CUstream stream = first; stream; stream = stream->next) {
		CUresult refused = stream->green == green ? capture_refuse_stream(stream) : CUDA_SUCCESS;
		result = refused != CUDA_SUCCESS ? refused : result;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void rc_capture_stream_destroyed(uint64_t handle)
{
	pthread_mutex_lock(&lock);
	CUstream *at = &first;
	while (*at && (*at)->handle != handle)
		at = &(*at)->next;
	CUstream stream = *at;
	if (stream)
		*at = stream->next;
	pthread_mutex_unlock(&lock);
	if (stream)
		stream_ended(stream);
}

/* ---- for cuda_remote/graph ---- */

CUresult graph_driver_stream(CUstream given, CUstream *stream)
{
	CUresult result = graph_driver_enter();
	return result == CUDA_SUCCESS ? rc_capture_stream(given, stream) : result;
}

CUcontext graph_driver_stream_context(CUstream stream)
{
	return stream->context;
}

bool graph_driver_stream_legacy(CUstream stream)
{
	return stream->legacy;
}

bool graph_driver_stream_blocking(CUstream stream)
{
	return stream->blocking;
}

struct capture_stream **graph_driver_stream_part(CUstream stream)
{
	return &stream->capture;
}

void graph_driver_stream_hold(CUstream stream)
{
	__atomic_add_fetch(&stream->references, 1, __ATOMIC_RELAXED);
}

void graph_driver_stream_release(CUstream stream)
{
	/* Orders all uses before the free: all releases pair with each other. */
	if (!__atomic_sub_fetch(&stream->references, 1, __ATOMIC_ACQ_REL))
		free(stream);
}
