/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes arrive, all of them, in order, whatever the sizes and the pieces. */
#include "test/channel/pair.h"

#include <stdlib.h>
#include <string.h>

#define MIB (1024u * 1024u)

static uint8_t *allocate(size_t n)
{
	uint8_t *bytes = malloc(n ? n : 1);
	CHECK(bytes);
	return bytes;
}

static void there_and_back(struct side *side, size_t n, uint64_t seed)
{
	uint8_t *bytes = allocate(n);
	for (int direction = 0; direction < 2; direction++) {
		if (direction == side->index) {
			pattern_fill(seed, 0, bytes, n);
			put_all(side, bytes, n);
			memset(bytes, 0xee, n); /* accepted bytes are free at once */
		} else {
			memset(bytes, 0xdd, n);
			get_all(side, bytes, n);
			pattern_check(seed, 0, bytes, n);
		}
	}
	free(bytes);
}

static void sizes(struct side *side)
{
	static const size_t around[] = { 0, 8, 56, 64, 120, 128, 256, 1000, 4096, 8192, 16384, 32768, 65536, MIB };
	uint64_t seed = 1;
	for (size_t i = 0; i < sizeof around / sizeof around[0]; i++)
		for (size_t n = around[i] < 3 ? 0 : around[i] - 3; n <= around[i] + 3; n++)
			there_and_back(side, n, seed++);
	there_and_back(side, 4 * MIB + 5, seed++);
	there_and_back(side, 64 * MIB / side->scale, seed++);
}

static void every_small_size(struct side *side)
{
	for (size_t n = 0; n <= 600; n++)
		there_and_back(side, n, n);
}

static void odd_alignments(struct side *side)
{
	static const size_t lengths[] = { 1, 8, 31, 57, 200, 5000, 16400, 40001 };
	enum { SPAN = 41000 };
	uint8_t *bytes = allocate(SPAN);
	uint64_t seed = 7;
	for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
		for (size_t shift = 0; shift < 72; shift += lengths[i] > 5000 ? 7 : 1, seed++) {
			if (side->index == 0) {
				pattern_fill(seed, 0, bytes + shift, lengths[i]);
				put_all(side, bytes + shift, lengths[i]);
				continue;
			}
			size_t at = 80 - shift; /* another alignment on this side */
			memset(bytes, 0x5a, SPAN);
			get_all(side, bytes + at, lengths[i]);
			pattern_check(seed, 0, bytes + at, lengths[i]);
			for (size_t g = 0; g < at; g++)
				CHECK_IS(bytes[g], 0x5a);
			for (size_t g = at + lengths[i]; g < at + lengths[i] + 100; g++)
				CHECK_IS(bytes[g], 0x5a);
		}
	}
	free(bytes);
}

/* Cuts bytes into pieces at random places, some of them empty. Returns how many. */
static int cut(uint64_t *random, uint8_t *bytes, size_t n, struct iovec *iov, int max)
{
	int pieces = (int)rng_between(random, 1, (size_t)max);
	size_t at = 0;
	for (int i = 0; i < pieces; i++) {
		size_t left = n - at;
		size_t count = i == pieces - 1 ? left : rng_between(random, 0, left / (size_t)(pieces - i) * 2);
		if (count > left)
			count = left;
		iov[i] = (struct iovec){ count || rng(random) & 1 ? bytes + at : NULL, count };
		at += count;
	}
	return pieces;
}

static void vectors_of_many_pieces(struct side *side)
{
	enum { PIECES = 700, BYTES = 100000 };
	uint8_t *bytes = allocate(BYTES);
	struct iovec iov[PIECES];
	uint64_t random = 100 + (uint64_t)side->index; /* each side cuts differently */
	uint64_t shared = 5, offset = 0;
	for (unsigned round = 0; round < 600 / side->scale + 20; round++) {
		size_t n = rng_between(&shared, 0, round % 10 ? 3000 : BYTES);
		int pieces = cut(&random, bytes, n, iov, round % 7 ? 20 : PIECES);
		if (side->index == 0) {
			pattern_fill(3, offset, bytes, n);
			put_all_iov(side, iov, pieces);
		} else {
			get_all_iov(side, iov, pieces);
			pattern_check(3, offset, bytes, n);
		}
		offset += n;
	}
	free(bytes);
}

