/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory operations of streams. The words of pinned memory are in the worker's own mapping; the driver checks addresses of
 * device memory. */
#include "cuda_remote/server/internal.h"

static bool is_64(uint32_t operation)
{
	return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

/* The address of the word. */
static CUresult find_word(const struct rc_wire_memop *from, uint64_t *address)
{
	uint8_t *memory;
	uint64_t bytes, width = is_64(from->operation) ? 8 : 4;
	*address = from->address;
	if (!from->pinned)
		return CUDA_SUCCESS;
	CUresult result = server_pinned_find(from->pinned, &memory, &bytes);
	if (result == CUDA_SUCCESS && (from->address % width || bytes < width || from->address > bytes - width))
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		*address = (uint64_t)(uintptr_t)memory + from->address;
	return result;
}

CUresult server_memop(const struct rc_wire_memop *from, CUstreamBatchMemOpParams *to)
{
	uint64_t address;
	CUresult result = find_word(from, &address);
	if (result != CUDA_SUCCESS)
		return result;
	*to = (CUstreamBatchMemOpParams){ .operation = (CUstreamBatchMemOpType)from->operation };
	switch (from->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		to->waitValue.address = address;
		to->waitValue.flags = from->flags;
		to->waitValue.value64 = from->value;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		to->writeValue.address = address;
		to->writeValue.flags = from->flags;
		to->writeValue.value64 = from->value;
		return CUDA_SUCCESS;
	case CU_STREAM_MEM_OP_BARRIER:
		to->memoryBarrier.flags = from->flags;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult serve_stream_memory(struct server_call *call)
{
	struct rc_wire_memops args;
	struct rc_wire_memop from;
	CUstreamBatchMemOpParams list[RC_MEMOPS_MAX];
	void *stream;
	if (!server_take_into(call, &args, sizeof args) || !args.count || args.count > RC_MEMOPS_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = server_object(RC_KIND_STREAM, args.stream, &stream);
	for (uint32_t i = 0; i < args.count && result == CUDA_SUCCESS; i++)
		result = server_take_into(call, &from, sizeof from) ? server_memop(&from, &list[i]) : CUDA_ERROR_INVALID_VALUE;
	if (result != CUDA_SUCCESS)
		return result;
	return driver.cuStreamBatchMemOp_v2 ? driver.cuStreamBatchMemOp_v2(stream, args.count, list, 0) :
					      CUDA_ERROR_NOT_SUPPORTED;
}
