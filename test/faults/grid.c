/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One fault at every place where it can be, both ends of the pipe in one process: the line cut at every byte of set-up and
 * of what follows, every byte of set-up wrong by a bit, descriptors that do not arrive or are others, errors of set-up
 * itself, every allocation failing, every number of descriptors too few. Each time: an error at both ends within a
 * bounded number of calls, told once; what was delivered is exact; both finalize; no descriptor is left.
 *
 * HEADRACE_TEST_LONG=1: every bit, not one of each byte.
 */
#include "config.h"

#include "test/channel/pair.h"
#include "test/faults/two_ends.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- allocations that fail: the linker sends every one of the channel's here ---- */

static long allocations, failing = -1; /* so many so far; the number of the one that fails, -1: none */

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

static bool fails(void)
{
	return allocations++ == failing;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
	return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

/* ---- what must hold ---- */

static const char *what = "";
static long place;

static void expect(bool holds, const char *text, long long value)
{
	if (holds)
		return;
	fprintf(stderr, "%s, at %ld: ", what, place);
	check_failed(__FILE__, __LINE__, text, value);
}

/* Both ends have failed, each with an error that fits, and only with that one from then on. */
static void expect_both_failed(struct two_ends *two, bool may_be_protocol)
{
	expect(!two->stuck, "both ends learn of it", 0);
	for (int i = 0; i < 2; i++) {
		int error = two->ends[i].get_error;
		expect(error == -ECONNRESET || (may_be_protocol && error == -EPROTO), "the error fits", error);
	}
	expect(two->errors_logged <= 2, "at most a line for each end", two->errors_logged);
	ends_check_repeated(two);
}

static void expect_sound(struct two_ends *two)
{
	expect(!two->stuck, "it goes on", 0);
	for (int i = 0; i < 2; i++) {
		expect(!two->ends[i].get_error && !two->ends[i].put_error, "no error", two->ends[i].get_error);
		expect(two->ends[i].got == two->amount, "all arrives", (long long)two->ends[i].got);
	}
}

static void open_sound(struct two_ends *two, const struct line *line, const struct fault_plan *const plans[2])
{
	CHECK_IS(ends_open(two, line, plans), 0);
}

/* ---- the line ---- */

/* Bytes that pass in each direction when nothing is wrong. */
static void measure(const struct line *line, uint64_t amount, uint64_t passed[2])
{
	struct two_ends two;
	open_sound(&two, line, NULL);
	two.amount = amount;
	ends_run(&two);
	expect_sound(&two);
	passed[0] = two.relay.passed[0];
	passed[1] = two.relay.passed[1];
	expect(passed[0] >= 96 && passed[1] >= 96, "set-up takes some bytes", (long long)passed[0]);
	ends_close(&two);
}

static void cut_at_every_byte(const struct line *line)
{
	uint64_t passed[2];
	measure(line, 250, passed);
	for (int direction = 0; direction < 2; direction++) {
		for (uint64_t at = 0; at < passed[direction]; at++) {
			struct two_ends two;
			place = (long)at;
			open_sound(&two, line, NULL);
			two.relay.fault = RELAY_CUT;
			two.relay.direction = direction;
			two.relay.at = at;
			ends_run(&two);
			expect_both_failed(&two, false);
			ends_close(&two);
		}
	}
}

static void flip_in_every_byte(const struct line *line)
{
	uint64_t passed[2];
	const char *wish = getenv("HEADRACE_TEST_LONG");
	unsigned step = wish && !strcmp(wish, "1") ? 1 : 8;
	measure(line, 0, passed);
	for (int direction = 0; direction < 2; direction++) {
		for (uint64_t bit = 0; bit < passed[direction] * 8; bit += step) {
			struct two_ends two;
			place = (long)bit;
			open_sound(&two, line, NULL);
			two.relay.fault = RELAY_FLIP;
			two.relay.direction = direction;
			two.relay.at = bit / 8;
			two.relay.bit = (unsigned)(step == 1 ? bit % 8 : bit / 8 * 5 % 8);
			ends_run(&two);
			expect_both_failed(&two, true);
			ends_close(&two);
		}
	}
}

static void descriptors_lost_or_added(const struct line *line)
{
	uint64_t passed[2];
	if (!line->over_unix)
		return;
	measure(line, 0, passed);
	for (int direction = 0; direction < 2; direction++) {
		struct two_ends two;
		place = direction;
		open_sound(&two, line, NULL);
		two.relay.fault = RELAY_DROP_FDS;
		two.relay.direction = direction;
		ends_run(&two);
		if (line->transport == HR_TRANSPORT_SHM)
			expect_both_failed(&two, true);
		else
			expect_sound(&two);
		ends_close(&two);
		for (uint64_t at = 0; at < passed[direction]; at += 3) {
			place = (long)at;
			open_sound(&two, line, NULL);
			two.relay.fault = RELAY_EXTRA_FD;
			two.relay.direction = direction;
			two.relay.at = at;
			ends_run(&two);
			expect_both_failed(&two, true);
			ends_close(&two);
		}
	}
}

/* ---- within the transport ---- */

/* Runs with a plan for one end; returns what opening gave. */
static int run_with(struct two_ends *two, const struct line *line, int whose, const struct fault_plan *plan)
{
	const struct fault_plan *plans[2] = { NULL, NULL };
	plans[whose] = plan;
	int error = ends_open(two, line, plans);
	two->to_the_end = plan->cut_put_at != FAULT_NEVER || plan->cut_get_at != FAULT_NEVER;
	if (!error)
		ends_run(two);
	return error;
}

static void cut_at_bytes_of_data(const struct line *line)
{
	for (uint64_t at = 0; at < 250; at += at < 80 ? 1 : 13) {
		for (int kind = 0; kind < 4; kind++) {
			struct fault_plan plan = FAULT_PLAN_NONE;
			struct two_ends two;
			int whose = kind & 1;
			*(kind & 2 ? &plan.cut_put_at : &plan.cut_get_at) = at;
			place = (long)at;
			CHECK_IS(run_with(&two, line, whose, &plan), 0);
			expect_both_failed(&two, false);
			/* What lies in shared memory when the line is cut is still delivered. */
			if (line->transport == HR_TRANSPORT_SHM && kind & 2)
				expect(two.ends[!whose].got == two.ends[whose].put, "what was accepted arrives",
				       (long long)two.ends[!whose].got);
			ends_close(&two);
		}
	}
}

static void set_up_fails_at_one_end(const struct line *line)
{
	static const int errors[] = { ENOMEM, EMFILE, EIO };
	for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
		for (int kind = 0; kind < 4; kind++) {
			struct fault_plan plan = FAULT_PLAN_NONE;
			struct two_ends two;
			int whose = kind & 1;
			*(kind & 2 ? &plan.conn_open_error : &plan.establish_error) = (uint64_t)errors[e];
			place = kind;
			CHECK_IS(run_with(&two, line, whose, &plan), 0);
			expect(!two.stuck, "both ends learn of it", 0);
			expect(two.ends[whose].get_error == -errors[e], "the cause", two.ends[whose].get_error);
			expect(two.ends[!whose].get_error == -ECONNRESET, "the peer's", two.ends[!whose].get_error);
			ends_check_repeated(&two);
			ends_close(&two);
		}
	}
}

