/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes of values and waits for values, legacy and per-thread (see cuda_api.h): compiled twice. The first version of
 * each call, which CUDA 12 replaced, does the same but has no barriers.
 */
#include "cuda_remote/softgpu/driver/stream/memop.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"

static CUresult submit(CUstream handle, const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags,
		       bool first_version)
{
	CUcontext context;
	CUstream stream;
	CUresult result = stream_enter(STREAM_OR_DEFAULT(handle), &context, &stream);
	if (!result)
		result = memop_check(operations, count, flags);
	for (unsigned i = 0; i < count && !result; i++) {
		CUstreamBatchMemOpType operation = operations[i].operation;
		bool write = operation == CU_STREAM_MEM_OP_WRITE_VALUE_32 ||
			     operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
		if (first_version ? operation == CU_STREAM_MEM_OP_BARRIER
				  : write && operations[i].writeValue.flags)
			result = CUDA_ERROR_INVALID_VALUE;
	}
	return result ? result : memop_submit(stream, operations, count);
}

static CUresult write_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
			    unsigned flags, bool first_version)
{
	CUstreamBatchMemOpParams batch = { .writeValue = { .operation = operation, .address = address, .flags =
			flags } };
	if (operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
		batch.writeValue.value64 = value;
	else
		batch.writeValue.value = (cuuint32_t)value;
	return submit(stream, &batch, 1, 0, first_version);
}

static CUresult wait_value(CUstream stream, CUstreamBatchMemOpType operation, CUdeviceptr address, uint64_t value,
			   unsigned flags, bool first_version)
{
	CUstreamBatchMemOpParams batch = { .waitValue = { .operation = operation, .address = address, .flags =
			flags } };
	if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_64)
		batch.waitValue.value64 = value;
	else
		batch.waitValue.value = (cuuint32_t)value;
	return submit(stream, &batch, 1, 0, first_version);
}

CUresult PTSZ(cuStreamWriteValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return write_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, false);
}

CUresult PTSZ(cuStreamWriteValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return write_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, false);
}

CUresult PTSZ(cuStreamWaitValue32_v2)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return wait_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags, false);
}

CUresult PTSZ(cuStreamWaitValue64_v2)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return wait_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags, false);
}

CUresult PTSZ(cuStreamBatchMemOp_v2)(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
				     unsigned int flags)
{
	return submit(stream, paramArray, count, flags, false);
}

CUresult PTSZ(cuStreamWriteValue32)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return write_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_32, addr, value, flags, true);
}

CUresult PTSZ(cuStreamWriteValue64)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return write_value(stream, CU_STREAM_MEM_OP_WRITE_VALUE_64, addr, value, flags, true);
}

CUresult PTSZ(cuStreamWaitValue32)(CUstream stream, CUdeviceptr addr, cuuint32_t value, unsigned int flags)
{
	return wait_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_32, addr, value, flags, true);
}

CUresult PTSZ(cuStreamWaitValue64)(CUstream stream, CUdeviceptr addr, cuuint64_t value, unsigned int flags)
{
	return wait_value(stream, CU_STREAM_MEM_OP_WAIT_VALUE_64, addr, value, flags, true);
}

CUresult PTSZ(cuStreamBatchMemOp)(CUstream stream, unsigned int count, CUstreamBatchMemOpParams *paramArray,
				  unsigned int flags)
{
	return submit(stream, paramArray, count, flags, true);
}
