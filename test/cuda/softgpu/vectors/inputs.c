/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources: the edges of each operand's type in all pairs, the third and further ones in turn; then random ones. A
 * single float of 16 bits takes every seventh of its values instead.
 */
#include "test/cuda/softgpu/vectors/vectors.h"

#include <stdlib.h>
#include <string.h>

static const uint64_t integer_edges[] = {
	0, 1, 2, 3, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0x8001,
	0xffff, 0x10000, 0x7fffff, 0x800000, 0x01020304, 0x80ff7f00, 0x7fffffff, 0x80000000, 0x80000001,
	0xfffffffe, 0xffffffff, 0x100000000, 0x123456789abcdef0, 0x7fffffffffffffff, 0x8000000000000000,
	0x8000000000000001, 0xfffffffffffffffe, UINT64_MAX,
};
static const uint32_t float_edges[] = {
	0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x807fffff, 0x00400000, 0x00800000, 0x80800000, 0x00800001,
	0x01000000, 0x3f800000, 0xbf800000, 0x3f7fffff, 0x3f800001, 0x3f000000, 0xbf000000, 0x3fc00000,
	0x40200000, 0xc0200000, 0x40490fdb, 0x3fc90fdb, 0x42fe0000, 0x437f8000, 0x43800000, 0x47000000,
	0x477ff000, 0x4b7fffff, 0x4b800001, 0x4effffff, 0x4f000000, 0xcf000000, 0x4f7fffff, 0x4f800000,
	0x5effffff, 0x5f000000, 0xdf000000, 0x5f800000, 0x7e800000, 0x7e800001, 0x7f000000, 0x7f7fffff,
	0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0x7fffffff, 0x33000000,
	0x33800000, 0x38800000, 0x387fffff, 0xb8000001,
};
static const uint64_t double_edges[] = {
	0, 1ull << 63, 1, 0x8000000000000001, 0x000fffffffffffff, 0x0008000000000000, 0x0010000000000000,
	0x8010000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x3fefffffffffffff, 0x3ff0000000000001,
	0x3fe0000000000000, 0xbfe0000000000000, 0x3ff8000000000000, 0xc004000000000000, 0x400921fb54442d18,
	0x3ca0000000000000, 0x41dfffffffc00000, 0x41e0000000000000, 0xc1e0000000000000, 0x41efffffffe00000,
	0x41f0000000000000, 0x43dfffffffffffff, 0x43e0000000000000, 0xc3e0000000000000, 0x43f0000000000000,
	0x40effff000000000, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000, 0x380ffffffffffffe,
	0x3810000000000000, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x7fefffffffffffff,
	0xffefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000000000,
	0x7ff0000000000001,
};
static const uint16_t half_edges[] = {
	0, 0x8000, 1, 0x8001, 0x03ff, 0x83ff, 0x0400, 0x8400, 0x0401, 0x3c00, 0xbc00, 0x3bff, 0x3c01, 0x3800,
	0x3e00, 0x4248, 0x5bff, 0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x7c01, 0x7fff, 0x1400, 0x6800,
	0x64ff,
};
static const uint16_t bfloat_edges[] = {
	0, 0x8000, 1, 0x8001, 0x007f, 0x807f, 0x0080, 0x8080, 0x0081, 0x3f80, 0xbf80, 0x3f7f, 0x3f81, 0x3f00,
	0x3fc0, 0x4049, 0x437f, 0x477f, 0x4f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc0, 0x7f81, 0x7fff,
	0x3380, 0x7e80, 0xdf00,
};

