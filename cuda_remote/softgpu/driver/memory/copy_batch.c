/* SPDX-License-Identifier: BSD-3-Clause */
/* Many copies in one call: cuMemcpyBatchAsync and cuMemcpy3DBatchAsync. */
#include "cuda_remote/softgpu/driver/memory/copy_batch.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"

#include <stdint.h>
#include <stdlib.h>

/* Makes the box of copy number index. */
typedef CUresult describe_t(const void *batch, size_t index, copy_box_t *box);

static CUresult refuse(size_t *failed, size_t index, CUresult result)
{
	if (failed)
		*failed = index;
	return result;
}

static CUresult enter(CUstream handle, CUstream *stream)
{
	CUcontext context;
	CUresult result = stream_enter(handle, &context, stream);
	if (!result && (*stream)->legacy)
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

/* In a capturing stream a copy becomes a node, unless its source must be read before the call returns. */
static CUresult capture(CUstream stream, const copy_box_t *box, bool *captured)
{
	*captured = false;
	if (!capture_possible())
		return CUDA_SUCCESS;
	if (box->source == COPY_SOURCE_NOW)
		return capture_refuse_stream(stream);
	CUDA_MEMCPY3D copy = {
		.srcMemoryType = CU_MEMORYTYPE_UNIFIED, .srcDevice = box->from.address,
		.dstMemoryType = CU_MEMORYTYPE_UNIFIED, .dstDevice = box->to.address,
		.WidthInBytes = box->width, .Height = box->height, .Depth = box->depth,
	};
	/* A single row has pitch 0: a pitch would limit its length. */
	if (box->height > 1 || box->depth > 1) {
		copy.srcPitch = box->from.pitch;
		copy.srcHeight = box->from.slice / box->from.pitch;
		copy.dstPitch = box->to.pitch;
		copy.dstHeight = box->to.slice / box->to.pitch;
	}
	return capture_copy(stream, &copy, false, captured);
}

static CUresult submit_all(CUstream handle, describe_t *describe, const void *batch, size_t count, size_t *failed)
{
	CUstream stream;
	copy_box_t box;
	CUresult result = enter(handle, &stream);
	if (result)
		return refuse(failed, SIZE_MAX, result);
	for (size_t i = 0; i < count; i++) {
		result = describe(batch, i, &box);
		if (!result)
			result = copy_check(&box);
		if (result)
			return refuse(failed, i, result);
	}
	for (size_t i = 0; i < count; i++) {
		bool captured = false;
		result = describe(batch, i, &box);
		if (!result)
			result = capture(stream, &box, &captured);
		if (!result && !captured)
			result = copy_submit(stream, &box, false);
		if (result)
			return refuse(failed, i, result);
	}
	return CUDA_SUCCESS;
}

static CUresult source_order(CUmemcpySrcAccessOrder order, enum copy_source *source)
{
	switch (order) {
	case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
		*source = COPY_SOURCE_STREAM;
		return CUDA_SUCCESS;
	case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
		*source = COPY_SOURCE_NOW;
		return CUDA_SUCCESS;
	case CU_MEMCPY_SRC_ACCESS_ORDER_ANY:
		*source = COPY_SOURCE_API;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static bool known_flags(unsigned flags)
{
	return !(flags & ~(unsigned)CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE);
}

static CUresult describe_linear(const void *argument, size_t index, copy_box_t *box)
{
	const copy_batch_t *batch = argument;
	size_t set = batch->attribute_count - 1;
	while (batch->attribute_starts[set] > index)
		set--;
	size_t bytes = batch->sizes[index];
	*box = (copy_box_t){ .to = { COPY_UNIFIED, batch->to[index], bytes, bytes },
			     .from = { COPY_UNIFIED, batch->from[index], bytes, bytes },
			     .width = bytes, .height = 1, .depth = 1 };
	if (!known_flags(batch->attributes[set].flags))
		return CUDA_ERROR_INVALID_VALUE;
	return source_order(batch->attributes[set].srcAccessOrder, &box->source);
}

static bool attributes_valid(const copy_batch_t *batch)
{
	if (!batch->to || !batch->from || !batch->sizes || !batch->count || !batch->attributes ||
	    !batch->attribute_starts || !batch->attribute_count || batch->attribute_count > batch->count ||
	    batch->attribute_starts[0])
		return false;
	for (size_t i = 1; i < batch->attribute_count; i++)
		if (batch->attribute_starts[i] <= batch->attribute_starts[i - 1])
			return false;
	return batch->attribute_starts[batch->attribute_count - 1] < batch->count;
}

CUresult copy_batch_submit(CUstream handle, const copy_batch_t *batch, size_t *failed)
{
	if (!attributes_valid(batch))
		return refuse(failed, SIZE_MAX, CUDA_ERROR_INVALID_VALUE);
	return submit_all(handle, describe_linear, batch, batch->count, failed);
}

/* An operand in linear memory: one element is one byte. */
static CUresult operand(const CUmemcpy3DOperand *said, const CUextent3D *extent, copy_side_t *side)
{
	if (said->type == CU_MEMCPY_OPERAND_TYPE_ARRAY)
		return CUDA_ERROR_NOT_SUPPORTED;
	size_t row = said->op.ptr.rowLength ? said->op.ptr.rowLength : extent->width;
	size_t height = said->op.ptr.layerHeight ? said->op.ptr.layerHeight : extent->height;
	*side = (copy_side_t){ .kind = COPY_UNIFIED, .address = said->op.ptr.ptr, .pitch = row };
	if (said->type != CU_MEMCPY_OPERAND_TYPE_POINTER || row < extent->width || height < extent->height ||
	    __builtin_mul_overflow(row, height, &side->slice))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult describe_3d(const void *argument, size_t index, copy_box_t *box)
{
	const CUDA_MEMCPY3D_BATCH_OP *op = (const CUDA_MEMCPY3D_BATCH_OP *)argument + index;
	*box = (copy_box_t){ .width = op->extent.width, .height = op->extent.height, .depth = op->extent.depth };
	if (!known_flags(op->flags))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = source_order(op->srcAccessOrder, &box->source);
	if (!result)
		result = operand(&op->dst, &op->extent, &box->to);
	return result ? result : operand(&op->src, &op->extent, &box->from);
}

CUresult copy_batch_submit_3d(CUstream handle, const CUDA_MEMCPY3D_BATCH_OP *list, size_t count,
			      unsigned long long flags, size_t *failed)
{
	if (!list || !count || flags)
		return refuse(failed, SIZE_MAX, CUDA_ERROR_INVALID_VALUE);
	return submit_all(handle, describe_3d, list, count, failed);
}
