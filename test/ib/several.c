/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy over verbs, on the libibverbs double: how many pieces one put announces. The sender puts once and then calls
 * nothing. The receiver gets what this put has announced, and nothing else. And how a receiver that looks ahead has several
 * messages read at a time, although the header of each comes behind the message before it; and when the threshold is measured.
 */
#include "config.h"

#include "rdma_channel/upper.h"
#include "test/channel/pair.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECES = 40, LENGTH = 70000 };

static void connect_with(struct side *side, const char *announced)
{
	hr_channel_attr_t attr = side_attr(side);
	setenv("HEADRACE_IB_DESIGN", "zerocopy", 1);
	if (announced)
		setenv("HEADRACE_IB_ANNOUNCED", announced, 1);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
}

/* Puts once, and waits until the peer has what this put has announced. Then puts the rest. */
static void put_once(struct side *side, struct iovec *iov)
{
	size_t accepted;
	pattern_fill(1, 0, iov[0].iov_base, (size_t)PIECES * LENGTH);
	CHECK_IS(hr_channel_put(side->conn, iov, PIECES, &accepted), 0);
	CHECK_IS(accepted, 0);
	side_meet(side);
	side_meet(side);
	put_all_iov(side, iov, PIECES);
}

static void get_announced(struct side *side, struct iovec *iov, int announced)
{
	side_meet(side);
	get_all_iov(side, iov, announced);
	for (int i = 0; i < 2000; i++) {
		size_t delivered;
		CHECK_IS(hr_channel_get(side->conn, iov + announced, PIECES - announced, &delivered), 0);
		CHECK_IS(delivered, 0);
	}
	side_meet(side);
	get_all_iov(side, iov + announced, PIECES - announced);
}

static void announces(struct side *side, const char *setting, int number)
{
	uint8_t *bytes = calloc(PIECES, LENGTH);
	struct iovec iov[PIECES];
	CHECK(bytes);
	for (int i = 0; i < PIECES; i++)
		iov[i] = (struct iovec){ bytes + (size_t)i * LENGTH, LENGTH };
	connect_with(side, setting);
	if (side->index == 0) {
		put_once(side, iov);
	} else {
		get_announced(side, iov, number);
		pattern_check(1, 0, bytes, (size_t)PIECES * LENGTH);
	}
	free(bytes);
}

static void one_is_announced(struct side *side)
{
	announces(side, "1", 1);
}

static void five_are_announced(struct side *side)
{
	announces(side, "5", 5);
}

static void as_many_as_by_default(struct side *side)
{
	announces(side, NULL, 32);
}

/* ---- looking ahead ---- */

enum { MESSAGES = 12, HEADER = 48, MESSAGE = HEADER + LENGTH, LATENCY_NS = 1000000000 };

static void put_messages(struct side *side, uint8_t *bytes)
{
	struct iovec iov[2 * MESSAGES];
	pattern_fill(1, 0, bytes, (size_t)MESSAGES * MESSAGE);
	for (int i = 0; i < MESSAGES; i++) {
		iov[2 * i] = (struct iovec){ bytes + (size_t)i * MESSAGE, HEADER };
		iov[2 * i + 1] = (struct iovec){ bytes + (size_t)i * MESSAGE + HEADER, LENGTH };
	}
	put_all_iov(side, iov, 2 * MESSAGES);
}

static uint64_t registrations(const struct side *side)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	return stats.registration_hits + stats.registration_misses;
}

/* Gets the first header. Then offers the memory of a message only when its header has been seen. */
static void get_ahead(struct side *side, uint8_t *bytes)
{
	struct iovec header = { bytes, HEADER };
	size_t known = 1, delivered = 0;
	uint64_t planned = 0;
	get_all_iov(side, &header, 1);
	struct iovec iov[2 * MESSAGES] = { { bytes + HEADER, LENGTH } };
	while (delivered == 0) {
		CHECK_IS(hr_channel_get(side->conn, iov, (int)(2 * known - 1), &delivered), 0);
		planned = registrations(side);
		uint8_t seen[HEADER];
		size_t skip = known * MESSAGE - HEADER;
		if (delivered || known == MESSAGES || hr_conn_ahead(side->conn, skip, seen, HEADER) < HEADER)
			continue;
		pattern_check(1, known * MESSAGE, seen, HEADER);
		iov[2 * known - 1] = (struct iovec){ bytes + known * MESSAGE, HEADER };
		iov[2 * known] = (struct iovec){ bytes + known * MESSAGE + HEADER, LENGTH };
		known++;
	}
	/* All of them are being read before the first has been delivered: reads take a second. */
	CHECK_IS(known, MESSAGES);
	CHECK_IS(planned, MESSAGES);
	size_t done = HEADER + delivered;
	struct iovec rest = { bytes + done, (size_t)MESSAGES * MESSAGE - done };
	get_all_iov(side, &rest, 1);
}

