/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory calls in a stream, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/default_stream.h"
#include "cuda_remote/softgpu/driver/memory/managed.h"
#include "cuda_remote/softgpu/driver/memory/pool.h"

CUresult PTSZ(cuMemAllocAsync)(CUdeviceptr *dptr, size_t bytesize, CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : pool_alloc(NULL, bytesize, stream, dptr);
}

CUresult PTSZ(cuMemAllocFromPoolAsync)(CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	if (result)
		return result;
	return pool ? pool_alloc(pool, bytesize, stream, dptr) : CUDA_ERROR_INVALID_VALUE;
}

CUresult PTSZ(cuMemFreeAsync)(CUdeviceptr dptr, CUstream hStream)
{
	CUstream stream;
	CUresult result = enter_stream(hStream, &stream);
	return result ? result : pool_free(dptr, stream);
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
