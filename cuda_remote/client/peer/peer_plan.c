/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a copy between two servers travels (HEADRACE_PEER): the versions of C. Reaño and F. Silla, "On the support of
 * inter-node P2P GPU memory copies in rCUDA", 2019. A: by buffers in device memory. B: by buffers in pinned host memory.
 *
 *	1  no buffers                                   3  several buffers, filled and emptied at the same time
 *	2  one large buffer; the steps follow one       4  as 3, number and size of the buffers by the size of the copy
 *	   another
 *
 * The paper's hybrid takes 4A for small copies and 4B for large ones, with the buffers that were best on the paper's machines.
 * Ours takes, for each class of sizes, the way and the buffers that were fastest when the link was opened; 4 takes the fastest
 * buffers of its way.
 */
#include "cuda_remote/client/peer/peer.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "rdma_channel/base/log.h"

#include "rdma_channel/base/setting.h"

#include <string.h>
#include <time.h>

HR_SETTING(version, "HEADRACE_PEER", "hybrid", 0, 0,
	   "how copies between GPUs of two servers travel: hybrid, 1, 2a, 2b, 3a, 3b, 4a or 4b: from worker to worker; "
	   "client: by way of the program's process");
HR_SETTING(buffers, "HEADRACE_PEER_BUFFERS", "4", 1, RC_PEER_BUFFERS_MAX, "number of buffers of HEADRACE_PEER=3a and 3b");
HR_SETTING(chunk, "HEADRACE_PEER_CHUNK", "512k", RC_PEER_CHUNK_MIN, RC_PEER_CHUNK_MAX,
	   "bytes of a buffer of HEADRACE_PEER=3a and 3b");

HR_SETTING(measuring, "HEADRACE_PEER_MEASURE_MS", "1200", 1, 60000,
	   "time for measuring a link between two servers (HEADRACE_PEER=hybrid, 4a, 4b), ms; the first copies wait for it");

#define LARGE (16u << 20) /* the buffer of version 2 */
#define TURNS 3
#define KB 1024u
#define MB (1024u * KB)

enum version { CLIENT, HYBRID, VERSION_1, VERSION_2A, VERSION_2B, VERSION_3A, VERSION_3B, VERSION_4A, VERSION_4B, VERSIONS };

static const char *const names[VERSIONS] = { "client", "hybrid", "1", "2a", "2b", "3a", "3b", "4a", "4b" };
static const char *const way_names[RC_PEER_WAYS] = {
	[RC_PEER_BY_NONE] = "no buffers", [RC_PEER_BY_DEVICE] = "buffers in device memory",
	[RC_PEER_BY_HOST] = "buffers in pinned memory",
};
static enum version chosen;
static uint64_t buffers_wanted, chunk_wanted, measuring_ms;

