/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls about managed memory in a stream. Compiled twice, the second time with CUDA_PER_THREAD: for programs with a default
 * stream for each thread.
 */
#include "cuda_remote/graph/driver.h"
#include "cuda_remote/managed/managed.h"

#ifdef CUDA_PER_THREAD
#define PTSZ(name) name##_ptsz
#define DEFAULT_STREAM CU_STREAM_PER_THREAD
#else
#define PTSZ(name) name
#define DEFAULT_STREAM CU_STREAM_LEGACY
#endif

static CUresult enter_stream(CUstream given, CUstream *stream)
{
	return graph_driver_stream(given ? given : DEFAULT_STREAM, stream);
}

/* Managed memory is always visible to every stream and to the host: an attachment only tells who may use it at a time. */
CUresult PTSZ(cuStreamAttachMemAsync)(CUstream hStream, CUdeviceptr dptr, size_t length, unsigned int flags)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	managed_memory_t found;
	bool one = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE;
	if (!one || (flags == CU_MEM_ATTACH_SINGLE && graph_driver_stream_legacy(stream)) || !managed_driver_find(dptr, &found) ||
	    (length && (dptr != found.base || length != found.size)))
		return CUDA_ERROR_INVALID_VALUE;
	managed_driver_attach(&found, flags);
	return CUDA_SUCCESS;
}

/* Host and devices share one memory: nothing to move. */
CUresult PTSZ(cuMemPrefetchAsync_v2)(CUdeviceptr devPtr, size_t count, CUmemLocation location, unsigned int flags,
				     CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	return flags ? CUDA_ERROR_INVALID_VALUE : managed_prefetch(devPtr, count, &location);
}

/* CUDA 8's form of the call, with a device number or CU_DEVICE_CPU. */
CUresult PTSZ(cuMemPrefetchAsync)(CUdeviceptr devPtr, size_t count, CUdevice dstDevice, CUstream hStream)
{
	CUmemLocation location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = dstDevice };
	if (dstDevice == CU_DEVICE_CPU)
		location = (CUmemLocation){ .type = CU_MEM_LOCATION_TYPE_HOST };
	return PTSZ(cuMemPrefetchAsync_v2)(devPtr, count, location, 0, hStream);
}

CUresult PTSZ(cuMemPrefetchBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count, CUmemLocation *prefetchLocs,
				       size_t *prefetchLocIdxs, size_t numPrefetchLocs, unsigned long long flags,
				       CUstream hStream)
{
	managed_batch_t batch = { dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs };
	return managed_prefetch_batch(hStream ? hStream : DEFAULT_STREAM, &batch, flags, false);
}

CUresult PTSZ(cuMemDiscardBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count, unsigned long long flags,
				      CUstream hStream)
{
	managed_batch_t batch = { .addresses = dptrs, .sizes = sizes, .count = count };
	return managed_discard_batch(hStream ? hStream : DEFAULT_STREAM, &batch, flags);
}

CUresult PTSZ(cuMemDiscardAndPrefetchBatchAsync)(CUdeviceptr *dptrs, size_t *sizes, size_t count,
						 CUmemLocation *prefetchLocs, size_t *prefetchLocIdxs,
						 size_t numPrefetchLocs, unsigned long long flags, CUstream hStream)
{
	managed_batch_t batch = { dptrs, sizes, count, prefetchLocs, prefetchLocIdxs, numPrefetchLocs };
	return managed_prefetch_batch(hStream ? hStream : DEFAULT_STREAM, &batch, flags, true);
}