static void messages_are_read_ahead(struct side *side)
{
	uint8_t *bytes = calloc(MESSAGES, MESSAGE);
	char text[16];
	CHECK(bytes);
	snprintf(text, sizeof text, "%d", LATENCY_NS);
	if (side->index == 1)
		setenv("HR_VERBS_DOUBLE_LATENCY_NS", text, 1);
	connect_with(side, NULL);
	if (side->index == 0) {
		put_messages(side, bytes);
	} else {
		get_ahead(side, bytes);
		pattern_check(1, 0, bytes, (size_t)MESSAGES * MESSAGE);
	}
	side_meet(side);
	free(bytes);
}

/* ---- the threshold ---- */

static uint64_t zero_copy_puts(const struct side *side)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	return stats.zero_copy_puts;
}

/* Puts a byte before each piece, 1, and 0 at the end. Returns when a piece has not gone by zero copy. */
static void put_until_copied(struct side *side, uint8_t *bytes)
{
	uint8_t more = 1;
	struct iovec iov[] = { { &more, 1 }, { bytes, LENGTH } };
	uint64_t before;
	pattern_fill(1, 0, bytes, LENGTH);
	do {
		before = zero_copy_puts(side);
		put_all_iov(side, (struct iovec[]){ iov[0], iov[1] }, 2);
	} while (zero_copy_puts(side) > before);
	CHECK(before > 0);
	more = 0;
	put_all_iov(side, iov, 1);
}

static void get_until_end(struct side *side, uint8_t *bytes)
{
	for (;;) {
		uint8_t more;
		struct iovec first = { &more, 1 }, piece = { bytes, LENGTH };
		get_all_iov(side, &first, 1);
		if (!more)
			return;
		get_all_iov(side, &piece, 1);
		pattern_check(1, 0, bytes, LENGTH);
	}
}

/* Where a round trip takes as long as some hundred KB, pieces of 70 KB go through the ring once that has been measured. */
static void threshold_is_measured(struct side *side)
{
	uint8_t *bytes = malloc(LENGTH);
	CHECK(bytes);
	setenv("HEADRACE_IB_ZERO_COPY", "auto", 1);
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "5000000", 1);
	connect_with(side, NULL);
	if (side->index == 0)
		put_until_copied(side, bytes);
	else
		get_until_end(side, bytes);
	side_meet(side);
	free(bytes);
}

/* Also of 32 KB together. The rounds take longer than the measurement would. */
static void short_elements_measure_nothing(struct side *side)
{
	enum { ROUNDS = 100, SHORT = 8192 };
	uint8_t *bytes = malloc(LENGTH), answer = 1;
	CHECK(bytes);
	pattern_fill(1, 0, bytes, LENGTH);
	setenv("HEADRACE_IB_ZERO_COPY", "auto", 1);
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", "5000000", 1);
	connect_with(side, NULL);
	for (int i = 0; i <= ROUNDS; i++) {
		struct iovec parts[4], whole = { bytes, i < ROUNDS ? sizeof parts / sizeof *parts * SHORT : LENGTH };
		for (int k = 0; k < 4; k++)
			parts[k] = (struct iovec){ bytes + (size_t)k * SHORT, SHORT };
		if (side->index == 0)
			put_all_iov(side, i < ROUNDS ? parts : &whole, i < ROUNDS ? 4 : 1);
		else
			get_all_iov(side, &whole, 1);
		if (side->index == 0)
			get_all_iov(side, &(struct iovec){ &answer, 1 }, 1);
		else
			put_all_iov(side, &(struct iovec){ &answer, 1 }, 1);
	}
	CHECK_IS(zero_copy_puts(side), side->index == 0); /* the default threshold is below LENGTH */
	side_meet(side);
	free(bytes);
}

static void settings_out_of_range_are_refused(struct side *side)
{
	static const char *const wrong[] = { "0", "33", "x" };
	side_refuses(side, "HEADRACE_IB_ANNOUNCED", wrong, sizeof wrong / sizeof *wrong);
}

static const struct test_case cases[] = {
	{ "one-is-announced", one_is_announced, PAIR_OWN_SETUP },
	{ "five-are-announced", five_are_announced, PAIR_OWN_SETUP },
	{ "as-many-as-by-default", as_many_as_by_default, PAIR_OWN_SETUP },
	{ "messages-are-read-ahead", messages_are_read_ahead, PAIR_OWN_SETUP },
	{ "threshold-is-measured", threshold_is_measured, PAIR_OWN_SETUP },
	{ "short-elements-measure-nothing", short_elements_measure_nothing, PAIR_OWN_SETUP },
	{ "settings-out-of-range-are-refused", settings_out_of_range_are_refused, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
