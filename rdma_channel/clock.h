/* SPDX-License-Identifier: BSD-3-Clause */
/* Time for time-outs, in nanoseconds since some fixed moment. Any thread. */
#ifndef HR_CLOCK_H
#define HR_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HR_NS_PER_MS 1000000ull

static inline uint64_t hr_clock_read(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static inline uint64_t hr_now_ns(void)
{
	return hr_clock_read(CLOCK_MONOTONIC);
}

/* The same clock with a resolution of a few milliseconds; cheaper to read. */
static inline uint64_t hr_now_coarse_ns(void)
{
	return hr_clock_read(CLOCK_MONOTONIC_COARSE);
}

#endif
