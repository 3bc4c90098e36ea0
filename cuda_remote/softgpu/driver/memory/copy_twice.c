/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/default_stream.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/memory/copy.h"

/* The same copy in the form of a graph's node. */
static CUDA_MEMCPY3D described(copy_side_t to, copy_side_t from, size_t bytes)
{
	static const CUmemorytype types[] = { [COPY_HOST] = CU_MEMORYTYPE_HOST, [COPY_DEVICE] = CU_MEMORYTYPE_DEVICE,
					      [COPY_UNIFIED] = CU_MEMORYTYPE_UNIFIED };
	CUDA_MEMCPY3D copy = { .srcMemoryType = types[from.kind], .dstMemoryType = types[to.kind],
			       .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
	if (from.kind == COPY_HOST)
		copy.srcHost = (const void *)(uintptr_t)from.address;
	else
		copy.srcDevice = from.address;
	if (to.kind == COPY_HOST)
		copy.dstHost = (void *)(uintptr_t)to.address;
	else
		copy.dstDevice = to.address;
	return copy;
}

static CUresult linear(CUstream handle, copy_side_t to, copy_side_t from, size_t bytes, bool synchronous)
{
	CUstream stream;
	CUresult result = enter_stream(handle, &stream);
	bool captured = false;
	if (!result && capture_possible()) {
		CUDA_MEMCPY3D copy = described(to, from, bytes);
		result = capture_copy(stream, &copy, synchronous, &captured);
	}
	return result || captured ? result : copy_linear(stream, to, from, bytes, synchronous);
}

static copy_side_t host(const void *address)
{
	return (copy_side_t){ .kind = COPY_HOST, .address = (uint64_t)(uintptr_t)address };
}

static copy_side_t device(CUdeviceptr address)
{
	return (copy_side_t){ .kind = COPY_DEVICE, .address = address };
}

static copy_side_t unified(CUdeviceptr address)
{
	return (copy_side_t){ .kind = COPY_UNIFIED, .address = address };
}

CUresult PTDS(cuMemcpy)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount)
{
	return linear(NULL, unified(dst), unified(src), ByteCount, true);
}

CUresult PTSZ(cuMemcpyAsync)(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream)
{
	return linear(hStream, unified(dst), unified(src), ByteCount, false);
}

CUresult PTDS(cuMemcpyHtoD_v2)(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount)
{
	return linear(NULL, device(dstDevice), host(srcHost), ByteCount, true);
}

CUresult PTSZ(cuMemcpyHtoDAsync_v2)(CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream)
{
	return linear(hStream, device(dstDevice), host(srcHost), ByteCount, false);
}

CUresult PTDS(cuMemcpyDtoH_v2)(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount)
{
	return linear(NULL, host(dstHost), device(srcDevice), ByteCount, true);
}

CUresult PTSZ(cuMemcpyDtoHAsync_v2)(void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return linear(hStream, host(dstHost), device(srcDevice), ByteCount, false);
}

CUresult PTDS(cuMemcpyDtoD_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount)
{
	return linear(NULL, device(dstDevice), device(srcDevice), ByteCount, true);
}

CUresult PTSZ(cuMemcpyDtoDAsync_v2)(CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream)
{
	return linear(hStream, device(dstDevice), device(srcDevice), ByteCount, false);
}

static CUresult box_2d(CUstream handle, const CUDA_MEMCPY2D *copy, bool synchronous)
{
	CUstream stream;
	copy_box_t box;
	CUresult result = enter_stream(handle, &stream);
	if (!result)
		result = copy_box_from_2d(copy, &box);
	bool captured = false;
	if (!result && capture_possible()) {
		CUDA_MEMCPY3D node = {
			.srcXInBytes = copy->srcXInBytes, .srcY = copy->srcY, .srcMemoryType = copy->srcMemoryType,
			.srcHost = copy->srcHost, .srcDevice = copy->srcDevice, .srcArray = copy->srcArray,
			.srcPitch = copy->srcPitch, .dstXInBytes = copy->dstXInBytes, .dstY = copy->dstY,
			.dstMemoryType = copy->dstMemoryType, .dstHost = copy->dstHost, .dstDevice = copy->dstDevice,
			.dstArray = copy->dstArray, .dstPitch = copy->dstPitch, .WidthInBytes = copy->WidthInBytes,
			.Height = copy->Height, .Depth = 1,
		};
		result = capture_copy(stream, &node, synchronous, &captured);
	}
	return result || captured ? result : copy_submit(stream, &box, synchronous);
}

static CUresult box_3d(CUstream handle, const CUDA_MEMCPY3D *copy, bool synchronous)
{
	CUstream stream;
	copy_box_t box;
	CUresult result = enter_stream(handle, &stream);
	if (!result)
		result = copy_box_from_3d(copy, &box);
	bool captured = false;
	if (!result)
		result = capture_copy(stream, copy, synchronous, &captured);
	return result || captured ? result : copy_submit(stream, &box, synchronous);
}

