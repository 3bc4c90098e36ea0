/* SPDX-License-Identifier: BSD-3-Clause */
/* A block: its memory, the scheduling of its warps, and its barriers (PTX ISA, "bar, barrier"). */
#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/async/warpgroup.h"
#include "cuda_remote/softgpu/exec/collective.h"
#include "cuda_remote/softgpu/exec/warp.h"
#include "cuda_remote/softgpu/memory_map.h"

#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

/* After this many rounds over its warps a block stalls even if it makes progress: its warps may meet at barriers for
 * ever. */
#define BLOCK_ROUNDS 256
#define LOCKSTEP_ROUNDS 8192 /* of one instruction each */
#define ALIGNED(n, to) (((n) + (to)-1) & ~((size_t)(to)-1))

/* Rows of different warps start at different cache sets. */
static size_t warp_stride(const struct softgpu_kernel *kernel)
{
	return ALIGNED(kernel->warp_bytes, 64) + 320;
}

#define STAGE_BYTES ALIGNED(STAGE_ROWS * WARP_LANES * sizeof(uint64_t), 4096)

static bool block_memory(struct block *block, const struct launch *launch)
{
	const struct softgpu_kernel *kernel = launch->kernel;
	size_t warps = ALIGNED(launch->warp_count * sizeof(struct warp), 4096);
	size_t regs = ALIGNED(launch->warp_count * warp_stride(kernel), 4096) + STAGE_BYTES;
	size_t shared = ALIGNED((size_t)launch->shared_bytes + 64, 4096);
	size_t local = (size_t)launch->warp_count * WARP_LANES * launch->local_bytes;
	size_t total = ALIGNED(warps + regs + shared + local, 4096);
	if (total > block->memory_size) {
		free(block->memory);
		block->memory_size = 0;
		block->constants_of = 0;
		block->memory = aligned_alloc(4096, total);
		if (!block->memory)
			return false;
		block->memory_size = total;
	}
	char *at = block->memory;
	block->warps = (struct warp *)(void *)at;
	block->shared = at + warps + regs;
	for (uint32_t n = 0; n < launch->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		warp->regs = at + warps + n * warp_stride(kernel);
		warp->local = at + warps + regs + shared + (size_t)n * WARP_LANES * launch->local_bytes;
	}
	return true;
}

/* The stage is between the warps' rows and the shared memory: an operand can name it by its distance from a warp's
 * rows. */
char *block_stage(const struct block *block)
{
	return block->shared - STAGE_BYTES;
}

/* No instruction writes to the rows of constants, so they stay valid for the launch's other blocks. */
static void write_constants(struct block *block)
{
	const struct launch *launch = block->launch;
	bool new_launch = block->constants_of != launch->grid_id;
	for (const struct code *code = launch->program->codes; code; code = code->next) {
		if (code->function->is_kernel && code != launch->kernel->code)
			continue;
		for (uint32_t n = 0; n < launch->warp_count; n++) {
			struct warp *warp = &block->warps[n];
			if (new_launch)
				memcpy(warp->regs + code->constant_row, code->constant_data, code->constant_bytes);
			warp_fill_rows(warp, code, new_launch);
		}
	}
	block->constants_of = launch->grid_id;
}

static void reset_spans(struct block *block)
{
	uint64_t generation = softgpu_memory_generation();
	if (generation == block->generation && block->constants_of == block->launch->grid_id)
		return;
	block->generation = generation;
	for (int n = 0; n < SPAN_SLOTS; n++)
		block->spans[n] = (struct span_cache){ .low = UINT64_MAX, .high = UINT64_MAX }; /* no access fits */
}

/* The large arrays of a warp are not initialised: they are written before they are read. */
static void warp_start(struct block *block, uint32_t n)
{
	const struct launch *launch = block->launch;
	struct warp *warp = &block->warps[n];
	uint32_t threads = launch->block_threads - n * WARP_LANES;
	warp->block = block;
	warp->index = n;
	warp->mask = 0;
	warp->alone = -1;
	warp->cells4 = NULL;
	warp->depth = 0;
	warp->cluster_arrived = 0;
	warp->products = warp->commits = warp->awaited = 0;
	warp->other_count = 0;
	warp->clock = 0;
	warp->executed = warp->executed_lanes = 0;
	warp->rotate = warp->ahead = warp->unblock = warp->forced = false;
	warp->live = threads >= WARP_LANES ? FULL_MASK : (1u << threads) - 1;
	warp->stop = WARP_YIELD;
	warp->resume = NULL;
	if (launch->program->has_recursion)
		memset(warp->saved, 0, sizeof warp->saved);
	warp_park(warp, launch->kernel->code->insns, warp->live, PATH_READY);
}

