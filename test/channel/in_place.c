/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Records in place (upper.h): the bytes of reserve and commit, and of post, are those of put, the bytes of peek and consume, and
 * of take, are those of get, in any mixture. Single messages use the same lines of the ring again. Both ends are in this process.
 */
#include "config.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/peer_copy.h"
#include "rdma_channel/upper.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROUNDS 50000
#define LONG_PIECE (64u << 10) /* is offered for single copy */

static hr_channel_t *channel[2];
static hr_conn_t *conn[2];

static void open_rings(uint32_t transport, size_t ring_bytes)
{
	hr_card_t card[2];
	for (int i = 0; i < 2; i++) {
		hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
		attr.transports = transport;
		attr.ring_bytes = (uint32_t)ring_bytes;
		ck_assert_int_eq(hr_channel_init(&attr, &channel[i], &card[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hr_channel_connect(channel[i], &card[1 - i], NULL, &conn[i]), 0);
	while ((hr_conn_state(conn[0]) == 1) + (hr_conn_state(conn[1]) == 1) < 2)
		continue;
}

static void open_ends(uint32_t transport)
{
	open_rings(transport, 16384);
}

static void close_ends(void)
{
	hr_channel_finalize(channel[0]);
	hr_channel_finalize(channel[1]);
}

/* The byte at a position of the pipe. */
static uint8_t expected(uint64_t position)
{
	return (uint8_t)(position * 0x9e3779b97f4a7c15ull >> 56);
}

static void fill(uint8_t *to, uint64_t position, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = expected(position + i);
}

static void check_bytes(const uint8_t *bytes, uint64_t position, size_t len)
{
	size_t i = 0;
	while (i < len && bytes[i] == expected(position + i))
		i++;
	ck_assert_uint_eq(i, len); /* one assertion: each sends a message to check's process */
}

/* Posts a record in two parts. Returns its bytes, or 0. */
static size_t post_some(uint64_t position, size_t len, unsigned *random)
{
	static uint8_t front[HR_FRONT_MAX + 1], payload[HR_RECORD_MAX];
	size_t front_len = (size_t)rand_r(random) % sizeof front;
	front_len = front_len < len ? front_len : len;
	fill(front, position, front_len);
	fill(payload, position + front_len, len - front_len);
	return hr_conn_post(conn[0], front, front_len, payload, len - front_len) ? len : 0;
}

/* The sender's side of one round: returns the bytes sent. */
static size_t send_some(uint64_t position, unsigned *random)
{
	static uint8_t bytes[300], whole[HR_RECORD_MAX];
	static size_t rest; /* of a put that was not fully accepted */
	static uint64_t rest_at;
	size_t len = 1 + (size_t)rand_r(random) % (rand_r(random) % 4 ? 100 : HR_RECORD_MAX), accepted = 0;
	if (!rest && rand_r(random) % 3 == 0)
		return post_some(position, len, random);
	uint8_t *at = rest ? NULL : hr_conn_reserve(conn[0], (size_t)rand_r(random) % (len < HR_FRONT_MAX ? len : HR_FRONT_MAX), len);
	if (at) {
		if (rand_r(random) % 8 == 0)
			return 0; /* neither written nor committed */
		if (rand_r(random) % 2) {
			size_t part = (size_t)rand_r(random) % (len + 1);
			fill(whole, position, len);
			hr_conn_fill(conn[0], at, whole, part);
			hr_conn_fill(conn[0], at + part, whole + part, len - part);
		} else {
			fill(at, position, len);
		}
		hr_conn_commit(conn[0], len);
		return len;
	}
	if (!rest && rand_r(random) % 2)
		return 0;
	if (!rest) {
		rest = len < sizeof bytes ? len : sizeof bytes;
		rest_at = position;
	}
	fill(bytes, rest_at, rest);
	ck_assert_int_eq(hr_channel_put(conn[0], &(struct iovec){ bytes, rest }, 1, &accepted), 0);
	rest -= accepted;
	rest_at += accepted;
	return accepted;
}

static uint64_t take_at; /* position of the record that record_seen expects */
static size_t seen;      /* bytes of the last record that it was called with */
static int take_result;  /* what it returns */

static int record_seen(void *context, const uint8_t *bytes, size_t len)
{
	ck_assert_ptr_eq(context, &take_at);
	check_bytes(bytes, take_at, len);
	seen = len;
	return take_result;
}

/* Takes a record, or leaves it as it is. Returns its bytes, or 0. */
static size_t take_some(uint64_t position, unsigned *random)
{
	take_at = position;
	take_result = rand_r(random) % 4 ? 1 : -(rand_r(random) % 2) * ENOMEM;
	seen = 0;
	int taken = hr_conn_take(conn[1], record_seen, &take_at, 1);
	ck_assert_int_eq(taken, seen ? take_result : 0);
	return taken == 1 ? seen : 0;
}

/* The receiver's: returns the bytes received. */
static size_t receive_some(uint64_t position, unsigned *random)
{
	static uint8_t bytes[5000];
	const uint8_t *at;
	size_t len, delivered;
	if (rand_r(random) % 3 == 0)
		return take_some(position, random);
	if (rand_r(random) % 3 == 0) {
		len = 1 + (size_t)rand_r(random) % sizeof bytes;
		ck_assert_int_eq(hr_channel_get(conn[1], &(struct iovec){ bytes, len }, 1, &delivered), 0);
		check_bytes(bytes, position, delivered);
		return delivered;
	}
	if (hr_conn_peek(conn[1], &at, &len) != HR_ARRIVED)
		return 0;
	ck_assert_uint_gt(len, 0);
	if (rand_r(random) % 2)
		len = 1 + (size_t)rand_r(random) % len;
	check_bytes(at, position, len);
	hr_conn_consume(conn[1], len);
	return len;
}

START_TEST(the_bytes_are_those_of_put_and_get)
{
	uint64_t sent = 0, received = 0;
	unsigned random = 1;
	hr_conn_stats_t stats = { .size = sizeof stats };
	open_ends(HR_TRANSPORT_SHM);
	for (int i = 0; i < ROUNDS; i++) {
		sent += send_some(sent, &random);
		received += receive_some(received, &random);
	}
	for (int i = 0; i < ROUNDS && received < sent; i++)
		received += receive_some(received, &random);
	ck_assert_uint_eq(received, sent);
	ck_assert_int_eq(hr_conn_stats(conn[0], &stats), 0);
	ck_assert_uint_eq(stats.put_bytes, sent);
	ck_assert_int_eq(hr_conn_stats(conn[1], &stats), 0);
	ck_assert_uint_eq(stats.get_bytes, received);
	close_ends();
}
END_TEST

START_TEST(a_full_pipe_has_no_memory_to_reserve)
{
	const uint8_t *at;
	uint8_t *to;
	size_t len, sent = 0;
	open_ends(HR_TRANSPORT_SHM);
	/* 16 lines each: records of 16 lines end where the ring does, so there is room for one whenever the ring is empty. */
	for (; (to = hr_conn_reserve(conn[0], 16, 900)); sent += 900) {
		fill(to, sent, 900);
		hr_conn_commit(conn[0], 900);
	}
	ck_assert_uint_gt(sent, 8000);
	ck_assert_uint_le(sent, 16384);
	for (size_t received = 0; received < sent; received += len) {
		ck_assert_int_eq(hr_conn_peek(conn[1], &at, &len), HR_ARRIVED);
		check_bytes(at, received, len);
		hr_conn_consume(conn[1], len);
	}
	ck_assert_int_eq(hr_conn_peek(conn[1], &at, &len), HR_NOT_ARRIVED);
	ck_assert_ptr_nonnull(hr_conn_reserve(conn[0], 16, 900));
	close_ends();
}
END_TEST

/* Whether the watched word says that bytes have arrived. */
static bool has_changed(const struct hr_awaited *awaited)
{
	return *awaited->word && *awaited->word >> 32 == awaited->high;
}

START_TEST(the_watched_word_tells_whether_something_has_arrived)
{
	const uint8_t *at;
	size_t len;
	open_ends(HR_TRANSPORT_SHM);
	const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
	ck_assert_ptr_nonnull(awaited);
	for (int i = 0; i < 1000; i++) {
		size_t some = (size_t)(i * 37) % 3000 + 1;
		ck_assert(!has_changed(awaited));
		void *to = hr_conn_reserve(conn[0], 0, some);
		if (!to) { /* the record would not fit before the end of the ring */
			size_t accepted;
			static uint8_t bytes[3001];
			struct iovec iov = { bytes, some };
			ck_assert_int_eq(hr_channel_put(conn[0], &iov, 1, &accepted), 0);
			ck_assert_uint_eq(accepted, some);
		} else {
			memset(to, 1, some);
			hr_conn_commit(conn[0], some);
		}
		for (size_t received = 0; received < some; received += len) {
			ck_assert(has_changed(awaited));
			ck_assert_int_eq(hr_conn_peek(conn[1], &at, &len), HR_ARRIVED);
			len = len > 100 ? len - 1 : len; /* a part of a record stays */
			hr_conn_consume(conn[1], len);
		}
	}
	ck_assert(!has_changed(awaited));
	close_ends();
}
END_TEST

static void put_record(int from, size_t len)
{
	void *to = hr_conn_reserve(conn[from], 0, len);
	ck_assert_ptr_nonnull(to);
	memset(to, 1, len);
	hr_conn_commit(conn[from], len);
}

static void consume_record(int to)
{
	const uint8_t *at;
	size_t len;
	ck_assert_int_eq(hr_conn_peek(conn[to], &at, &len), HR_ARRIVED);
	hr_conn_consume(conn[to], len);
}

static void get_record(int to, size_t len)
{
	uint8_t bytes[3000];
	size_t delivered;
	ck_assert_int_eq(hr_channel_get(conn[to], &(struct iovec){ bytes, len }, 1, &delivered), 0);
	ck_assert_uint_eq(delivered, len);
}

struct counted {
	int records, most; /* count_record takes the first `most` records, then returns `result` */
	int result;
};

static int count_record(void *context, const uint8_t *bytes, size_t len)
{
	struct counted *counted = context;
	ck_assert_uint_eq(len, 8 + (size_t)bytes[0]);
	if (counted->records == counted->most)
		return counted->result;
	ck_assert_uint_eq(bytes[0], counted->records++);
	return 1;
}

START_TEST(several_records_are_taken_in_one_call)
{
	struct counted counted = { 0, 100, 0 };
	hr_conn_stats_t stats = { .size = sizeof stats };
	open_ends(HR_TRANSPORT_SHM);
	for (uint8_t i = 0; i < 6; i++) {
		uint8_t *to = hr_conn_reserve(conn[0], 0, 8 + (size_t)i);
		ck_assert_ptr_nonnull(to);
		memset(to, i, 8 + (size_t)i);
		hr_conn_commit(conn[0], 8 + (size_t)i);
	}
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 2), 2);
	ck_assert_int_eq(counted.records, 2);
	counted.most = 3;
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 9), 1);
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 9), 0);
	counted.result = -ENOMEM;
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 9), -ENOMEM);
	counted.most = 100;
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 9), 3);
	ck_assert_int_eq(counted.records, 6);
	ck_assert_int_eq(hr_conn_take(conn[1], count_record, &counted, 9), 0);
	ck_assert_int_eq(hr_conn_stats(conn[1], &stats), 0);
	ck_assert_uint_eq(stats.get_calls, 6);
	ck_assert_uint_eq(stats.get_bytes, 6 * 8 + 15);
	close_ends();
}
END_TEST

