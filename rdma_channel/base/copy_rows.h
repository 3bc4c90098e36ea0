/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of many short rows. A call of memcpy for each row would take longer than the row itself. */
#ifndef HR_COPY_ROWS_H
#define HR_COPY_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Rows of a fixed length. The compiler makes a loop of loads and stores of it. Each row is loaded before it is stored, as
 * memmove does. */
#define HR_ROWS_OF(bytes)                                                             \
	case bytes:                                                                   \
		for (size_t i = 0; i < n; i++, to += to_pitch, from += from_pitch) { \
			uint8_t row[bytes];                                           \
			memcpy(row, from, bytes);                                     \
			memcpy(to, row, bytes);                                       \
		}                                                                     \
		return true;

/* Copies n rows of width bytes. One side is contiguous: its pitch is width. The rows of the other side lie close together. The
 * sides do not overlap. The bytes between the rows are not written. Returns false if the processor or the shape does not suit;
 * then nothing was copied. Any thread may call it. */
bool hr_copy_close_rows(uint8_t *to, size_t to_pitch, const uint8_t *from, size_t from_pitch, size_t width, size_t n);

/* Copies n rows of width bytes in turn. Returns false if it has no loop for this width; then nothing was copied. */
static inline bool hr_copy_short_rows(uint8_t *to, size_t to_pitch, const uint8_t *from, size_t from_pitch, size_t width, size_t n)
{
	switch (width) {
	HR_ROWS_OF(1)
	HR_ROWS_OF(2)
	HR_ROWS_OF(4)
	HR_ROWS_OF(8)
	HR_ROWS_OF(12)
	HR_ROWS_OF(16)
	}
	return false;
}

#undef HR_ROWS_OF

#endif