/* Finds the block's index in the grid: the clusters' numbers count along x first, and so do the ranks in a cluster. */
static void place_in_grid(struct block *block, uint64_t cluster)
{
	const struct launch *launch = block->launch;
	const uint32_t *grid = launch->request->grid;
	uint32_t rank = block->rank;
	if (launch->cluster_size == 1) { /* with few divisions, which cost small blocks time */
		uint64_t row = cluster < grid[0] ? 0 : cluster / grid[0], plane = row < grid[1] ? 0 : row / grid[1];
		block->index[0] = (uint32_t)(cluster - row * grid[0]);
		block->index[1] = (uint32_t)(row - plane * grid[1]);
		block->index[2] = (uint32_t)plane;
		return;
	}
	for (int i = 0; i < 3; i++) {
		uint32_t size = launch->cluster[i], clusters = grid[i] / size;
		block->index[i] = (uint32_t)(cluster % clusters) * size + rank % size;
		cluster /= clusters;
		rank /= size;
	}
}

static bool prepare_member(struct block *block, struct block *first, struct launch *launch, uint64_t cluster, uint32_t rank)
{
	if (!block_memory(block, launch))
		return false;
	block->launch = launch;
	block->first = first;
	block->rank = rank;
	block->number = cluster * launch->cluster_size + rank;
	place_in_grid(block, cluster);
	block->warp_count = launch->warp_count;
	block->warps_done = 0;
	block->warpgroup_waits = 0;
	block->live_threads = launch->block_threads;
	block->shared_bytes = launch->shared_bytes;
	block->turn = (struct turn){ 0 };
	block->print = (struct print_buffer){ .text = block->print.text, .room = block->print.room };
	memset(block->barriers, 0, sizeof block->barriers);
	for (uint32_t n = 0; n < block->warp_count; n++)
		warp_start(block, n);
	reset_spans(block);
	write_constants(block);
	check_block_start(block);
	return true;
}

bool block_prepare(struct block *first, struct launch *launch, uint64_t number)
{
	first->members[0] = first;
	first->cluster_arrivals = false;
	for (uint32_t rank = 0; rank < launch->cluster_size; rank++) {
		if (!first->members[rank])
			first->members[rank] = calloc(1, sizeof *first);
		if (!first->members[rank] || !prepare_member(first->members[rank], first, launch, number, rank))
			return false;
	}
	return true;
}

size_t block_bytes(const struct block *first, uint32_t ranks)
{
	size_t bytes = first->memory_size;
	for (uint32_t rank = 1; rank < ranks; rank++)
		bytes += first->members[rank] ? first->members[rank]->memory_size : 0;
	return bytes;
}

static void drop_saved_frames(struct block *block)
{
	for (uint32_t n = 0; n < block->warp_count; n++)
		warp_drop_saved(&block->warps[n]);
}

/* Runs one instruction of the warp. Its remaining fuel is for the instructions after it. */
static enum warp_stop step_warp(struct warp *warp)
{
	const struct insn *insn = warp->resume;
	if (!insn) {
		warp->fuel = WARP_FUEL;
		insn = warp_next_path(warp);
	}
	if (insn)
		warp->block->launch->program->ops->run_step(warp, insn);
	return warp->stop;
}

static enum warp_stop run_warp(struct warp *warp)
{
	const struct launch *launch = warp->block->launch;
	if (launch->lockstep)
		return step_warp(warp);
	warp->fuel = WARP_FUEL;
	const struct insn *insn = warp_next_path(warp);
	if (insn)
		(launch->counting ? launch->program->ops->run_counting : launch->program->ops->run)(warp, insn);
	return warp->stop;
}

/* No warp can go on. Lets the lanes go on alone that wait for lanes of their own warp: a barrier may wait for them.
 * False: there are none, so the block waits for ever. */
static bool unblock(struct block *block)
{
	bool any = false;
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		for (uint32_t i = 0; warp->stop == WARP_BLOCKED && i < warp->other_count; i++)
			if (warp->others[i].state == PATH_CONVERGE)
				warp->unblock = true;
		if (!warp->unblock)
			continue;
		warp->stop = WARP_YIELD;
		any = true;
	}
	return any;
}

