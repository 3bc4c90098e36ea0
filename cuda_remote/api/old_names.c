/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions of CUDA 3.1 and before with 32-bit sizes, which cuda.h still declares for old programs, as far as they work
 * with 64-bit device addresses. Functions that take or return a device address of 32 bits are not supported.
 */
#include <cuda.h>
#include <stdint.h>

/* Clamps a size to 32 bits for these programs. */
static unsigned clip(size_t size)
{
	return size > UINT32_MAX ? UINT32_MAX : (unsigned)size;
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice dev)
{
	size_t all;
	CUresult result = cuDeviceTotalMem_v2(bytes ? &all : NULL, dev);
	if (!result)
		*bytes = clip(all);
	return result;
}

CUresult cuMemGetInfo(unsigned int *free, unsigned int *total)
{
	size_t left, all;
	CUresult result = cuMemGetInfo_v2(free ? &left : NULL, total ? &all : NULL);
	if (!result && free)
		*free = clip(left);
	if (!result && total)
		*total = clip(all);
	return result;
}

CUresult cuMemAllocHost(void **pp, unsigned int bytesize)
{
	return cuMemAllocHost_v2(pp, bytesize);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return cuMemHostRegister_v2(p, bytesize, Flags);
}

CUresult cuArrayCreate(CUarray *pHandle, const CUDA_ARRAY_DESCRIPTOR_v1 *pAllocateArray)
{
	if (!pAllocateArray)
		return cuArrayCreate_v2(pHandle, NULL);
	CUDA_ARRAY_DESCRIPTOR wide = { .Width = pAllocateArray->Width, .Height = pAllocateArray->Height,
				       .Format = pAllocateArray->Format, .NumChannels = pAllocateArray->NumChannels };
	return cuArrayCreate_v2(pHandle, &wide);
}

CUresult cuArrayGetDescriptor(CUDA_ARRAY_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY_DESCRIPTOR wide;
	CUresult result = cuArrayGetDescriptor_v2(pArrayDescriptor ? &wide : NULL, hArray);
	if (!result)
		*pArrayDescriptor = (CUDA_ARRAY_DESCRIPTOR_v1){ .Width = clip(wide.Width), .Height = clip(wide.Height),
								.Format = wide.Format,
								.NumChannels = wide.NumChannels };
	return result;
}

CUresult cuArray3DCreate(CUarray *pHandle, const CUDA_ARRAY3D_DESCRIPTOR_v1 *pAllocateArray)
{
	if (!pAllocateArray)
		return cuArray3DCreate_v2(pHandle, NULL);
	CUDA_ARRAY3D_DESCRIPTOR wide = { .Width = pAllocateArray->Width, .Height = pAllocateArray->Height,
					 .Depth = pAllocateArray->Depth, .Format = pAllocateArray->Format,
					 .NumChannels = pAllocateArray->NumChannels, .Flags = pAllocateArray->Flags };
	return cuArray3DCreate_v2(pHandle, &wide);
}

CUresult cuArray3DGetDescriptor(CUDA_ARRAY3D_DESCRIPTOR_v1 *pArrayDescriptor, CUarray hArray)
{
	CUDA_ARRAY3D_DESCRIPTOR wide;
	CUresult result = cuArray3DGetDescriptor_v2(pArrayDescriptor ? &wide : NULL, hArray);
	if (!result)
		*pArrayDescriptor = (CUDA_ARRAY3D_DESCRIPTOR_v1){
			.Width = clip(wide.Width), .Height = clip(wide.Height), .Depth = clip(wide.Depth),
			.Format = wide.Format, .NumChannels = wide.NumChannels, .Flags = wide.Flags };
	return result;
}

/* Copies between arrays and the host. */
CUresult cuMemcpyHtoA(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount)
{
	return cuMemcpyHtoA_v2(dstArray, dstOffset, srcHost, ByteCount);
}

CUresult cuMemcpyAtoH(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount)
{
	return cuMemcpyAtoH_v2(dstHost, srcArray, srcOffset, ByteCount);
}