START_TEST(no_pair_of_lines_has_two_records)
{
	open_ends(HR_TRANSPORT_SHM);
	const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
	for (size_t i = 0; i < 1000; i++) {
		ck_assert_uint_eq((uintptr_t)awaited->word % 128, 0);
		ck_assert_uint_eq(awaited->high % 2, 0);
		uint8_t bytes[400] = { 0 };
		struct iovec iov = { bytes, i * 37 % sizeof bytes + 1 };
		size_t accepted, delivered;
		ck_assert_int_eq(hr_channel_put(conn[0], &iov, 1, &accepted), 0);
		ck_assert_uint_eq(accepted, iov.iov_len);
		ck_assert_int_eq(hr_channel_get(conn[1], &iov, 1, &delivered), 0);
		ck_assert_uint_eq(delivered, accepted);
	}
	close_ends();
}
END_TEST

/* Takes the records that are there. Stores how many lines each starts behind the one before. Returns the number of records. */
static size_t take_distances(const struct hr_awaited *awaited, uint32_t distance[], size_t most)
{
	const uint8_t *at;
	size_t len, n = 0;
	uint32_t position = awaited->high;
	for (; n < most && hr_conn_peek(conn[1], &at, &len) == HR_ARRIVED; n++) {
		hr_conn_consume(conn[1], len);
		distance[n] = awaited->high - position;
		position = awaited->high;
	}
	return n;
}

