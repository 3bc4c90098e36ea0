/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies into a ring that another processor reads. An ordinary copy leaves the lines dirty in the writer's cache, and
 * the reader fetches them from there. If the two processors are far apart, fetching can cost five times as much as the
 * copy. Non-temporal stores bypass the cache. Their cost does not depend on the reader's processor, but if the two
 * processors are near, it is twice that of an ordinary copy.
 */
#ifndef HR_SHM_COPY_H
#define HR_SHM_COPY_H

#include "rdma_channel/base/stream_copy.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

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
	hr_copy_streaming(to, from, n);
}

static inline void shm_copy_done(void)
{
	hr_copy_streamed();
}

#endif
