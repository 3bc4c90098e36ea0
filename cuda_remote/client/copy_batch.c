/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many copies in one call: cuMemcpyBatchAsync and cuMemcpy3DBatchAsync. All copies are checked before the first is made. Then
 * each is a copy of its own, as copies of one server's stream need no reply.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/memory.h"

#include <stdlib.h>
#include <string.h>

/* One line of memory has pitch 0: a pitch would limit its length. */
struct batch_side {
	uint64_t address, pitch, slice;
};

struct batch_copy {
	struct batch_side to, from;
	uint64_t width, height, depth;
	CUmemcpySrcAccessOrder order; /* when the source is read */
};

/* Makes copy number index of a batch. */
typedef CUresult describe_t(const void *batch, size_t index, struct batch_copy *copy);

static CUresult refuse(size_t *failed, size_t index, CUresult result)
{
	if (failed)
		*failed = index;
	return result;
}

static CUresult side_check(const struct batch_side *side, bool written, const struct batch_copy *copy)
{
	struct rc_wire_box box = { side->address, side->pitch, side->slice, copy->width, copy->height, copy->depth };
	uint64_t extent = rc_box_extent(&box);
	if (!side->address || !extent)
		return CUDA_ERROR_INVALID_VALUE;
	if (!rc_memory_is_device(side->address))
		return CUDA_SUCCESS;
	return written ? rc_memory_check_written(side->address, extent) : rc_memory_check_device(side->address, extent);
}

static CUresult check(const struct batch_copy *copy)
{
	if (!copy->width || !copy->height || !copy->depth)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = side_check(&copy->to, true, copy);
	return result == CUDA_SUCCESS ? side_check(&copy->from, false, copy) : result;
}

static CUresult copy_now(const struct batch_copy *copy, CUstream stream)
{
	if (copy->height == 1 && copy->depth == 1)
		return cuMemcpyAsync(copy->to.address, copy->from.address, copy->width, stream);
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = copy->from.address,
			      .srcPitch = copy->from.pitch, .srcHeight = copy->from.slice / copy->from.pitch,
			      .dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = copy->to.address,
			      .dstPitch = copy->to.pitch, .dstHeight = copy->to.slice / copy->to.pitch,
			      .WidthInBytes = copy->width, .Height = copy->height, .Depth = copy->depth };
	return cuMemcpy3DAsync_v2(&box, stream);
}

/* Copies from pinned memory, which the program may write again when this returns. */
static CUresult copy_packed(const struct batch_copy *copy, CUstream stream)
{
	uint64_t bytes;
	if (__builtin_mul_overflow(copy->width, copy->height, &bytes) || __builtin_mul_overflow(bytes, copy->depth, &bytes))
		return CUDA_ERROR_INVALID_VALUE;
	uint8_t *packed = malloc(bytes), *at = packed;
	if (!packed)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t z = 0; z < copy->depth; z++)
		for (uint64_t y = 0; y < copy->height; y++, at += copy->width)
			memcpy(at, (const void *)(uintptr_t)(copy->from.address + z * copy->from.slice + y * copy->from.pitch),
			       copy->width);
	struct batch_copy from_packed = *copy;
	from_packed.from = (struct batch_side){ (uint64_t)(uintptr_t)packed, copy->width, copy->width * copy->height };
	CUresult result = copy_now(&from_packed, stream);
	free(packed);
	return result;
}

/* The source is read during the call. */
static CUresult copy_during_call(const struct batch_copy *copy, CUstream stream)
{
	struct rc_span span;
	CUresult result = capture_check_stream(stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!rc_memory_find(copy->from.address, &span))
		return copy_now(copy, stream);
	if (span.kind > RC_MEMORY_GLOBAL && rc_memory_is_device(copy->to.address))
		return copy_packed(copy, stream);
	result = copy_now(copy, stream);
	return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

/* The source is read when the stream gets there. Pageable memory is read during a call, so the call waits for the stream. */
static CUresult copy_in_order(const struct batch_copy *copy, CUstream stream)
{
	struct rc_span span;
	CUstreamCaptureStatus status;
	CUresult result = CUDA_SUCCESS;
	if (!rc_memory_find(copy->from.address, &span))
		result = cuStreamIsCapturing(stream, &status);
	else
		status = CU_STREAM_CAPTURE_STATUS_ACTIVE; /* or it does not matter */
	if (result == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE)
		result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	return result == CUDA_SUCCESS ? copy_now(copy, stream) : result;
}

static CUresult make(const struct batch_copy *copy, CUstream stream)
{
	switch (copy->order) {
	case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
		return copy_in_order(copy, stream);
	case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
		return copy_during_call(copy, stream);
	default:
		return copy_now(copy, stream);
	}
}

static CUresult make_all(CUstream stream, describe_t *describe, const void *batch, size_t count, size_t *failed)
{
	struct batch_copy copy;
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS && (!stream || stream == CU_STREAM_LEGACY))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return refuse(failed, SIZE_MAX, result);
	for (size_t i = 0; i < count; i++) {
		result = describe(batch, i, &copy);
		if (result == CUDA_SUCCESS)
			result = check(&copy);
		if (result != CUDA_SUCCESS)
			return refuse(failed, i, result);
	}
	for (size_t i = 0; i < count; i++) {
		result = describe(batch, i, &copy);
		if (result == CUDA_SUCCESS)
			result = make(&copy, stream);
		if (result != CUDA_SUCCESS)
			return refuse(failed, i, result);
	}
	return CUDA_SUCCESS;
}

