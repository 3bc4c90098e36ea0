/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Zero-copy over verbs, on the libibverbs double: a get while bytes are being read into the memory that an earlier one
 * offered. It goes on with that memory, or it is refused and the adapter has stopped.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 300000, OTHERS = 5000, LATENCY_NS = 50000000 };

/* Reads take that long, so that the next get comes before they are done. */
static void set_latency(void)
{
	char text[16];
	snprintf(text, sizeof text, "%d", LATENCY_NS);
	setenv("HR_VERBS_DOUBLE_LATENCY_NS", text, 1);
}

static void connect_zerocopy(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	setenv("HEADRACE_IB_DESIGN", "zerocopy", 1);
	setenv("HEADRACE_IB_DEPTH", "128", 1);
	if (side->index == 1)
		set_latency();
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
}

/* Puts the piece; what comes of it. */
static int put_piece(struct side *side, uint8_t *bytes)
{
	size_t done = 0, accepted;
	pattern_fill(1, 0, bytes, BYTES);
	while (done < BYTES) {
		struct iovec rest = { bytes + done, BYTES - done };
		int error = hr_channel_put(side->conn, &rest, 1, &accepted);
		if (error)
			return error;
		done += accepted;
		if (!accepted)
			CHECK(hr_channel_wait(side->channel, 1, 1000) >= 0);
	}
	return 0;
}

/* Gets into the memory until the adapter has been told to read into it. */
static void begin_get(struct side *side, uint8_t *bytes)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	struct iovec all = { bytes, BYTES };
	size_t delivered;
	do {
		CHECK_IS(hr_channel_get(side->conn, &all, 1, &delivered), 0);
		CHECK_IS(delivered, 0);
		CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	} while (stats.registration_hits + stats.registration_misses == 0);
}

/* The adapter has written all of the piece. */
static void until_read(const uint8_t *bytes)
{
	uint8_t *whole = malloc(BYTES);
	pattern_fill(1, 0, whole, BYTES);
	for (size_t i = 0; i < BYTES; i++)
		while (__atomic_load_n(bytes + i, __ATOMIC_RELAXED) != whole[i])
			sched_yield();
	free(whole);
}

static void check_filled(const uint8_t *bytes, uint8_t value)
{
	for (size_t i = 0; i < BYTES; i++)
		CHECK_IS(bytes[i], value);
}

static void check_refused(struct side *side, struct iovec *iov, int n, bool later)
{
	uint8_t *bytes = malloc(BYTES), *other = iov[0].iov_base;
	size_t delivered = 99;
	connect_zerocopy(side);
	if (side->index == 0) {
		int error = put_piece(side, bytes);
		/* Where all had been read, it was accepted. */
		CHECK(error == -ECONNRESET || error == -ESHUTDOWN || (later && !error));
		free(bytes);
		return;
	}
	begin_get(side, bytes);
	if (!other)
		iov[0].iov_base = bytes;
	if (later)
		until_read(bytes);
	CHECK_IS(hr_channel_get(side->conn, iov, n, &delivered), -EINVAL);
	/* The adapter writes there no more, in twice the time that a read takes. */
	memset(bytes, 0x77, BYTES);
	usleep(2 * LATENCY_NS / 1000);
	check_filled(bytes, 0x77);
	CHECK_IS(hr_channel_get(side->conn, iov, n, &delivered), -EINVAL);
	CHECK_IS(hr_conn_state(side->conn), -EINVAL);
	hr_conn_close(side->conn);
	side->conn = NULL;
	check_filled(bytes, 0x77);
	free(bytes);
}

static void other_memory_is_refused(struct side *side)
{
	uint8_t *other = malloc(BYTES);
	struct iovec iov = { other, BYTES };
	memset(other, 0x55, BYTES);
	check_refused(side, &iov, 1, false);
	check_filled(other, 0x55);
	free(other);
}

/* All has been read, into memory that the caller may no longer have. */
static void other_memory_is_refused_when_all_is_there(struct side *side)
{
	uint8_t *other = malloc(BYTES);
	struct iovec iov = { other, BYTES };
	memset(other, 0x55, BYTES);
	check_refused(side, &iov, 1, true);
	check_filled(other, 0x55);
	free(other);
}

static void less_of_the_memory_is_refused(struct side *side)
{
	struct iovec iov = { NULL, BYTES - 1 };
	check_refused(side, &iov, 1, false);
}

static void the_memory_behind_other_memory_is_refused(struct side *side)
{
	uint8_t first[8];
	struct iovec iov[2] = { { first, sizeof first }, { first, 0 } };
	check_refused(side, iov, 2, false);
}

/* The same memory in other pieces, with more behind it, and a get of nothing meanwhile. */
static void the_same_memory_may_be_cut_in_other_ways(struct side *side)
{
	uint8_t *bytes = malloc(BYTES + OTHERS), empty;
	size_t got = 0, delivered;
	connect_zerocopy(side);
	if (side->index == 0) {
		CHECK_IS(put_piece(side, bytes), 0);
		pattern_fill(1, BYTES, bytes, OTHERS);
		put_all(side, bytes, OTHERS);
	} else {
		struct iovec nothing = { &empty, 0 };
		begin_get(side, bytes);
		for (size_t turn = 0; got < BYTES + OTHERS; turn++) {
			size_t left = BYTES + OTHERS - got, cut = left < 1000 ? left : 1 + turn * 37 % 1000;
			struct iovec iov[3] = { { bytes + got, cut }, { bytes, 0 }, { bytes + got + cut, left - cut } };
			CHECK_IS(hr_channel_get(side->conn, &nothing, 1, &delivered), 0);
			CHECK_IS(hr_channel_get(side->conn, iov, 3, &delivered), 0);
			got += delivered;
		}
		pattern_check(1, 0, bytes, BYTES + OTHERS);
	}
	free(bytes);
}

static const struct test_case cases[] = {
	{ "other-memory-is-refused", other_memory_is_refused, PAIR_OWN_SETUP },
	{ "other-memory-is-refused-when-all-is-there", other_memory_is_refused_when_all_is_there, PAIR_OWN_SETUP },
	{ "less-of-the-memory-is-refused", less_of_the_memory_is_refused, PAIR_OWN_SETUP },
	{ "the-memory-behind-other-memory-is-refused", the_memory_behind_other_memory_is_refused, PAIR_OWN_SETUP },
	{ "the-same-memory-may-be-cut-in-other-ways", the_same_memory_may_be_cut_in_other_ways, PAIR_OWN_SETUP },
};

int main(void)
{
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
