/* SPDX-License-Identifier: BSD-3-Clause */
/* Long pieces, which a transport may move without a copy: every way in which the two sides may cut the same bytes,
 * memory that is used again at once, both sides at the same time, and an end in the middle of it. */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1024u * 1024u)

static uint8_t *allocate(size_t n)
{
	uint8_t *bytes = malloc(n);
	CHECK(bytes);
	return bytes;
}

/* Cuts bytes into pieces of the sizes given, again and again; the last one may be shorter. Returns how many. */
static int cut_by(const size_t *sizes, uint8_t *bytes, size_t n, struct iovec *iov, int max)
{
	int pieces = 0;
	for (size_t at = 0, i = 0; at < n; i++) {
		if (!sizes[i])
			i = 0;
		size_t len = sizes[i] < n - at && pieces < max - 1 ? sizes[i] : n - at;
		iov[pieces++] = (struct iovec){ bytes + at, len };
		at += len;
	}
	return pieces;
}

static const size_t *const cuts[] = {
	(const size_t[]){ MIB, 0 },
	(const size_t[]){ 3, 20480, MIB, 0 },
	(const size_t[]){ 16384, 0 },
	(const size_t[]){ 100, 0 },
	(const size_t[]){ 16383, 65536, 1, 300001, 0 },
	(const size_t[]){ 65536, 65537, 65535, 0 },
	(const size_t[]){ 8, 524288, 8, 131072, 0 },
	(const size_t[]){ 250000, 5, 5, 5, 0 },
};

/* Every cut of the sender against every cut of the receiver, with both ends odd in memory. */
static void long_pieces_of_all_cuts(struct side *side)
{
	enum { CUTS = sizeof cuts / sizeof cuts[0], PIECES = 900 };
	size_t n = 2 * MIB / (side->scale > 16 ? 16 : side->scale) + 777;
	uint8_t *memory = allocate(n + 128);
	struct iovec iov[PIECES];
	for (size_t from = 0; from < CUTS; from++)
		for (size_t to = 0; to < CUTS; to++) {
			uint64_t seed = from * CUTS + to;
			uint8_t *bytes = memory + (seed * 7 + (size_t)side->index * 3) % 64;
			if (side->index == 0) {
				pattern_fill(seed, 0, bytes, n);
				put_all_iov(side, iov, cut_by(cuts[from], bytes, n, iov, PIECES));
				memset(memory, 0xee, n + 128); /* accepted bytes are free at once */
				continue;
			}
			memset(memory, 0x5a, n + 128);
			get_all_iov(side, iov, cut_by(cuts[to], bytes, n, iov, PIECES));
			pattern_check(seed, 0, bytes, n);
			for (uint8_t *guard = memory; guard < bytes; guard++)
				CHECK_IS(*guard, 0x5a);
			for (uint8_t *guard = bytes + n; guard < memory + n + 128; guard++)
				CHECK_IS(*guard, 0x5a);
		}
	free(memory);
}

/* Cuts what is left into pieces, empty ones among them, at other places each time. */
static int cut_rest(uint64_t *random, uint8_t *rest, size_t left, struct iovec *iov, int max)
{
	int n = 0;
	while (left > 0) {
		size_t len = n == max - 1 ? left : rng_between(random, 0, rng(random) & 1 ? left : 5000);
		len = len < left ? len : left;
		iov[n++] = (struct iovec){ rest, len };
		rest += len;
		left -= len;
	}
	return n;
}

