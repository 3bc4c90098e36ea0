/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of chunks on plain memory: a copy of bytes in address order stands for the adapter's RDMA write. */
#include "config.h"

#include "ib/ib_ring.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One direction of a pipe: a sender with its staging area, a receiver with its ring. */
struct pipe {
	struct ib_geometry geometry;
	uint8_t *staging, *ring;
	struct ib_sender sender;
	struct ib_receiver receiver;
};

static void pipe_make(struct pipe *pipe, uint32_t chunk_bytes, uint32_t n_chunks)
{
	pipe->geometry = (struct ib_geometry){ chunk_bytes, n_chunks };
	ck_assert(ib_geometry_valid(&pipe->geometry));
	pipe->staging = aligned_alloc(64, ib_geometry_bytes(&pipe->geometry));
	pipe->ring = aligned_alloc(64, ib_geometry_bytes(&pipe->geometry));
	ck_assert(pipe->staging && pipe->ring);
	memset(pipe->staging, 0xee, ib_geometry_bytes(&pipe->geometry));
	memset(pipe->ring, 0, ib_geometry_bytes(&pipe->geometry));
	ib_sender_init(&pipe->sender, &pipe->geometry, pipe->staging);
	ib_receiver_init(&pipe->receiver, &pipe->geometry, pipe->ring);
}

static void pipe_free(struct pipe *pipe)
{
	free(pipe->staging);
	free(pipe->ring);
}

static struct ib_span build(struct pipe *pipe, const void *data, size_t len, uint32_t tail, uint32_t *size)
{
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	struct ib_span span;
	*size = ib_sender_build(&pipe->sender, &place, len, tail, &span);
	return span;
}

static void carry(struct pipe *pipe, struct ib_span span)
{
	memcpy(pipe->ring + span.offset, pipe->staging + span.offset, span.len);
}

static uint32_t send_bytes(struct pipe *pipe, const void *data, size_t len, uint32_t tail)
{
	uint32_t size;
	carry(pipe, build(pipe, data, len, tail, &size));
	return size;
}

static int take(struct pipe *pipe, void *data, size_t len, uint32_t *tail)
{
	struct iovec iov = { data, len };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	return ib_receiver_take(&pipe->receiver, &place, len, tail);
}

static void fill_pattern(uint8_t *data, size_t len, uint32_t seed)
{
	for (size_t i = 0; i < len; i++) {
		seed = seed * 1664525 + 1013904223;
		data[i] = (uint8_t)(seed >> 24);
	}
}

START_TEST(every_size_of_a_chunk_arrives_as_sent)
{
	struct pipe pipe;
	pipe_make(&pipe, 512, 4);
	uint32_t most = ib_geometry_payload(&pipe.geometry);
	ck_assert_uint_eq(most, 512 - 16);
	for (uint32_t len = 1; len <= most; len++) {
		uint8_t in[512], out[512] = { 0 };
		uint32_t tail = 0;
		fill_pattern(in, len, len);
		ck_assert_uint_eq(send_bytes(&pipe, in, len, len * 7), len);
		ck_assert(ib_receiver_ready(&pipe.receiver));
		ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), (int)len);
		ck_assert_uint_eq(tail, len * 7);
		ck_assert_mem_eq(in, out, len);
		ck_assert(!ib_receiver_ready(&pipe.receiver));
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	pipe_free(&pipe);
}
END_TEST

START_TEST(a_long_message_is_cut_into_chunks_across_vectors)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 8);
	uint8_t in[1000], out[1000];
	fill_pattern(in, sizeof in, 3);
	struct iovec iov[] = { { in, 1 }, { NULL, 0 }, { in + 1, 300 }, { in + 301, 3 }, { in + 304, 696 },
			       { NULL, 0 } };
	struct hr_iov_place place = hr_iov_begin(iov, 6);
	size_t left = hr_iov_total(iov, 6);
	ck_assert_uint_eq(left, sizeof in);
	while (left > 0) {
		struct ib_span span;
		left -= ib_sender_build(&pipe.sender, &place, left, 0, &span);
		ck_assert_uint_eq(span.offset % 8, 0);
		carry(&pipe, span);
	}
	ck_assert_uint_eq(pipe.sender.head, 5);

	struct iovec into[] = { { out, 100 }, { out + 100, 1 }, { NULL, 0 }, { out + 101, 899 } };
	struct hr_iov_place to = hr_iov_begin(into, 4);
	uint32_t tail;
	for (left = sizeof out; left > 0;) {
		int got = ib_receiver_take(&pipe.receiver, &to, left, &tail);
		ck_assert_int_gt(got, 0);
		left -= (size_t)got;
	}
	ck_assert_mem_eq(in, out, sizeof in);
	pipe_free(&pipe);
}
END_TEST