/* Otherwise processors prefetch the next records, and take lines from the sender that it is about to write. */
START_TEST(records_of_a_stream_start_at_irregular_distances)
{
	static const size_t bytes[] = { 8, 100, 200, 400 };
	for (size_t i = 0; i < sizeof bytes / sizeof *bytes; i++) {
		uint32_t distance[2], longest = 0, shortest = UINT32_MAX;
		open_rings(HR_TRANSPORT_SHM, 1 << 20);
		const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
		for (int round = 0; round < 10000; round++) {
			/* The ring may be empty, as far as the sender knows, at the first record only. */
			size_t n = round ? 2 : 1;
			for (size_t record = 0; record < n; record++)
				put_record(0, bytes[i]);
			ck_assert_uint_eq(take_distances(awaited, distance, 2), n);
			for (size_t record = 0; round && record < n; record++) {
				longest = distance[record] > longest ? distance[record] : longest;
				shortest = distance[record] < shortest ? distance[record] : shortest;
			}
		}
		ck_assert_uint_gt(shortest, 1);
		ck_assert_uint_ge(longest, shortest + 16);
		close_ends();
	}
}
END_TEST

START_TEST(a_ring_holds_many_short_records)
{
	static const size_t rings[] = { 16384, 65536, 1 << 20 };
	for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
		static uint32_t distance[8192];
		size_t pairs = rings[i] / 128, n = 0;
		open_rings(HR_TRANSPORT_SHM, rings[i]);
		while (hr_conn_reserve(conn[0], 0, 40)) {
			put_record(0, 40);
			n++;
		}
		ck_assert_uint_ge(n, pairs / 2);
		ck_assert_uint_eq(take_distances(hr_conn_watch(conn[1]), distance, 8192), n);
		ck_assert_uint_eq(distance[n - 1], 2);
		close_ends();
	}
}
END_TEST

