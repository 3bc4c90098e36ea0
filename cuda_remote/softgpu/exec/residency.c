/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The scheduling of resident blocks; a cluster is scheduled as one block. In most grids no block waits for another one,
 * and a block keeps its worker until it ends. A block is taken to wait if one lane of each of its paths has the same
 * registers at the same instruction as one or a few stalls before (warp.h, block_run: what a stall is). That comparison
 * takes time, so it is made at few stalls until some block of the launch has been found waiting, and from then on at
 * each. The comparison misses a loop that also counts or reads a clock; therefore a block that has run for a while lets
 * others run.
 */
#include "cuda_remote/softgpu/exec/residency.h"

#include "rdma_channel/base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A block's state is recorded at stalls 8, 128, 2048 … of a turn, and compared at COMPARED stalls after each of
 * them. */
#define FIRST_RECORD 8
#define RECORD_FACTOR 16
#define COMPARED 4

/*
 * The turn of a block that is not known to wait lasts TURN_NS, and TURN_NS_PER_KIB more for each KiB of its memory. The
 * next block takes that memory out of the processor's caches, and the time for it must be a small part of the turn.
 */
#define TURN_NS UINT64_C(1000000)
#define TURN_NS_PER_KIB UINT64_C(20000)

/* A grid that is not wholly resident is reported if none of its resident blocks has ended for this time, ns: if all of
 * them wait, and if some do not. */
#define REPORT_WAITING_NS (UINT64_C(10) * 1000000000)
#define REPORT_RUNNING_NS (UINT64_C(60) * 1000000000)

/* Lanes go ahead (warp.h) if the engine has run for AHEAD_NS, halved as often as the kernel's haste says, and no block has
 * begun or ended. With the most haste they do so from the beginning of a launch. */
#define AHEAD_NS (UINT64_C(500) * 1000000)
#define HASTE_MOST 31
#define MOVING_FACTOR 2

/* A turn that is not longer counts for its time by the clock, as to ask for its thread's processor time costs as much as such a
 * turn. The system seldom takes the processor away in so short a time, and then the turn counts for no more than this. */
#define UNTIMED_NS UINT64_C(20000)

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;
	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

bool residency_init(struct launch *launch, uint64_t most)
{
	struct residency *residency = &launch->residency;
	*residency = (struct residency){ .most = most };
	launch->ahead = __atomic_load_n(&launch->kernel->code->haste, __ATOMIC_RELAXED) == HASTE_MOST;
	residency->end = &residency->first;
	pthread_mutex_init(&residency->lock, NULL);
	if (launch->program->reads_smid)
		residency->loads = calloc(launch->workers, sizeof *residency->loads);
	return residency->loads || !launch->program->reads_smid;
}

void residency_finish(struct residency *residency)
{
	pthread_mutex_destroy(&residency->lock);
	free(residency->loads);
}

bool residency_begin(struct launch *launch, uint64_t *number)
{
	struct residency *residency = &launch->residency;
	/* Relaxed: only the numbers are shared; the launch itself was published under the pool's lock. */
	if (__atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) >= launch->cluster_count)
		return false;
	if (__atomic_fetch_add(&residency->resident, 1, __ATOMIC_RELAXED) < residency->most) {
		*number = __atomic_fetch_add(&launch->next_cluster, 1, __ATOMIC_RELAXED);
		if (*number < launch->cluster_count)
			return true;
	}
	__atomic_fetch_sub(&residency->resident, 1, __ATOMIC_RELAXED);
	return false;
}

static void place_member(struct block *block)
{
	const struct launch *launch = block->launch;
	struct residency *residency = &block->launch->residency;
	/* Among equals, blocks take turns, so that they are spread also if each ends before the next begins. */
	uint32_t least = (uint32_t)(block->number % launch->workers);
	for (uint32_t i = 1, n = least; i < launch->workers; i++) {
		n = n + 1 < launch->workers ? n + 1 : 0;
		if (residency->loads[n] < residency->loads[least])
			least = n;
	}
	residency->loads[least]++;
	block->multiprocessor = least;
}

