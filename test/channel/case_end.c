/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a pipe: in order, by death, and what arrived before it is delivered first. */
#include "test/channel/pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void die(void)
{
	raise(SIGKILL);
	abort();
}

/* A killed process was lost: by reset, or by silence. */
static void check_is_death(int error)
{
	if (error != -ECONNRESET && error != -ETIMEDOUT)
		check_failed(__FILE__, __LINE__, "the error is -ECONNRESET or -ETIMEDOUT", error);
}

enum { PUT_AT_ONCE = 65536 };

/* Puts what is accepted of the pattern without waiting for the peer; returns how much. Up to PUT_AT_ONCE bytes
 * more may be on their way without a copy when the last put was not accepted. */
static uint64_t put_what_fits(struct side *side, uint64_t seed, uint64_t most)
{
	static uint8_t bytes[PUT_AT_ONCE];
	uint64_t done = 0;
	while (done < most) {
		size_t n = most - done < sizeof bytes ? (size_t)(most - done) : sizeof bytes;
		pattern_fill(seed, done, bytes, n);
		struct iovec iov = { bytes, n };
		size_t accepted;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
		done += accepted;
		if (!accepted)
			break;
	}
	return done;
}

static void check_only_fails(struct side *side, int error)
{
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	for (int i = 0; i < 3; i++) {
		size_t moved = 77;
		CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), error);
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), error);
		CHECK_IS(hr_conn_state(side->conn), error);
	}
}

/* 0 puts and closes at once, before 1 has even looked. All of it arrives, then the orderly end. */
static void orderly_close_of(struct side *side, uint64_t most)
{
	uint64_t offset = 0, amount;
	if (side->index == 0) {
		amount = put_what_fits(side, 6, most);
		side_send(side, &amount, sizeof amount);
		hr_conn_close(side->conn);
		side->conn = NULL;
		side_meet(side);
		return;
	}
	side_receive(side, &amount, sizeof amount);
	CHECK_IS(get_until_error(side, 6, &offset), -ESHUTDOWN);
	CHECK_IS(offset, amount);
	check_only_fails(side, -ESHUTDOWN);
	side_meet(side);
}

static void orderly_close_of_nothing(struct side *side)
{
	orderly_close_of(side, 0);
}

static void orderly_close_of_little(struct side *side)
{
	orderly_close_of(side, 5000);
}

/* Bytes of a stream that is longer than the pipe, whatever the scale: so the receiver has begun before the sender ends. */
static uint64_t long_stream(const struct side *side, uint64_t bytes)
{
	return bytes / side->scale < 4000000 ? 4000000 : bytes / side->scale;
}

/* 0 closes as soon as its last byte is accepted, with 1 in the middle of getting. */
static void orderly_close_of_much(struct side *side)
{
	static uint8_t bytes[40000];
	uint64_t total = long_stream(side, 20000000), offset = 0;
	for (uint64_t done = 0; side->index == 0 && done < total;) {
		size_t n = total - done < sizeof bytes ? (size_t)(total - done) : sizeof bytes;
		pattern_fill(6, done, bytes, n);
		put_all(side, bytes, n);
		done += n;
	}
	if (side->index == 0)
		return;
	CHECK_IS(get_until_error(side, 6, &offset), -ESHUTDOWN);
	CHECK_IS(offset, total);
	check_only_fails(side, -ESHUTDOWN);
}

/* 0 closes with a put unfinished: what was accepted arrives, then an error. */
static void close_of_an_unfinished_put(struct side *side)
{
	uint64_t offset = 0, amount;
	if (side->index == 0) {
		amount = put_what_fits(side, 6, 1u << 30);
		side_send(side, &amount, sizeof amount);
		return;
	}
	side_receive(side, &amount, sizeof amount);
	int error = get_until_error(side, 6, &offset);
	CHECK(error == -ESHUTDOWN || error == -ECONNRESET);
	CHECK(offset >= amount);
	check_only_fails(side, error);
}