/* The lines behind the watched word are as many as those behind the first one of a record that answered this side. */
START_TEST(the_lines_behind_the_watched_word_are_those_of_an_answer)
{
	static const struct { size_t bytes; uint32_t further; } record[] = {
		{ 40, 0 }, { 100, 1 }, { 8 * 64, 8 }, { 19 * 64, 19 }, { 20 * 64, 0 }, { 3000, 0 },
	};
	for (size_t i = 0; i < sizeof record / sizeof *record; i++) {
		open_ends(HR_TRANSPORT_SHM);
		const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
		ck_assert_uint_eq(awaited->further, 0);
		for (int answer = 0; answer < 2; answer++) {
			put_record(1, 8);
			consume_record(0);
			put_record(0, record[i].bytes);
			consume_record(1);
			ck_assert_uint_eq(awaited->further, record[i].further);
		}
		/* A second record without an answer between them is part of a stream. */
		put_record(0, record[i].bytes);
		consume_record(1);
		ck_assert_uint_eq(awaited->further, 0);
		close_ends();
	}
}
END_TEST

START_TEST(no_line_behind_the_watched_word_is_named_after_a_get)
{
	open_ends(HR_TRANSPORT_SHM);
	const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
	put_record(1, 8);
	consume_record(0);
	put_record(0, 500);
	consume_record(1);
	ck_assert_uint_gt(awaited->further, 0);
	put_record(1, 8);
	consume_record(0);
	put_record(0, 500);
	get_record(1, 500);
	ck_assert_uint_eq(awaited->further, 0);
	close_ends();
}
END_TEST