void residency_place(struct block *first)
{
	struct residency *residency = &first->launch->residency;
	if (!residency->loads)
		return;
	pthread_mutex_lock(&residency->lock);
	for (uint32_t rank = 0; rank < first->launch->cluster_size; rank++)
		place_member(first->members[rank]);
	pthread_mutex_unlock(&residency->lock);
}

void residency_abandon(struct launch *launch)
{
	/* Release: whoever finds the new era also finds what the block wrote. */
	__atomic_fetch_add(&launch->residency.ended, 1, __ATOMIC_RELEASE);
	__atomic_fetch_sub(&launch->residency.resident, 1, __ATOMIC_RELEASE);
}

void residency_end(struct block *first)
{
	struct launch *launch = first->launch;
	struct residency *residency = &launch->residency;
	if (residency->loads) {
		pthread_mutex_lock(&residency->lock);
		for (uint32_t rank = 0; rank < launch->cluster_size; rank++)
			residency->loads[first->members[rank]->multiprocessor]--;
		pthread_mutex_unlock(&residency->lock);
	}
	residency_abandon(launch);
}

/* ---- whether a block waits */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
	return hash ^ hash >> 32;
}

/* One lane's registers of a function. */
static uint64_t lane_state(const struct warp *warp, const struct code *code, uint32_t lane)
{
	static const uint32_t widths[] = { 8, 4, 2 };
	const char *base = warp->regs + code->register_base;
	uint64_t hash = 0;
	for (int class = 0; class < 3; class++) {
		uint32_t width = widths[class];
		for (uint32_t row = code->class_start[class]; row + width * WARP_LANES <= code->class_start[class + 1];
		     row += width * WARP_LANES) {
			uint64_t value = 0;
			memcpy(&value, base + row + lane * width, width);
			hash = mix(hash, value);
		}
	}
	for (uint32_t row = code->class_start[3]; row < code->class_start[4]; row += 4) {
		uint32_t bits;
		memcpy(&bits, base + row, sizeof bits);
		hash = mix(hash, bits >> lane & 1);
	}
	return hash;
}

/* A hash of the path's state; of its registers, only the lowest lane's count. */
static uint64_t path_state(const struct warp *warp, const struct path *path)
{
	const struct launch *launch = warp->block->launch;
	uint32_t lane = (uint32_t)__builtin_ctz(path->mask);
	uint64_t hash = mix((uint64_t)(uintptr_t)path->at, (uint64_t)path->mask << 8 | path->state);
	hash = mix(hash, lane_state(warp, launch->kernel->code, lane));
	const struct code *called = path->depth ? code_of(launch->program, path->at) : NULL;
	return called ? mix(hash, lane_state(warp, called, lane)) : hash;
}

/* A hash that does not depend on the order of a warp's paths, which changes while they take turns. */
static uint64_t mix_warps(uint64_t hash, const struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++) {
		const struct warp *warp = &block->warps[n];
		uint64_t paths = 0;
		struct path running = { .at = warp->resume, .mask = warp->mask, .depth = warp->depth };
		if (warp->resume)
			paths = path_state(warp, &running);
		for (uint32_t i = 0; i < warp->other_count; i++)
			paths += path_state(warp, &warp->others[i]);
		hash = mix(hash, paths);
	}
	return hash;
}

static uint64_t block_state(const struct block *first)
{
	uint64_t hash = 0;
	for (uint32_t rank = 0; rank < first->launch->cluster_size; rank++)
		hash = mix_warps(hash, first->members[rank]);
	return hash;
}

static bool same_state(struct block *block)
{
	uint64_t before = block->turn.state;
	block->turn.state = block_state(block);
	return block->turn.state == before;
}

/* The block has stalled: whether it is known to wait. */
static bool found_waiting(struct block *block)
{
	struct turn *turn = &block->turn;
	/* Relaxed: it only decides at which stalls the state is compared. */
	if (__atomic_load_n(&block->launch->residency.waits, __ATOMIC_RELAXED))
		return same_state(block);
	if (turn->stalls == turn->record) {
		turn->record *= RECORD_FACTOR;
		turn->compare_until = turn->stalls + COMPARED;
		turn->state = block_state(block);
		return false;
	}
	if (turn->stalls > turn->compare_until || block_state(block) != turn->state)
		return false;
	__atomic_store_n(&block->launch->residency.waits, true, __ATOMIC_RELAXED);
	return true;
}

