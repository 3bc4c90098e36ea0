/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Charges the session's quota for arrays, for mipmapped arrays, and for what a context keeps for malloc and printf of
 * kernels. An array counts with the bytes of its elements, as the driver's padding is unknown; with a format that is not
 * in the tables here, such as one of several planes, it counts 8 bytes an element. A limit of a context counts
 * once the program has set it.
 */
#include "cuda_remote/server/usage.h"

/* The driver's own functions. */
static struct server_driver real;

#define LEVELS_MAX 32
#define EXTENT_MAX ((uint64_t)1 << 28) /* no GPU has larger extents: the driver refuses such an array */

/* Bits of a channel. */
static const uint8_t channel_bits[256] = {
	[CU_AD_FORMAT_UNSIGNED_INT8] = 8, [CU_AD_FORMAT_SIGNED_INT8] = 8,
	[CU_AD_FORMAT_UNORM_INT8X1] = 8, [CU_AD_FORMAT_UNORM_INT8X2] = 8, [CU_AD_FORMAT_UNORM_INT8X4] = 8,
	[CU_AD_FORMAT_SNORM_INT8X1] = 8, [CU_AD_FORMAT_SNORM_INT8X2] = 8, [CU_AD_FORMAT_SNORM_INT8X4] = 8,
	[CU_AD_FORMAT_UNSIGNED_INT16] = 16, [CU_AD_FORMAT_SIGNED_INT16] = 16, [CU_AD_FORMAT_HALF] = 16,
	[CU_AD_FORMAT_UNORM_INT16X1] = 16, [CU_AD_FORMAT_UNORM_INT16X2] = 16, [CU_AD_FORMAT_UNORM_INT16X4] = 16,
	[CU_AD_FORMAT_SNORM_INT16X1] = 16, [CU_AD_FORMAT_SNORM_INT16X2] = 16, [CU_AD_FORMAT_SNORM_INT16X4] = 16,
	[CU_AD_FORMAT_UNSIGNED_INT32] = 32, [CU_AD_FORMAT_SIGNED_INT32] = 32, [CU_AD_FORMAT_FLOAT] = 32,
};

/* Bits of an element of formats that have the bits of all channels together. */
static const uint8_t element_bits[256] = {
	[CU_AD_FORMAT_BC1_UNORM] = 4, [CU_AD_FORMAT_BC1_UNORM_SRGB] = 4, [CU_AD_FORMAT_BC4_UNORM] = 4,
	[CU_AD_FORMAT_BC4_SNORM] = 4,
	[CU_AD_FORMAT_BC2_UNORM] = 8, [CU_AD_FORMAT_BC2_UNORM_SRGB] = 8, [CU_AD_FORMAT_BC3_UNORM] = 8,
	[CU_AD_FORMAT_BC3_UNORM_SRGB] = 8, [CU_AD_FORMAT_BC5_UNORM] = 8, [CU_AD_FORMAT_BC5_SNORM] = 8,
	[CU_AD_FORMAT_BC6H_UF16] = 8, [CU_AD_FORMAT_BC6H_SF16] = 8, [CU_AD_FORMAT_BC7_UNORM] = 8,
	[CU_AD_FORMAT_BC7_UNORM_SRGB] = 8, [CU_AD_FORMAT_UNORM_INT_101010_2] = 32,
};

static uint64_t bits_of(const CUDA_ARRAY3D_DESCRIPTOR *d)
{
	unsigned format = (unsigned)d->Format & 255, channels = d->NumChannels < 4 ? d->NumChannels : 4;
	if (channel_bits[format])
		return (uint64_t)channel_bits[format] * channels;
	return element_bits[format] ? element_bits[format] : 64;
}

static uint64_t extent(size_t base, unsigned level)
{
	uint64_t n = (uint64_t)base >> level;
	return n ? n : 1;
}

