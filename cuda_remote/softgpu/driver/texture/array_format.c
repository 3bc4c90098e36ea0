/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's array formats in the engine's terms. */
#include "cuda_remote/softgpu/driver/texture/array_format.h"

#include <stddef.h>

#define FORMAT(name) CU_AD_FORMAT_##name
#define CHANNEL(name) SOFTGPU_CHANNEL_##name

static const struct {
	CUarray_format format;
	enum softgpu_channel channel;
	uint8_t bytes;    /* of a channel */
	uint8_t channels; /* 0: as many as the program says */
} formats[] = {
	{ FORMAT(UNSIGNED_INT8), CHANNEL(U8), 1, 0 },
	{ FORMAT(UNSIGNED_INT16), CHANNEL(U16), 2, 0 },
	{ FORMAT(UNSIGNED_INT32), CHANNEL(U32), 4, 0 },
	{ FORMAT(SIGNED_INT8), CHANNEL(S8), 1, 0 },
	{ FORMAT(SIGNED_INT16), CHANNEL(S16), 2, 0 },
	{ FORMAT(SIGNED_INT32), CHANNEL(S32), 4, 0 },
	{ FORMAT(HALF), CHANNEL(HALF), 2, 0 },
	{ FORMAT(FLOAT), CHANNEL(FLOAT), 4, 0 },
	{ FORMAT(UNORM_INT8X1), CHANNEL(UNORM8), 1, 1 },
	{ FORMAT(UNORM_INT8X2), CHANNEL(UNORM8), 1, 2 },
	{ FORMAT(UNORM_INT8X4), CHANNEL(UNORM8), 1, 4 },
	{ FORMAT(UNORM_INT16X1), CHANNEL(UNORM16), 2, 1 },
	{ FORMAT(UNORM_INT16X2), CHANNEL(UNORM16), 2, 2 },
	{ FORMAT(UNORM_INT16X4), CHANNEL(UNORM16), 2, 4 },
	{ FORMAT(SNORM_INT8X1), CHANNEL(SNORM8), 1, 1 },
	{ FORMAT(SNORM_INT8X2), CHANNEL(SNORM8), 1, 2 },
	{ FORMAT(SNORM_INT8X4), CHANNEL(SNORM8), 1, 4 },
	{ FORMAT(SNORM_INT16X1), CHANNEL(SNORM16), 2, 1 },
	{ FORMAT(SNORM_INT16X2), CHANNEL(SNORM16), 2, 2 },
	{ FORMAT(SNORM_INT16X4), CHANNEL(SNORM16), 2, 4 },
	{ FORMAT(UNORM_INT_101010_2), CHANNEL(UNORM10), 1, 4 },
};

/* CUDA's formats that this device does not support. */
static bool is_known(CUarray_format format)
{
	return (format >= FORMAT(BC1_UNORM) && format <= FORMAT(YUV444_16bit_SemiPlanar)) || format == FORMAT(NV12);
}

CUresult array_format(CUarray_format format, unsigned channels, softgpu_image_t *image)
{
	for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
		if (formats[n].format != format)
			continue;
		if ((channels != 1 && channels != 2 && channels != 4) ||
		    (formats[n].channels && channels != formats[n].channels))
			return CUDA_ERROR_INVALID_VALUE;
		image->channel = formats[n].channel;
		image->channels = channels;
		image->texel = channels * formats[n].bytes;
		return CUDA_SUCCESS;
	}
	return is_known(format) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

/* The uncompressed view formats come in threes: with one, two and four channels. */
CUresult array_view_format(CUresourceViewFormat format, softgpu_image_t *image)
{
	static const CUarray_format kinds[] = {
		FORMAT(UNSIGNED_INT8), FORMAT(SIGNED_INT8), FORMAT(UNSIGNED_INT16), FORMAT(SIGNED_INT16),
		FORMAT(UNSIGNED_INT32), FORMAT(SIGNED_INT32), FORMAT(HALF), FORMAT(FLOAT),
	};
	if (format == CU_RES_VIEW_FORMAT_NONE)
		return CUDA_SUCCESS;
	if ((int)format < CU_RES_VIEW_FORMAT_UINT_1X8 || (int)format > CU_RES_VIEW_FORMAT_UNSIGNED_BC7)
		return CUDA_ERROR_INVALID_VALUE;
	if (format > CU_RES_VIEW_FORMAT_FLOAT_4X32)
		return CUDA_ERROR_NOT_SUPPORTED;
	unsigned number = (unsigned)format - CU_RES_VIEW_FORMAT_UINT_1X8;
	return array_format(kinds[number / 3], 1u << number % 3, image);
}

_Static_assert(CU_RES_VIEW_FORMAT_UINT_1X8 == 1 && CU_RES_VIEW_FORMAT_SINT_1X8 == 4 &&
	       CU_RES_VIEW_FORMAT_UINT_1X16 == 7 && CU_RES_VIEW_FORMAT_SINT_1X16 == 10 &&
	       CU_RES_VIEW_FORMAT_UINT_1X32 == 13 && CU_RES_VIEW_FORMAT_SINT_1X32 == 16 &&
	       CU_RES_VIEW_FORMAT_FLOAT_1X16 == 19 && CU_RES_VIEW_FORMAT_FLOAT_1X32 == 22, "kinds are in this order");