static void transport_does_not_open(const struct line *line)
{
	static const int errors[] = { ENODEV, ENOMEM, EMFILE };
	for (size_t e = 0; e < sizeof errors / sizeof errors[0]; e++) {
		struct fault_plan plan = FAULT_PLAN_NONE;
		struct two_ends two;
		plan.open_error = (uint64_t)errors[e];
		place = (long)e;
		CHECK_IS(run_with(&two, line, (int)(e & 1), &plan), -errors[e]);
		ends_close(&two);
	}
}

/* A half that is wrong although its sums are right: refused, or of no consequence; never a crash, never silence. */
static void wrong_half_with_right_sums(const struct line *line)
{
	for (uint64_t bit = 1; bit <= 64; bit++) {
		struct fault_plan plan = FAULT_PLAN_NONE;
		struct two_ends two;
		plan.flip_half = bit;
		place = (long)bit;
		CHECK_IS(run_with(&two, line, bit & 1, &plan), 0);
		if (two.ends[0].get_error)
			expect_both_failed(&two, true);
		else
			expect_sound(&two);
		ends_close(&two);
	}
}

static void wrong_descriptors(const struct line *line)
{
	if (line->transport != HR_TRANSPORT_SHM)
		return;
	for (unsigned kind = FAULT_FDS_REFUSED; kind <= FAULT_FDS_UNSEALED; kind++) {
		struct fault_plan plan = FAULT_PLAN_NONE;
		struct two_ends two;
		plan.descriptors = kind;
		place = (long)kind;
		CHECK_IS(run_with(&two, line, (int)(kind & 1), &plan), 0);
		expect_both_failed(&two, true);
		expect(two.ends[kind & 1].get_error == -EPROTO, "it is refused", two.ends[kind & 1].get_error);
		ends_close(&two);
	}
}

