/* SPDX-License-Identifier: BSD-3-Clause */
/* Global memory: the last accesses to each word that a grid accesses, and the order between the grid's blocks. */
#include "cuda_remote/softgpu/exec/check/check.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS_MAX (UINT64_C(1) << 20)
#define SHADOW_BYTES_MAX (UINT64_C(2) << 30)
#define EPOCHS_MAX (1u << 20) /* epochs of one block that are recorded; later accesses count as ordered */
#define PAGE_SHIFT 12
#define PAGE_WORDS ((1u << PAGE_SHIFT) / 4)
#define PAGE_SLOTS 65536

/* One access to a word. */
struct trace {
	uint32_t block; /* 1 + its number; 0: none */
	uint32_t epoch; /* of the block; of a strong access: the time, as every later strong read is ordered after it */
	uint32_t line;
	uint8_t mask; /* of the word's bytes */
	bool strong;
};

/* The last write, and the last reads by two different blocks, so that a write by any block is compared with a read of
 * another one. */
struct word {
	struct trace written, read[2];
};

struct page {
	struct page *next;
	uint64_t number;
	struct word words[PAGE_WORDS];
};

/* A block's epochs: a strong write at times[n] published epoch n, for each n below published. */
struct actor {
	uint32_t epoch, published;
	bool touched; /* the epoch has an access that is not strong */
	uint64_t *times;
	uint32_t room;
	uint64_t acquired; /* the time of its last strong read */
};

struct grid_check {
	pthread_mutex_t lock; /* all of what follows: blocks run at the same time */
	uint64_t now;         /* counts strong accesses */
	uint64_t page_count;
	bool incomplete;
	struct actor *actors;
	struct page *pages[PAGE_SLOTS];
	uint64_t blocks;
};

struct grid_check *grid_check_open(uint64_t blocks)
{
	if (blocks > BLOCKS_MAX)
		return NULL;
	struct grid_check *grid = calloc(1, sizeof *grid);
	if (!grid)
		return NULL;
	grid->blocks = blocks;
	grid->actors = calloc(blocks, sizeof *grid->actors);
	if (!grid->actors) {
		free(grid);
		return NULL;
	}
	pthread_mutex_init(&grid->lock, NULL);
	return grid;
}

void grid_check_close(struct grid_check *grid, bool *incomplete)
{
	if (!grid)
		return;
	*incomplete = grid->incomplete;
	for (uint64_t n = 0; n < grid->blocks; n++)
		free(grid->actors[n].times);
	for (uint32_t n = 0; n < PAGE_SLOTS; n++) {
		for (struct page *page = grid->pages[n], *next; page; page = next) {
			next = page->next;
			free(page);
		}
	}
	pthread_mutex_destroy(&grid->lock);
	free(grid->actors);
	free(grid);
}

/* The page of an address; NULL: there is none and make is false, or there is no room for it. */
static struct page *page_of(struct grid_check *grid, uint64_t address, bool make)
{
	uint64_t number = address >> PAGE_SHIFT;
	struct page **slot = &grid->pages[number * UINT64_C(0x9e3779b97f4a7c15) >> 48];
	for (struct page *page = *slot; page; page = page->next)
		if (page->number == number)
			return page;
	if (!make)
		return NULL;
	struct page *page = grid->page_count < SHADOW_BYTES_MAX / sizeof *page ? calloc(1, sizeof *page) : NULL;
	if (!page) {
		grid->incomplete = true;
		return NULL;
	}
	grid->page_count++;
	page->number = number;
	page->next = *slot;
	return *slot = page;
}

/* ---- order */
void grid_check_fence(struct grid_check *grid, uint64_t block)
{
	pthread_mutex_lock(&grid->lock);
	struct actor *actor = &grid->actors[block];
	actor->epoch += actor->touched;
	actor->touched = false;
	pthread_mutex_unlock(&grid->lock);
}

static bool make_room(struct actor *actor)
{
	if (actor->published < actor->room)
		return true;
	uint32_t room = actor->room ? actor->room * 2 : 16;
	uint64_t *grown = room > EPOCHS_MAX ? NULL : realloc(actor->times, room * sizeof *grown);
	if (!grown)
		return false;
	actor->times = grown;
	actor->room = room;
	return true;
}

