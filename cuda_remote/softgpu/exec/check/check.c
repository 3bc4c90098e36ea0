/* SPDX-License-Identifier: BSD-3-Clause */
/* The setting, the instructions that check, and the reports. */
#include "cuda_remote/softgpu/exec/check/check.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

HR_SETTING(check_setting, "HEADRACE_SOFTGPU_CHECK", "none", 0, 0,
	   "defects to look for in kernels, separated by commas: init, races; fault, if a defect ends the launch");

#define PLACES_MAX 64  /* pairs of lines for which reports are counted */
#define REPORTS_EACH 4 /* of one place that are logged */

struct place {
	enum check_defect defect;
	uint32_t line, other_line;
	bool write, other_write;
	uint64_t count;
};

struct launch_check {
	uint8_t flags;
	struct grid_check *grid; /* NULL: one block alone, or races are not looked for */
	pthread_mutex_t lock;
	/* Under lock: */
	struct place places[PLACES_MAX];
	uint32_t place_count;
	uint64_t elsewhere; /* reports at other places */
};

int check_wanted(void)
{
	const char *text = hr_setting_text(&check_setting), *at = text;
	int flags = 0;
	if (!strcmp(text, "none") || !strcmp(text, "0"))
		return 0;
	while (*at) {
		size_t length = strcspn(at, ",");
		if (length == 4 && !memcmp(at, "init", 4))
			flags |= CHECK_INIT;
		else if (length == 5 && !memcmp(at, "races", 5))
			flags |= CHECK_RACES;
		else if (length == 5 && !memcmp(at, "fault", 5))
			flags |= CHECK_FAULT;
		else
			break;
		at += length;
		at += *at == ',' && at[1] != '\0';
	}
	if (!*at && flags & (CHECK_INIT | CHECK_RACES))
		return flags;
	hr_log(HR_LOG_ERROR, "softgpu: HEADRACE_SOFTGPU_CHECK=%s: expected none, or init, races or both separated by a "
	       "comma, and \",fault\" at the end if the first defect is to end the launch", text);
	return -1;
}

/* ---- launches */
struct launch_check *check_launch_open(const struct launch *launch)
{
	struct launch_check *check = calloc(1, sizeof *check);
	if (!check) {
		hr_log(HR_LOG_WARN, "softgpu: kernel %s: no memory to check it", launch->kernel->info.name);
		return NULL;
	}
	check->flags = launch->program->checks;
	pthread_mutex_init(&check->lock, NULL);
	if (check->flags & CHECK_RACES && launch->block_count > 1) {
		check->grid = grid_check_open(launch->block_count);
		if (!check->grid)
			hr_log(HR_LOG_WARN, "softgpu: kernel %s: too many blocks to look for races between them",
			       launch->kernel->info.name);
	}
	return check;
}

static void tell_sum(const struct launch *launch, const struct launch_check *check, bool incomplete)
{
	static const char *const names[] = { "reads of shared memory that was never written",
					     "races between warps on shared memory",
					     "races between blocks on global memory" };
	uint64_t counts[3] = { 0 };
	uint32_t places[3] = { 0 };
	for (uint32_t n = 0; n < check->place_count; n++) {
		counts[check->places[n].defect] += check->places[n].count;
		places[check->places[n].defect]++;
	}
	for (int n = 0; n < 3; n++)
		if (counts[n])
			hr_log(HR_LOG_WARN, "softgpu: check: kernel %s: %llu %s, at %u places of the text",
			       launch->kernel->info.name, (unsigned long long)counts[n], names[n], places[n]);
	if (check->elsewhere)
		hr_log(HR_LOG_WARN, "softgpu: check: kernel %s: %llu more at other places", launch->kernel->info.name,
		       (unsigned long long)check->elsewhere);
	if (incomplete)
		hr_log(HR_LOG_WARN, "softgpu: check: kernel %s: accessed more global memory than the check can record; "
		       "races on the rest were not looked for", launch->kernel->info.name);
	if (!check->place_count)
		hr_log(HR_LOG_INFO, "softgpu: check: kernel %s: nothing found", launch->kernel->info.name);
}

