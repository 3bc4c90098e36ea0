/* SPDX-License-Identifier: BSD-3-Clause */
/* Video instructions, lane by lane, in 64 bits. */
#include "cuda_remote/softgpu/exec/video.h"

#include "cuda_remote/softgpu/exec/warp.h"

#include <string.h>

/* Element number at, of 1 << width bytes, of the two registers. */
static int64_t element(uint64_t both, unsigned at, unsigned width, bool is_signed)
{
	unsigned bits = 8u << width;
	uint64_t value = both >> (at * bits & 63) << (64 - bits);
	return is_signed ? (int64_t)value >> (64 - bits) : (int64_t)(value >> (64 - bits));
}

static bool compare(unsigned how, int64_t a, int64_t b)
{
	switch (how) {
	case VIDEO_EQ: return a == b;
	case VIDEO_NE: return a != b;
	case VIDEO_LT: return a < b;
	case VIDEO_LE: return a <= b;
	case VIDEO_GT: return a > b;
	default: return a >= b;
	}
}

static int64_t shifted(const struct video *video, int64_t a, int64_t b)
{
	uint32_t n = (uint32_t)b;
	n = video->wrap ? n & 31 : n > 32 ? 32 : n;
	/* 33 bits and a sign, shifted by 32, do not fit in 64 bits. If the result saturates, it is out of range
	 * anyway. */
	if (video->op == VIDEO_SHR)
		return a >> n;
	int64_t limit = INT64_MAX >> n;
	if (video->saturate && (a > limit || a < -limit))
		return a > 0 ? INT64_MAX : INT64_MIN;
	return (int64_t)((uint64_t)a << n);
}

static int64_t operate(const struct video *video, int64_t a, int64_t b)
{
	switch (video->op) {
	case VIDEO_ADD: return a + b;
	case VIDEO_SUB: return a - b;
	case VIDEO_ABSDIFF: return a > b ? a - b : b - a;
	case VIDEO_MIN: return a < b ? a : b;
	case VIDEO_MAX: return a > b ? a : b;
	case VIDEO_AVERAGE: return (a + b + (a + b >= 0)) >> 1;
	case VIDEO_SET: return compare(video->compare, a, b);
	default: return shifted(video, a, b);
	}
}

static int64_t clamp(int64_t value, unsigned bits, bool is_signed)
{
	int64_t high = (int64_t)(UINT64_MAX >> (64 - bits + is_signed)), low = is_signed ? -high - 1 : 0;
	return value < low ? low : value > high ? high : value;
}

static uint32_t second(const struct video *video, int64_t value, uint32_t c)
{
	bool is_signed = video->signed_result;
	uint32_t r = (uint32_t)value;
	bool less = is_signed ? (int32_t)r < (int32_t)c : r < c;
	switch (video->second) {
	case VIDEO_SECOND_ADD: return r + c;
	case VIDEO_SECOND_MIN: return less ? r : c;
	case VIDEO_SECOND_MAX: return less ? c : r;
	default: return r;
	}
}

/* The result of a SIMD instruction, part by part. */
static uint32_t parts(const struct video *video, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t both = (uint64_t)b << 32 | a;
	unsigned bits = 8u << video->width;
	uint32_t r = video->second == VIDEO_SECOND_ADD ? c : 0;
	for (unsigned n = 0; n < video->count; n++) {
		int64_t value =
			operate(video, element(both, video->from_a >> 3 * n & 7, video->width_a, video->signed_a),
				element(both, video->from_b >> 3 * n & 7, video->width_b, video->signed_b));
		uint32_t lanes = (uint32_t)(UINT32_MAX >> (32 - bits)) << n * bits;
		if (video->saturate)
			value = clamp(value, bits, video->signed_result);
		bool written = video->mask >> n & 1;
		if (video->second == VIDEO_SECOND_ADD)
			r += written ? (uint32_t)value : 0;
		else
			r |= (written ? (uint32_t)value << n * bits : c) & lanes;
	}
	return r;
}

static uint32_t scalar(const struct video *video, uint32_t a, uint32_t b, uint32_t c)
{
	uint64_t both = (uint64_t)b << 32 | a;
	unsigned bits = 8u << video->width;
	int64_t value = operate(video, element(both, video->from_a, video->width_a, video->signed_a),
				element(both, video->from_b, video->width_b, video->signed_b));
	if (video->saturate)
		value = clamp(value, bits, video->signed_result);
	if (video->second != VIDEO_MERGE)
		return second(video, value, c);
	unsigned at = (unsigned)__builtin_ctz(video->mask | 16) * bits;
	uint32_t lanes = UINT32_MAX >> (32 - bits) << at;
	return (c & ~lanes) | ((uint32_t)value << at & lanes);
}

/* (a * b) + c in 128 bits: the product alone may take 65. */
static uint32_t multiply_add(const struct video *video, uint32_t a, uint32_t b, uint32_t c)
{
	__extension__ typedef __int128 wide;
	uint64_t both = (uint64_t)b << 32 | a;
	wide product = (wide)element(both, video->from_a, video->width_a, video->signed_a) *
		       element(both, video->from_b, video->width_b, video->signed_b);
	bool is_signed = video->signed_result;
	wide addend = is_signed ? (wide)(int32_t)c : (wide)c;
	wide sum =
		(video->negate_product ? -product : product) + (video->negate_c ? -addend : addend) + video->plus_one;
	sum >>= video->shift;
	wide high = is_signed ? INT32_MAX : UINT32_MAX, low = is_signed ? INT32_MIN : 0;
	if (video->saturate)
		sum = sum < low ? low : sum > high ? high : sum;
	return (uint32_t)sum;
}

const struct insn *op_video(struct warp *warp, const struct insn *insn)
{
	const uint32_t *a = SOURCE(uint32_t, 1), *b = SOURCE(uint32_t, 2), *c = SOURCE(uint32_t, 3);
	uint32_t *row = RESULT(uint32_t, 0);
	struct video video;
	memcpy(&video, &insn->imm, sizeof video);
	for_each_lane(lane, warp->mask) {
		if (video.op == VIDEO_MAD)
			row[lane] = multiply_add(&video, a[lane], b[lane], c[lane]);
		else if (video.count > 1)
			row[lane] = parts(&video, a[lane], b[lane], c[lane]);
		else
			row[lane] = scalar(&video, a[lane], b[lane], c[lane]);
	}
	return insn + 1;
}