START_TEST(a_chunk_may_be_taken_in_pieces)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 2);
	uint8_t in[200], out[200];
	uint32_t tail;
	fill_pattern(in, sizeof in, 9);
	send_bytes(&pipe, in, sizeof in, 0);
	for (size_t at = 0; at < sizeof in; at += 8) {
		ck_assert_uint_eq(pipe.receiver.next, 0);
		ck_assert_int_eq(take(&pipe, out + at, 8, &tail), 8);
	}
	ck_assert_uint_eq(pipe.receiver.next, 1);
	ck_assert_int_eq(take(&pipe, out, 8, &tail), 0);
	ck_assert_mem_eq(in, out, sizeof in);
	pipe_free(&pipe);
}
END_TEST

/* Content that imitates flags of every lap, through many laps: a stale word must never be taken for a new one. */
START_TEST(old_payload_is_never_taken_for_a_flag)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 4);
	uint32_t most = ib_geometry_payload(&pipe.geometry);
	for (uint32_t chunk = 0; chunk < 4000; chunk++) {
		uint32_t words[64], out[64], tail;
		uint32_t len = (chunk * 37) % most + 1;
		/* Every word is the sequence number that the receiver will wait for in this slot one lap later. */
		for (size_t i = 0; i < 64; i++)
			words[i] = htole32(chunk + 1 + 4);
		ck_assert(!ib_receiver_ready(&pipe.receiver));
		ck_assert_uint_eq(send_bytes(&pipe, words, len, 0), len);
		ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), (int)len);
		ck_assert_mem_eq(words, out, len);
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	pipe_free(&pipe);
}
END_TEST

/* The adapter's write seen after every single byte of it: nothing is visible before the last byte that changes. */
START_TEST(a_chunk_half_written_is_not_there)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 2);
	for (uint32_t chunk = 0; chunk < 600; chunk++) {
		uint8_t in[240], out[240];
		uint32_t size, tail;
		size_t len = chunk % 240 + 1;
		fill_pattern(in, len, chunk);
		struct ib_span span = build(&pipe, in, len, 0, &size);
		for (uint32_t i = 0; i < span.len; i++) {
			/* Once the flag's low byte is there, what is still missing may happen to be there already. */
			if (i <= span.len - sizeof(uint32_t))
				ck_assert(!ib_receiver_ready(&pipe.receiver));
			if (ib_receiver_ready(&pipe.receiver))
				ck_assert_mem_eq(pipe.ring + span.offset, pipe.staging + span.offset, span.len);
			pipe.ring[span.offset + i] = pipe.staging[span.offset + i];
		}
		ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), (int)len);
		ck_assert_mem_eq(in, out, len);
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	pipe_free(&pipe);
}
END_TEST

START_TEST(without_its_front_flag_a_chunk_is_not_there)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 2);
	uint8_t in[64], out[64];
	uint32_t size, tail;
	fill_pattern(in, sizeof in, 1);
	struct ib_span span = build(&pipe, in, sizeof in, 0, &size);
	size_t front = sizeof(struct ib_chunk_front);
	memcpy(pipe.ring + span.offset + front, pipe.staging + span.offset + front, span.len - front);
	ck_assert(!ib_receiver_ready(&pipe.receiver));
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 0);
	memcpy(pipe.ring + span.offset, pipe.staging + span.offset, front);
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), (int)sizeof in);
	ck_assert_mem_eq(in, out, sizeof in);
	pipe_free(&pipe);
}
END_TEST

/* Chunks on two queue pairs: the later one may be there first. */
START_TEST(chunks_that_arrive_out_of_order_are_taken_in_order)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 4);
	char out[8];
	uint32_t size, tail;
	struct ib_span first = build(&pipe, "one", 3, 0, &size);
	struct ib_span second = build(&pipe, "two", 3, 0, &size);
	carry(&pipe, second);
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 0);
	carry(&pipe, first);
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 3);
	ck_assert_mem_eq(out, "one", 3);
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 3);
	ck_assert_mem_eq(out, "two", 3);
	pipe_free(&pipe);
}
END_TEST