static enum block_outcome deadlock(struct block *block)
{
	int none = 0;
	/* Only which fault came first matters; the launch's end orders everything else. */
	if (__atomic_compare_exchange_n(&block->launch->fault, &none, CUDA_ERROR_LAUNCH_FAILED, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		hr_log(HR_LOG_ERROR, "softgpu: kernel %s: block (%u,%u,%u) waits for ever at %s",
		       block->launch->kernel->info.name, block->index[0], block->index[1], block->index[2],
		       block->warpgroup_waits ? "wgmma.wait_group" : "a barrier");
	return BLOCK_FAULT;
}

/* The outcome for a block that cannot go on by itself now: it stalls, or ends because another block has faulted. */
static enum block_outcome stall(const struct block *block)
{
	/* Relaxed: nothing is read that another block wrote. */
	return __atomic_load_n(&block->launch->fault, __ATOMIC_RELAXED) ? BLOCK_FAULT : BLOCK_STALLED;
}

/* What happened in a round over the warps of a cluster. */
struct round {
	bool runnable, progress; /* some warp ran; some warp did not only use up its fuel */
	bool unblocked;          /* of a block whose warps could not go on, one can now */
	bool fault;
	uint32_t done;           /* blocks that have ended */
};

/* Inlined, so that what it has seen stays in registers: small blocks are faster. */
static inline __attribute__((always_inline)) void run_round(struct block *block, struct round *seen)
{
	bool runnable = false;
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		if (warp->stop != WARP_YIELD && warp->stop != WARP_PREEMPTED)
			continue;
		enum warp_stop stop = run_warp(warp);
		runnable = true;
		seen->progress |= stop != WARP_YIELD;
		block->warps_done += stop == WARP_DONE;
		if (stop == WARP_FAULT) {
			seen->fault = true;
			return;
		}
	}
	if (block->warps_done == block->warp_count)
		seen->done++;
	else if (!runnable && !cluster_barrier_waits(block))
		seen->unblocked |= unblock(block); /* no other block can let it go on */
	seen->runnable |= runnable;
}

/* No warp of the cluster can go on. Returns whether one can now. */
static bool unblock_all(struct block *first)
{
	bool any = false;
	for (uint32_t rank = 0; rank < first->launch->cluster_size; rank++)
		any |= unblock(first->members[rank]);
	return any;
}

static struct block *first_not_done(struct block *first)
{
	uint32_t rank = 0;
	while (first->members[rank]->warps_done == first->members[rank]->warp_count)
		rank++;
	return first->members[rank];
}

enum block_outcome block_run(struct block *first)
{
	const struct launch *launch = first->launch;
	enum block_outcome outcome = BLOCK_STALLED;
	uint32_t size = launch->cluster_size, rounds = launch->lockstep ? LOCKSTEP_ROUNDS : BLOCK_ROUNDS;
	for (uint32_t round = 1; outcome == BLOCK_STALLED; round++) {
		struct round seen = { 0 };
		for (uint32_t rank = 0; rank < size && !seen.fault; rank++)
			run_round(first->members[rank], &seen);
		if (seen.fault)
			outcome = BLOCK_FAULT;
		else if (seen.done == size)
			outcome = BLOCK_DONE;
		else if (!seen.runnable && !seen.unblocked && !unblock_all(first))
			outcome = deadlock(first_not_done(first));
		else if (seen.runnable && (!seen.progress || round >= rounds) && (outcome = stall(first)) == BLOCK_STALLED)
			return BLOCK_STALLED;
	}
	for (uint32_t rank = 0; rank < size && launch->program->has_recursion; rank++)
		drop_saved_frames(first->members[rank]);
	return outcome;
}

void block_free(struct block *first)
{
	for (uint32_t rank = SOFTGPU_CLUSTER_MAX; rank-- > 0;) {
		struct block *block = rank ? first->members[rank] : first;
		if (!block)
			continue;
		free(block->memory);
		free(block->print.text);
		check_block_free(block);
		free(block);
	}
}

/* ---- barriers */
static void barrier_write_result(struct warp *warp, struct path *path, const struct barrier *barrier)
{
	const struct insn *insn = path->at;
	uint32_t value = insn->count == BARRIER_POPC ? barrier->ones :
			 insn->count == BARRIER_AND ? barrier->zeros == 0 : barrier->ones != 0;
	if (insn->handler != op_bar_red)
		return;
	if (insn->count == BARRIER_POPC) {
		uint32_t *row = RESULT(uint32_t, 0);
		for_each_lane(lane, path->mask)
			row[lane] = value;
		return;
	}
	uint32_t *row = (uint32_t *)(void *)(warp->regs + insn->r[0]);
	*row = value ? *row | path->mask : *row & ~path->mask;
}

static void barrier_release(struct block *block, uint32_t number)
{
	struct barrier *barrier = &block->barriers[number];
	if (block->launch->check)
		check_barrier_release(block, number);
	for (uint32_t n = 0; n < block->warp_count; n++) {
		struct warp *warp = &block->warps[n];
		for (uint32_t i = 0; i < warp->other_count; i++) {
			struct path *path = &warp->others[i];
			if (path->state != PATH_BARRIER || path->barrier != number)
				continue;
			barrier_write_result(warp, path, barrier);
			path->state = PATH_READY;
			path->at++;
			if (warp->stop == WARP_BLOCKED)
				warp->stop = WARP_YIELD;
		}
	}
	*barrier = (struct barrier){ 0 };
}

/* Releases the barrier if all threads that it waits for have arrived. */
static void barrier_check(struct block *block, uint32_t number)
{
	const struct barrier *barrier = &block->barriers[number];
	uint32_t wanted = barrier->expected ? barrier->expected : block->live_threads;
	if (barrier->arrived && barrier->arrived >= wanted)
		barrier_release(block, number);
}

void block_exit_threads(struct block *block, uint32_t count)
{
	block->live_threads -= count;
	for (uint32_t n = 0; n < BARRIERS; n++)
		if (block->barriers[n].arrived)
			barrier_check(block, n);
	if (block->first->cluster_arrivals)
		cluster_barrier_check(block);
	warpgroup_check(block);
}

/* Keeps the running lanes that name the first lane's barrier and thread count; the others will execute insn again. */
static void keep_same_barrier(struct warp *warp, const struct insn *insn, uint32_t number, uint32_t threads)
{
	uint32_t same = 0;
	for_each_lane(lane, warp->mask)
		same |= (uint32_t)(SOURCE(uint32_t, 1)[lane] == number && SOURCE(uint32_t, 2)[lane] == threads) << lane;
	if (same == warp->mask)
		return;
	warp_park(warp, insn, warp->mask & ~same, PATH_READY);
	warp_set_mask(warp, same);
}

/* Counts the running path as arrived; NULL after a fault. If a thread count is given, a whole warp counts as 32
 * threads. */
static struct barrier *barrier_arrive(struct warp *warp, const struct insn *insn, uint32_t *number)
{
	uint32_t leader = (uint32_t)__builtin_ctz(warp->mask), threads = SOURCE(uint32_t, 2)[leader];
	*number = SOURCE(uint32_t, 1)[leader];
	if (*number >= BARRIERS || threads % WARP_LANES || threads > BLOCK_WARPS_MAX * WARP_LANES) {
		warp_fault(warp, insn, (int)leader, CUDA_ERROR_ILLEGAL_INSTRUCTION, "barrier number or thread count",
			   *number);
		return NULL;
	}
	if (!insn->size)
		keep_same_barrier(warp, insn, *number, threads);
	struct barrier *barrier = &warp->block->barriers[*number];
	bool whole = threads && warp->mask == warp->live;
	if (warp->block->launch->check)
		check_barrier_arrive(warp, *number);
	barrier->expected = threads;
	barrier->arrived += whole ? WARP_LANES : (uint32_t)__builtin_popcount(warp->mask);
	return barrier;
}

static const struct insn *barrier_wait(struct warp *warp, const struct insn *insn, uint32_t number)
{
	warp->others[warp->other_count++] = (struct path){ .at = insn,
							   .mask = warp->mask,
							   .depth = warp->depth,
							   .state = PATH_BARRIER,
							   .barrier = (uint8_t)number,
							   .age = warp->clock++ };
	barrier_check(warp->block, number);
	return warp_next_path(warp);
}

const struct insn *op_bar_sync(struct warp *warp, const struct insn *insn)
{
	uint32_t number;
	return barrier_arrive(warp, insn, &number) ? barrier_wait(warp, insn, number) : NULL;
}

const struct insn *op_bar_arrive(struct warp *warp, const struct insn *insn)
{
	uint32_t number;
	if (!barrier_arrive(warp, insn, &number))
		return NULL;
	barrier_check(warp->block, number);
	return insn + 1;
}

const struct insn *op_bar_red(struct warp *warp, const struct insn *insn)
{
	uint32_t number;
	struct barrier *barrier = barrier_arrive(warp, insn, &number);
	if (!barrier)
		return NULL;
	barrier->ones += (uint32_t)__builtin_popcount(predicate_of(warp, insn, 3) & warp->mask);
	barrier->zeros += (uint32_t)__builtin_popcount(~predicate_of(warp, insn, 3) & warp->mask);
	return barrier_wait(warp, insn, number);
}
