/* SPDX-License-Identifier: BSD-3-Clause */
/* Texels: from the bytes of an image to four values and back, by channel format. */
#include "cuda_remote/softgpu/exec/texture/texel.h"

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"

#include <math.h>
#include <string.h>

bool texel_is_float(const softgpu_image_t *image, bool promote)
{
	switch (image->channel) {
	case SOFTGPU_CHANNEL_U32:
	case SOFTGPU_CHANNEL_S32:
		return false;
	case SOFTGPU_CHANNEL_U8:
	case SOFTGPU_CHANNEL_U16:
	case SOFTGPU_CHANNEL_S8:
	case SOFTGPU_CHANNEL_S16:
		return promote;
	default:
		return true;
	}
}

static uint32_t unorm(uint32_t value, uint32_t most)
{
	return bits_of_f32((float)value / (float)most);
}

/* The least negative number has two codes. */
static uint32_t snorm(int32_t value, int32_t most)
{
	return bits_of_f32(value < -most ? -1.0f : (float)value / (float)most);
}

/* IEC 61966-2-1. */
static uint32_t linear_of_srgb(uint32_t value)
{
	double c = value / 255.0;
	return bits_of_f32((float)(c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4)));
}

static uint32_t read_channel(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const void *at, uint32_t n)
{
	uint8_t u8;
	uint16_t u16;
	uint32_t u32;
	memcpy(&u8, (const char *)at + n, sizeof u8);
	switch (image->channel) {
	case SOFTGPU_CHANNEL_U8:
		if (!sampler->promote)
			return u8;
		return sampler->srgb && n < 3 ? linear_of_srgb(u8) : unorm(u8, 255);
	case SOFTGPU_CHANNEL_UNORM8:
		return sampler->srgb && n < 3 ? linear_of_srgb(u8) : unorm(u8, 255);
	case SOFTGPU_CHANNEL_S8:
		return sampler->promote ? snorm((int8_t)u8, 127) : (uint32_t)(int8_t)u8;
	case SOFTGPU_CHANNEL_SNORM8:
		return snorm((int8_t)u8, 127);
	case SOFTGPU_CHANNEL_U32:
	case SOFTGPU_CHANNEL_S32:
	case SOFTGPU_CHANNEL_FLOAT:
		memcpy(&u32, (const char *)at + 4 * n, sizeof u32);
		return u32;
	case SOFTGPU_CHANNEL_UNORM10:
		memcpy(&u32, at, sizeof u32);
		return n < 3 ? unorm(u32 >> 10 * n & 1023, 1023) : unorm(u32 >> 30, 3);
	default:
		break;
	}
	memcpy(&u16, (const char *)at + 2 * n, sizeof u16);
	switch (image->channel) {
	case SOFTGPU_CHANNEL_U16:
		return sampler->promote ? unorm(u16, 65535) : u16;
	case SOFTGPU_CHANNEL_S16:
		return sampler->promote ? snorm((int16_t)u16, 32767) : (uint32_t)(int16_t)u16;
	case SOFTGPU_CHANNEL_UNORM16:
		return unorm(u16, 65535);
	case SOFTGPU_CHANNEL_SNORM16:
		return snorm((int16_t)u16, 32767);
	default:
		return bits_of_f32(float_of(u16));
	}
}

void texel_read(const softgpu_image_t *image, const softgpu_sampler_t *sampler, const void *at, uint32_t value[4])
{
	uint32_t n = 0;
	for (; n < image->channels; n++)
		value[n] = read_channel(image, sampler, at, n);
	for (; n < 3; n++)
		value[n] = 0;
	if (n == 3)
		value[3] = texel_is_float(image, sampler->promote) ? bits_of_f32(1.0f) : 1;
}

/* ---- writing */
static uint32_t to_unorm(uint32_t bits, uint32_t most)
{
	float value = f32_of_bits(bits);
	if (!(value > 0.0f))
		return 0;
	return value >= 1.0f ? most : (uint32_t)nearbyint((double)value * most);
}

static int32_t to_snorm(uint32_t bits, int32_t most)
{
	float value = f32_of_bits(bits);
	if (!(value > -1.0f))
		return value <= -1.0f ? -most : 0;
	return value >= 1.0f ? most : (int32_t)nearbyint((double)value * most);
}

static uint32_t at_most(uint32_t value, uint32_t most)
{
	return value < most ? value : most;
}

static int32_t within(uint32_t bits, int32_t most)
{
	int32_t value = (int32_t)bits;
	return value > most ? most : value < -most - 1 ? -most - 1 : value;
}

static void write_channel(const softgpu_image_t *image, void *at, uint32_t n, uint32_t bits)
{
	uint32_t word = bits;
	switch (image->channel) {
	case SOFTGPU_CHANNEL_U8: word = at_most(bits, 255); break;
	case SOFTGPU_CHANNEL_U16: word = at_most(bits, 65535); break;
	case SOFTGPU_CHANNEL_S8: word = (uint32_t)within(bits, 127); break;
	case SOFTGPU_CHANNEL_S16: word = (uint32_t)within(bits, 32767); break;
	case SOFTGPU_CHANNEL_UNORM8: word = to_unorm(bits, 255); break;
	case SOFTGPU_CHANNEL_UNORM16: word = to_unorm(bits, 65535); break;
	case SOFTGPU_CHANNEL_SNORM8: word = (uint32_t)to_snorm(bits, 127); break;
	case SOFTGPU_CHANNEL_SNORM16: word = (uint32_t)to_snorm(bits, 32767); break;
	case SOFTGPU_CHANNEL_HALF: word = half_of(f32_of_bits(bits)); break;
	default: break;
	}
	uint32_t size = image->texel / image->channels;
	uint8_t u8 = (uint8_t)word;
	uint16_t u16 = (uint16_t)word;
	memcpy((char *)at + size * n, size == 1 ? (void *)&u8 : size == 2 ? (void *)&u16 : (void *)&word, size);
}

void texel_write(const softgpu_image_t *image, void *at, const uint32_t *value, uint32_t count)
{
	if (image->channel != SOFTGPU_CHANNEL_UNORM10) {
		for (uint32_t n = 0; n < count && n < image->channels; n++)
			write_channel(image, at, n, value[n]);
		return;
	}
	uint32_t word = 0;
	for (uint32_t n = 0; n < count && n < 4; n++)
		word |= to_unorm(value[n], n < 3 ? 1023 : 3) << 10 * n;
	memcpy(at, &word, sizeof word);
}
