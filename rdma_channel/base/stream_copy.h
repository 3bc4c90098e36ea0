/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies whose destination is not read soon, or is read by another processor. An ordinary copy first reads the lines that it
 * is going to overwrite, and leaves them dirty in the writer's cache. Non-temporal stores bypass the cache.
 */
#ifndef HR_BASE_STREAM_COPY_H
#define HR_BASE_STREAM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Copies n bytes, with non-temporal stores if the build has them; the two ranges do not overlap. Call hr_copy_streamed
 * before publishing the data. */
static inline void hr_copy_streaming(void *into, const void *out_of, size_t n)
{
	uint8_t *to = into;
	const uint8_t *from = out_of;
#if defined(__SSE2__)
	size_t head = (size_t)(-(uintptr_t)to & 63);
	if (n < head + 256) {
		memcpy(to, from, n);
		return;
	}
	memcpy(to, from, head);
	to += head;
	from += head;
	n -= head;
	for (; n >= 64; to += 64, from += 64, n -= 64) {
		__m128i a = _mm_loadu_si128((const __m128i *)from);
		__m128i b = _mm_loadu_si128((const __m128i *)(from + 16));
		__m128i c = _mm_loadu_si128((const __m128i *)(from + 32));
		__m128i d = _mm_loadu_si128((const __m128i *)(from + 48));
		_mm_stream_si128((__m128i *)to, a);
		_mm_stream_si128((__m128i *)(to + 16), b);
		_mm_stream_si128((__m128i *)(to + 32), c);
		_mm_stream_si128((__m128i *)(to + 48), d);
	}
#endif
	memcpy(to, from, n);
}

/* Orders non-temporal stores before the store that publishes the data. On x86 a release store alone does not. */
static inline void hr_copy_streamed(void)
{
#if defined(__SSE2__)
	_mm_sfence();
#endif
}

#endif
