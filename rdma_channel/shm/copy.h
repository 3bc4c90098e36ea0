/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into a ring that another processor reads. An ordinary copy leaves the lines dirty in the writer's cache, and
 * the reader fetches them from there. If the two processors are far apart, fetching can cost five times as much as the
 * copy. Non-temporal stores bypass the cache. Their cost does not depend on the reader's processor, but if the two
 * processors are near, it is twice that of an ordinary copy.
 */
#ifndef HR_SHM_COPY_H
#define HR_SHM_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Copies n bytes; 8 bytes without a call of memcpy. */
static inline void shm_copy(void *to, const void *from, size_t n)
{
	if (n == 8) {
		memcpy(to, from, 8);
	} else {
		memcpy(to, from, n);
	}
}

/* Copies n bytes, with non-temporal stores if the build has them. Call shm_copy_done before publishing the data. */
static inline void shm_copy_streaming(uint8_t *to, const uint8_t *from, size_t n)
{
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
static inline void shm_copy_done(void)
{
#if defined(__SSE2__)
	_mm_sfence();
#endif
}

#endif
