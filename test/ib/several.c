/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy over verbs, on the libibverbs double: how many pieces one put announces. The sender puts once and then calls
 * nothing. The receiver gets what this put has announced, and nothing else.
 */
#include "config.h"

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

static void settings_out_of_range_are_refused(struct side *side)
{
	static const char *const wrong[] = { "0", "33", "x" };
	side_refuses(side, "HEADRACE_IB_ANNOUNCED", wrong, sizeof wrong / sizeof *wrong);
}

static const struct test_case cases[] = {
	{ "one-is-announced", one_is_announced, PAIR_OWN_SETUP },
	{ "five-are-announced", five_are_announced, PAIR_OWN_SETUP },
	{ "as-many-as-by-default", as_many_as_by_default, PAIR_OWN_SETUP },
	{ "settings-out-of-range-are-refused", settings_out_of_range_are_refused, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