void grid_check_publish(struct grid_check *grid, uint64_t block, bool release)
{
	pthread_mutex_lock(&grid->lock);
	struct actor *actor = &grid->actors[block];
	if (release) {
		actor->epoch += actor->touched;
		actor->touched = false;
	}
	uint64_t now = ++grid->now;
	for (; actor->published < actor->epoch && make_room(actor); actor->published++)
		actor->times[actor->published] = now;
	pthread_mutex_unlock(&grid->lock);
}

void grid_check_acquired(struct grid_check *grid, uint64_t block)
{
	pthread_mutex_lock(&grid->lock);
	grid->actors[block].acquired = ++grid->now;
	pthread_mutex_unlock(&grid->lock);
}

/* Whether the access that a trace records is ordered before what the block does now. */
static bool ordered(const struct grid_check *grid, const struct trace *trace, uint64_t block)
{
	const struct actor *actor = &grid->actors[trace->block - 1];
	if (trace->strong)
		return trace->epoch <= grid->actors[block].acquired;
	if (trace->epoch >= EPOCHS_MAX / 2)
		return true; /* it may have been published without room to record it */
	return trace->epoch < actor->published && actor->times[trace->epoch] <= grid->actors[block].acquired;
}

/* ---- accesses */
static bool conflicts(const struct grid_check *grid, const struct trace *trace, const struct trace *now)
{
	return trace->block && trace->block != now->block && trace->mask & now->mask &&
	       !(trace->strong && now->strong) && !ordered(grid, trace, now->block - 1);
}

static void note(struct trace *trace, const struct trace *now)
{
	bool same = trace->block == now->block && trace->epoch == now->epoch && trace->strong == now->strong;
	uint8_t mask = same ? trace->mask : 0;
	*trace = *now;
	trace->mask |= mask;
}

/* Records the access. True: it races with an earlier access, *other. */
static bool check_word(const struct grid_check *grid, struct word *word, const struct trace *now, bool write,
		       struct check_other *other)
{
	const struct trace *found = conflicts(grid, &word->written, now) ? &word->written : NULL;
	other->write = found;
	for (int n = 0; write && !found && n < 2; n++)
		if (conflicts(grid, &word->read[n], now))
			found = &word->read[n];
	if (found) {
		other->line = found->line;
		other->number = found->block - 1;
	}
	if (write) {
		note(&word->written, now);
	} else {
		if (word->read[0].block && word->read[0].block != now->block) {
			struct trace last = word->read[0];
			word->read[0] = word->read[1];
			word->read[1] = last;
		}
		/* Slot 0 is now this block's, or that of the block whose last read is older. */
		note(&word->read[0], now);
	}
	return found != NULL;
}

bool check_global(struct grid_check *grid, const struct check_access *access, uint64_t bytes)
{
	uint64_t block = access->warp->block->number, end = access->address + bytes;
	struct check_other other = { 0 };
	bool race = false, strong = access->kind & CHECK_STRONG;
	pthread_mutex_lock(&grid->lock);
	struct actor *actor = &grid->actors[block];
	actor->touched |= !strong;
	struct trace now = { .block = (uint32_t)block + 1, .epoch = strong ? (uint32_t)++grid->now : actor->epoch,
			     .line = access->insn->line, .strong = strong };
	for (uint64_t at = access->address & ~UINT64_C(3); at < end; at += 4) {
		struct page *page = page_of(grid, at, true);
		if (!page)
			break;
		uint32_t mask = 15;
		if (at < access->address)
			mask &= 15u << (access->address - at);
		if (at + 4 > end)
			mask &= 15u >> (at + 4 - end);
		struct check_other found;
		now.mask = (uint8_t)mask;
		struct word *word = &page->words[at % (1u << PAGE_SHIFT) / 4];
		if (check_word(grid, word, &now, access->kind & CHECK_WRITE, &found) && !race) {
			race = true;
			other = found;
		}
	}
	pthread_mutex_unlock(&grid->lock);
	return !race || check_report(access, DEFECT_GLOBAL_RACE, &other);
}

void grid_check_forget(struct grid_check *grid, uint64_t address, uint64_t bytes)
{
	pthread_mutex_lock(&grid->lock);
	for (uint64_t at = address & ~UINT64_C(3); at < address + bytes; at += 4) {
		struct page *page = page_of(grid, at, false);
		if (page)
			memset(&page->words[at % (1u << PAGE_SHIFT) / 4], 0, sizeof page->words[0]);
		else
			at = (at | ((1u << PAGE_SHIFT) - 1)) - 3;
	}
	pthread_mutex_unlock(&grid->lock);
}