static bool turn_is_over(struct block *block)
{
	struct turn *turn = &block->turn;
	turn->waiting = found_waiting(block);
	if (turn->waiting || block->launch->request->cooperative)
		return true;
	uint64_t now = now_ns();
	if (turn->stalls == 1)
		turn->began = now;
	/* Of a launch of clusters before this one the block may own more blocks, which do not count. */
	size_t bytes = block_bytes(block, block->launch->cluster_size);
	return now - turn->began > TURN_NS + (bytes >> 10) * TURN_NS_PER_KIB;
}

/*
 * ---- whether lanes go ahead of others of their warp
 *
 * An era of a launch ends when a block ends, or when a block is not as it was at the end of its turn before. A block is idle in an
 * era if a whole turn of it was in that era. If all blocks are idle, no block waits for another one: what a block writes
 * while others only spin is there before their turns of the next era. So lanes wait for others of their warp, or the
 * kernel waits for something outside.
 *
 * Loops that count or read a clock are never as before. Their lanes go ahead when nothing has happened for long; the next time
 * that the kernel is launched, after half the time.
 */
static uint64_t era_of(const struct residency *residency)
{
	return 1 + __atomic_load_n(&residency->changes, __ATOMIC_ACQUIRE) + __atomic_load_n(&residency->ended, __ATOMIC_ACQUIRE);
}

/* All blocks are resident that may be now. */
static bool all_begun(const struct launch *launch)
{
	return __atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) >= launch->cluster_count ||
	       __atomic_load_n(&launch->residency.resident, __ATOMIC_RELAXED) >= launch->residency.most;
}

/* The block's turn has ended with this state, and the block has not. Returns whether all blocks are idle. Under the
 * residency's lock. */
static bool all_are_idle(struct launch *launch, struct turn *turn, uint64_t state)
{
	struct residency *residency = &launch->residency;
	bool as_before = state == turn->before;
	turn->before = state;
	if (!as_before)
		__atomic_fetch_add(&residency->changes, 1, __ATOMIC_RELEASE);
	uint64_t era = era_of(residency);
	if (turn->era != era)
		return false;
	if (residency->idle_era != era)
		residency->idle = 0;
	residency->idle_era = era;
	residency->idle += turn->idle_era != era;
	turn->idle_era = era;
	return residency->idle >= __atomic_load_n(&residency->resident, __ATOMIC_ACQUIRE) && all_begun(launch);
}

/*
 * Whether the engine has run for long since a block began or ended. Of the time between two looks counts at most what the
 * worker used of the processor in the turn: in the rest of it the system ran something else. What the worker used is measured only
 * if more than UNTIMED_NS had passed between two looks when the block's turn before ended. A block that is not as before may
 * count while it waits for lanes of its warp. Then part of the time counts though other blocks begin and end: each of
 * these may cost it a turn. Under the residency's lock.
 */
static bool nothing_moves(struct launch *launch, struct turn *turn, uint64_t used, bool as_before)
{
	struct residency *residency = &launch->residency;
	uint32_t haste = __atomic_load_n(&launch->kernel->code->haste, __ATOMIC_RELAXED);
	uint64_t moved = __atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) +
			 __atomic_load_n(&residency->ended, __ATOMIC_RELAXED);
	uint64_t now = now_ns(), passed = now - residency->looked;
	uint64_t counts = passed < used ? passed : used;
	turn->used = passed > UNTIMED_NS; /* whether the next turn is measured */
	if (moved == residency->moved)
		residency->unmoved += counts;
	else
		residency->unmoved = as_before ? 0 : residency->unmoved + counts / MOVING_FACTOR;
	residency->moved = moved;
	residency->looked = now;
	return residency->unmoved >= AHEAD_NS >> haste;
}

/* The block's turn has ended with this state, and the block has not; the turn used at most that time of the processor. Under the
 * residency's lock. */