/* The line with index 0 is where the first word of an empty ring is. */
START_TEST(no_line_behind_the_watched_word_lies_behind_the_rings_end)
{
	const size_t lines = 16384 / 64;
	bool cut = false;
	open_ends(HR_TRANSPORT_SHM);
	const struct hr_awaited *awaited = hr_conn_watch(conn[1]);
	const uint64_t *first = awaited->word;
	for (int i = 0; i < 2000; i++) {
		size_t some = (size_t)(i * 37) % 1100 + 1;
		put_record(1, 8);
		consume_record(0);
		/* Records of a stream go around the ring; single ones use the same lines again. */
		for (int n = 0; n < 3 && hr_conn_reserve(conn[0], 0, some); n++) {
			put_record(0, some);
		}
		const uint8_t *at;
		size_t len;
		while (hr_conn_peek(conn[1], &at, &len) == HR_ARRIVED) {
			hr_conn_consume(conn[1], len);
			size_t index = (size_t)(awaited->word - first) / 8;
			ck_assert_uint_le(index + awaited->further, lines - 1);
			cut = cut || (awaited->further && index + awaited->further == lines - 1);
		}
	}
	ck_assert(cut);
	close_ends();
}
END_TEST

START_TEST(copies_of_any_length_copy_no_byte_more)
{
	for (size_t n = 0; n < 300; n++) {
		uint8_t from[400], to[400];
		fill(from, n, sizeof from);
		memset(to, 0xee, sizeof to);
		hr_copy(to + 50, from + 3, n);
		ck_assert_int_eq(memcmp(to + 50, from + 3, n), 0);
		ck_assert_uint_eq(to[49], 0xee);
		ck_assert_uint_eq(to[50 + n], 0xee);
	}
	hr_copy(NULL, NULL, 0);
}
END_TEST

START_TEST(copies_from_a_peer_copy_no_byte_more)
{
	static uint8_t from[5000], to[5000];
	fill(from, 3, sizeof from);
	for (size_t n = 0; n < 4500; n += n < 300 ? 1 : 61) {
		for (size_t shift = 0; shift < 3; shift++) {
			memset(to, 0xee, sizeof to);
			hr_copy_from_peer(to + 50 + shift, from + 3 * shift, n);
			ck_assert_int_eq(memcmp(to + 50 + shift, from + 3 * shift, n), 0);
			ck_assert_uint_eq(to[49 + shift], 0xee);
			ck_assert_uint_eq(to[50 + shift + n], 0xee);
		}
	}
}
END_TEST

/* A record must not overtake a piece that is offered for single copy, and peek cannot see such a piece. */
START_TEST(an_offered_piece_goes_through_put_and_get)
{
	static uint8_t from[LONG_PIECE], to[LONG_PIECE];
	const uint8_t *at;
	size_t len, accepted = 0, delivered = 0, done = 0, got = 0, offers = 0;
	open_ends(HR_TRANSPORT_SHM);
	fill(from, 0, sizeof from);
	while (done < sizeof from) {
		ck_assert_int_eq(hr_channel_put(conn[0], &(struct iovec){ from + done, sizeof from - done }, 1, &accepted), 0);
		done += accepted;
		if (done < sizeof from)
			ck_assert_ptr_null(hr_conn_reserve(conn[0], 0, 8));
		if (got < sizeof to) {
			offers += hr_conn_peek(conn[1], &at, &len) == HR_CALL_GET;
			ck_assert_int_eq(hr_channel_get(conn[1], &(struct iovec){ to + got, sizeof to - got }, 1, &delivered), 0);
			got += delivered;
		}
	}
	ck_assert_uint_eq(got, sizeof to);
	ck_assert_uint_gt(offers, 0);
	check_bytes(to, 0, sizeof to);
	close_ends();
}
END_TEST

