/* SPDX-License-Identifier: BSD-3-Clause */
/* Compares copies of rows that lie close together (rdma_channel/base/copy_rows.h) with copies row by row. The bytes between the
 * rows and around both sides must stay as they were. */
#include "rdma_channel/base/copy_rows.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 1000, PITCH = 48, ROUNDS = 20000, EDGE = 64 };

static uint8_t rows[EDGE + ROWS * PITCH + EDGE], line[EDGE + ROWS * PITCH + EDGE];
static uint8_t wanted[sizeof rows], before[sizeof rows];

static void draw(uint8_t *bytes)
{
	for (size_t i = 0; i < sizeof rows; i++)
		bytes[i] = (uint8_t)rand();
}

/* Returns true if the copy was made. */
static bool compare(bool pack, size_t width, size_t pitch, size_t n, size_t shift)
{
	uint8_t *near = rows + EDGE + shift, *packed = line + EDGE + shift / 2;
	uint8_t *to = pack ? packed : near, *from = pack ? near : packed;
	uint8_t *all = pack ? line : rows, *source = pack ? rows : line;
	memcpy(wanted, all, sizeof wanted);
	memcpy(before, source, sizeof before);
	for (size_t i = 0; i < n; i++)
		memcpy(wanted + (to - all) + i * (pack ? width : pitch), from + i * (pack ? pitch : width), width);
	if (!hr_copy_close_rows(to, pack ? width : pitch, from, pack ? pitch : width, width, n))
		return false;
	if (memcmp(wanted, all, sizeof wanted) || memcmp(before, source, sizeof before)) {
		printf("%s: %zu rows of %zu bytes, pitch %zu, shift %zu: wrong bytes\n", pack ? "pack" : "spread", n, width, pitch,
		       shift);
		exit(1);
	}
	return true;
}

int main(void)
{
	int made = 0;
	draw(rows);
	draw(line);
	for (int i = 0; i < ROUNDS; i++) {
		size_t pitch = 1 + (size_t)rand() % PITCH, width = 1 + (size_t)rand() % pitch;
		if (i % 2) { /* the shapes of which copies are made */
			pitch = 4 + pitch / 4 * 4;
			width = 4 + width / 4 * 4;
		}
		if (pitch > PITCH || width > pitch)
			continue;
		made += compare(rand() % 2, width, pitch, 1 + (size_t)rand() % (ROWS - 10), (size_t)rand() % EDGE);
	}
	printf("%d copies were made\n", made);
#if defined(__x86_64__)
	return __builtin_cpu_supports("avx512f") && made < ROUNDS / 10;
#else
	return 0;
#endif
}