static void look_ahead(struct launch *launch, struct block *block, uint64_t state, uint64_t used)
{
	/* Relaxed: it only decides which path of a warp runs next. */
	if (__atomic_load_n(&launch->ahead, __ATOMIC_RELAXED))
		return;
	uint32_t haste = __atomic_load_n(&launch->kernel->code->haste, __ATOMIC_RELAXED);
	bool as_before = state == block->turn.before;
	if (all_are_idle(launch, &block->turn, state))
		haste = HASTE_MOST;
	else if (nothing_moves(launch, &block->turn, used, as_before))
		haste += haste < HASTE_MOST;
	else
		return;
	__atomic_store_n(&launch->kernel->code->haste, haste, __ATOMIC_RELAXED);
	__atomic_store_n(&launch->ahead, true, __ATOMIC_RELAXED);
}

enum block_outcome residency_run(struct block *block)
{
	enum block_outcome outcome;
	block->turn.era = era_of(&block->launch->residency);
	if (block->turn.used)
		block->turn.used = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	block->turn.stalls = 0;
	block->turn.record = FIRST_RECORD;
	block->turn.compare_until = 0;
	do {
		outcome = block_run(block);
		block->turn.stalls++;
	} while (outcome == BLOCK_STALLED && !turn_is_over(block));
	return outcome;
}

/* ---- suspended blocks */

/*
 * Logs once that the grid may never end: blocks are left that cannot begin, and no resident block has ended for long.
 * The caller holds the residency's lock.
 */
static void report_no_progress(struct launch *launch)
{
	struct residency *residency = &launch->residency;
	uint64_t begun = __atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED), now = now_ns();
	if (begun != residency->begun_before || !residency->begun_since) {
		residency->begun_before = begun;
		residency->begun_since = now;
	}
	bool all_wait = residency->waiting == residency->suspended;
	if (residency->reported || now - residency->begun_since < (all_wait ? REPORT_WAITING_NS : REPORT_RUNNING_NS))
		return;
	residency->reported = true;
	hr_log(all_wait ? HR_LOG_ERROR : HR_LOG_WARN,
	       "softgpu: kernel %s: %" PRIu64 " of the grid's %" PRIu64 " blocks are resident, as many as fit the device; %s, "
	       "none has ended for %u s. If they wait for blocks that have not begun, the kernel never ends: "
	       "launch at most %" PRIu64 " blocks (cuOccupancyMaxActiveBlocksPerMultiprocessor)",
	       launch->kernel->info.name, residency->most * launch->cluster_size, launch->block_count,
	       all_wait ? "each waits in a loop" : "each still runs",
	       (unsigned)((now - residency->begun_since) / 1000000000u), residency->most * launch->cluster_size);
}

void residency_suspend(struct block *block)
{
	struct launch *launch = block->launch;
	struct residency *residency = &launch->residency;
	bool ahead = __atomic_load_n(&launch->ahead, __ATOMIC_RELAXED);
	uint64_t state = ahead ? 0 : block->turn.waiting ? block->turn.state : block_state(block);
	uint64_t used = UNTIMED_NS;
	if (!ahead && block->turn.used)
		used = clock_ns(CLOCK_THREAD_CPUTIME_ID) - block->turn.used;
	block->next = NULL;
	pthread_mutex_lock(&residency->lock);
	*residency->end = block;
	residency->end = &block->next;
	residency->waiting += block->turn.waiting;
	if (!ahead)
		look_ahead(launch, block, state, used);
	__atomic_store_n(&residency->suspended, residency->suspended + 1, __ATOMIC_RELAXED);
	if (__atomic_load_n(&residency->resident, __ATOMIC_RELAXED) >= residency->most &&
	    __atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) < launch->cluster_count)
		report_no_progress(launch);
	pthread_mutex_unlock(&residency->lock);
}

struct block *residency_resume(struct launch *launch)
{
	struct residency *residency = &launch->residency;
	if (!residency_suspended(launch))
		return NULL;
	pthread_mutex_lock(&residency->lock);
	struct block *block = residency->first;
	if (block) {
		residency->first = block->next;
		if (!residency->first)
			residency->end = &residency->first;
		residency->waiting -= block->turn.waiting;
		__atomic_store_n(&residency->suspended, residency->suspended - 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&residency->lock);
	return block;
}
