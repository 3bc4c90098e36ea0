/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several pieces offered for single copy over shared memory, and short ones behind them: how many one put offers, and that
 * the sender goes back if the receiver does not take one of them as a whole.
 */
#include "config.h"

#include "test/channel/pair.h"
#include "test/channel/shm_kit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* LONG is offered wherever the processors are. */
enum { MESSAGES = 12, HEADER = 24, LONG = 140000, MESSAGE = HEADER + LONG, BYTES = MESSAGES * MESSAGE };

struct messages {
	uint8_t *bytes;
	struct iovec iov[2 * MESSAGES]; /* header and payload of each */
};

static void messages_open(struct messages *messages)
{
	messages->bytes = calloc(1, BYTES);
	CHECK(messages->bytes);
	for (size_t i = 0; i < MESSAGES; i++) {
		uint8_t *at = messages->bytes + i * MESSAGE;
		messages->iov[2 * i] = (struct iovec){ at, HEADER };
		messages->iov[2 * i + 1] = (struct iovec){ at + HEADER, LONG };
	}
}

static void connect_with(struct side *side, const char *offers)
{
	hr_channel_attr_t attr = side_attr(side);
	if (offers)
		setenv("HEADRACE_SHM_OFFERS", offers, 1);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
}

static uint64_t copied_once(const struct side *side)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	return stats.zero_copy_puts;
}

/* Puts once, and accepts the first header only. */
static void put_once(struct side *side, struct messages *messages)
{
	size_t accepted;
	pattern_fill(1, 0, messages->bytes, BYTES);
	CHECK_IS(hr_channel_put(side->conn, messages->iov, 2 * MESSAGES, &accepted), 0);
	CHECK_IS(accepted, HEADER);
}

/* The sender puts once and then calls nothing. The receiver gets what this put has sent, and nothing else. */
static void offers(struct side *side, const char *setting, int number)
{
	struct messages messages;
	messages_open(&messages);
	connect_with(side, setting);
	if (side->index == 0) {
		put_once(side, &messages);
		side_meet(side);
		side_meet(side);
		put_all_iov(side, messages.iov + 1, 2 * MESSAGES - 1);
		CHECK_IS(copied_once(side), MESSAGES);
	} else {
		int got = 2 * number + 1; /* and the header of the next one */
		size_t delivered;
		side_meet(side);
		get_all_iov(side, messages.iov, got);
		for (int i = 0; i < 1000; i++) {
			CHECK_IS(hr_channel_get(side->conn, messages.iov + got, 2 * MESSAGES - got, &delivered), 0);
			CHECK_IS(delivered, 0);
		}
		side_meet(side);
		get_all_iov(side, messages.iov + got, 2 * MESSAGES - got);
		pattern_check(1, 0, messages.bytes, BYTES);
	}
	free(messages.bytes);
}

static void one_is_offered(struct side *side)
{
	offers(side, "1", 1);
}

static void three_are_offered(struct side *side)
{
	offers(side, "3", 3);
}

static void as_many_as_by_default(struct side *side)
{
	offers(side, NULL, 8);
}

static void settings_out_of_range_are_refused(struct side *side)
{
	static const char *const wrong[] = { "0", "33", "x" };
	side_refuses(side, "HEADRACE_SHM_OFFERS", wrong, sizeof wrong / sizeof *wrong);
}

/* A short get in one of the pieces: the sender goes back. What was behind it arrives in order, by single copy again, except the
 * rest of that piece. */
static void short_get_in_the_middle(struct side *side)
{
	struct messages messages;
	messages_open(&messages);
	connect_with(side, NULL);
	if (side->index == 0) {
		put_once(side, &messages);
		side_meet(side);
		put_all_iov(side, messages.iov + 1, 2 * MESSAGES - 1);
		CHECK_IS(copied_once(side), MESSAGES - 1);
	} else {
		side_meet(side);
		get_all_iov(side, messages.iov, 5);
		get_all(side, messages.bytes + 2 * MESSAGE + HEADER, 100);
		get_all(side, messages.bytes + 2 * MESSAGE + HEADER + 100, LONG - 100);
		get_all_iov(side, messages.iov + 6, 2 * MESSAGES - 6);
		pattern_check(1, 0, messages.bytes, BYTES);
	}
	free(messages.bytes);
}