START_TEST(credits_bound_what_is_under_way_and_come_back_once)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 8);
	uint32_t tail;
	char byte;
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_uint_eq(ib_sender_room(&pipe.sender), 8 - i);
		send_bytes(&pipe, "x", 1, 0);
	}
	ck_assert_uint_eq(ib_sender_room(&pipe.sender), 0);
	for (uint32_t i = 0; i < 8; i++) {
		ck_assert_int_eq(ib_receiver_owes(&pipe.receiver), i >= 4);
		ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
	}
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, 5), 0);
	ck_assert_uint_eq(ib_sender_room(&pipe.sender), 5);
	/* Told before, by the other way. */
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, 3), 0);
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, 5), 0);
	ck_assert_uint_eq(ib_sender_room(&pipe.sender), 5);
	/* More than was ever sent. */
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, 9), -EPROTO);
	ck_assert_uint_eq(ib_sender_room(&pipe.sender), 5);
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, 8), 0);
	ck_assert_uint_eq(ib_sender_room(&pipe.sender), 8);
	pipe_free(&pipe);
}
END_TEST

START_TEST(tails_in_chunks_not_consumed_can_be_seen)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 4);
	uint32_t tail;
	char byte;
	ck_assert(!ib_receiver_peek(&pipe.receiver, &tail));
	for (uint32_t round = 0; round < 50; round++) {
		for (uint32_t i = 1; i <= 4; i++)
			send_bytes(&pipe, "x", 1, round * 4 + i);
		for (uint32_t i = 1; i <= 4; i++) {
			ck_assert(ib_receiver_peek(&pipe.receiver, &tail));
			ck_assert_uint_eq(tail, round * 4 + i);
		}
		/* Each once; what lies beyond is the oldest chunk again. */
		ck_assert(!ib_receiver_peek(&pipe.receiver, &tail));
		for (uint32_t i = 1; i <= 4; i++)
			ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
		ck_assert(!ib_receiver_peek(&pipe.receiver, &tail));
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
		/* A chunk that was taken without a look is not looked at any more. */
		send_bytes(&pipe, "y", 1, 0);
		ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
		ck_assert(!ib_receiver_peek(&pipe.receiver, &tail));
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	pipe_free(&pipe);
}
END_TEST

/* Else a chunk that its user leaves lying, or takes byte by byte, brings an old tail again when the counts have gone
 * half around and it looks new. */
START_TEST(the_tail_of_a_chunk_is_heard_once)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 4);
	uint32_t tail = 0;
	char byte;
	send_bytes(&pipe, "xyz", 3, 5);
	ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
	ck_assert_uint_eq(tail, 5);
	pipe.sender.head = pipe.sender.tail = 5 + (1u << 31) + 1;
	tail = pipe.sender.tail;
	ck_assert(!ib_receiver_peek(&pipe.receiver, &tail));
	ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
	ck_assert_int_eq(take(&pipe, &byte, 1, &tail), 1);
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, tail), 0);
	ck_assert_uint_eq(tail, pipe.sender.tail);
	pipe_free(&pipe);
}
END_TEST

START_TEST(a_tail_that_only_rides_is_written_now_and_then)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 4);
	pipe.receiver.next = pipe.receiver.tail_told = IB_TAIL_WRITTEN_EVERY - 1;
	ck_assert(!ib_receiver_owes(&pipe.receiver));
	pipe.receiver.next = pipe.receiver.tail_told = IB_TAIL_WRITTEN_EVERY;
	ck_assert(ib_receiver_owes(&pipe.receiver));
	pipe.receiver.tail_written = IB_TAIL_WRITTEN_EVERY;
	ck_assert(!ib_receiver_owes(&pipe.receiver));
	pipe_free(&pipe);
}
END_TEST

