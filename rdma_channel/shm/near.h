/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures whether the processors of the two sides are near: whether they share the cache that holds the sender's
 * bytes, as two hardware threads of one core do. A virtual machine cannot read this from a topology, as the hypervisor
 * moves its processors. So the receiver measures how long its first access to a line takes that the sender has just
 * written: the line of the compare-and-swap that takes up an offer (single.h). If messages are too short to be offered, the sender
 * measures how long it takes to load the tail, which the receiver has just stored. The access takes 10 to 20 ns if the
 * processors are near, 100 to 250 ns if the line comes from another core. The receiver measures at most once in each
 * tick of the coarse clock. As an interrupt can make any sample long, `near` becomes true when three of the last four
 * samples are short, and false when fewer than two are.
 */
#ifndef HR_SHM_NEAR_H
#define HR_SHM_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_NEAR_NS 70u /* a sample of an offer below this is short; it includes one reading of the clock, about 20 ns */
/* The same of a tail, which takes 120 ns and more between caches. With 70, two cores that share a cache counted as far. */
#define SHM_NEAR_TAIL_NS 100u
#define SHM_NEAR_SAMPLES 4u

struct shm_nearness {
	bool near;
	uint64_t sampled_at; /* coarse ns */
	uint32_t samples;    /* one bit for each sample, the latest in bit 0; 1: the sample was short */
};

/* Returns whether to take a sample now: at most once for each value of the coarse clock. */
static inline bool shm_near_is_due(struct shm_nearness *nearness, uint64_t now_coarse)
{
	if (now_coarse == nearness->sampled_at)
		return false;
	nearness->sampled_at = now_coarse;
	return true;
}

/* Records a sample. Returns true if it changed `near`. */
static inline bool shm_near_sample(struct shm_nearness *nearness, bool is_short)
{
	nearness->samples = (nearness->samples << 1 | is_short) & ((1u << SHM_NEAR_SAMPLES) - 1);
	uint32_t set = (uint32_t)__builtin_popcount(nearness->samples);
	bool near = nearness->near ? set > 1 : set >= SHM_NEAR_SAMPLES - 1;
	bool changed = near != nearness->near;
	nearness->near = near;
	return changed;
}

#endif
