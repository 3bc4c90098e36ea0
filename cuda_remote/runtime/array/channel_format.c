/* SPDX-License-Identifier: BSD-3-Clause */
/* Conversion between the runtime's channel descriptions and the driver's array formats. */
#include "cuda_remote/runtime/array/channel_format.h"

#define KIND(name) cudaChannelFormatKind##name

static const struct {
	enum cudaChannelFormatKind kind;
	uint8_t bits;     /* of a channel */
	uint8_t channels; /* 0: any number */
	CUarray_format format;
} formats[] = {
	{ KIND(Unsigned), 8, 0, CU_AD_FORMAT_UNSIGNED_INT8 },
	{ KIND(Unsigned), 16, 0, CU_AD_FORMAT_UNSIGNED_INT16 },
	{ KIND(Unsigned), 32, 0, CU_AD_FORMAT_UNSIGNED_INT32 },
	{ KIND(Signed), 8, 0, CU_AD_FORMAT_SIGNED_INT8 },
	{ KIND(Signed), 16, 0, CU_AD_FORMAT_SIGNED_INT16 },
	{ KIND(Signed), 32, 0, CU_AD_FORMAT_SIGNED_INT32 },
	{ KIND(Float), 16, 0, CU_AD_FORMAT_HALF },
	{ KIND(Float), 32, 0, CU_AD_FORMAT_FLOAT },
	{ KIND(UnsignedNormalized8X1), 8, 1, CU_AD_FORMAT_UNORM_INT8X1 },
	{ KIND(UnsignedNormalized8X2), 8, 2, CU_AD_FORMAT_UNORM_INT8X2 },
	{ KIND(UnsignedNormalized8X4), 8, 4, CU_AD_FORMAT_UNORM_INT8X4 },
	{ KIND(UnsignedNormalized16X1), 16, 1, CU_AD_FORMAT_UNORM_INT16X1 },
	{ KIND(UnsignedNormalized16X2), 16, 2, CU_AD_FORMAT_UNORM_INT16X2 },
	{ KIND(UnsignedNormalized16X4), 16, 4, CU_AD_FORMAT_UNORM_INT16X4 },
	{ KIND(SignedNormalized8X1), 8, 1, CU_AD_FORMAT_SNORM_INT8X1 },
	{ KIND(SignedNormalized8X2), 8, 2, CU_AD_FORMAT_SNORM_INT8X2 },
	{ KIND(SignedNormalized8X4), 8, 4, CU_AD_FORMAT_SNORM_INT8X4 },
	{ KIND(SignedNormalized16X1), 16, 1, CU_AD_FORMAT_SNORM_INT16X1 },
	{ KIND(SignedNormalized16X2), 16, 2, CU_AD_FORMAT_SNORM_INT16X2 },
	{ KIND(SignedNormalized16X4), 16, 4, CU_AD_FORMAT_SNORM_INT16X4 },
};

/* The number of channels. 0: they are not the first ones, or differ in bits. */
static unsigned count_channels(const struct cudaChannelFormatDesc *channel)
{
	const int bits[4] = { channel->x, channel->y, channel->z, channel->w };
	unsigned count = 0;
	while (count < 4 && bits[count] == channel->x)
		count++;
	for (unsigned n = count; n < 4; n++)
		if (bits[n])
			return 0;
	return count == 3 ? 0 : count;
}

static bool is_1010102(const struct cudaChannelFormatDesc *channel)
{
	return channel->f == KIND(UnsignedNormalized1010102) && channel->x == 10 && channel->y == 10 &&
	       channel->z == 10 && channel->w == 2;
}

bool channel_to_format(const struct cudaChannelFormatDesc *channel, CUarray_format *format, unsigned *channels)
{
	unsigned count = count_channels(channel);
	if (is_1010102(channel)) {
		*format = CU_AD_FORMAT_UNORM_INT_101010_2;
		*channels = 4;
		return true;
	}
	for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
		if (!count || formats[n].kind != channel->f || formats[n].bits != channel->x ||
		    (formats[n].channels && formats[n].channels != count))
			continue;
		*format = formats[n].format;
		*channels = count;
		return true;
	}
	return false;
}

struct cudaChannelFormatDesc channel_of_format(CUarray_format format, unsigned channels)
{
	if (format == CU_AD_FORMAT_UNORM_INT_101010_2)
		return (struct cudaChannelFormatDesc){ 10, 10, 10, 2, KIND(UnsignedNormalized1010102) };
	for (size_t n = 0; n < sizeof formats / sizeof *formats; n++) {
		int bits = formats[n].bits;
		if (formats[n].format == format)
			return (struct cudaChannelFormatDesc){ bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0,
							       channels > 3 ? bits : 0, formats[n].kind };
	}
	return (struct cudaChannelFormatDesc){ 0, 0, 0, 0, cudaChannelFormatKindNone };
}

size_t channel_texel_bytes(CUarray_format format, unsigned channels)
{
	struct cudaChannelFormatDesc channel = channel_of_format(format, channels);
	return (size_t)(channel.x + channel.y + channel.z + channel.w) / 8;
}

RUNTIME_API struct cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
							       enum cudaChannelFormatKind f)
{
	return (struct cudaChannelFormatDesc){ x, y, z, w, f };
}