static uint64_t next_random(uint64_t *state)
{
	/* splitmix64 (Steele, Lea, Flood 2014) */
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;
	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

static size_t edge_count(char letter)
{
	switch (letter) {
	case 'p': return 2;
	case 'e': case 'x': return sizeof half_edges / sizeof *half_edges;
	case 'b': case 'y': return sizeof bfloat_edges / sizeof *bfloat_edges;
	case 'f': case 'q': return sizeof float_edges / sizeof *float_edges;
	case 'd': return sizeof double_edges / sizeof *double_edges;
	default: return sizeof integer_edges / sizeof *integer_edges;
	}
}

/* The at-th edge; the second of two in one register is another one. */
static uint64_t edge(char letter, size_t at)
{
	size_t other = (at * 5 + 3) % edge_count(letter);
	switch (letter) {
	case 'p': return at;
	case 'e': return half_edges[at];
	case 'b': return bfloat_edges[at];
	case 'x': return half_edges[at] | (uint64_t)half_edges[other] << 16;
	case 'y': return bfloat_edges[at] | (uint64_t)bfloat_edges[other] << 16;
	case 'f': return float_edges[at];
	case 'q': return float_edges[at] | (uint64_t)float_edges[other] << 32;
	case 'd': return double_edges[at];
	default: return integer_edges[at];
	}
}

/* Bits at random; half of the floats lie near one another, where rounding and cancelling show. */
static uint64_t random_operand(char letter, uint64_t *state)
{
	uint64_t bits = next_random(state), pick = next_random(state);
	if (pick % 4 == 0)
		return edge(letter, pick / 4 % edge_count(letter));
	if (pick % 4 == 1)
		return bits;
	switch (letter) {
	case 'f': return (bits & 0x807fffff) | (0x3d800000 + (pick >> 8 & 7) * 0x800000);
	case 'd': return (bits & 0x800fffffffffffff) | (0x3fb0000000000000 + (pick >> 8 & 7) * 0x10000000000000);
	case 'e': return (bits & 0x83ff) | (0x2c00 + (pick >> 8 & 7) * 0x400);
	case 'x': return (bits & 0x83ff83ff) | (0x2c002c00 + (pick >> 8 & 7) * 0x4000400);
	case 'b': return (bits & 0x807f) | (0x3d80 + (pick >> 8 & 7) * 0x80);
	case 'y': return (bits & 0x807f807f) | (0x3d803d80 + (pick >> 8 & 7) * 0x800080);
	case 'q': return (bits & 0x807fffff807fffff) | (0x3d8000003d800000 + (pick >> 8 & 7) * 0x80000000800000);
	case 'w': case 'l': return bits >> (pick >> 8 & 63);
	default: return bits;
	}
}

static uint64_t masked(char letter, uint64_t bits)
{
	unsigned width = letter_width(letter);
	return width == 64 ? bits : width == 0 ? bits & 1 : bits & ((1ull << width) - 1);
}

static size_t pairs(const struct form *form, uint64_t *inputs, size_t most)
{
	const char *letters = form->sources;
	size_t sources = strlen(letters), first = edge_count(letters[0]), count = 0;
	size_t second = sources > 1 ? edge_count(letters[1]) : 1;
	for (size_t i = 0; i < first; i++)
		for (size_t j = 0; j < second && count < most; j++, count++)
			for (size_t n = 0; n < sources; n++) {
				size_t at = n == 0   ? i
					    : n == 1 ? j
						     : (i * 7 + j * (n + 1) + n) % edge_count(letters[n]);
				inputs[count * SOURCES_MAX + n] = masked(letters[n], edge(letters[n], at));
			}
	return count;
}

size_t inputs_make(const struct form *form, uint64_t *inputs, size_t most)
{
	size_t sources = strlen(form->sources), count = 0;
	uint64_t state = 0x5eed;
	for (const char *at = form->mnemonic; *at; at++)
		state = state * 31 + (unsigned char)*at;
	memset(inputs, 0, most * SOURCES_MAX * sizeof *inputs);
	if (sources == 1 && strchr("ebt", form->sources[0]) && most >= 1 << 16) {
		size_t edges = pairs(form, inputs, most);
		for (uint64_t bits = 0; bits < 1 << 16; bits += 7, count++)
			inputs[(edges + count) * SOURCES_MAX] = bits;
		return edges + count;
	}
	size_t wanted = form->immediate >= 0 ? 256 : 1024;
	count = pairs(form, inputs, form->immediate >= 0 ? 1024 : most);
	for (size_t end = count + wanted; count < end && count < most; count++)
		for (size_t n = 0; n < sources; n++)
			inputs[count * SOURCES_MAX + n] =
				masked(form->sources[n], random_operand(form->sources[n], &state));
	return count;
}