/* The tail as it looks after each byte of a write: never more than the true one. */
START_TEST(a_tail_half_written_is_never_too_large)
{
	static const uint32_t tails[][2] = { { 0xff, 0x100 }, { 0x1ff, 0x200 }, { 0xfe, 0x207 }, { 0xffff, 0x10005 },
					     { 0xfffffffe, 3 }, { 0xffffff, 0x1000080 } };
	for (size_t i = 0; i < sizeof tails / sizeof *tails; i++) {
		struct pipe pipe;
		pipe_make(&pipe, 256, 1024);
		pipe.sender.tail = tails[i][0];
		pipe.sender.head = tails[i][1];
		uint32_t from = htole32(tails[i][1]), word = htole32(tails[i][0]);
		for (size_t byte = 0; byte < sizeof word; byte++) {
			memcpy((uint8_t *)&word + byte, (uint8_t *)&from + byte, 1);
			ck_assert_int_eq(ib_sender_credit(&pipe.sender, le32toh(word)), 0);
		}
		ck_assert_uint_eq(pipe.sender.tail, tails[i][1]);
		pipe_free(&pipe);
	}
}
END_TEST

/* Chunks that are built first and posted together afterwards, those of one queue pair after those of another. */
START_TEST(chunks_built_before_can_be_found_to_be_posted)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 8);
	struct ib_span spans[8];
	for (uint32_t lap = 0; lap < 5; lap++) {
		uint8_t in[8][240], out[240];
		uint32_t size, tail, first = pipe.sender.head;
		for (uint32_t i = 0; i < 8; i++) {
			fill_pattern(in[i], sizeof in[i], first + i);
			spans[i] = build(&pipe, in[i], 1 + (i * 71 + lap * 13) % 240, 0, &size);
		}
		for (uint32_t i = 0; i < 8; i++) {
			struct ib_span span = ib_sender_span(&pipe.sender, first + i * 3 % 8);
			ck_assert_uint_eq(span.offset, spans[i * 3 % 8].offset);
			ck_assert_uint_eq(span.len, spans[i * 3 % 8].len);
			carry(&pipe, span);
		}
		for (uint32_t i = 0; i < 8; i++) {
			int len = 1 + (int)((i * 71 + lap * 13) % 240);
			ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), len);
			ck_assert_mem_eq(in[i], out, (size_t)len);
		}
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	pipe_free(&pipe);
}
END_TEST

START_TEST(an_announcement_arrives_among_data)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 8);
	struct ib_announcement sent = { 0x1122334455667788, 0x99aabbcc, 0, 70000 }, got;
	struct ib_span span;
	uint32_t tail;
	uint8_t out[240];
	send_bytes(&pipe, "before", 6, 1);
	ib_sender_announce(&pipe.sender, &sent, 9, &span);
	struct ib_span found = ib_sender_span(&pipe.sender, 1);
	ck_assert_uint_eq(found.offset, span.offset);
	ck_assert_uint_eq(found.len, span.len);
	ck_assert(!ib_receiver_holds_announcement(&pipe.receiver));
	carry(&pipe, span);
	send_bytes(&pipe, "after", 5, 2);
	ck_assert(!ib_receiver_is_announcement(&pipe.receiver));
	ck_assert(ib_receiver_holds_announcement(&pipe.receiver));
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 6);
	ck_assert(ib_receiver_is_announcement(&pipe.receiver));
	/* A design without zero-copy does not take it for bytes. */
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), -EPROTO);
	ib_receiver_take_announcement(&pipe.receiver, &got, &tail);
	ck_assert_uint_eq(tail, 9);
	ck_assert_mem_eq(&sent, &got, sizeof got);
	ck_assert(!ib_receiver_holds_announcement(&pipe.receiver));
	ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), 5);
	ck_assert_mem_eq(out, "after", 5);
	pipe_free(&pipe);
}
END_TEST

START_TEST(an_impossible_kind_is_an_error)
{
	/* An unknown kind; announcements that are too short and too long. */
	static const uint32_t words[] = { 2u << 24 | 24, 0xffu << 24 | 24, 1u << 24 | 23, 1u << 24 | 25 };
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct pipe pipe;
		uint8_t out[256];
		uint32_t tail;
		pipe_make(&pipe, 256, 2);
		struct ib_chunk_end end = { htole32(words[i]), htole32(1) };
		memcpy(pipe.ring + 256 - sizeof end, &end, sizeof end);
		ck_assert(!ib_receiver_is_announcement(&pipe.receiver));
		ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), -EPROTO);
		pipe_free(&pipe);
	}
}
END_TEST

