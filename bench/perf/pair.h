/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two processes of a measurement, with a control socket between them. Both run the same function. On one host they
 * also share a page of memory, and if there are two cores, each is pinned to its own. Rank 0 is the program itself.
 */
#ifndef PERF_PAIR_H
#define PERF_PAIR_H

#include <stdbool.h>
#include <stdint.h>

/* One flag, alone in its cache lines. */
struct flag_line {
	_Alignas(128) volatile uint64_t value;
};

struct pair {
	int rank;                /* 0 or 1 */
	int control;             /* stream socket to the other process */
	struct flag_line *flags; /* three, shared; flags[r] is written by rank r, flags[2] by rank 0; NULL: two hosts */
	uint64_t turns;          /* number of flag round trips so far */
	uint64_t ends;           /* number of calls of pair_tell_end so far; in rank 1: of those that it has seen */
	bool one_core;           /* both processes share one core, so a spin must yield it */
};

typedef void (*pair_fn)(struct pair *pair, void *argument);

/* Runs fn in both processes. Returns in rank 0 when both have ended. Non-zero: the other process failed. */
int pair_run(pair_fn fn, void *argument);

/* Runs fn in this process with the given rank. The process at the other end of control runs it too. Returns 0. */
int pair_run_remote(int control, int rank, pair_fn fn, void *argument);

/*
 * The floor of any message between two processes: a ping-pong with one flag. Between two hosts the flag is a byte on
 * the control socket. Both ranks call it. Returns the one-way time in microseconds, the mean over `turns` round trips.
 */
double pair_flag_one_way(struct pair *pair, unsigned turns);

/* Rank 0 signals the end of a sample with pair_tell_end. Rank 1 calls pair_told_end until it returns true. */
void pair_tell_end(struct pair *pair);
bool pair_told_end(struct pair *pair);

#endif