START_TEST(a_peers_end_is_left_to_get)
{
	const uint8_t *at;
	size_t len, delivered;
	uint8_t byte;
	open_ends(HR_TRANSPORT_SHM);
	memcpy(hr_conn_reserve(conn[0], 0, 3), "end", 3);
	hr_conn_commit(conn[0], 3);
	hr_channel_finalize(channel[0]);
	ck_assert_int_eq(hr_conn_peek(conn[1], &at, &len), HR_ARRIVED);
	ck_assert_uint_eq(len, 3);
	ck_assert_mem_eq(at, "end", 3);
	hr_conn_consume(conn[1], len);
	while (hr_conn_peek(conn[1], &at, &len) == HR_NOT_ARRIVED)
		continue;
	ck_assert_int_eq(hr_channel_get(conn[1], &(struct iovec){ &byte, 1 }, 1, &delivered), -ESHUTDOWN);
	ck_assert_ptr_null(hr_conn_reserve(conn[1], 0, 8));
	hr_channel_finalize(channel[1]);
}
END_TEST

/* Fails the test if a condition of a long loop does not hold: each assertion of check sends a message to its process. */
static inline void demand(bool holds, const char *what)
{
	if (!holds)
		ck_abort_msg("%s", what);
}

/* Sends a record of `len` bytes from one end. Returns its address. */
static const uint8_t *send_one(int end, size_t len, uint64_t position)
{
	uint8_t *at = hr_conn_reserve(conn[end], 0, len);
	demand(at != NULL, "no memory is left for a record");
	fill(at, position, len);
	hr_conn_commit(conn[end], len);
	return at;
}

/* Receives a record of `len` bytes at an end. last: nothing is left after it. */
static void receive_one(int end, size_t len, uint64_t position, bool last)
{
	const uint8_t *at;
	size_t arrived, same = 0;
	demand(hr_conn_peek(conn[end], &at, &arrived) == HR_ARRIVED && arrived == len, "the record has not arrived");
	while (same < len && at[same] == expected(position + same))
		same++;
	demand(same == len, "the record has other bytes");
	hr_conn_consume(conn[end], len);
	demand(!last || hr_conn_peek(conn[end], &at, &arrived) == HR_NOT_ARRIVED, "a record arrived that was not sent");
}

/* A message from end 0 and an answer. Returns the address of the message. */
static const uint8_t *exchange(size_t len)
{
	const uint8_t *at = send_one(0, len, len);
	receive_one(1, len, len, true);
	send_one(1, 8, 8);
	receive_one(0, 8, 8, true);
	return at;
}

START_TEST(single_messages_use_the_same_lines)
{
	const uint8_t *least = NULL, *most = NULL;
	open_rings(HR_TRANSPORT_SHM, 1u << 20);
	for (uint64_t i = 0; i < 5000; i++) {
		const uint8_t *at = send_one(0, 1000, i);
		receive_one(1, 1000, i, true);
		send_one(1, 8, i);
		receive_one(0, 8, i, true);
		if (i < 10)
			continue;
		least = !least || at < least ? at : least;
		most = at > most ? at : most;
	}
	ck_assert_uint_lt((size_t)(most - least), 4096);
	close_ends();
}
END_TEST

/* Also behind a message with which the sender goes back: only the lines before that message are free then. */
START_TEST(an_untaken_short_message_leaves_room)
{
	open_rings(HR_TRANSPORT_SHM, 1u << 20);
	for (int i = 0; i < 100; i++) {
		send_one(0, 8, 0);
		for (uint64_t k = 1; k < 15; k++)
			send_one(0, 56, k);
		receive_one(1, 8, 0, false);
		for (uint64_t k = 1; k < 15; k++)
			receive_one(1, 56, k, k == 14);
		/* The answer tells about the first of them, the next exchange about all. */
		send_one(1, 8, 8);
		receive_one(0, 8, 8, true);
		for (int k = 0; k <= i % 20; k++)
			exchange(8);
	}
	close_ends();
}
END_TEST

