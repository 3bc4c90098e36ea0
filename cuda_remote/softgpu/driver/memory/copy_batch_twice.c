/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of copies, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/memory/copy_batch.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"

/* CUDA 12.8's form of the calls, which outputs the index of a failed copy. */
CUresult PTSZ(cuMemcpyBatchAsync)(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
				  CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, size_t *failIdx,
				  CUstream hStream)
{
	copy_batch_t batch = { dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs };
	return copy_batch_submit(STREAM_OR_DEFAULT(hStream), &batch, failIdx);
}

CUresult PTSZ(cuMemcpyBatchAsync_v2)(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
				     CUmemcpyAttributes *attrs, size_t *attrsIdxs, size_t numAttrs, CUstream hStream)
{
	return PTSZ(cuMemcpyBatchAsync)(dsts, srcs, sizes, count, attrs, attrsIdxs, numAttrs, NULL, hStream);
}

CUresult PTSZ(cuMemcpy3DBatchAsync)(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx,
				    unsigned long long flags, CUstream hStream)
{
	return copy_batch_submit_3d(STREAM_OR_DEFAULT(hStream), opList, numOps, flags, failIdx);
}

CUresult PTSZ(cuMemcpy3DBatchAsync_v2)(size_t numOps, CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags,
				       CUstream hStream)
{
	return PTSZ(cuMemcpy3DBatchAsync)(numOps, opList, NULL, flags, hStream);
}