/* What one direction of a free-running transfer has done. */
struct flow {
	uint64_t seed, random, done, total;
	size_t low, high; /* bytes asked for in one call */
	uint8_t *bytes;
	size_t begin, left; /* of bytes: offered before and not accepted or delivered, to be offered again */
};

static bool flow_put(struct side *side, struct flow *flow)
{
	if (flow->done == flow->total)
		return false;
	if (!flow->left) {
		size_t n = rng_between(&flow->random, flow->low, flow->high);
		flow->left = n < flow->total - flow->done ? n : (size_t)(flow->total - flow->done);
		flow->begin = 0;
		pattern_fill(flow->seed, flow->done, flow->bytes, flow->left);
	}
	struct iovec iov = { flow->bytes + flow->begin, flow->left };
	size_t accepted = 12345;
	CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
	CHECK(accepted <= flow->left);
	flow->done += accepted;
	flow->begin += accepted;
	flow->left -= accepted;
	return accepted > 0;
}

static bool flow_get(struct side *side, struct flow *flow)
{
	if (flow->done == flow->total)
		return false;
	if (!flow->left) {
		size_t n = rng_between(&flow->random, flow->low, flow->high);
		flow->left = n < flow->total - flow->done ? n : (size_t)(flow->total - flow->done);
		flow->begin = 0;
	}
	struct iovec iov = { flow->bytes + flow->begin, flow->left };
	size_t delivered = 12345;
	CHECK_IS(hr_channel_get(side->conn, &iov, 1, &delivered), 0);
	CHECK(delivered <= flow->left);
	pattern_check(flow->seed, flow->done, iov.iov_base, delivered);
	flow->done += delivered;
	flow->begin += delivered;
	flow->left -= delivered;
	return delivered > 0;
}

static struct flow flow_of(uint64_t seed, int side, uint64_t total, size_t low, size_t high)
{
	uint64_t random = seed + (uint64_t)side * 1000;
	return (struct flow){ .seed = seed, .random = random, .total = total, .low = low, .high = high,
			      .bytes = allocate(high) };
}

static void one_way(struct side *side, uint64_t total, size_t put_max, size_t get_max)
{
	struct flow flow = flow_of(put_max, side->index, total, 1, side->index ? get_max : put_max);
	while (flow.done < flow.total)
		if (!(side->index ? flow_get(side, &flow) : flow_put(side, &flow)))
			CHECK(hr_channel_wait(side->channel, !side->index, 1000) >= 0);
	free(flow.bytes);
}

static void partial_puts_and_gets(struct side *side)
{
	uint64_t unit = MIB / side->scale;
	one_way(side, unit / 4, 40, 7);
	one_way(side, unit, 100, 1000);
	one_way(side, 4 * unit, 100000, 300);
	one_way(side, 4 * unit, 300, 100000);
	one_way(side, 16 * unit, 300000, 70000);
}

static void both_directions_at_once(struct side *side)
{
	uint64_t total = 32 * MIB / side->scale;
	static const size_t highs[] = { 200, 5000, 200000 };
	for (int i = 0; i < 3; i++) {
		uint64_t amount = i ? total : total / 16;
		struct flow out = flow_of(50 + (uint64_t)side->index, 0, amount, 1, highs[i]);
		struct flow in = flow_of(51 - (uint64_t)side->index, 1, amount, 1, highs[2 - i]);
		while (out.done < out.total || in.done < in.total) {
			bool moved = flow_put(side, &out);
			moved = flow_get(side, &in) || moved;
			if (!moved)
				CHECK(hr_channel_wait(side->channel, out.done < out.total, 1000) >= 0);
		}
		free(out.bytes);
		free(in.bytes);
	}
}

static void million_small_messages(struct side *side)
{
	uint64_t n = 1200000 / side->scale;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t message[4], expected[4];
		uint64_t random = i;
		size_t size = i % 3 ? 8 : 8 * rng_between(&random, 1, 4);
		for (int k = 0; k < 4; k++)
			expected[k] = i * 4 + (uint64_t)k;
		if (side->index == 0) {
			put_all(side, expected, size);
			continue;
		}
		get_all(side, message, size);
		CHECK(!memcmp(message, expected, size));
	}
}

