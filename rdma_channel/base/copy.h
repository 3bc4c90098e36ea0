/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of short messages. A call of memcpy takes about as long as the copy of a cache line. So copies up to a line are
 * made in line, as two or four moves that overlap.
 */
#ifndef HR_BASE_COPY_H
#define HR_BASE_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Copies the first and the last `part` bytes of n, part <= n <= 2 * part. part is a constant. */
#define HR_COPY_ENDS(to, from, n, part)                                                                        \
	do {                                                                                                   \
		struct { uint8_t bytes[part]; } begin_, end_;                                                  \
		memcpy(&begin_, (from), (part));                                                               \
		memcpy(&end_, (const uint8_t *)(from) + (n) - (part), (part));                                 \
		memcpy((to), &begin_, (part));                                                                 \
		memcpy((uint8_t *)(to) + (n) - (part), &end_, (part));                                         \
	} while (0)

/* Copies n bytes; the two ranges do not overlap. from and to may be NULL if n is 0. */
static inline void hr_copy(void *to, const void *from, size_t n)
{
	if (n - 8 <= 8) { /* the most frequent case */
		HR_COPY_ENDS(to, from, n, 8);
	} else if (n > 64) {
		memcpy(to, from, n);
	} else if (n > 32) { /* in parts of 16 bytes, as the compiler would pass 32 through the stack */
		HR_COPY_ENDS(to, from, 32, 16);
		HR_COPY_ENDS((uint8_t *)to + n - 32, (const uint8_t *)from + n - 32, 32, 16);
	} else if (n > 16) {
		HR_COPY_ENDS(to, from, n, 16);
	} else if (n >= 4) {
		HR_COPY_ENDS(to, from, n, 4);
	} else {
		for (size_t i = 0; i < n; i++)
			((uint8_t *)to)[i] = ((const uint8_t *)from)[i];
	}
}

#endif