/* ---- want of memory and of descriptors ---- */

/* An outcome that is allowed under such want: everything, or an error at both ends, or none to begin with. */
static void expect_error_or_all(struct two_ends *two, int opened)
{
	expect(!two->stuck, "both ends learn of it", 0);
	if (opened)
		return;
	if (two->ends[0].get_error)
		ends_check_repeated(two);
	else
		expect_sound(two);
}

static void every_allocation_fails_once(const struct line *line)
{
	for (failing = 0;; failing++) {
		struct two_ends two;
		allocations = 0;
		place = failing;
		int opened = ends_open(&two, line, NULL);
		if (!opened)
			ends_run(&two);
		bool reached = allocations > failing;
		expect_error_or_all(&two, opened);
		expect(!reached || opened || two.ends[0].get_error, "a lack is not hidden", 0);
		ends_close(&two);
		if (!reached)
			break;
		expect(failing < 1000, "it comes to an end", 0);
	}
	expect(failing > 3, "there are allocations", failing);
	failing = -1;
}

/* The descriptors of the relay come first, so that only the channel's fail. */
static void every_number_of_descriptors(const struct line *line)
{
	struct rlimit before, limit;
	int too_few = 0;
	CHECK_IS(getrlimit(RLIMIT_NOFILE, &before), 0);
	for (rlim_t spare = 0; spare < 24; spare++) {
		struct two_ends two = { 0 };
		int theirs[4];
		for (int i = 0; i < 4; i++) /* what relay_open will take */
			theirs[i] = dup(0);
		limit = before;
		limit.rlim_cur = (rlim_t)theirs[3] + 2 + spare;
		for (int i = 0; i < 4; i++)
			close(theirs[i]);
		CHECK_IS(setrlimit(RLIMIT_NOFILE, &limit), 0);
		place = (long)spare;
		int opened = ends_open(&two, line, NULL);
		if (!opened)
			ends_run(&two);
		CHECK_IS(setrlimit(RLIMIT_NOFILE, &before), 0);
		expect_error_or_all(&two, opened);
		too_few += opened || two.ends[0].get_error;
		ends_close(&two);
	}
	expect(too_few > 0 && too_few < 24, "some are too few and some suffice", too_few);
}

/* ---- all of it ---- */

static const struct {
	const char *name;
	void (*run)(const struct line *line);
} grids[] = {
	{ "the line is cut at every byte", cut_at_every_byte },
	{ "a bit is wrong in every byte of set-up", flip_in_every_byte },
	{ "descriptors are lost or added", descriptors_lost_or_added },
	{ "the line is cut at bytes of data", cut_at_bytes_of_data },
	{ "set-up fails at one end", set_up_fails_at_one_end },
	{ "the transport does not open", transport_does_not_open },
	{ "a half is wrong with right sums", wrong_half_with_right_sums },
	{ "descriptors are others", wrong_descriptors },
	{ "every allocation fails once", every_allocation_fails_once },
	{ "descriptors are too few", every_number_of_descriptors },
};

int main(void)
{
	for (int i = 0; i < n_lines; i++) {
		for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++) {
			what = grids[g].name;
			place = -1;
			grids[g].run(&lines[i]);
			printf("PASS: %s: %s\n", lines[i].name, what);
			fflush(stdout);
		}
	}
	return 0;
}