/* A message in one piece on both sides at first; what is left of it after each call is cut differently. */
static void the_rest_cut_in_other_ways(struct side *side)
{
	enum { PIECES = 5 };
	size_t most = 600000;
	uint8_t *bytes = allocate(most);
	uint64_t shared = 11, own = 20 + (uint64_t)side->index;
	for (uint64_t i = 0; i < 300 / side->scale + 20; i++) {
		size_t n = rng_between(&shared, 20000, most), done = 0, moved;
		struct iovec iov[PIECES] = { { bytes, n } };
		if (side->index == 0)
			pattern_fill(i, 0, bytes, n);
		for (int pieces = 1; done < n; pieces = cut_rest(&own, bytes + done, n - done, iov, PIECES)) {
			CHECK_IS(side->index == 0 ? hr_channel_put(side->conn, iov, pieces, &moved) :
						    hr_channel_get(side->conn, iov, pieces, &moved), 0);
			done += moved;
			if (!moved)
				CHECK(hr_channel_wait(side->channel, side->index == 0, PAIR_TIMEOUT_MS) >= 0);
		}
		if (side->index == 1)
			pattern_check(i, 0, bytes, n);
		memset(bytes, 0xee, most);
	}
	free(bytes);
}

/* Each message in the same memory, overwritten as soon as it is accepted; the receiver too uses one buffer again. */
static void memory_used_again_at_once(struct side *side)
{
	size_t n = 300000;
	uint8_t *bytes = allocate(n);
	for (uint64_t i = 0; i < 400 / side->scale + 20; i++) {
		if (side->index == 0) {
			pattern_fill(i, 0, bytes, n);
			put_all(side, bytes, n);
		} else {
			get_all(side, bytes, n);
			pattern_check(i, 0, bytes, n);
			memset(bytes, 0, n);
		}
	}
	free(bytes);
}

/* Short answers and long messages in turn, so that what is copied and what is not follow each other closely. */
static void long_and_short_in_turn(struct side *side)
{
	size_t most = 400000;
	uint8_t *bytes = allocate(most);
	uint64_t shared = 3;
	for (uint64_t i = 0; i < 600 / side->scale + 30; i++) {
		size_t n = rng(&shared) & 1 ? rng_between(&shared, 1, 200) : rng_between(&shared, 15000, most);
		bool mine = (rng(&shared) & 3 ? 0 : 1) == side->index;
		if (mine) {
			pattern_fill(i, 0, bytes, n);
			put_all(side, bytes, n);
		} else {
			get_all(side, bytes, n);
			pattern_check(i, 0, bytes, n);
		}
	}
	free(bytes);
}

/* Both sides put long pieces and get at the same time, in one loop. */
static void long_pieces_both_ways(struct side *side)
{
	size_t n = 16 * MIB / side->scale + 100000;
	uint8_t *out = allocate(n), *in = allocate(n);
	for (int round = 0; round < 3; round++) {
		size_t step = round == 0 ? n : round == 1 ? 100000 : MIB;
		size_t put = 0, got = 0;
		pattern_fill((uint64_t)(round * 2 + side->index), 0, out, n);
		memset(in, 0, n);
		while (put < n || got < n) {
			struct iovec to = { out + put, n - put < step - put % step ? n - put : step - put % step };
			struct iovec from = { in + got, n - got };
			size_t accepted = 0, delivered = 0;
			if (put < n)
				CHECK_IS(hr_channel_put(side->conn, &to, 1, &accepted), 0);
			if (got < n)
				CHECK_IS(hr_channel_get(side->conn, &from, 1, &delivered), 0);
			put += accepted;
			got += delivered;
			if (!accepted && !delivered)
				CHECK(hr_channel_wait(side->channel, put < n, 1000) >= 0);
		}
		pattern_check((uint64_t)(round * 2 + !side->index), 0, in, n);
	}
	free(out);
	free(in);
}

/* Both sides put as many bytes as a ring holds, and get only then: neither side may wait until the other one gets. The test sets
 * the size of the ring, because that of HEADRACE_RING_BYTES may be too small. */