CUresult PTDS(cuMemcpy2D_v2)(const CUDA_MEMCPY2D *pCopy)
{
	return box_2d(NULL, pCopy, true);
}

CUresult PTDS(cuMemcpy2DUnaligned_v2)(const CUDA_MEMCPY2D *pCopy)
{
	return box_2d(NULL, pCopy, true);
}

CUresult PTSZ(cuMemcpy2DAsync_v2)(const CUDA_MEMCPY2D *pCopy, CUstream hStream)
{
	return box_2d(hStream, pCopy, false);
}

CUresult PTDS(cuMemcpy3D_v2)(const CUDA_MEMCPY3D *pCopy)
{
	return box_3d(NULL, pCopy, true);
}

CUresult PTSZ(cuMemcpy3DAsync_v2)(const CUDA_MEMCPY3D *pCopy, CUstream hStream)
{
	return box_3d(hStream, pCopy, false);
}

static CUresult peer_linear(CUstream handle, CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
			    CUcontext from_context, size_t bytes, bool synchronous)
{
	copy_box_t box = { .to = device(to), .from = device(from), .width = bytes, .height = 1, .depth = 1 };
	if (capture_possible() && !synchronous)
		return linear(handle, box.to, box.from, bytes, false);
	return copy_peer(STREAM_OR_DEFAULT(handle), to_context, from_context, &box, synchronous);
}

CUresult PTDS(cuMemcpyPeer)(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice, CUcontext srcContext,
			    size_t ByteCount)
{
	return peer_linear(NULL, dstDevice, dstContext, srcDevice, srcContext, ByteCount, true);
}

CUresult PTSZ(cuMemcpyPeerAsync)(CUdeviceptr dstDevice, CUcontext dstContext, CUdeviceptr srcDevice,
				 CUcontext srcContext, size_t ByteCount, CUstream hStream)
{
	return peer_linear(hStream, dstDevice, dstContext, srcDevice, srcContext, ByteCount, false);
}

static CUresult peer_3d(CUstream handle, const CUDA_MEMCPY3D_PEER *c, bool synchronous)
{
	copy_box_t box;
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D plain = {
		c->srcXInBytes, c->srcY, c->srcZ, c->srcLOD, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray,
		NULL, c->srcPitch, c->srcHeight, c->dstXInBytes, c->dstY, c->dstZ, c->dstLOD, c->dstMemoryType,
		c->dstHost, c->dstDevice, c->dstArray, NULL, c->dstPitch, c->dstHeight, c->WidthInBytes, c->Height,
		c->Depth,
	};
	if (capture_possible() && !synchronous)
		return box_3d(handle, &plain, false);
	CUresult result = copy_box_from_3d(&plain, &box);
	return result ? result : copy_peer(STREAM_OR_DEFAULT(handle), c->dstContext, c->srcContext, &box, synchronous);
}

CUresult PTDS(cuMemcpy3DPeer)(const CUDA_MEMCPY3D_PEER *pCopy)
{
	return peer_3d(NULL, pCopy, true);
}

CUresult PTSZ(cuMemcpy3DPeerAsync)(const CUDA_MEMCPY3D_PEER *pCopy, CUstream hStream)
{
	return peer_3d(hStream, pCopy, false);
}

static CUresult fill(CUstream handle, fill_t what, bool synchronous)
{
	CUstream stream;
	CUresult result = enter_stream(handle, &stream);
	bool captured = false;
	if (!result && capture_possible() && synchronous)
		result = capture_refuse_stream(stream);
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_MEMSET,
				   .memset = { what.address, what.pitch, what.value, what.element, what.count,
					       what.height, NULL } };
	if (!result)
		result = capture_add(stream, &node, NULL, &captured);
	return result || captured ? result : fill_submit(stream, &what, synchronous);
}

/* The four calls that fill with elements of this many bits. */
#define FILLS(bits, type)											\
	CUresult PTDS(cuMemsetD##bits##_v2)(CUdeviceptr at, type value, size_t count)				\
	{													\
		return fill(NULL, (fill_t){ at, 0, count, 1, value, bits / 8 }, true);				\
	}													\
	CUresult PTSZ(cuMemsetD##bits##Async)(CUdeviceptr at, type value, size_t count, CUstream stream)	\
	{													\
		return fill(stream, (fill_t){ at, 0, count, 1, value, bits / 8 }, false);			\
	}													\
	CUresult PTDS(cuMemsetD2D##bits##_v2)(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height) \
	{													\
		return fill(NULL, (fill_t){ at, pitch, width, height, value, bits / 8 }, true);			\
	}													\
	CUresult PTSZ(cuMemsetD2D##bits##Async)(CUdeviceptr at, size_t pitch, type value, size_t width, size_t height, \
						CUstream stream)						\
	{													\
		return fill(stream, (fill_t){ at, pitch, width, height, value, bits / 8 }, false);		\
	}

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)
