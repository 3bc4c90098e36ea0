/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory calls in a stream, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/default_stream.h"
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