static void both_put_before_they_get(struct side *side)
{
	static const size_t lengths[] = { 20000, 70000, 200000, 400000 };
	uint8_t *bytes = allocate(400000);
	hr_channel_attr_t attr = side_attr(side);
	attr.ring_bytes = MIB;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
		for (int with_head = 0; with_head < 2; with_head++) {
			uint64_t head = i, seed = i * 4 + (uint64_t)with_head * 2;
			struct iovec out[2] = { { &head, with_head ? sizeof head : 0 }, { bytes, lengths[i] } };
			struct iovec in[2] = { { &head, with_head ? sizeof head : 0 }, { bytes, lengths[i] } };
			pattern_fill(seed + (uint64_t)side->index, 0, bytes, lengths[i]);
			put_all_iov(side, out, 2);
			head = 99;
			memset(bytes, 0, lengths[i]);
			get_all_iov(side, in, 2);
			if (with_head)
				CHECK_IS(head, i);
			pattern_check(seed + !side->index, 0, bytes, lengths[i]);
			side_meet(side);
		}
	free(bytes);
}

/* The same in a ring that holds many short messages before the long one. */
static void many_short_and_a_long_one_before_they_get(struct side *side)
{
	enum { SHORT = 200, LENGTH = 200000 };
	uint8_t *bytes = allocate(LENGTH);
	hr_channel_attr_t attr = side_attr(side);
	attr.ring_bytes = 4 * MIB;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	for (uint64_t i = 0; i < SHORT; i++)
		put_all(side, &i, sizeof i);
	pattern_fill((uint64_t)side->index, 0, bytes, LENGTH);
	put_all(side, bytes, LENGTH);
	memset(bytes, 0, LENGTH);
	for (uint64_t i = 0, got; i < SHORT; i++) {
		get_all(side, &got, sizeof got);
		CHECK_IS(got, i);
	}
	get_all(side, bytes, LENGTH);
	pattern_check(!side->index, 0, bytes, LENGTH);
	free(bytes);
}

/* Sleeps whenever nothing moves: reads and acknowledgements must wake both. */
static void long_pieces_asleep(struct side *side)
{
	size_t n = 200000;
	uint8_t *bytes = allocate(n);
	for (uint64_t i = 0; i < 300 / side->scale + 20; i++) {
		bool puts = (i & 1) == (uint64_t)side->index;
		size_t done = 0;
		if (puts)
			pattern_fill(i, 0, bytes, n);
		while (done < n) {
			struct iovec iov = { bytes + done, n - done };
			size_t moved = 0;
			CHECK_IS(puts ? hr_channel_put(side->conn, &iov, 1, &moved) :
					hr_channel_get(side->conn, &iov, 1, &moved), 0);
			done += moved;
			if (!moved)
				CHECK_IS(hr_channel_wait(side->channel, puts, -1), 1);
		}
		if (!puts)
			pattern_check(i, 0, bytes, n);
	}
	free(bytes);
}

/* Read-only memory can be put. */
static void from_read_only_memory(struct side *side)
{
	size_t n = 500000;
	uint8_t *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	if (side->index == 0) {
		pattern_fill(5, 0, bytes, n);
		CHECK_IS(mprotect(bytes, n, PROT_READ), 0);
		put_all(side, bytes, n);
	} else {
		get_all(side, bytes, n);
		pattern_check(5, 0, bytes, n);
	}
	munmap(bytes, n);
}

/* After the error nothing is written into memory that was offered to get, and no byte of what was delivered is
 * wrong. */
static void check_memory_is_mine_again(struct side *side, size_t n)
{
	uint8_t *bytes = allocate(n);
	size_t got = 0;
	int error = 0;
	while (!error) {
		struct iovec iov = { bytes + got, n - got };
		size_t delivered = 0;
		error = hr_channel_get(side->conn, &iov, 1, &delivered);
		got += delivered;
		CHECK(got < n);
		if (!error && !delivered)
			CHECK(hr_channel_wait(side->channel, 0, PAIR_TIMEOUT_MS) >= 0);
	}
	CHECK(error == -ESHUTDOWN || error == -ECONNRESET || error == -ETIMEDOUT);
	pattern_check(11, 0, bytes, got);
	side_keeps(side, bytes, n);
	free(bytes);
}