START_TEST(counts_wrap_around)
{
	struct pipe pipe;
	pipe_make(&pipe, 256, 8);
	uint32_t start = UINT32_MAX - 40;
	pipe.sender.head = pipe.sender.tail = pipe.receiver.next = start;
	pipe.receiver.peeked = pipe.receiver.tail_told = pipe.receiver.tail_written = start;
	for (uint32_t i = 0; i < 100; i++) {
		uint32_t out, tail;
		ck_assert(!ib_receiver_ready(&pipe.receiver));
		ck_assert_uint_eq(send_bytes(&pipe, &i, sizeof i, start + i), sizeof i);
		ck_assert_int_eq(take(&pipe, &out, sizeof out, &tail), sizeof out);
		ck_assert_uint_eq(out, i);
		ck_assert_uint_eq(tail, start + i);
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
		ck_assert_uint_eq(ib_sender_room(&pipe.sender), 8);
	}
	ck_assert_uint_eq(pipe.receiver.next, start + 100);
	pipe_free(&pipe);
}
END_TEST

START_TEST(an_impossible_size_is_an_error)
{
	static const uint32_t sizes[] = { 0, 241, 256, UINT32_MAX };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct pipe pipe;
		uint8_t out[256];
		uint32_t tail;
		pipe_make(&pipe, 256, 2);
		struct ib_chunk_end end = { htole32(sizes[i]), htole32(1) };
		memcpy(pipe.ring + 256 - sizeof end, &end, sizeof end);
		ck_assert(ib_receiver_ready(&pipe.receiver));
		ck_assert_int_eq(take(&pipe, out, sizeof out, &tail), -EPROTO);
		pipe_free(&pipe);
	}
}
END_TEST

START_TEST(every_size_asked_for_gives_a_usable_shape)
{
	static const uint64_t rings[] = { 0, 1, 4096, 65536, 1 << 20, 100000000, UINT64_MAX };
	static const uint64_t chunks[] = { 0, 1, 256, 300, 4096, 16384, 1 << 20, UINT64_MAX };
	for (size_t r = 0; r < sizeof rings / sizeof *rings; r++)
		for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++) {
			struct ib_geometry geometry = ib_geometry_fit(rings[r], chunks[c]);
			ck_assert(ib_geometry_valid(&geometry));
		}
	struct ib_geometry usual = ib_geometry_fit(1 << 20, 16384);
	ck_assert_uint_eq(usual.chunk_bytes, 16384);
	ck_assert_uint_eq(usual.n_chunks, 64);
	static const struct ib_geometry wrong[] = { { 255, 2 }, { 256, 1 }, { 256, 3 }, { 260, 4 },
						    { 1 << 20, 1 << 16 }, { 0, 0 }, { 2 << 20, 2 } };
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
		ck_assert(!ib_geometry_valid(&wrong[i]));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verbs ring");
	TCase *tcase = tcase_create("ring");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, every_size_of_a_chunk_arrives_as_sent);
	tcase_add_test(tcase, a_long_message_is_cut_into_chunks_across_vectors);
	tcase_add_test(tcase, a_chunk_may_be_taken_in_pieces);
	tcase_add_test(tcase, old_payload_is_never_taken_for_a_flag);
	tcase_add_test(tcase, a_chunk_half_written_is_not_there);
	tcase_add_test(tcase, without_its_front_flag_a_chunk_is_not_there);
	tcase_add_test(tcase, chunks_that_arrive_out_of_order_are_taken_in_order);
	tcase_add_test(tcase, credits_bound_what_is_under_way_and_come_back_once);
	tcase_add_test(tcase, tails_in_chunks_not_consumed_can_be_seen);
	tcase_add_test(tcase, the_tail_of_a_chunk_is_heard_once);
	tcase_add_test(tcase, a_tail_that_only_rides_is_written_now_and_then);
	tcase_add_test(tcase, a_tail_half_written_is_never_too_large);
	tcase_add_test(tcase, chunks_built_before_can_be_found_to_be_posted);
	tcase_add_test(tcase, an_announcement_arrives_among_data);
	tcase_add_test(tcase, an_impossible_kind_is_an_error);
	tcase_add_test(tcase, counts_wrap_around);
	tcase_add_test(tcase, an_impossible_size_is_an_error);
	tcase_add_test(tcase, every_size_asked_for_gives_a_usable_shape);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
