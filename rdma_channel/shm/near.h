/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether the processors of the two ends are near: whether they share the cache in which the sender leaves its bytes,
 * as two hardware threads of one core do. Nothing tells a virtual machine, whose processors move about beneath it. So
 * the receiver measures how long it takes to get hold of a line that the sender has just written, the one with which it
 * takes an offer up (single.h): 10 to 20 ns where they are near, 100 to 250 ns where the line comes from another core.
 * It does so once in each tick of the coarse clock, and goes by most of the last few, as any may be interrupted.
 */
#ifndef HR_SHM_NEAR_H
#define HR_SHM_NEAR_H

#include <stdbool.h>
#include <stdint.h>

#define SHM_NEAR_NS 70u /* what is measured is longer by a reading of the clock, some 20 ns */
#define SHM_NEAR_SAMPLES 4u

struct shm_nearness {
	bool near;
	uint64_t sampled_at; /* coarse ns */
	uint32_t samples;    /* a bit each, the last one lowest; set: it was short */
};

/* Is it to be measured now? */
static inline bool shm_near_is_due(struct shm_nearness *nearness, uint64_t now_coarse)
{
	if (now_coarse == nearness->sampled_at)
		return false;
	nearness->sampled_at = now_coarse;
	return true;
}

/* It took so long. True if `near` is another now. */
static inline bool shm_near_sample(struct shm_nearness *nearness, uint64_t ns)
{
	nearness->samples = (nearness->samples << 1 | (ns < SHM_NEAR_NS)) & ((1u << SHM_NEAR_SAMPLES) - 1);
	uint32_t set = (uint32_t)__builtin_popcount(nearness->samples);
	bool near = nearness->near ? set > 1 : set >= SHM_NEAR_SAMPLES - 1;
	bool changed = near != nearness->near;
	nearness->near = near;
	return changed;
}

#endif
