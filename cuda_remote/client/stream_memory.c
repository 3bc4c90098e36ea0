/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory operations of streams: waiting for a value and writing one. The word is in device memory, or in pinned memory that the
 * server's worker has mapped. The calls need no reply: what the driver would refuse is refused here.
 *
 * If the server is on another host, this process writes values to pinned memory, when the stream gets there: the program may look at
 * the word without a call, so a write to the worker's mirror would not suffice. A stream cannot wait for such a word.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <stdlib.h>

static bool is_64(CUstreamBatchMemOpType operation)
{
	return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* Fills in where the word is. */
static CUresult set_place(struct rc_route *route, uint64_t address, uint64_t bytes, bool write,
			  struct rc_wire_memop *sent)
{
	struct rc_span span;
	if (address % bytes || !rc_memory_find(address, &span))
		return CUDA_ERROR_INVALID_VALUE;
	sent->address = address;
	if (span.kind <= RC_MEMORY_GLOBAL) {
		CUresult result = write ? rc_memory_check_written(address, bytes) : rc_memory_check_device(address, bytes);
		return result == CUDA_SUCCESS ? rc_route_address(route, address) : result;
	}
	if (bytes > span.size - (address - span.base))
		return CUDA_ERROR_INVALID_VALUE;
	if (!rc_pinned_in(route->session ? route->session : rc_context_session(), address, bytes, &span)) {
		hr_log_once(HR_LOG_WARN, "a stream can wait for a value in host memory only if the server is on this host and the memory is of cuMemHostAlloc; use device memory");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	sent->address = rc_pinned_offset(&span, address);
	sent->pinned = span.pinned;
	return CUDA_SUCCESS;
}

/* first_version: of the calls of CUDA 11, which have no barriers, and whose writes need not be ordered behind others. */
static CUresult translate(struct rc_route *route, const CUstreamBatchMemOpParams *given, bool first_version,
			  struct rc_wire_memop *sent)
{
	CUstreamBatchMemOpType operation = given->operation;
	*sent = (struct rc_wire_memop){ .operation = operation };
	switch (operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (given->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return CUDA_ERROR_NOT_SUPPORTED; /* as the attribute CAN_FLUSH_REMOTE_WRITES says */
		if (given->waitValue.flags > CU_STREAM_WAIT_VALUE_NOR)
			return CUDA_ERROR_INVALID_VALUE;
		sent->flags = given->waitValue.flags;
		sent->value = is_64(operation) ? given->waitValue.value64 : given->waitValue.value;
		return set_place(route, given->waitValue.address, is_64(operation) ? 8 : 4, false, sent);
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		if (given->writeValue.flags > (first_version ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : 0))
			return CUDA_ERROR_INVALID_VALUE;
		sent->value = is_64(operation) ? given->writeValue.value64 : given->writeValue.value;
		return set_place(route, given->writeValue.address, is_64(operation) ? 8 : 4, true, sent);
	case CU_STREAM_MEM_OP_BARRIER:
		sent->flags = given->memoryBarrier.flags;
		return !first_version && sent->flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU ? CUDA_SUCCESS :
											     CUDA_ERROR_INVALID_VALUE;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult translate_all(struct rc_route *route, const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			      bool first_version, struct rc_wire_memop *sent)
{
	CUresult result = CUDA_SUCCESS;
	if (!list || !count || count > RC_MEMOPS_MAX || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = translate(route, &list[i], first_version, &sent[i]);
	return result;
}

CUresult rc_memops_translate(struct rc_session *session, const CUstreamBatchMemOpParams *list, unsigned count, unsigned flags,
			     struct rc_wire_memop *sent)
{
	struct rc_route route = { session, 0, false };
	CUresult result = translate_all(&route, list, count, flags, false, sent);
	if (session)
		__atomic_store_n(&session->held.graphs, true, __ATOMIC_RELAXED);
	return result == CUDA_SUCCESS && route.session != session ? CUDA_ERROR_NOT_SUPPORTED : result;
}

struct host_write {
	uint64_t address, value;
	bool wide;
};

static void CUDA_CB store(void *argument)
{
	const struct host_write *write = argument;
	/* Release: a thread of the program that sees the value sees what the stream's earlier work has stored. */
	if (write->wide)
		__atomic_store_n((uint64_t *)(uintptr_t)write->address, write->value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)write->address, (uint32_t)write->value, __ATOMIC_RELEASE);
	free(argument);
}

/* True if the operation writes pinned memory of which a worker has a mirror, or gets one now. Then the free of the memory waits for
 * the write. */
static bool is_host_write(const CUstreamBatchMemOpParams *given)
{
	struct rc_span span;
	const char *reason;
	CUstreamBatchMemOpType operation = given->operation;
	uint64_t bytes = is_64(operation) ? 8 : 4, address = given->writeValue.address;
	if (operation != CU_STREAM_MEM_OP_WRITE_VALUE_32 && operation != CU_STREAM_MEM_OP_WRITE_VALUE_64)
		return false;
	if (address % bytes || !rc_memory_find(address, &span) || span.kind < RC_MEMORY_HOST ||
	    bytes > span.size - (address - span.base))
		return false;
	if (!rc_mirror_is(&span))
		return !span.mapped_by && rc_promote(rc_context_session(), address, &reason) == CUDA_SUCCESS;
	return span.mapped_by;
}

static CUresult write_on_host(CUstream stream, const CUstreamBatchMemOpParams *given, bool first_version)
{
	bool wide = is_64(given->operation);
	if (given->writeValue.flags > (first_version ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : 0))
		return CUDA_ERROR_INVALID_VALUE;
	struct host_write *write = malloc(sizeof *write);
	if (!write)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*write = (struct host_write){ given->writeValue.address, wide ? given->writeValue.value64 : given->writeValue.value, wide };
	CUresult result = cuLaunchHostFunc(stream, store, write);
	if (result != CUDA_SUCCESS)
		free(write);
	return result;
}

static CUresult batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags, bool first_version);

/* A list of which some operations write memory of this host. *done: there are such, and all operations were issued. */
static CUresult batch_with_host(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags,
				bool first_version, bool *done)
{
	CUstreamCaptureStatus status;
	bool host = false;
	*done = false;
	if (!rc_memory_any_unmapped() && !rc_mirror_any())
		return CUDA_SUCCESS;
	for (unsigned i = 0; list && count <= RC_MEMOPS_MAX && !flags && i < count; i++)
		host |= is_host_write(&list[i]);
	/* A graph has no such nodes. */
	if (!host || cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS || status != CU_STREAM_CAPTURE_STATUS_NONE)
		return CUDA_SUCCESS;
	struct rc_wire_memop sent;
	struct rc_route route = { NULL, 0, false };
	CUresult result = rc_route_handle(&route, RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		if (!is_host_write(&list[i]))
			result = translate(&route, &list[i], first_version, &sent);
	for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
		result = is_host_write(&list[i]) ? write_on_host(stream, &list[i], first_version) :
						   batch(stream, 1, &list[i], 0, first_version);
	*done = true;
	return result;
}

static CUresult batch(CUstream stream, unsigned count, const CUstreamBatchMemOpParams *list, unsigned flags, bool first_version)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_memops call;
	} message = { .call = { (uint64_t)(uintptr_t)stream, count, 0 } };
	struct rc_wire_memop sent[RC_MEMOPS_MAX];
	struct rc_route route = { NULL, 0, false };
	struct rc_context *context;
	struct rc_link *link;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&route, RC_KIND_STREAM, message.call.stream);
	if (result != CUDA_SUCCESS)
		return result;
	bool captured = false, done;
	result = batch_with_host(stream, count, list, flags, first_version, &done);
	if (result != CUDA_SUCCESS || done)
		return result;
	result = translate_all(&route, list, count, flags, first_version, sent);
	if (result == CUDA_SUCCESS)
		result = rc_capture_memops(stream, list, count, &captured);
	if (result == CUDA_SUCCESS && !captured)
		result = rc_link_get(&route, true, &link);
	if (result != CUDA_SUCCESS || captured)
		return result;
	struct iovec iov = { sent, count * sizeof *sent };
	return rc_link_post(link, RC_CALL_stream_memory, 0, &message.head, sizeof message, &iov, 1);
}

static CUresult write_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
			    unsigned flags, bool first_version)
{
	CUstreamBatchMemOpParams one = { .writeValue = { .operation = operation, .address = address, .flags = flags } };
	if (is_64(operation))
		one.writeValue.value64 = value;
	else
		one.writeValue.value = (cuuint32_t)value;
	return batch(stream, 1, &one, 0, first_version);
}

static CUresult wait_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
			   unsigned flags, bool first_version)
{
	CUstreamBatchMemOpParams one = { .waitValue = { .operation = operation, .address = address, .flags = flags } };
	if (is_64(operation))
		one.waitValue.value64 = value;
	else
		one.waitValue.value = (cuuint32_t)value;
	return batch(stream, 1, &one, 0, first_version);
}