static void ping_pong(struct side *side)
{
	for (uint64_t i = 0; i < 100000 / side->scale; i++) {
		uint64_t value = i;
		if (side->index == 0)
			put_all(side, &value, sizeof value);
		value = ~0ull;
		get_all(side, &value, sizeof value);
		CHECK_IS(value, i);
		if (side->index == 1)
			put_all(side, &value, sizeof value);
	}
}

/* Puts until nothing is accepted any more, again and again; then the peer takes all of it. */
static void no_room_is_no_error(struct side *side)
{
	uint8_t bytes[5000];
	uint64_t offset = 0;
	for (int refused = 0; side->index == 0 && refused < 2000;) {
		pattern_fill(9, offset, bytes, sizeof bytes);
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted = 12345;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
		CHECK(accepted <= sizeof bytes);
		offset += accepted;
		refused += accepted == 0;
	}
	if (side->index == 0) {
		hr_conn_stats_t stats = { .size = sizeof stats };
		CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
		CHECK_IS(stats.put_bytes, offset);
		CHECK(stats.put_short >= 2000 && stats.put_calls > stats.put_short - 1);
		CHECK(offset > 0);
		side_send(side, &offset, sizeof offset);
		return;
	}
	uint64_t total;
	side_receive(side, &total, sizeof total);
	while (offset < total) {
		size_t n = total - offset < sizeof bytes ? (size_t)(total - offset) : sizeof bytes;
		get_all(side, bytes, n);
		pattern_check(9, offset, bytes, n);
		offset += n;
	}
}

/* 0 puts without getting while 1 answers now and then: the answers, left unread, must not hold up the messages, whatever
 * of flow control rides on them. */
static void answers_left_unread(struct side *side)
{
	enum { ANSWERS = 15 };
	uint8_t message[100], answer = 'a';
	for (unsigned every = 3; every <= 48; every *= 2) {
		for (unsigned i = 0; i < every * ANSWERS; i++) {
			if (side->index == 0) {
				pattern_fill(every, i, message, sizeof message);
				put_all(side, message, sizeof message);
				continue;
			}
			get_all(side, message, sizeof message);
			pattern_check(every, i, message, sizeof message);
			if (i % every == every - 1)
				put_all(side, &answer, 1);
		}
		for (int i = 0; i < ANSWERS && side->index == 0; i++) {
			get_all(side, &answer, 1);
			CHECK_IS(answer, 'a');
		}
	}
}

/* A put of nothing and a get into nothing do nothing. */
static void empty_vectors(struct side *side)
{
	struct iovec empty[2] = { { NULL, 0 }, { NULL, 0 } };
	size_t moved = 77;
	CHECK_IS(hr_channel_put(side->conn, empty, 2, &moved), 0);
	CHECK_IS(moved, 0);
	moved = 77;
	CHECK_IS(hr_channel_put(side->conn, NULL, 0, &moved), 0);
	CHECK_IS(moved, 0);
	moved = 77;
	CHECK_IS(hr_channel_get(side->conn, empty, 2, &moved), 0);
	CHECK_IS(moved, 0);
	moved = 77;
	CHECK_IS(hr_channel_get(side->conn, NULL, 0, &moved), 0);
	CHECK_IS(moved, 0);
	there_and_back(side, 10, 1);
}

const struct test_case data_cases[] = {
	{ "sizes", sizes, 0 },
	{ "every-small-size", every_small_size, 0 },
	{ "odd-alignments", odd_alignments, 0 },
	{ "vectors-of-many-pieces", vectors_of_many_pieces, 0 },
	{ "partial-puts-and-gets", partial_puts_and_gets, 0 },
	{ "partial-puts-and-gets-small-ring", partial_puts_and_gets, PAIR_SMALL_RING },
	{ "both-directions-at-once", both_directions_at_once, 0 },
	{ "both-directions-at-once-small-ring", both_directions_at_once, PAIR_SMALL_RING },
	{ "million-small-messages", million_small_messages, 0 },
	{ "million-small-messages-full-fence", million_small_messages, PAIR_FULL_FENCE | PAIR_SMALL_RING },
	{ "ping-pong", ping_pong, 0 },
	{ "no-room-is-no-error", no_room_is_no_error, 0 },
	{ "answers-left-unread", answers_left_unread, 0 },
	{ "empty-vectors", empty_vectors, 0 },
	{ 0 },
};
