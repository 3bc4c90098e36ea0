/* SPDX-License-Identifier: BSD-3-Clause */
/* Packs and spreads rows of whole words that are close together, by AVX-512 where the processor has it. */
#include "rdma_channel/base/copy_rows.h"

#if defined(__x86_64__)
#include <immintrin.h>

/*
 * Copies between contiguous memory and rows that lie close together, 64 bytes (a vector) at a time. A mask says which of a vector's
 * 16 words belong to rows. The bytes between the rows are read, which is safe as they are on the pages of the rows, but never
 * written.
 */
#define WORD 4
#define VECTOR 64
#define PITCH_MAX 32
#define TARGET __attribute__((target("avx512f")))

struct pattern {
	uint16_t mask[PITCH_MAX / WORD]; /* for each vector of the pattern: the words that belong to rows */
	uint8_t bytes[PITCH_MAX / WORD]; /* for each vector: how many of its bytes belong to rows */
	unsigned period; /* vectors after which the masks repeat */
};

static bool is_close(size_t width, size_t pitch, size_t n)
{
	return width % WORD == 0 && pitch % WORD == 0 && pitch <= PITCH_MAX && width < pitch && n >= VECTOR &&
	       __builtin_cpu_supports("avx512f");
}

static void pattern_init(struct pattern *pattern, size_t width, size_t pitch)
{
	size_t at = 0; /* offset of the vector's first byte in its row */
	pattern->period = 0;
	do {
		uint16_t mask = 0;
		uint8_t bytes = 0;
		for (unsigned i = 0; i < VECTOR / WORD; i++)
			if ((at + i * WORD) % pitch < width) {
				mask |= (uint16_t)(1u << i);
				bytes += WORD;
			}
		pattern->mask[pattern->period] = mask;
		pattern->bytes[pattern->period++] = bytes;
		at = (at + VECTOR) % pitch;
	} while (at);
}

/* Copies the words that are left: from byte `done` on, counting only bytes that belong to rows. */
static void copy_rest(uint8_t *rows, size_t pitch, uint8_t *line, size_t width, size_t n, size_t done, bool pack)
{
	for (; done < n * width; done += WORD) {
		uint8_t *place = rows + done / width * pitch + done % width;
		memcpy(pack ? line + done : place, pack ? place : line + done, WORD);
	}
}

TARGET static void pack(uint8_t *line, const uint8_t *rows, size_t pitch, size_t width, size_t n)
{
	struct pattern pattern;
	size_t extent = (n - 1) * pitch + width, total = n * width, done = 0;
	unsigned k = 0;
	pattern_init(&pattern, width, pitch);
	/* Each store writes a whole vector. The next store, or copy_rest, overwrites the bytes that are too many. */
	for (size_t at = 0; at + VECTOR <= extent && done + VECTOR <= total; at += VECTOR) {
		__m512i words = _mm512_maskz_compress_epi32(pattern.mask[k], _mm512_loadu_si512(rows + at));
		_mm512_storeu_si512(line + done, words);
		done += pattern.bytes[k];
		k = k + 1 < pattern.period ? k + 1 : 0;
	}
	copy_rest((uint8_t *)(uintptr_t)rows, pitch, line, width, n, done, true);
}

TARGET static void spread(uint8_t *rows, size_t pitch, const uint8_t *line, size_t width, size_t n)
{
	struct pattern pattern;
	size_t extent = (n - 1) * pitch + width, total = n * width, done = 0;
	unsigned k = 0;
	pattern_init(&pattern, width, pitch);
	for (size_t at = 0; at + VECTOR <= extent && done + VECTOR <= total; at += VECTOR) {
		__m512i words = _mm512_maskz_expand_epi32(pattern.mask[k], _mm512_loadu_si512(line + done));
		_mm512_mask_storeu_epi32(rows + at, pattern.mask[k], words);
		done += pattern.bytes[k];
		k = k + 1 < pattern.period ? k + 1 : 0;
	}
	copy_rest(rows, pitch, (uint8_t *)(uintptr_t)line, width, n, done, false);
}

bool hr_copy_close_rows(uint8_t *to, size_t to_pitch, const uint8_t *from, size_t from_pitch, size_t width, size_t n)
{
	if (to_pitch == width && is_close(width, from_pitch, n))
		pack(to, from, from_pitch, width, n);
	else if (from_pitch == width && is_close(width, to_pitch, n))
		spread(to, to_pitch, from, width, n);
	else
		return false;
	return true;
}

#else

bool hr_copy_close_rows(uint8_t *to, size_t to_pitch, const uint8_t *from, size_t from_pitch, size_t width, size_t n)
{
	(void)to;
	(void)to_pitch;
	(void)from;
	(void)from_pitch;
	(void)width;
	(void)n;
	return false;
}

#endif