static CUstream given(CUstream stream)
{
	return stream;
}

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

/* The calls of one version, for one meaning of the default stream. */
#define CALLS(suffix, first_version, which) \
	CUresult cuStreamWriteValue32##suffix(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) \
	{ \
		return write_value(which(stream), CU_STREAM_MEM_OP_WRITE_VALUE_32, address, value, flags, first_version); \
	} \
	CUresult cuStreamWriteValue64##suffix(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) \
	{ \
		return write_value(which(stream), CU_STREAM_MEM_OP_WRITE_VALUE_64, address, value, flags, first_version); \
	} \
	CUresult cuStreamWaitValue32##suffix(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) \
	{ \
		return wait_value(which(stream), CU_STREAM_MEM_OP_WAIT_VALUE_32, address, value, flags, first_version); \
	} \
	CUresult cuStreamWaitValue64##suffix(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) \
	{ \
		return wait_value(which(stream), CU_STREAM_MEM_OP_WAIT_VALUE_64, address, value, flags, first_version); \
	} \
	CUresult cuStreamBatchMemOp##suffix(CUstream stream, unsigned count, CUstreamBatchMemOpParams *list, unsigned flags) \
	{ \
		return batch(which(stream), count, list, flags, first_version); \
	}

CALLS(, true, given)
CALLS(_ptsz, true, own)
CALLS(_v2, false, given)
CALLS(_v2_ptsz, false, own)
