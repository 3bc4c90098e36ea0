/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory: a cell for each byte, and the clocks of the block's warps. Only the thread that runs the block
 * accesses them.
 */
#include "cuda_remote/softgpu/exec/check/check.h"

#include "rdma_channel/base/log.h"

#include <stdlib.h>
#include <string.h>

#define SYNC_PLACES 256 /* clocks of addresses; addresses that collide share one, which can only hide a race */
#define CLOCK_MAX (UINT32_MAX / 2)

typedef uint32_t vector_clock[BLOCK_WARPS_MAX];

/* A byte's last write, and its readers since, one bit a warp. */
struct cell {
	uint32_t clock; /* of the writing warp; block_check.start or less: not written in this block */
	uint32_t line;
	uint32_t read_line;    /* of the latest read */
	uint32_t strong_reads; /* warps whose last read was strong */
	uint8_t warp;
	bool strong;
};

struct block_check {
	struct cell *cells; /* by byte */
	uint32_t *reads;    /* by byte and warp: the clock of the warp's last read */
	uint64_t bytes;     /* that cells and reads have room for */
	uint32_t warps;     /* that reads has room for; 0: races are not looked for */
	uint32_t start;     /* clocks up to this one belong to earlier blocks */
	vector_clock at[BLOCK_WARPS_MAX];     /* each warp's clock; its own component is its time */
	vector_clock fenced[BLOCK_WARPS_MAX]; /* the same at its last fence */
	vector_clock barriers[BARRIERS + 1];
	vector_clock places[SYNC_PLACES];
};

static void join(vector_clock into, const vector_clock other)
{
	for (int n = 0; n < BLOCK_WARPS_MAX; n++)
		into[n] = other[n] > into[n] ? other[n] : into[n];
}

static bool make_room(struct block_check *check, uint64_t bytes, uint32_t warps)
{
	if (bytes <= check->bytes && warps <= check->warps)
		return true;
	uint64_t room = bytes > check->bytes ? bytes : check->bytes;
	uint32_t columns = warps > check->warps ? warps : check->warps;
	free(check->cells);
	free(check->reads);
	check->cells = calloc(room + 1, sizeof *check->cells);
	check->reads = calloc((room + 1) * (columns + 1), sizeof *check->reads);
	check->bytes = room;
	check->warps = columns;
	check->start = 0;
	return check->cells && check->reads;
}

void check_block_start(struct block *block)
{
	const struct launch *launch = block->launch;
	struct block_check *check = block->check;
	uint32_t warps = launch->check && launch->program->checks & CHECK_RACES ? block->warp_count : 0, latest = 0;
	if (!launch->check)
		return;
	if (!check)
		check = block->check = calloc(1, sizeof *check);
	if (check)
		for (int n = 0; n < BLOCK_WARPS_MAX; n++)
			latest = check->at[n][n] > latest ? check->at[n][n] : latest;
	if (check && (latest > CLOCK_MAX)) {
		check->bytes = check->warps = 0; /* begins anew with fresh memory */
		latest = 0;
	}
	if (check)
		check->start = latest;
	if (!check || !make_room(check, block->shared_bytes, warps)) {
		hr_log(HR_LOG_WARN, "softgpu: kernel %s: no memory to check a block's shared memory",
		       launch->kernel->info.name);
		check_block_free(block);
		return;
	}
	for (int n = 0; n < BLOCK_WARPS_MAX; n++) {
		for (int other = 0; other < BLOCK_WARPS_MAX; other++)
			check->at[n][other] = check->start;
		check->at[n][n] = check->start + 1;
	}
	memset(check->fenced, 0, sizeof check->fenced);
	memset(check->barriers, 0, sizeof check->barriers);
	memset(check->places, 0, sizeof check->places);
}

void check_block_free(struct block *block)
{
	if (!block->check)
		return;
	free(block->check->cells);
	free(block->check->reads);
	free(block->check);
	block->check = NULL;
}

/* ---- order */
void check_barrier_arrive(struct warp *warp, uint32_t number)
{
	struct block_check *check = warp->block->check;
	if (!check)
		return;
	join(check->barriers[number], check->at[warp->index]);
	check->at[warp->index][warp->index]++;
}

void check_barrier_release(struct block *block, uint32_t number)
{
	struct block_check *check = block->check;
	if (!check)
		return;
	for (uint32_t n = 0; n < block->warp_count; n++) {
		const struct warp *warp = &block->warps[n];
		/* At the cluster's barrier all have arrived, and those that do not wait there yet will. */
		bool waits = number == CLUSTER_BARRIER;
		for (uint32_t i = 0; i < warp->other_count; i++)
			waits |= warp->others[i].state == PATH_BARRIER && warp->others[i].barrier == number;
		if (waits)
			join(check->at[n], check->barriers[number]);
	}
	memset(check->barriers[number], 0, sizeof check->barriers[number]);
}