/* The same with a get that has bytes of the piece already. */
static void short_get_within_a_piece(struct side *side)
{
	struct messages messages;
	messages_open(&messages);
	connect_with(side, NULL);
	if (side->index == 0) {
		put_once(side, &messages);
		side_meet(side);
		put_all_iov(side, messages.iov + 1, 2 * MESSAGES - 1);
	} else {
		uint8_t *piece = messages.bytes + HEADER;
		side_meet(side);
		get_all(side, messages.bytes, HEADER);
		get_all(side, piece, 20000);
		get_all(side, piece + 20000, 7);
		get_all(side, piece + 20007, LONG - 20007);
		get_all_iov(side, messages.iov + 2, 2 * MESSAGES - 2);
		pattern_check(1, 0, messages.bytes, BYTES);
	}
	free(messages.bytes);
}

/* Both put before they get: the offers are taken back, the short pieces behind them are sent twice and delivered once. */
static void taken_back(struct side *side)
{
	enum { N = 5 };
	struct messages messages;
	messages_open(&messages);
	connect_with(side, NULL);
	for (uint64_t round = 0; round < 3; round++) {
		uint64_t seed = 2 * round;
		pattern_fill(seed + (uint64_t)side->index, 0, messages.bytes, BYTES);
		put_all_iov(side, (struct iovec[2 * N]){ messages.iov[0], messages.iov[1], messages.iov[2], messages.iov[3],
							 messages.iov[4], messages.iov[5], messages.iov[6], messages.iov[7],
							 messages.iov[8], messages.iov[9] }, 2 * N);
		CHECK_IS(copied_once(side), 0);
		side_meet(side);
		memset(messages.bytes, 0, BYTES);
		for (int i = 0; i < 2 * N; i++)
			get_all(side, messages.iov[i].iov_base, messages.iov[i].iov_len);
		pattern_check(seed + !side->index, 0, messages.bytes, (size_t)N * MESSAGE);
		side_meet(side);
	}
	free(messages.bytes);
}

/* The sender closes with offers open: nothing is delivered of what is in the ring behind the first of them. */
static void close_with_offers_open(struct side *side)
{
	struct messages messages;
	uint64_t offset = 0;
	messages_open(&messages);
	connect_with(side, NULL);
	if (side->index == 0) {
		put_once(side, &messages);
		hr_conn_close(side->conn);
		memset(messages.bytes, 0xee, BYTES);
		side_meet(side);
		side_meet(side); /* the other one has looked, while this process lives */
	} else {
		side_meet(side);
		CHECK_IS(get_until_error(side, 1, &offset), -ESHUTDOWN);
		CHECK_IS(offset, HEADER);
		side_meet(side);
	}
	free(messages.bytes);
}

/* From some time on the receiver may not read the sender's memory: offers that are open then go through the ring. (The
 * sender may have pushed the end of a piece, but only what is before a hole counts.) */
static void refused_with_offers_open(struct side *side)
{
	struct messages messages;
	messages_open(&messages);
	connect_with(side, NULL);
	if (side->index == 0) {
		put_once(side, &messages);
		side_meet(side);
		put_all_iov(side, messages.iov + 1, 2 * MESSAGES - 1);
	} else {
		side_meet(side);
		get_all_iov(side, messages.iov, 4);
		forbid_copies();
		get_all_iov(side, messages.iov + 4, 2 * MESSAGES - 4);
		pattern_check(1, 0, messages.bytes, BYTES);
	}
	CHECK(side->index == 1 || copied_once(side) == 2);
	free(messages.bytes);
}

static const struct test_case cases[] = {
	{ "one-is-offered", one_is_offered, PAIR_OWN_SETUP },
	{ "three-are-offered", three_are_offered, PAIR_OWN_SETUP },
	{ "as-many-as-by-default", as_many_as_by_default, PAIR_OWN_SETUP },
	{ "settings-out-of-range-are-refused", settings_out_of_range_are_refused, PAIR_OWN_SETUP },
	{ "short-get-in-the-middle", short_get_in_the_middle, PAIR_OWN_SETUP },
	{ "short-get-within-a-piece", short_get_within_a_piece, PAIR_OWN_SETUP },
	{ "taken-back", taken_back, PAIR_OWN_SETUP },
	{ "close-with-offers-open", close_with_offers_open, PAIR_OWN_SETUP },
	{ "refused-with-offers-open", refused_with_offers_open, PAIR_OWN_SETUP },
};

int main(void)
{
	unsetenv("HEADRACE_SHM_ZERO_COPY");
	/* The pieces are to be copied once also if the channel finds during a test that the processors share a cache. */
	setenv("HEADRACE_SHM_NEAR", "0", 1);
	unsetenv("HEADRACE_SHM_OFFERS");
	if (!may_read_siblings()) {
		printf("SKIP: no process may read another's memory here (process_vm_readv)\n");
		return 77;
	}
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_SHM, "shm");
}
