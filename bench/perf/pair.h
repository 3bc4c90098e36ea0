/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two processes of a measurement, with a control socket between them. On one host they also share a page of memory,
 * and each is pinned to a core of its own if there are two. Both run the same function. Rank 0 is the program itself.
 */
#ifndef PERF_PAIR_H
#define PERF_PAIR_H

#include <stdbool.h>
#include <stdint.h>

/* One flag in a cache line of its own. */
struct flag_line {
	_Alignas(128) volatile uint64_t value;
};

struct pair {
	int rank;                /* 0 or 1 */
	int control;             /* stream socket to the other process */
	struct flag_line *flags; /* three, shared; flags[r] is written by rank r, flags[2] by rank 0; NULL: two hosts */
	uint64_t turns;          /* flag round trips done so far */
	uint64_t ends;           /* how often the end of something was told, or awaited */
	bool one_core;           /* the two share a core: spinning measures the scheduler */
};

typedef void (*pair_fn)(struct pair *pair, void *argument);

/* Runs fn in both processes; returns in rank 0 when both have ended. Non-zero: the other process failed. */
int pair_run(pair_fn fn, void *argument);

/* Runs fn in this process, which has that rank; the process at the other end of control runs it too. Returns 0. */
int pair_run_remote(int control, int rank, pair_fn fn, void *argument);

/*
 * The floor of any message between two processes: one flag handed back and forth. Between two hosts the flag is a byte on
 * the control socket.
 * Both ranks call it; returns the one-way time in microseconds, the mean over `turns` round trips.
 */
double pair_flag_one_way(struct pair *pair, unsigned turns);

/* Rank 0 tells that it has come to an end; rank 1 asks, until it is true, whether that was told. */
void pair_tell_end(struct pair *pair);
bool pair_told_end(struct pair *pair);

#endif