static CUresult check_how(CUmemcpySrcAccessOrder order, unsigned flags)
{
	bool known = order == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM || order == CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL ||
		     order == CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
	return known && !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE) ? CUDA_SUCCESS :
											    CUDA_ERROR_INVALID_VALUE;
}

/* ---- lines of memory ---- */

struct lines {
	const CUdeviceptr *to, *from;
	const size_t *sizes;
	size_t count;
	const CUmemcpyAttributes *attributes;
	const size_t *starts; /* of each set of attributes: the first copy that it is for */
	size_t sets;
};

static bool starts_are_valid(const struct lines *lines)
{
	if (!lines->to || !lines->from || !lines->sizes || !lines->count || !lines->attributes || !lines->starts ||
	    !lines->sets || lines->sets > lines->count || lines->starts[0])
		return false;
	for (size_t i = 1; i < lines->sets; i++)
		if (lines->starts[i] <= lines->starts[i - 1])
			return false;
	return lines->starts[lines->sets - 1] < lines->count;
}

static CUresult describe_line(const void *batch, size_t index, struct batch_copy *copy)
{
	const struct lines *lines = batch;
	size_t low = 0, high = lines->sets;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (lines->starts[middle] <= index)
			low = middle;
		else
			high = middle;
	}
	*copy = (struct batch_copy){ .to = { .address = lines->to[index] }, .from = { .address = lines->from[index] },
				     .width = lines->sizes[index], .height = 1, .depth = 1,
				     .order = lines->attributes[low].srcAccessOrder };
	return check_how(copy->order, lines->attributes[low].flags);
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
			    size_t *starts, size_t sets, size_t *failed, CUstream stream)
{
	struct lines lines = { to, from, sizes, count, attributes, starts, sets };
	if (!starts_are_valid(&lines))
		return refuse(failed, SIZE_MAX, CUDA_ERROR_INVALID_VALUE);
	return make_all(stream, describe_line, &lines, count, failed);
}

/* ---- boxes ---- */

static CUresult operand(const CUmemcpy3DOperand *said, const CUextent3D *extent, struct batch_side *side)
{
	if (said->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	uint64_t row = said->op.ptr.rowLength ? said->op.ptr.rowLength : extent->width;
	uint64_t height = said->op.ptr.layerHeight ? said->op.ptr.layerHeight : extent->height;
	*side = (struct batch_side){ said->op.ptr.ptr, row, 0 };
	if (said->type != CU_MEMCPY_OPERAND_TYPE_POINTER || row < extent->width || height < extent->height ||
	    __builtin_mul_overflow(row, height, &side->slice))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult describe_box(const void *batch, size_t index, struct batch_copy *copy)
{
	const CUDA_MEMCPY3D_BATCH_OP *op = (const CUDA_MEMCPY3D_BATCH_OP *)batch + index;
	*copy = (struct batch_copy){ .width = op->extent.width, .height = op->extent.height, .depth = op->extent.depth,
				     .order = op->srcAccessOrder };
	CUresult result = check_how(copy->order, op->flags);
	if (result == CUDA_SUCCESS)
		result = operand(&op->dst, &op->extent, &copy->to);
	return result == CUDA_SUCCESS ? operand(&op->src, &op->extent, &copy->from) : result;
}

CUresult cuMemcpy3DBatchAsync(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
			      CUstream stream)
{
	if (!list || !count || flags)
		return refuse(failed, SIZE_MAX, CUDA_ERROR_INVALID_VALUE);
	return make_all(stream, describe_box, list, count, failed);
}

/* ---- later versions, which do not say which copy failed, and variants with a default stream for each thread ---- */

static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuMemcpyBatchAsync_ptsz(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
				 CUmemcpyAttributes *attributes, size_t *starts, size_t sets, size_t *failed, CUstream stream)
{
	return cuMemcpyBatchAsync(to, from, sizes, count, attributes, starts, sets, failed, own(stream));
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
			       CUmemcpyAttributes *attributes, size_t *starts, size_t sets, CUstream stream)
{
	return cuMemcpyBatchAsync(to, from, sizes, count, attributes, starts, sets, NULL, stream);
}

CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count,
				    CUmemcpyAttributes *attributes, size_t *starts, size_t sets, CUstream stream)
{
	return cuMemcpyBatchAsync(to, from, sizes, count, attributes, starts, sets, NULL, own(stream));
}

CUresult cuMemcpy3DBatchAsync_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *failed, unsigned long long flags,
				   CUstream stream)
{
	return cuMemcpy3DBatchAsync(count, list, failed, flags, own(stream));
}

CUresult cuMemcpy3DBatchAsync_v2(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream)
{
	return cuMemcpy3DBatchAsync(count, list, NULL, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_v2_ptsz(size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags,
				      CUstream stream)
{
	return cuMemcpy3DBatchAsync(count, list, NULL, flags, own(stream));
}
