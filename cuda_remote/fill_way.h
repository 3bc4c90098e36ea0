/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How to write memory that another processor reads next: through the cache or past it. If the processors share no cache, memory
 * that is written through the cache is slow to write and slow to read, as each line comes from the other processor's cache. If they
 * share a cache, writing past it takes longer. The processors of a virtual machine move, so the writer measures both ways (or does
 * as HEADRACE_FILL_CACHE says). All writes of one struct hr_fill_way have the same size.
 */
#ifndef RC_FILL_WAY_H
#define RC_FILL_WAY_H

#include <stdbool.h>
#include <stdint.h>

/* Begins as zeros. Any number of threads may use it; all fields are atomic, relaxed. */
struct hr_fill_way {
	uint64_t ns[2]; /* mean time of a write: through the cache, past it; 0: not known */
	unsigned n;     /* writes */
};

/* True if the next write is to go past the cache. */
bool hr_fill_past(struct hr_fill_way *way);
/* Notes how long that write took, in ns. past: what hr_fill_past has returned for it. */
void hr_fill_took(struct hr_fill_way *way, bool past, uint64_t ns);

#endif
