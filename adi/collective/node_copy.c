/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies into the shared segment, through the caches or past them: node.h. */
#include "adi/collective/node.h"

#include <string.h>
#include <time.h>
#if defined __SSE2__
#include <emmintrin.h>
#endif

/* A line arrives in less if the processors are near; with one reading of the clock. */
#define SHORT_NS 70
/* The processors are near if all of these samples were short: the wrong answer costs more if they are far. */
#define SAMPLES 0xff
#define SAMPLES_NUMBER 8
/* After the first samples, one of this many collectives of long data takes a sample, which costs a transfer between the
 * processors. */
#define CALLS_PER_SAMPLE 8

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

enum node_distance adi_node_distance(const _Atomic uint64_t *word, uint64_t *seen)
{
	uint64_t begin = now_ns();
	/* Acquire: the clock is read after the line has arrived. */
	uint64_t value = atomic_load_explicit(word, memory_order_acquire), ns = now_ns() - begin;
	bool fresh = value > *seen;
	*seen = value;
	return !fresh ? NODE_UNKNOWN : ns < SHORT_NS ? NODE_NEAR : NODE_FAR;
}

void adi_node_measure(const struct adi_comm *comm, struct node_state *node, size_t bytes)
{
	if (bytes <= NODE_SHORT || (node->measures >= SAMPLES_NUMBER && ++node->long_calls < CALLS_PER_SAMPLE))
		return;
	/* The other rank writes its done at the end of each step. */
	int other = (comm->rank + 1) % comm->size;
	enum node_distance distance = adi_node_distance(&node->shared->member[other].done, &node->seen_done);
	if (distance == NODE_UNKNOWN)
		return;
	node->distances = node->distances << 1 | (distance == NODE_NEAR);
	node->measures += node->measures < SAMPLES_NUMBER;
	node->long_calls = 0;
}

bool adi_node_past_caches(const struct node_state *node, size_t bytes)
{
#if defined __SSE2__
	return bytes > NODE_SHORT && (node->distances & SAMPLES) != SAMPLES;
#else
	(void)node;
	(void)bytes;
	return false;
#endif
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
	if (adi_node_past_caches(node, bytes)) {
		copy_past_caches(to, from, bytes);
		return;
	}
#endif
	(void)node;
	memcpy(to, from, bytes);
}