void check_shared_fence(struct warp *warp)
{
	struct block_check *check = warp->block->check;
	memcpy(check->fenced[warp->index], check->at[warp->index], sizeof(vector_clock));
	check->at[warp->index][warp->index]++;
}

void check_shared_sync(const struct check_access *access)
{
	struct block_check *check = access->warp->block->check;
	uint32_t warp = access->warp->index;
	uint32_t *place = check->places[(access->address >> 2) * UINT64_C(0x9e3779b97f4a7c15) >> 56];
	if (access->kind & CHECK_READ)
		join(check->at[warp], place);
	if (!(access->kind & CHECK_WRITE))
		return;
	join(place, access->kind & CHECK_RELEASE ? check->at[warp] : check->fenced[warp]);
	if (access->kind & CHECK_RELEASE)
		check->at[warp][warp]++;
}

/* ---- accesses */
static bool is_reserved(const struct block *block, uint64_t offset)
{
	uint32_t reserved = block->launch->kernel->reserved_shared;
	return reserved && offset >= reserved - 1 && offset < block->launch->kernel->shared_bytes;
}

/* Reports the last write, if another warp made it and it is not ordered before this access. False: the launch ends. */
static bool after_write(const struct check_access *access, const struct block_check *check, const struct cell *cell,
			bool *reported)
{
	uint32_t warp = access->warp->index;
	bool both_strong = cell->strong && access->kind & CHECK_STRONG;
	if (cell->clock <= check->start || cell->warp == warp || both_strong ||
	    cell->clock <= check->at[warp][cell->warp])
		return true;
	*reported = true;
	return check_report(access, DEFECT_SHARED_RACE,
			    &(struct check_other){ .write = true, .line = cell->line, .number = cell->warp });
}

/* The same for the reads since that write. */
static bool after_reads(const struct check_access *access, const struct block_check *check, const struct cell *cell,
			const uint32_t *reads, bool *reported)
{
	uint32_t warp = access->warp->index;
	for (uint32_t n = 0; n < access->warp->block->warp_count; n++) {
		bool both_strong = cell->strong_reads >> n & 1 && access->kind & CHECK_STRONG;
		if (n == warp || reads[n] <= check->start || reads[n] <= check->at[warp][n] || both_strong)
			continue;
		*reported = true;
		return check_report(access, DEFECT_SHARED_RACE,
				    &(struct check_other){ .write = false, .line = cell->read_line, .number = n });
	}
	return true;
}

/* Looks for races on one byte; *reported: the access has been reported, and is not reported again. */
static bool check_byte(const struct check_access *access, struct block_check *check, uint64_t offset, bool *reported)
{
	struct cell *cell = &check->cells[offset];
	uint32_t warp = access->warp->index, bit = 1u << warp;
	uint32_t *reads = &check->reads[offset * check->warps];
	bool strong = access->kind & CHECK_STRONG;
	if (!*reported && !after_write(access, check, cell, reported))
		return false;
	if (access->kind & CHECK_WRITE)
		return *reported || after_reads(access, check, cell, reads, reported);
	reads[warp] = check->at[warp][warp];
	cell->read_line = access->insn->line;
	cell->strong_reads = strong ? cell->strong_reads | bit : cell->strong_reads & ~bit;
	return true;
}

/*
 * The clock that is recorded for a write. For a strong write it is the clock that the write publishes, so that a warp
 * which has read the write strongly is ordered after it.
 */
static uint32_t time_of_write(const struct check_access *access, const struct block_check *check)
{
	uint32_t warp = access->warp->index, own = check->at[warp][warp], fenced = check->fenced[warp][warp];
	if (access->kind & CHECK_STRONG && access->kind & CHECK_RELEASE && own - 1 > check->start)
		return own - 1; /* with CHECK_INIT alone, own stays at start + 1 */
	return access->kind & CHECK_STRONG && fenced > check->start ? fenced : own;
}

bool check_shared(const struct check_access *access, uint64_t offset, uint64_t bytes)
{
	struct block *block = access->warp->block;
	struct block_check *check = block->check;
	uint8_t flags = block->launch->program->checks;
	bool unwritten = false, reported = false;
	for (uint64_t at = offset; at < offset + bytes; at++) {
		struct cell *cell = &check->cells[at];
		unwritten |= cell->clock <= check->start && !is_reserved(block, at);
		if (flags & CHECK_RACES && !check_byte(access, check, at, &reported))
			return false;
		if (access->kind & CHECK_WRITE) {
			cell->clock = time_of_write(access, check);
			cell->line = access->insn->line;
			cell->warp = (uint8_t)access->warp->index;
			cell->strong = access->kind & CHECK_STRONG;
		}
	}
	if (unwritten && flags & CHECK_INIT && access->kind & CHECK_READ)
		return check_report(access, DEFECT_UNWRITTEN, NULL);
	return true;
}