CUresult rc_peer_prepare(void)
{
	const char *text = hr_setting_text(&version);
	unsigned i = 0;
	while (i < VERSIONS && strcmp(text, names[i]))
		i++;
	if (i == VERSIONS) {
		hr_log(HR_LOG_ERROR, "HEADRACE_PEER=%s is unknown; unset it, or set it to hybrid, client, 1, 2a, 2b, 3a, 3b, "
		       "4a or 4b", text);
		return CUDA_ERROR_INVALID_VALUE;
	}
	chosen = (enum version)i;
	bool wrong = hr_setting_u64(&buffers, &buffers_wanted) || hr_setting_u64(&chunk, &chunk_wanted) ||
		     hr_setting_u64(&measuring, &measuring_ms);
	return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

unsigned rc_peer_measuring_ms(void)
{
	return (unsigned)measuring_ms;
}

bool rc_peer_by_link(void)
{
	return chosen != CLIENT;
}

static struct rc_wire_peer_plan plan_of(enum rc_peer_way way, uint32_t n, uint32_t bytes)
{
	return (struct rc_wire_peer_plan){ .way = way, .buffers = n, .chunk = bytes };
}

/* The paper's buffers for version 4, where nothing could be measured. */
static struct rc_wire_peer_plan by_size(enum rc_peer_way way, uint64_t bytes)
{
	if (way == RC_PEER_BY_DEVICE)
		return bytes > 4 * MB ? plan_of(way, 16, 256 * KB) : plan_of(way, 2, bytes > 700 * KB ? 512 * KB : MB);
	if (bytes > 4 * MB)
		return plan_of(way, 4, bytes > 14 * MB ? MB : 512 * KB);
	return plan_of(way, 8, bytes > 600 * KB ? 256 * KB : 128 * KB);
}

static struct rc_wire_peer_plan plan_for(enum version which, uint64_t bytes)
{
	enum rc_peer_way a = RC_PEER_BY_DEVICE, b = RC_PEER_BY_HOST;
	uint32_t large = bytes > LARGE ? LARGE : bytes < RC_PEER_CHUNK_MIN ? RC_PEER_CHUNK_MIN : (uint32_t)bytes;
	switch (which) {
	case VERSION_2A: case VERSION_2B:
		return plan_of(which == VERSION_2A ? a : b, 1, large);
	case VERSION_3A: case VERSION_3B:
		return plan_of(which == VERSION_3A ? a : b, (uint32_t)buffers_wanted, (uint32_t)chunk_wanted);
	default:
		return plan_of(RC_PEER_BY_NONE, 0, 0);
	}
}

/* ---- hybrid, 4A and 4B ---- */

/* Copies up to `most` bytes use the plan that was fastest with `tried` bytes. */
static const struct {
	uint64_t most;
	uint32_t tried;
} classes[RC_PEER_CLASSES] = {
	{ 64 * KB, 64 * KB }, { 256 * KB, 256 * KB }, { 512 * KB, 512 * KB }, { MB, MB }, { 2 * MB, 2 * MB },
	{ 4 * MB, 4 * MB }, { 8 * MB, 8 * MB }, { 16 * MB, 12 * MB }, { UINT64_MAX, 16 * MB },
};

/* What is tried: the ways, each with its buffers from small to large. The first needs nothing of the driver. */
static const struct rc_wire_peer_plan candidates[] = {
	{ .way = RC_PEER_BY_HOST, .buffers = 8, .chunk = 32 * KB },
	{ .way = RC_PEER_BY_HOST, .buffers = 8, .chunk = 64 * KB },
	{ .way = RC_PEER_BY_HOST, .buffers = 8, .chunk = 128 * KB },
	{ .way = RC_PEER_BY_HOST, .buffers = 8, .chunk = 256 * KB },
	{ .way = RC_PEER_BY_HOST, .buffers = 4, .chunk = 512 * KB },
	{ .way = RC_PEER_BY_HOST, .buffers = 4, .chunk = MB },
	{ .way = RC_PEER_BY_HOST, .buffers = 4, .chunk = 4 * MB },
	{ .way = RC_PEER_BY_NONE },
	{ .way = RC_PEER_BY_DEVICE, .buffers = 8, .chunk = 64 * KB },
	{ .way = RC_PEER_BY_DEVICE, .buffers = 16, .chunk = 256 * KB },
	{ .way = RC_PEER_BY_DEVICE, .buffers = 4, .chunk = 512 * KB },
	{ .way = RC_PEER_BY_DEVICE, .buffers = 4, .chunk = MB },
};
#define CANDIDATES (sizeof candidates / sizeof *candidates)

static bool is_measured(void)
{
	return chosen == HYBRID || chosen == VERSION_4A || chosen == VERSION_4B;
}

CUresult rc_peer_plan(const struct rc_peer_plans *plans, uint64_t bytes, struct rc_wire_peer_plan *plan)
{
	int class = 0;
	while (bytes > classes[class].most)
		class++;
	*plan = is_measured() ? plans->best[class] : plan_for(chosen, bytes);
	if (plan->way == RC_PEER_BY_HOST || plans->direct)
		return CUDA_SUCCESS;
	hr_log_once(HR_LOG_ERROR, "HEADRACE_PEER=%s needs servers whose processors can use the GPU's memory; set it to "
		    "hybrid, 2b, 3b, 4b or client", names[chosen]);
	return CUDA_ERROR_NOT_SUPPORTED;
}

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Returns whether a copy of this size is to be measured with the candidate. Of all buffers that hold the whole copy, only the
 * smallest are tried. */
static bool is_worth_trying(unsigned i, uint32_t bytes, bool direct)
{
	uint32_t way = candidates[i].way;
	if ((way != RC_PEER_BY_HOST && !direct) || (chosen == VERSION_4A && way != RC_PEER_BY_DEVICE) ||
	    (chosen == VERSION_4B && way != RC_PEER_BY_HOST))
		return false;
	return i == 0 || candidates[i - 1].way != candidates[i].way || candidates[i - 1].chunk < bytes;
}

/* The candidates are tried in turn, as other work may disturb any of the trials. After the first turn, those that took much
 * longer than the fastest are left out. *fastest: the candidate to begin with; then the fastest of those tried until the time
 * was over. False: none could be tried. */
static bool choose(unsigned *fastest, uint32_t bytes, bool direct, int64_t until, rc_peer_measure_fn measure, void *context)
{
	uint64_t least = UINT64_MAX, took[CANDIDATES], now;
	unsigned first = *fastest;
	for (unsigned i = 0; i < CANDIDATES; i++)
		took[i] = is_worth_trying(i, bytes, direct) ? 0 : UINT64_MAX;
	for (unsigned try = 0; try < TURNS * CANDIDATES && (now_ns() < until || !try); try++) {
		unsigned i = (first + try) % CANDIDATES;
		if (took[i] / 2 > least || took[i] == UINT64_MAX)
			continue;
		CUresult result = measure(context, &candidates[i], bytes, &now);
		hr_log(HR_LOG_DEBUG, "copy between servers of %u bytes: %s, %u of %u bytes: %llu ns (CUresult %d)", (unsigned)bytes,
		       way_names[candidates[i].way], (unsigned)candidates[i].buffers, (unsigned)candidates[i].chunk,
		       result == CUDA_SUCCESS ? (unsigned long long)now : 0, (int)result);
		if (result != CUDA_SUCCESS) {
			took[i] = UINT64_MAX;
			continue;
		}
		took[i] = !took[i] || now < took[i] ? now : took[i];
		if (now < least) {
			least = now;
			*fastest = i;
		}
	}
	return least < UINT64_MAX;
}

/* The workers allocate buffers in trials only. */
static void make_buffers(const struct rc_peer_plans *plans, rc_peer_measure_fn measure, void *context)
{
	struct rc_wire_peer_plan plan = plan_for(chosen, LARGE);
	uint64_t ns;
	if (plan.way == RC_PEER_BY_HOST || (plan.way == RC_PEER_BY_DEVICE && plans->direct))
		(void)measure(context, &plan, RC_PEER_CHUNK_MIN, &ns);
}

void rc_peer_plans_choose(struct rc_peer_plans *plans, rc_peer_measure_fn measure, void *context)
{
	unsigned fastest = 0;
	bool measured = false;
	int64_t begin = now_ns();
	if (!is_measured())
		make_buffers(plans, measure, context);
	for (int class = 0; class < RC_PEER_CLASSES; class++) {
		struct rc_wire_peer_plan *best = &plans->best[class];
		/* Time that a class does not need is left for the larger ones. */
		int64_t until = begin + (int64_t)measuring_ms * 1000000 * (class + 1) / RC_PEER_CLASSES;
		uint32_t tried = classes[class].tried;
		if (is_measured())
			measured = choose(&fastest, tried, plans->direct, until, measure, context) || measured;
		*best = measured ? candidates[fastest] : by_size(chosen == VERSION_4A ? RC_PEER_BY_DEVICE : RC_PEER_BY_HOST, tried);
		if (is_measured())
			hr_log(HR_LOG_INFO, "copies between servers of up to %llu bytes: %s, %u of %u bytes",
			       (unsigned long long)classes[class].most, way_names[best->way], (unsigned)best->buffers,
			       (unsigned)best->chunk);
	}
}