/* The peer finalizes while this side waits in sleep without limit. */
static void close_wakes_sleeper(struct side *side)
{
	if (side->index == 0) {
		side_meet(side);
		usleep(50000);
		return;
	}
	side_meet(side);
	for (;;) {
		uint8_t byte;
		struct iovec iov = { &byte, 1 };
		size_t delivered;
		int error = hr_channel_get(side->conn, &iov, 1, &delivered);
		if (error) {
			CHECK_IS(error, -ESHUTDOWN);
			break;
		}
		CHECK_IS(delivered, 0);
		CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
	}
}

/* A reader that does nothing for longer than the time-out is alive, whatever waits for it meanwhile. */
static void slow_reader_lives(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = 1000;
	attr.ring_bytes = 65536;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	static uint8_t bytes[100000];
	uint64_t total = 3000000;
	if (side->index == 1)
		usleep(2500000);
	for (uint64_t done = 0; done < total; done += sizeof bytes) {
		if (side->index == 0) {
			pattern_fill(8, done, bytes, sizeof bytes);
			put_all(side, bytes, sizeof bytes);
		} else {
			get_all(side, bytes, sizeof bytes);
			pattern_check(8, done, bytes, sizeof bytes);
		}
	}
	side_meet(side);
}

/* A side that only puts learns of the orderly end too. */
static void put_learns_of_close(struct side *side)
{
	static uint8_t bytes[10000];
	if (side->index == 0)
		return;
	int error = 0;
	while (!error) {
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted = 0;
		error = hr_channel_put(side->conn, &iov, 1, &accepted);
		if (!error && !accepted)
			CHECK(hr_channel_wait(side->channel, 1, PAIR_TIMEOUT_MS) >= 0);
	}
	CHECK_IS(error, -ESHUTDOWN);
}

/* Both finalize with bytes under way in both directions: neither may hang or wait out its time. */
static void both_close_at_once(struct side *side)
{
	put_what_fits(side, 1, 1u << 30);
	side_meet(side);
}

/* 0 is killed after its bytes were accepted. How many of them had left it differs by transport, but what arrives is
 * the beginning of what it put, and then the error comes. */
static void death_of(struct side *side, uint64_t most, bool all_arrives)
{
	uint64_t offset = 0, amount;
	if (side->index == 0) {
		amount = put_what_fits(side, 8, most);
		side_send(side, &amount, sizeof amount);
		side_meet(side);
		die();
	}
	side_receive(side, &amount, sizeof amount);
	if (all_arrives && amount) { /* what this side has seen the beginning of has arrived */
		uint8_t byte;
		get_all(side, &byte, 1);
		pattern_check(8, 0, &byte, 1);
		offset = 1;
	}
	side_meet(side);
	int error = get_until_error(side, 8, &offset);
	check_is_death(error);
	CHECK(offset <= amount + (most > amount ? PUT_AT_ONCE : 0));
	if (all_arrives)
		CHECK_IS(offset, amount);
	check_only_fails(side, error);
}

static void death_of_an_idle_peer(struct side *side)
{
	death_of(side, 0, true);
}

static void death_after_a_message(struct side *side)
{
	death_of(side, 3000, true);
}

static void death_over_a_full_ring(struct side *side)
{
	death_of(side, 1u << 30, false);
}

/* Killed while it puts without end, this side getting. */
static void death_in_mid_stream(struct side *side)
{
	uint64_t offset = 0, total = long_stream(side, 40000000);
	static uint8_t bytes[50000];
	if (side->index == 0) {
		for (uint64_t done = 0; done < total; done += sizeof bytes) {
			pattern_fill(8, done, bytes, sizeof bytes);
			put_all(side, bytes, sizeof bytes);
		}
		die();
	}
	check_is_death(get_until_error(side, 8, &offset));
	CHECK(offset <= 40000000ull + sizeof bytes);
}

/* A side that spins with get and never sleeps learns of it too. */
static void death_seen_by_spinning_get(struct side *side)
{
	side_meet(side);
	if (side->index == 0)
		die();
	int error = 0;
	while (!error) {
		uint8_t byte;
		struct iovec iov = { &byte, 1 };
		size_t delivered;
		error = hr_channel_get(side->conn, &iov, 1, &delivered);
	}
	check_is_death(error);
}

