/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream handles: creation, destruction, default streams and attributes. */
#include "cuda_remote/softgpu/driver/stream/stream.h"

#include "cuda_remote/softgpu/driver/init.h"
#include "cuda_remote/graph/capture.h"

#include <pthread.h>
#include <stdlib.h>

/* A thread's default stream in one context. */
struct thread_stream {
	struct thread_stream *next;
	CUcontext context;
	uint64_t context_id, stream_id;
	CUstream stream;
};

static bool have_key;
static pthread_key_t thread_key;
static pthread_once_t thread_once = PTHREAD_ONCE_INIT;
static __thread struct thread_stream *thread_streams;

/* The thread ends: its default streams finish their work and are destroyed. */
static void thread_ends(void *first)
{
	for (struct thread_stream *next, *entry = first; entry; entry = next) {
		next = entry->next;
		if (handle_valid(entry->context, HANDLE_CONTEXT) && entry->context->id == entry->context_id &&
		    handle_valid(entry->stream, HANDLE_STREAM) && entry->stream->id == entry->stream_id)
			context_retire_stream(entry->stream);
		free(entry);
	}
}

static void make_key(void)
{
	have_key = !pthread_key_create(&thread_key, thread_ends);
}

static CUresult thread_stream(CUcontext context, CUstream *stream)
{
	for (struct thread_stream *entry = thread_streams; entry; entry = entry->next)
		if (entry->context == context && entry->context_id == context->id) {
			*stream = entry->stream;
			return CUDA_SUCCESS;
		}
	pthread_once(&thread_once, make_key);
	if (!have_key) /* without a key the thread's streams would never be destroyed */
		return CUDA_ERROR_OUT_OF_MEMORY;
	struct thread_stream *entry = malloc(sizeof *entry);
	CUstream made = entry ? queue_stream_new(context, &context->group, 0, 0, false) : NULL;
	if (!made) {
		free(entry);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	/* Orders nothing: only an invalid handle could refer to the stream already. */
	__atomic_store_n(&made->of_thread, true, __ATOMIC_RELAXED);
	*entry = (struct thread_stream){ thread_streams, context, context->id, made->id, made };
	if (pthread_setspecific(thread_key, entry)) {
		context_retire_stream(made);
		free(entry);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	thread_streams = entry;
	*stream = made;
	return CUDA_SUCCESS;
}

CUresult stream_resolve(CUcontext context, CUstream handle, CUstream *stream)
{
	if (!handle || handle == CU_STREAM_LEGACY)
		*stream = context->group.legacy;
	else if (handle == CU_STREAM_PER_THREAD)
		return thread_stream(context, stream);
	else if (handle_valid(handle, HANDLE_STREAM))
		*stream = handle;
	else
		return CUDA_ERROR_INVALID_HANDLE;
	/* Orders nothing: a call that overlaps the destruction of the green context may succeed or fail. */
	return __atomic_load_n(&(*stream)->orphan, __ATOMIC_RELAXED) ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_SUCCESS;
}

CUresult stream_enter(CUstream handle, CUcontext *context, CUstream *stream)
{
	CUresult result = context_enter(context);
	return result ? result : stream_resolve(*context, handle, stream);
}

CUresult stream_new(CUcontext context, CUgreenCtx green, unsigned flags, int priority, CUstream *output)
{
	/* A priority outside the range is clamped, as in cuStreamCreateWithPriority. */
	priority = priority > 0 ? 0 : priority < CONTEXT_GREATEST_PRIORITY ? CONTEXT_GREATEST_PRIORITY : priority;
	CUstream stream = queue_stream_new(context, &context->group, flags, priority, false);
	if (!stream)
		return CUDA_ERROR_OUT_OF_MEMORY;
	/* Orders nothing: others compare it. */
	__atomic_store_n(&stream->green, green, __ATOMIC_RELAXED);
	if (green && !queue_submit_wait(stream, green->gate, queue_submitted(green->gate))) {
		handle_retire(stream);
		queue_stream_release(stream);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*output = stream;
	return CUDA_SUCCESS;
}

CUresult cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags, int priority)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!phStream || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	return stream_new(context, context_current_green(), flags, priority, phStream);
}

CUresult cuStreamCreate(CUstream *phStream, unsigned int Flags)
{
	return cuStreamCreateWithPriority(phStream, Flags, 0);
}

static pthread_mutex_t attributes_lock = PTHREAD_MUTEX_INITIALIZER;

/* Streams have these attributes too, see CU_STREAM_ATTRIBUTE_* in cuda.h. */
static CUresult not_stored(CUstreamAttrID attribute)
{
	return attribute == CU_LAUNCH_ATTRIBUTE_PRIORITY || attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN ||
	       attribute == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult stream_set_attribute(CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
	CUresult result = CUDA_SUCCESS;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&attributes_lock);
	switch (attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		stream->access_window = value->accessPolicyWindow;
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
			result = CUDA_ERROR_INVALID_VALUE;
		else
			stream->sync_policy = value->syncPolicy;
		break;
	default:
		result = not_stored(attribute);
	}
	pthread_mutex_unlock(&attributes_lock);
	return result;
}

CUresult stream_get_attribute(CUstream stream, CUstreamAttrID attribute, CUstreamAttrValue *value)
{
	CUresult result = CUDA_SUCCESS;
	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&attributes_lock);
	switch (attribute) {
	case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
		value->accessPolicyWindow = stream->access_window;
		break;
	case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
		value->syncPolicy = stream->sync_policy ? stream->sync_policy : CU_SYNC_POLICY_AUTO;
		break;
	case CU_LAUNCH_ATTRIBUTE_PRIORITY:
		value->priority = stream->priority;
		break;
	default:
		result = not_stored(attribute);
	}
	pthread_mutex_unlock(&attributes_lock);
	return result;
}

/* Returns at once; the stream completes its work first. */
CUresult cuStreamDestroy_v2(CUstream hStream)
{
	CUcontext context;
	CUresult result = context_enter(&context);
	if (result)
		return result;
	if (!handle_valid(hStream, HANDLE_STREAM) || hStream->legacy ||
	    __atomic_load_n(&hStream->of_thread, __ATOMIC_RELAXED))
		return CUDA_ERROR_INVALID_HANDLE;
	if (__atomic_load_n(&hStream->orphan, __ATOMIC_RELAXED))
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	context_retire_stream(hStream);
	return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream hStream)
{
	return cuStreamDestroy_v2(hStream);
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	CUresult result = init_check();
	if (result)
		return result;
	if (!mode || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	capture_mode_exchange(mode);
	return CUDA_SUCCESS;
}