void check_launch_close(struct launch *launch)
{
	struct launch_check *check = launch->check;
	bool incomplete = false;
	if (!check)
		return;
	grid_check_close(check->grid, &incomplete);
	tell_sum(launch, check, incomplete);
	pthread_mutex_destroy(&check->lock);
	free(check);
	launch->check = NULL;
}

void check_forget(struct launch *launch, uint64_t address, uint64_t bytes)
{
	if (launch->check && launch->check->grid && address)
		grid_check_forget(launch->check->grid, address, bytes);
}

/* ---- reports */
static struct place *place_of(struct launch_check *check, const struct place *wanted)
{
	for (uint32_t n = 0; n < check->place_count; n++) {
		struct place *place = &check->places[n];
		if (place->defect == wanted->defect && place->line == wanted->line &&
		    place->other_line == wanted->other_line && place->write == wanted->write &&
		    place->other_write == wanted->other_write)
			return place;
	}
	if (check->place_count == PLACES_MAX)
		return NULL;
	check->places[check->place_count] = *wanted;
	return &check->places[check->place_count++];
}

static void describe(const struct check_access *access, enum check_defect defect, const struct check_other *other,
		     char *text, size_t size)
{
	const char *what = access->kind & CHECK_WRITE ? "write" : "read";
	char line[32] = "";
	if (defect == DEFECT_UNWRITTEN) {
		snprintf(text, size, "read of shared memory that was never written");
		return;
	}
	if (other->line)
		snprintf(line, sizeof line, " (ptx line %u)", other->line);
	snprintf(text, size, "%s of %s memory races with a %s by %s %llu%s", what,
		 defect == DEFECT_SHARED_RACE ? "shared" : "global", other->write ? "write" : "read",
		 defect == DEFECT_SHARED_RACE ? "warp" : "block", (unsigned long long)other->number, line);
}

static void log_report(const struct check_access *access, const char *text)
{
	const struct block *block = access->warp->block;
	const struct launch *launch = block->launch;
	uint32_t (*ids)[WARP_LANES] = launch->thread_ids[access->warp->index];
	hr_log(HR_LOG_WARN,
	       "softgpu: check: kernel %s: %s, address 0x%llx, block (%u,%u,%u), thread (%u,%u,%u), ptx line %u",
	       launch->kernel->info.name, text, (unsigned long long)access->address, block->index[0], block->index[1],
	       block->index[2], ids[0][access->lane], ids[1][access->lane], ids[2][access->lane], access->insn->line);
}

bool check_report(const struct check_access *access, enum check_defect defect, const struct check_other *other)
{
	struct launch_check *check = access->warp->block->launch->check;
	struct place wanted = { .defect = defect, .line = access->insn->line, .write = access->kind & CHECK_WRITE };
	char text[160];
	if (other) {
		wanted.other_line = other->line;
		wanted.other_write = other->write;
	}
	pthread_mutex_lock(&check->lock);
	struct place *place = place_of(check, &wanted);
	uint64_t before = place ? place->count++ : ++check->elsewhere;
	pthread_mutex_unlock(&check->lock);
	describe(access, defect, other, text, sizeof text);
	if (check->flags & CHECK_FAULT) {
		warp_fault(access->warp, access->insn, (int)access->lane, CUDA_ERROR_LAUNCH_FAILED, text,
			   access->address);
		return false;
	}
	if (place && before < REPORTS_EACH)
		log_report(access, text);
	return true;
}

/* ---- the instructions */

/* The memory that an address is in, as far as it is checked. */
enum region { REGION_NONE, REGION_SHARED, REGION_GLOBAL };

static enum region region_of(const struct block *block, enum access_space space, uint64_t address, uint64_t bytes,
			     uint64_t *offset)
{
	*offset = address;
	if (space == ACCESS_GENERIC && address >> WINDOW_SHIFT == WINDOW_SHARED) {
		*offset = address - WINDOW_BASE(WINDOW_SHARED);
		space = ACCESS_SHARED;
	}
	/* An access outside of shared memory faults when it is executed. */
	bool inside = bytes <= block->shared_bytes && *offset <= block->shared_bytes - bytes;
	if (space == ACCESS_SHARED)
		return inside ? REGION_SHARED : REGION_NONE;
	return address >> WINDOW_SHIFT ? REGION_NONE : REGION_GLOBAL;
}