/* However many answers come from the other side. All records have one line, and so fit before the end of the ring. */
START_TEST(answers_free_no_record_that_was_not_received)
{
	uint64_t sent = 0, received = 0, answers = 0;
	unsigned random = 1;
	open_ends(HR_TRANSPORT_SHM);
	while (received < 200000) {
		size_t burst = rand_r(&random) % 4 ? 1 : (size_t)rand_r(&random) % 60;
		for (size_t i = 0; i < burst && hr_conn_reserve(conn[0], 0, 1 + sent % 56); i++, sent++)
			send_one(0, 1 + sent % 56, sent);
		for (size_t i = 1 + (size_t)rand_r(&random) % 60; i > 0 && received < sent; i--, received++)
			receive_one(1, 1 + received % 56, received, received + 1 == sent);
		if (rand_r(&random) % 4 == 0)
			continue;
		send_one(1, 8, answers);
		receive_one(0, 8, answers++, true);
	}
	close_ends();
}
END_TEST

#define RING_LINES ((1u << 20) / 64)
/* How often the sender goes back until positions are the same again (ring.h). */
#define AROUND ((uint32_t)((1ull << 32) / RING_LINES))

/* Exchanges short messages until the sender has gone back so often. The last message was at the start of the ring. */
static void go_back(uint32_t times)
{
	const uint8_t *before = NULL;
	for (uint32_t back = 0, i = 0; back < times; i++) {
		const uint8_t *at = exchange(8);
		back += before && at < before;
		before = at;
		demand(i < 64 * times, "the sender does not go back");
	}
}

/*
 * A long message puts the header word of the next message into a line that short messages do not reach. When all positions
 * have been passed, this word is the one that the receiver expects after the next long message.
 */
START_TEST(a_header_word_of_the_same_position_is_no_record)
{
	open_rings(HR_TRANSPORT_SHM, 1u << 20);
	go_back(2);
	for (uint32_t around = 0; around < 3; around++) {
		const uint8_t *at = exchange(1200);
		demand(exchange(8) > at, "the header word is not behind the long message");
		exchange(8);
		go_back(AROUND - 1);
	}
	close_ends();
}
END_TEST

START_TEST(tcp_has_no_records_in_place)
{
	const uint8_t *at;
	size_t len;
	open_ends(HR_TRANSPORT_TCP);
	ck_assert_ptr_null(hr_conn_reserve(conn[0], 0, 8));
	ck_assert_int_eq(hr_conn_peek(conn[1], &at, &len), HR_CALL_GET);
	close_ends();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("records in place");
	TCase *tests = tcase_create("in place");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, the_bytes_are_those_of_put_and_get);
	tcase_add_test(tests, a_full_pipe_has_no_memory_to_reserve);
	tcase_add_test(tests, the_watched_word_tells_whether_something_has_arrived);
	tcase_add_test(tests, several_records_are_taken_in_one_call);
	tcase_add_test(tests, no_pair_of_lines_has_two_records);
	tcase_add_test(tests, records_of_a_stream_start_at_irregular_distances);
	tcase_add_test(tests, a_ring_holds_many_short_records);
	tcase_add_test(tests, the_lines_behind_the_watched_word_are_those_of_an_answer);
	tcase_add_test(tests, no_line_behind_the_watched_word_is_named_after_a_get);
	tcase_add_test(tests, no_line_behind_the_watched_word_lies_behind_the_rings_end);
	tcase_add_test(tests, copies_of_any_length_copy_no_byte_more);
	tcase_add_test(tests, copies_from_a_peer_copy_no_byte_more);
	tcase_add_test(tests, an_offered_piece_goes_through_put_and_get);
	tcase_add_test(tests, a_peers_end_is_left_to_get);
	tcase_add_test(tests, single_messages_use_the_same_lines);
	tcase_add_test(tests, an_untaken_short_message_leaves_room);
	tcase_add_test(tests, answers_free_no_record_that_was_not_received);
	tcase_add_test(tests, a_header_word_of_the_same_position_is_no_record);
	tcase_add_test(tests, tcp_has_no_records_in_place);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
