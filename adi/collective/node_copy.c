/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies into the shared segment, through the caches or past them: node.h. */
#include "adi/collective/node.h"

#include <string.h>
#include <time.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

/* Shorter data go through the caches in any case. */
#define LONG 8192
/* A line arrives in less if the processors are near; with one reading of the clock. */
#define SHORT_NS 70
/* The processors are near if all of these samples were short: the wrong answer costs more if they are far. */
#define SAMPLES 0xff

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void adi_node_measure(const struct adi_comm *comm, struct node_state *node, size_t bytes)
{
	if (bytes <= LONG)
		return;
	/* The other rank has written its done at the end of its last step. */
	const _Atomic uint64_t *line = &node->shared->member[(comm->rank + 1) % comm->size].done;
	uint64_t begin = now_ns();
	/* Acquire: the clock is read after the line has arrived. */
	atomic_load_explicit(line, memory_order_acquire);
	uint64_t ns = now_ns() - begin;
	node->distances = node->distances << 1 | (ns < SHORT_NS);
}

#if defined __SSE2__
static void copy_past_caches(char *to, const char *from, size_t bytes)
{
	size_t head = (size_t)(-(uintptr_t)to & 63);
	memcpy(to, from, head);
	for (to += head, from += head, bytes -= head; bytes >= 64; to += 64, from += 64, bytes -= 64)
		for (int i = 0; i < 64; i += 16)
			_mm_stream_si128((__m128i *)(void *)(to + i), _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
	memcpy(to, from, bytes);
	_mm_sfence(); /* The release store that publishes the data does not order these stores. */
}
#endif

void adi_node_copy(const struct node_state *node, void *to, const void *from, size_t bytes)
{
#if defined __SSE2__
	if (bytes > LONG && (node->distances & SAMPLES) != SAMPLES) {
		copy_past_caches(to, from, bytes);
		return;
	}
#endif
	(void)node;
	memcpy(to, from, bytes);
}
