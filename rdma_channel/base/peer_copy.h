/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of bytes that another processor has just written. From about 2 KB on, glibc's memcpy copies with the instruction
 * `rep movsb` if the processor says that it is fast. If the lines come from another core of the same cache, this instruction
 * often reads them at a third of the rate of ordinary loads (docs/decisions/shared-memory.md).
 */
#ifndef HR_BASE_PEER_COPY_H
#define HR_BASE_PEER_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Copies n bytes; the two ranges do not overlap. */
static inline void hr_copy_from_peer(void *into, const void *out_of, size_t n)
{
	uint8_t *to = into;
	const uint8_t *from = out_of;
#if defined(__SSE2__)
	for (; n >= 64; to += 64, from += 64, n -= 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)from);
		__m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
		_mm_storeu_si128((__m128i *)to, a);
		_mm_storeu_si128((__m128i *)(to + 16), b);
		_mm_storeu_si128((__m128i *)(to + 32), c);
		_mm_storeu_si128((__m128i *)(to + 48), d);
	}
#endif
	memcpy(to, from, n);
}

#endif
