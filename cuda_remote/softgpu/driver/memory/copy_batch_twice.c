/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches of copies and prefetches, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/memory/copy_batch.h"
#include "cuda_remote/softgpu/driver/memory/managed.h"
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

CUresult PTSZ(cuMemPrefetchBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
				       size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
				       CUstream hStream)
{
	managed_batch_t batch = { dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs };
	return managed_prefetch_batch(STREAM_OR_DEFAULT(hStream), &batch, flags, false);
}

CUresult PTSZ(cuMemDiscardBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
				      CUstream hStream)
{
	managed_batch_t batch = { .addresses = dptrs, .sizes = sizes, .count = count };
	return managed_discard_batch(STREAM_OR_DEFAULT(hStream), &batch, flags);
}

CUresult PTSZ(cuMemDiscardAndPrefetchBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count,
						 CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
						 size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	managed_batch_t batch = { dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs };
	return managed_prefetch_batch(STREAM_OR_DEFAULT(hStream), &batch, flags, true);
}
