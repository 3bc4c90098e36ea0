/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How to write memory that another processor reads next: through the cache or past it. If the processors share no cache, memory
 * that is written through it is slow to write and slow to read, as each line comes from the other one's cache. If they share one,
 * writing past it takes longer. A virtual machine's processors move, so the writer measures both ways (or does as
 * HEADRACE_FILL_CACHE says). Writes that are measured together have one size.
 */
#ifndef HR_BASE_FILL_WAY_H
#define HR_BASE_FILL_WAY_H

#include <stdbool.h>
#include <stdint.h>

/* Begins as zeros. Any number of threads; all fields are atomic, relaxed. */
struct hr_fill_way {
	uint64_t ns[2]; /* how long a write takes: through the cache, past it; 0: not known */
	unsigned n;     /* writes */
};

/* True if the next write is to go past the cache. */
bool hr_fill_past(struct hr_fill_way *way);
/* Notes how long it took. */
void hr_fill_took(struct hr_fill_way *way, bool past, uint64_t ns);

#endif