/* Bytes of an array with this number of levels; 0 if the program maps the memory itself, or the driver will refuse it. */
static uint64_t array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *d, unsigned levels)
{
	uint64_t sum = 0, bits = bits_of(d);
	bool layers = d->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	if ((d->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING)) || d->Width > EXTENT_MAX ||
	    d->Height > EXTENT_MAX || d->Depth > EXTENT_MAX)
		return 0;
	/* The driver makes at least one level, and no more than it takes to reach an extent of 1. */
	for (unsigned level = 0; level < LEVELS_MAX && (!level || level < levels); level++) {
		/* At most 2^28 rows of 2^32 bytes: no product but the last overflows. */
		uint64_t row = (extent(d->Width, level) * bits + 7) / 8, slice = row * extent(d->Height, level), all;
		if (__builtin_mul_overflow(slice, extent(d->Depth, layers ? 0 : level), &all) ||
		    __builtin_add_overflow(sum, all, &sum))
			return UINT64_MAX;
	}
	return sum;
}

static CUresult count_array_3d(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
	struct server_charge charge;
	if (!server_usage_charge(&charge, 0, array_bytes(descriptor, 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real.cuArray3DCreate_v2(array, descriptor);
	server_usage_charged(&charge, result == CUDA_SUCCESS ? (uintptr_t)*array : 0);
	return result;
}

static CUresult count_array(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *descriptor)
{
	CUDA_ARRAY3D_DESCRIPTOR same = { .Width = descriptor->Width, .Height = descriptor->Height,
					 .Format = descriptor->Format, .NumChannels = descriptor->NumChannels };
	struct server_charge charge;
	if (!server_usage_charge(&charge, 0, array_bytes(&same, 1)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real.cuArrayCreate_v2(array, descriptor);
	server_usage_charged(&charge, result == CUDA_SUCCESS ? (uintptr_t)*array : 0);
	return result;
}

static CUresult count_mipmapped(CUmipmappedArray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned levels)
{
	struct server_charge charge;
	if (!server_usage_charge(&charge, 0, array_bytes(descriptor, levels)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real.cuMipmappedArrayCreate(array, descriptor, levels);
	server_usage_charged(&charge, result == CUDA_SUCCESS ? (uintptr_t)*array : 0);
	return result;
}

static CUresult count_array_destroy(CUarray array)
{
	struct allocation *counted = server_usage_take((uintptr_t)array);
	return server_usage_settle(counted, real.cuArrayDestroy(array));
}

static CUresult count_mipmapped_destroy(CUmipmappedArray array)
{
	struct allocation *counted = server_usage_take((uintptr_t)array);
	return server_usage_settle(counted, real.cuMipmappedArrayDestroy(array));
}

/* What the memory of a context's limit counts as: no object begins there, as the driver's objects are aligned. */
static uint64_t limit_address(CUlimit limit)
{
	CUcontext context = NULL;
	real.cuCtxGetCurrent(&context);
	return (uintptr_t)context + 1 + (limit == CU_LIMIT_PRINTF_FIFO_SIZE);
}

static CUresult count_limit(CUlimit limit, size_t bytes)
{
	struct server_charge charge;
	if (limit != CU_LIMIT_MALLOC_HEAP_SIZE && limit != CU_LIMIT_PRINTF_FIFO_SIZE)
		return real.cuCtxSetLimit(limit, bytes);
	uint64_t address = limit_address(limit);
	if (!server_usage_charge(&charge, address, bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = real.cuCtxSetLimit(limit, bytes);
	server_usage_charged(&charge, result == CUDA_SUCCESS ? address : 0);
	return result;
}

void server_usage_watch_objects(void)
{
	real = driver;
#define WATCH(name, counting) driver.name = real.name ? counting : NULL;
	WATCH(cuArray3DCreate_v2, count_array_3d)
	WATCH(cuArrayCreate_v2, count_array)
	WATCH(cuArrayDestroy, count_array_destroy)
	WATCH(cuMipmappedArrayCreate, count_mipmapped)
	WATCH(cuMipmappedArrayDestroy, count_mipmapped_destroy)
	WATCH(cuCtxSetLimit, count_limit)
#undef WATCH
}