CUresult cuMemcpyAtoA(CUarray dstArray, unsigned int dstOffset, CUarray srcArray, unsigned int srcOffset,
		      unsigned int ByteCount)
{
	return cuMemcpyAtoA_v2(dstArray, dstOffset, srcArray, srcOffset, ByteCount);
}

CUresult cuMemcpyHtoAAsync(CUarray dstArray, unsigned int dstOffset, const void *srcHost, unsigned int ByteCount,
			   CUstream hStream)
{
	return cuMemcpyHtoAAsync_v2(dstArray, dstOffset, srcHost, ByteCount, hStream);
}

CUresult cuMemcpyAtoHAsync(void *dstHost, CUarray srcArray, unsigned int srcOffset, unsigned int ByteCount,
			   CUstream hStream)
{
	return cuMemcpyAtoHAsync_v2(dstHost, srcArray, srcOffset, ByteCount, hStream);
}

/*
 * Copies the fields that the copy descriptions of both widths share. A 32-bit device address is never valid here; it is
 * passed on, and refused when it is checked.
 */
#define PLACE(to, from, side) \
	((to).side##XInBytes = (from)->side##XInBytes, (to).side##Y = (from)->side##Y, \
	 (to).side##MemoryType = (from)->side##MemoryType, (to).side##Host = (from)->side##Host, \
	 (to).side##Device = (from)->side##Device, (to).side##Array = (from)->side##Array, \
	 (to).side##Pitch = (from)->side##Pitch)
#define PLACE_3D(to, from, side) \
	(PLACE(to, from, side), (to).side##Z = (from)->side##Z, (to).side##LOD = (from)->side##LOD, \
	 (to).side##Height = (from)->side##Height)

/* The 64-bit form of a description, or NULL for NULL. */
static const CUDA_MEMCPY2D *widen_2d(const CUDA_MEMCPY2D_v1 *copy, CUDA_MEMCPY2D *wide)
{
	if (!copy)
		return NULL;
	*wide = (CUDA_MEMCPY2D){ .WidthInBytes = copy->WidthInBytes, .Height = copy->Height };
	PLACE(*wide, copy, src);
	PLACE(*wide, copy, dst);
	return wide;
}

static const CUDA_MEMCPY3D *widen_3d(const CUDA_MEMCPY3D_v1 *copy, CUDA_MEMCPY3D *wide)
{
	if (!copy)
		return NULL;
	*wide = (CUDA_MEMCPY3D){ .WidthInBytes = copy->WidthInBytes, .Height = copy->Height, .Depth = copy->Depth,
				 .reserved0 = copy->reserved0, .reserved1 = copy->reserved1 };
	PLACE_3D(*wide, copy, src);
	PLACE_3D(*wide, copy, dst);
	return wide;
}

CUresult cuMemcpy2D(const CUDA_MEMCPY2D_v1 *pCopy)
{
	return cuMemcpy2D_v2(widen_2d(pCopy, &(CUDA_MEMCPY2D){ 0 }));
}

CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D_v1 *pCopy)
{
	return cuMemcpy2DUnaligned_v2(widen_2d(pCopy, &(CUDA_MEMCPY2D){ 0 }));
}

CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D_v1 *pCopy, CUstream hStream)
{
	return cuMemcpy2DAsync_v2(widen_2d(pCopy, &(CUDA_MEMCPY2D){ 0 }), hStream);
}

CUresult cuMemcpy3D(const CUDA_MEMCPY3D_v1 *pCopy)
{
	return cuMemcpy3D_v2(widen_3d(pCopy, &(CUDA_MEMCPY3D){ 0 }));
}

CUresult cuMemcpy3DAsync(const CUDA_MEMCPY3D_v1 *pCopy, CUstream hStream)
{
	return cuMemcpy3DAsync_v2(widen_3d(pCopy, &(CUDA_MEMCPY3D){ 0 }), hStream);
}

CUresult cuTexRefSetAddress2D_v2(CUtexref hTexRef, const CUDA_ARRAY_DESCRIPTOR *desc, CUdeviceptr dptr, size_t Pitch)
{
	return cuTexRefSetAddress2D_v3(hTexRef, desc, dptr, Pitch);
}