/* And one that only puts. */
static void death_seen_by_spinning_put(struct side *side)
{
	static uint8_t bytes[30000];
	side_meet(side);
	if (side->index == 0)
		die();
	int error = 0;
	while (!error) {
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted;
		error = hr_channel_put(side->conn, &iov, 1, &accepted);
	}
	check_is_death(error);
}

static void death_wakes_sleeping_sender(struct side *side)
{
	if (side->index == 0) {
		side_meet(side);
		usleep(50000);
		die();
	}
	static uint8_t bytes[30000];
	bool met = false;
	int error = 0;
	while (!error) {
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted;
		error = hr_channel_put(side->conn, &iov, 1, &accepted);
		if (error || accepted)
			continue;
		if (!met)
			side_meet(side);
		met = true;
		CHECK_IS(hr_channel_wait(side->channel, 1, -1), 1);
	}
	check_is_death(error);
}

/* All that a child may do with its parent's channel is to ask, and to let it be. */
static void check_is_the_parents(struct side *side)
{
	uint8_t byte = 0;
	struct iovec iov = { &byte, 1 };
	size_t moved;
	hr_conn_t *conn;
	hr_card_t card;
	CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), -ECHILD);
	CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), -ECHILD);
	CHECK_IS(hr_conn_state(side->conn), -ECHILD);
	CHECK_IS(hr_channel_arm(side->channel, 0), -ECHILD);
	CHECK_IS(hr_channel_wait(side->channel, 0, -1), -ECHILD);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &conn), -ECHILD);
	CHECK_IS(hr_channel_incoming(side->channel, &card), 0);
	CHECK(!hr_channel_ready(side->channel, 1));
	CHECK_IS(hr_channel_fd(side->channel), -1);
	hr_conn_close(side->conn);
	hr_channel_finalize(side->channel);
}

/* 0 dies and leaves a child behind, which lives until 1 has noticed. */
static void a_child_does_not_hide_its_parents_death(struct side *side)
{
	uint64_t value = 5, offset = 0;
	if (side->index == 1) {
		get_all(side, &value, sizeof value);
		CHECK_IS(value, 5);
		check_is_death(get_until_error(side, 1, &offset));
		side_send(side, &value, sizeof value);
		return;
	}
	int told[2];
	CHECK_IS(pipe(told), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		check_is_the_parents(side);
		CHECK_IS(write(told[1], "", 1), 1);
		side_receive(side, &value, sizeof value);
		_exit(0);
	}
	char byte;
	CHECK_IS(read(told[0], &byte, 1), 1);
	put_all(side, &value, sizeof value); /* the connection is none the worse */
	die();
}

const struct test_case end_cases[] = {
	{ "slow-reader-lives", slow_reader_lives, PAIR_OWN_SETUP },
	{ "orderly-close-of-nothing", orderly_close_of_nothing, 0 },
	{ "orderly-close-of-little", orderly_close_of_little, 0 },
	{ "orderly-close-of-much", orderly_close_of_much, 0 },
	{ "close-of-an-unfinished-put", close_of_an_unfinished_put, 0 },
	{ "close-wakes-sleeper", close_wakes_sleeper, 0 },
	{ "put-learns-of-close", put_learns_of_close, 0 },
	{ "both-close-at-once", both_close_at_once, 0 },
	{ "a-child-does-not-hide-its-parents-death", a_child_does_not_hide_its_parents_death, PAIR_0_DIES },
	{ "death-of-an-idle-peer", death_of_an_idle_peer, PAIR_0_DIES },
	{ "death-after-a-message", death_after_a_message, PAIR_0_DIES },
	{ "death-over-a-full-ring", death_over_a_full_ring, PAIR_0_DIES },
	{ "death-in-mid-stream", death_in_mid_stream, PAIR_0_DIES },
	{ "death-seen-by-spinning-get", death_seen_by_spinning_get, PAIR_0_DIES },
	{ "death-seen-by-spinning-put", death_seen_by_spinning_put, PAIR_0_DIES },
	{ "death-wakes-sleeping-sender", death_wakes_sleeping_sender, PAIR_0_DIES },
	{ 0 },
};
