/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies to and from arrays of one dimension, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/memory/copy.h"
#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/softgpu/driver/stream/default_stream.h"
#include "cuda_remote/graph/capture.h"

/* One end of such a copy: an array if it is not NULL, else an address. */
struct end {
	CUarray array;
	size_t offset;
	copy_side_t side;
};

static struct end host(const void *address)
{
	return (struct end){ .side = { .kind = COPY_HOST, .address = (uint64_t)(uintptr_t)address } };
}

static struct end device(CUdeviceptr address)
{
	return (struct end){ .side = { .kind = COPY_DEVICE, .address = address } };
}

static struct end array_at(CUarray array, size_t offset)
{
	/* A NULL handle is replaced by another invalid one, because array NULL means that the end is an address. */
	static const char nothing;
	return (struct end){ .array = array ? array : (CUarray)(uintptr_t)&nothing, .offset = offset };
}

/* The same copy in the form of a graph's node. */
static CUDA_MEMCPY3D described(const struct end *to, const struct end *from, size_t bytes)
{
	static const CUmemorytype types[] = { [COPY_HOST] = CU_MEMORYTYPE_HOST, [COPY_DEVICE] = CU_MEMORYTYPE_DEVICE };
	return (CUDA_MEMCPY3D){
		.srcMemoryType = from->array ? CU_MEMORYTYPE_ARRAY : types[from->side.kind],
		.srcXInBytes = from->offset, .srcArray = from->array, .srcDevice = from->side.address,
		.srcHost = (const void *)(uintptr_t)from->side.address,
		.dstMemoryType = to->array ? CU_MEMORYTYPE_ARRAY : types[to->side.kind],
		.dstXInBytes = to->offset, .dstArray = to->array, .dstDevice = to->side.address,
		.dstHost = (void *)(uintptr_t)to->side.address,
		.WidthInBytes = bytes, .Height = 1, .Depth = 1,
	};
}

static CUresult copy(CUstream handle, struct end to, struct end from, size_t bytes, bool synchronous)
{
	CUstream stream;
	CUresult result = enter_stream(handle, &stream);
	bool captured = false;
	CUDA_MEMCPY3D node = described(&to, &from, bytes);
	if (!result && to.array)
		result = array_row_side(to.array, to.offset, bytes, &to.side);
	if (!result && from.array)
		result = array_row_side(from.array, from.offset, bytes, &from.side);
	if (!result && to.array && from.array && to.array->texel != from.array->texel)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result && capture_possible())
		result = capture_copy(stream, &node, synchronous, &captured);
	return result || captured ? result : copy_linear(stream, to.side, from.side, bytes, synchronous);
}

CUresult PTDS(cuMemcpyDtoA_v2)(CUarray dstArray, size_t dstOffset, CUdeviceptr srcDevice, size_t ByteCount)
{
	return copy(NULL, array_at(dstArray, dstOffset), device(srcDevice), ByteCount, true);
}

CUresult PTDS(cuMemcpyAtoD_v2)(CUdeviceptr dstDevice, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return copy(NULL, device(dstDevice), array_at(srcArray, srcOffset), ByteCount, true);
}

CUresult PTDS(cuMemcpyHtoA_v2)(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount)
{
	return copy(NULL, array_at(dstArray, dstOffset), host(srcHost), ByteCount, true);
}

CUresult PTDS(cuMemcpyAtoH_v2)(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return copy(NULL, host(dstHost), array_at(srcArray, srcOffset), ByteCount, true);
}

CUresult PTDS(cuMemcpyAtoA_v2)(CUarray dstArray, size_t dstOffset, CUarray srcArray, size_t srcOffset, size_t ByteCount)
{
	return copy(NULL, array_at(dstArray, dstOffset), array_at(srcArray, srcOffset), ByteCount, true);
}

CUresult PTSZ(cuMemcpyHtoAAsync_v2)(CUarray dstArray, size_t dstOffset, const void *srcHost, size_t ByteCount,
				    CUstream hStream)
{
	return copy(hStream, array_at(dstArray, dstOffset), host(srcHost), ByteCount, false);
}

CUresult PTSZ(cuMemcpyAtoHAsync_v2)(void *dstHost, CUarray srcArray, size_t srcOffset, size_t ByteCount,
				    CUstream hStream)
{
	return copy(hStream, host(dstHost), array_at(srcArray, srcOffset), ByteCount, false);
}
