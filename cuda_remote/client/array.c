/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the client knows of arrays, to check a copy before it goes out: size and bytes of an element. It asks the server once
 * for each array. The answers are in a small cache: a handle is never used for a second array, so no entry becomes wrong.
 */
#include "cuda_remote/client/array.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hooks.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/graph/capture.h"

#include <pthread.h>

#define CACHE 512

struct shape {
	uint64_t array; /* handle; 0: the entry is empty */
	size_t texel;   /* bytes of an element; 0: the format is not known here, and nothing is checked */
	size_t width, height, depth; /* width in bytes */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shape cache[CACHE];

/* Bytes of an element; 0 for formats whose elements are blocks or planes. */
static size_t texel_of(CUarray_format format, unsigned channels)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X4:
		return channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X4:
		return 2 * (size_t)channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 4 * (size_t)channels;
	default:
		return 0;
	}
}

static bool cached(uint64_t array, struct shape *shape)
{
	pthread_mutex_lock(&lock);
	*shape = cache[array % CACHE];
	pthread_mutex_unlock(&lock);
	return shape->array == array;
}

static CUresult shape_of(CUarray handle, struct shape *shape)
{
	uint64_t array = (uint64_t)(uintptr_t)handle;
	CUDA_ARRAY3D_DESCRIPTOR told;
	CUresult result = rc_handle_check(RC_KIND_ARRAY, array);
	if (result != CUDA_SUCCESS || cached(array, shape))
		return result;
	result = cuArray3DGetDescriptor_v2(&told, handle);
	if (result != CUDA_SUCCESS)
		return result;
	size_t texel = texel_of(told.Format, told.NumChannels);
	*shape = (struct shape){ array, texel, told.Width * texel, told.Height ? told.Height : 1, told.Depth ? told.Depth : 1 };
	pthread_mutex_lock(&lock);
	cache[array % CACHE] = *shape;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

static bool within(size_t start, size_t count, size_t size)
{
	return start <= size && count <= size - start;
}

/* texel: of the array, 0 if it is not known. */
static CUresult side_check(CUarray array, const CUDA_MEMCPY3D *copy, bool source, size_t *texel)
{
	struct shape shape;
	size_t x = source ? copy->srcXInBytes : copy->dstXInBytes;
	CUresult result = shape_of(array, &shape);
	if (result != CUDA_SUCCESS)
		return result;
	*texel = shape.texel;
	if (!shape.texel)
		return CUDA_SUCCESS;
	bool fits = within(x, copy->WidthInBytes, shape.width) &&
		    within(source ? copy->srcY : copy->dstY, copy->Height, shape.height) &&
		    within(source ? copy->srcZ : copy->dstZ, copy->Depth, shape.depth);
	return fits && x % shape.texel == 0 && copy->WidthInBytes % shape.texel == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* The box of device memory on one side of a copy. */
static CUresult device_check(const CUDA_MEMCPY3D *copy, bool source)
{
	size_t pitch = source ? copy->srcPitch : copy->dstPitch, rows = source ? copy->srcHeight : copy->dstHeight;
	size_t x = source ? copy->srcXInBytes : copy->dstXInBytes, y = source ? copy->srcY : copy->dstY;
	size_t z = source ? copy->srcZ : copy->dstZ, across, down;
	struct rc_wire_box box = { .device = source ? copy->srcDevice : copy->dstDevice, .width = copy->WidthInBytes,
				   .height = copy->Height, .depth = copy->Depth };
	box.pitch = pitch ? pitch : copy->WidthInBytes;
	if (__builtin_mul_overflow(box.pitch, rows ? rows : copy->Height, &box.slice) ||
	    __builtin_mul_overflow(box.slice, z, &across) || __builtin_mul_overflow(box.pitch, y, &down) ||
	    __builtin_add_overflow(box.device, across, &box.device) || __builtin_add_overflow(box.device, down, &box.device) ||
	    __builtin_add_overflow(box.device, x, &box.device) || (copy->Height > 1 && box.pitch < box.width))
		return CUDA_ERROR_INVALID_VALUE;
	uint64_t extent = rc_box_extent(&box);
	if (!extent)
		return CUDA_ERROR_INVALID_VALUE;
	return source ? rc_memory_check_device(box.device, extent) : rc_memory_check_written(box.device, extent);
}

CUresult rc_array_check(const CUDA_MEMCPY3D *copy)
{
	size_t from = 0, to = 0;
	CUresult result = CUDA_SUCCESS;
	bool some = copy->WidthInBytes && copy->Height && copy->Depth;
	if (copy->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		result = side_check(copy->srcArray, copy, true, &from);
	else if (copy->srcMemoryType == CU_MEMORYTYPE_DEVICE && some)
		result = device_check(copy, true);
	if (result == CUDA_SUCCESS && copy->dstMemoryType == CU_MEMORYTYPE_ARRAY)
		result = side_check(copy->dstArray, copy, false, &to);
	else if (result == CUDA_SUCCESS && copy->dstMemoryType == CU_MEMORYTYPE_DEVICE && some)
		result = device_check(copy, false);
	return result == CUDA_SUCCESS && from && to && from != to ? CUDA_ERROR_INVALID_VALUE : result;
}

CUresult rc_array_check_row(CUarray array)
{
	struct shape shape;
	CUresult result = shape_of(array, &shape);
	return result == CUDA_SUCCESS && (shape.height > 1 || shape.depth > 1) ? CUDA_ERROR_INVALID_VALUE : result;
}

/* A capture forbids allocations. */
CUresult array_check_create(CUarray *made, const CUDA_ARRAY_DESCRIPTOR *like)
{
	(void)made;
	(void)like;
	return capture_refuse_unsafe();
}

CUresult array_check_create_3d(CUarray *made, const CUDA_ARRAY3D_DESCRIPTOR *like)
{
	(void)made;
	(void)like;
	return capture_refuse_unsafe();
}

CUresult array_check_create_mipmapped(CUmipmappedArray *made, const CUDA_ARRAY3D_DESCRIPTOR *like, unsigned levels)
{
	(void)made;
	(void)like;
	(void)levels;
	return capture_refuse_unsafe();
}