/* 0 ends with a long put under way, of which 1 has begun to take. */
static void end_of(struct side *side, bool dies)
{
	size_t n = 8 * MIB;
	if (side->index == 1) {
		check_memory_is_mine_again(side, 2 * n);
		return;
	}
	uint8_t *bytes = allocate(n);
	size_t accepted = 0;
	pattern_fill(11, 0, bytes, n);
	put_all(side, bytes, 100000);
	for (size_t done = 100000, i = 0; done < n && i < 200; done += accepted, i++) {
		struct iovec iov = { bytes + done, n - done };
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
	}
	if (dies) {
		raise(SIGKILL);
		abort();
	}
	hr_conn_close(side->conn);
	side->conn = NULL;
	memset(bytes, 0xee, n); /* closed: it is ours again */
	free(bytes);
}

static void close_under_a_long_put(struct side *side)
{
	end_of(side, false);
}

static void death_under_a_long_put(struct side *side)
{
	end_of(side, true);
}

/* 1 closes while its get has long pieces on the way; 0 learns of it in its put. */
static void close_under_a_long_get(struct side *side)
{
	size_t n = 8 * MIB;
	uint8_t *bytes = allocate(n);
	if (side->index == 1) {
		size_t delivered = 0;
		struct iovec iov = { bytes, n };
		for (int i = 0; i < 2000 && !delivered; i++)
			CHECK_IS(hr_channel_get(side->conn, &iov, 1, &delivered), 0);
		hr_conn_close(side->conn);
		side->conn = NULL;
		side_keeps(side, bytes, n);
	} else {
		int error = 0;
		memset(bytes, 1, n);
		while (!error) {
			struct iovec iov = { bytes, n };
			size_t done = 0;
			while (done < n && !error) {
				size_t accepted = 0;
				error = hr_channel_put(side->conn, &iov, 1, &accepted);
				done += accepted;
				iov = (struct iovec){ bytes + done, n - done };
				if (!error && !accepted)
					CHECK(hr_channel_wait(side->channel, 1, PAIR_TIMEOUT_MS) >= 0);
			}
		}
		CHECK(error == -ESHUTDOWN || error == -ECONNRESET);
	}
	free(bytes);
}

const struct test_case long_cases[] = {
	{ "long-pieces-of-all-cuts", long_pieces_of_all_cuts, 0 },
	{ "long-pieces-of-all-cuts-small-ring", long_pieces_of_all_cuts, PAIR_SMALL_RING },
	{ "the-rest-cut-in-other-ways", the_rest_cut_in_other_ways, 0 },
	{ "the-rest-cut-in-other-ways-without-spinning", the_rest_cut_in_other_ways, PAIR_NO_SPIN },
	{ "memory-used-again-at-once", memory_used_again_at_once, 0 },
	{ "long-and-short-in-turn", long_and_short_in_turn, 0 },
	{ "long-pieces-both-ways", long_pieces_both_ways, 0 },
	{ "long-pieces-both-ways-small-ring", long_pieces_both_ways, PAIR_SMALL_RING },
	{ "both-put-before-they-get", both_put_before_they_get, PAIR_OWN_SETUP },
	{ "many-short-and-a-long-one-before-they-get", many_short_and_a_long_one_before_they_get, PAIR_OWN_SETUP },
	{ "long-pieces-asleep", long_pieces_asleep, PAIR_NO_SPIN },
	{ "from-read-only-memory", from_read_only_memory, 0 },
	{ "close-under-a-long-put", close_under_a_long_put, 0 },
	{ "death-under-a-long-put", death_under_a_long_put, PAIR_0_DIES },
	{ "close-under-a-long-get", close_under_a_long_get, 0 },
	{ 0 },
};