/* Checks one access. False: the launch ends. */
static bool check_one(struct check_access *access, enum access_space space, uint64_t address, uint64_t bytes)
{
	struct block *block = access->warp->block;
	struct launch_check *check = block->launch->check;
	uint64_t offset;
	enum region region = region_of(block, space, address, bytes, &offset);
	access->address = address;
	if (!bytes || region == REGION_NONE)
		return true;
	if (check->flags & CHECK_RACES && access->kind & CHECK_STRONG) {
		struct check_access place = *access;
		place.address = region == REGION_SHARED ? WINDOW_BASE(WINDOW_SHARED) + offset : address;
		check_shared_sync(&place);
		if (check->grid && region == REGION_GLOBAL && access->kind & CHECK_WRITE)
			grid_check_publish(check->grid, block->number, access->kind & CHECK_RELEASE);
	}
	if (region == REGION_SHARED)
		return check_shared(access, offset, bytes);
	return !check->grid || check_global(check->grid, access, bytes);
}

bool check_touch(struct warp *warp, const struct insn *insn, uint32_t lane, enum access_space space, uint64_t address,
		 uint64_t bytes, uint8_t kind)
{
	struct check_access access = { .warp = warp, .insn = insn, .kind = kind, .lane = lane };
	return !warp->block->check || check_one(&access, space, address, bytes);
}

static uint64_t address_of(const struct warp *warp, const struct insn *insn, uint32_t lane)
{
	if (insn->flags & INSN_NARROW)
		return (uint32_t)(SOURCE(uint32_t, 4)[lane] + (uint32_t)insn->imm);
	return SOURCE(uint64_t, 4)[lane] + insn->imm;
}

const struct insn *op_check_access(struct warp *warp, const struct insn *insn)
{
	struct check_access access = { .warp = warp, .insn = insn, .kind = insn->size };
	uint32_t lanes = insn->r[1] < WARP_LANES ? (1u << insn->r[1]) - 1 : FULL_MASK;
	if (!warp->block->launch->check || !warp->block->check)
		return insn + 1;
	if (insn->size & CHECK_CARRIES)
		lanes &= ~predicate_of(warp, insn, 3);
	for_each_lane(lane, warp->mask & lanes) {
		uint64_t bytes = insn->r[2] < 0 ? insn->count : SOURCE(uint32_t, 2)[lane];
		access.lane = lane;
		if (!check_one(&access, (enum access_space)insn->slot, address_of(warp, insn, lane), bytes))
			return NULL;
	}
	return insn + 1;
}

const struct insn *op_check_tile(struct warp *warp, const struct insn *insn)
{
	uint32_t lane = (uint32_t)__builtin_ctz(warp->mask), along = (uint32_t)insn->r[2];
	struct check_access access = { .warp = warp, .insn = insn, .kind = insn->size, .lane = lane };
	uint64_t stride = insn->r[3] < 0 ? along : SOURCE(uint32_t, 3)[lane];
	if (!warp->block->launch->check || !warp->block->check)
		return insn + 1;
	for (uint32_t line = 0; line < (uint32_t)insn->r[1]; line++)
		if (!check_one(&access, (enum access_space)insn->slot,
			       address_of(warp, insn, lane) + line * stride * insn->count / 8,
			       (uint64_t)along * insn->count / 8))
			return NULL;
	return insn + 1;
}

const struct insn *op_check_fence(struct warp *warp, const struct insn *insn)
{
	struct block *block = warp->block;
	struct launch_check *check = block->launch->check;
	if (check && block->check)
		check_shared_fence(warp);
	if (check && check->grid)
		grid_check_fence(check->grid, block->number);
	return insn + 1;
}

const struct insn *op_check_acquired(struct warp *warp, const struct insn *insn)
{
	const struct block *block = warp->block;
	if (block->launch->check && block->launch->check->grid)
		grid_check_acquired(block->launch->check->grid, block->number);
	return insn + 1;
}
