/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs of bits in an array of 64-bit words: 1 is allocated, 0 is free. The caller holds a lock. */
#ifndef RC_CUDA_BITMAP_H
#define RC_CUDA_BITMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BITMAP_NONE SIZE_MAX

/* Returns the first bit in from .. bits-1 that has the value wanted, or bits if there is none. */
static inline size_t bitmap_next(const uint64_t *map, size_t bits, size_t from, bool wanted)
{
	while (from < bits) {
		uint64_t word = (wanted ? map[from / 64] : ~map[from / 64]) >> (from % 64);
		if (word) {
			size_t at = from + (size_t)__builtin_ctzll(word);
			return at < bits ? at : bits;
		}
		from = (from / 64 + 1) * 64;
	}
	return bits;
}

/*
 * Returns the start of the first run of length free bits for which before + start is a multiple of align (a power of
 * two), or BITMAP_NONE.
 */
static inline size_t bitmap_find_run(const uint64_t *map, size_t bits, size_t before, size_t length, size_t align)
{
	size_t start = 0;
	for (;;) {
		start = bitmap_next(map, bits, start, false);
		start = ((before + start + align - 1) & ~(align - 1)) - before;
		if (start >= bits || bits - start < length)
			return BITMAP_NONE;
		size_t taken = bitmap_next(map, start + length, start, true);
		if (taken == start + length)
			return start;
		start = taken + 1;
	}
}

static inline void bitmap_fill(uint64_t *map, size_t from, size_t length, bool value)
{
	for (size_t end = from + length; from < end;) {
		size_t offset = from % 64, count = 64 - offset < end - from ? 64 - offset : end - from;
		uint64_t mask = (count == 64 ? ~UINT64_C(0) : (UINT64_C(1) << count) - 1) << offset;
		if (value)
			map[from / 64] |= mask;
		else
			map[from / 64] &= ~mask;
		from += count;
	}
}

#endif
