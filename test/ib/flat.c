/* SPDX-License-Identifier: BSD-3-Clause */
/* The flat ring of the basic design on plain memory: a copy of bytes stands for the adapter's RDMA write. */
#include "config.h"

#include "ib/ib_flat.h"

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { RING = 512 };

struct pipe {
	uint8_t staging[RING], ring[RING];
	struct ib_sender sender;
	struct ib_receiver receiver;
};

static void pipe_make(struct pipe *pipe, uint32_t start)
{
	struct ib_geometry flat = ib_flat_geometry(&(struct ib_geometry){ 256, 2 });
	ck_assert_uint_eq(flat.n_chunks, RING);
	memset(pipe->staging, 0xee, RING);
	memset(pipe->ring, 0xdd, RING);
	ib_sender_init(&pipe->sender, &flat, pipe->staging);
	ib_receiver_init(&pipe->receiver, &flat, pipe->ring);
	pipe->sender.head = pipe->sender.tail = pipe->receiver.next = start;
}

/* Puts and carries as much as there is room for. */
static uint32_t send_bytes(struct pipe *pipe, const uint8_t *data, size_t len)
{
	uint8_t *from = (uint8_t *)(uintptr_t)data;
	struct iovec iov[] = { { from, len / 3 }, { from + len / 3, len - len / 3 } };
	struct hr_iov_place place = hr_iov_begin(iov, 2);
	struct ib_span spans[2];
	uint32_t taken = ib_flat_fill(&pipe->sender, &place, len, spans);
	ck_assert_uint_eq(spans[0].len + spans[1].len, taken);
	for (int i = 0; i < 2; i++) {
		ck_assert_uint_le(spans[i].offset + spans[i].len, RING);
		memcpy(pipe->ring + spans[i].offset, pipe->staging + spans[i].offset, spans[i].len);
	}
	return taken;
}

static int64_t take(struct pipe *pipe, uint8_t *data, size_t len)
{
	struct iovec iov[] = { { data, len / 2 }, { data + len / 2, len - len / 2 } };
	struct hr_iov_place place = hr_iov_begin(iov, 2);
	return ib_flat_take(&pipe->receiver, pipe->sender.head, &place, len);
}

static uint8_t byte_of(uint64_t number)
{
	return (uint8_t)(number * 2654435761u >> 13);
}

/* Every length against every place in the ring, also where counts wrap; what is taken is what was put. */
static void stream_from(uint32_t start)
{
	struct pipe pipe;
	pipe_make(&pipe, start);
	uint64_t put = 0, got = 0;
	uint8_t data[RING + 100];
	for (unsigned round = 0; round < 3000; round++) {
		size_t len = round * 37 % sizeof data + 1;
		for (size_t i = 0; i < len; i++)
			data[i] = byte_of(put + i);
		uint32_t room = ib_sender_room(&pipe.sender);
		uint32_t taken = send_bytes(&pipe, data, len);
		ck_assert_uint_eq(taken, len < room ? len : room);
		put += taken;
		size_t wanted = round * 53 % sizeof data + 1;
		uint64_t there = put - got;
		int64_t n = take(&pipe, data, wanted);
		ck_assert_int_eq(n, (int64_t)(wanted < there ? wanted : there));
		/* An assertion for each byte would take longer than all the rest. */
		bool same = true;
		for (int64_t i = 0; i < n; i++)
			same &= data[i] == byte_of(got + (uint64_t)i);
		ck_assert(same);
		got += (uint64_t)n;
		ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	}
	ck_assert_uint_gt(put, 2 * RING);
}

START_TEST(bytes_arrive_in_order_around_the_ring)
{
	stream_from(0);
}
END_TEST

START_TEST(counts_of_bytes_wrap_around)
{
	stream_from(UINT32_MAX - 10000);
}
END_TEST

START_TEST(nothing_is_there_before_the_head_says_so)
{
	struct pipe pipe;
	pipe_make(&pipe, 0);
	uint8_t data[10] = "123456789", out[10];
	struct iovec iov = { out, sizeof out };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	ck_assert_uint_eq(send_bytes(&pipe, data, sizeof data), 10);
	ck_assert_int_eq(ib_flat_take(&pipe.receiver, 0, &place, 10), 0);
	ck_assert_int_eq(ib_flat_take(&pipe.receiver, 4, &place, 10), 4);
	/* An older head, of which only some bytes are written yet. */
	ck_assert_int_eq(ib_flat_take(&pipe.receiver, 3, &place, 6), 0);
	ck_assert_int_eq(ib_flat_take(&pipe.receiver, 10, &place, 6), 6);
	ck_assert_mem_eq(data, out, sizeof data);
}
END_TEST

START_TEST(a_head_beyond_the_ring_is_an_error)
{
	struct pipe pipe;
	pipe_make(&pipe, 7);
	uint8_t out[10];
	struct iovec iov = { out, sizeof out };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	ck_assert_int_eq(ib_flat_take(&pipe.receiver, 7 + RING + 1, &place, 10), -EPROTO);
}
END_TEST

START_TEST(unread_bytes_are_not_overwritten)
{
	struct pipe pipe;
	pipe_make(&pipe, 100);
	uint8_t data[RING + 1] = { 0 };
	ck_assert_uint_eq(send_bytes(&pipe, data, sizeof data), RING);
	ck_assert_uint_eq(send_bytes(&pipe, data, sizeof data), 0);
	ck_assert_int_eq(take(&pipe, data, 5), 5);
	ck_assert_uint_eq(send_bytes(&pipe, data, sizeof data), 0);
	ck_assert_int_eq(ib_sender_credit(&pipe.sender, pipe.receiver.next), 0);
	ck_assert_uint_eq(send_bytes(&pipe, data, sizeof data), 5);
}
END_TEST

START_TEST(the_flat_ring_fits_into_that_of_chunks)
{
	static const struct ib_geometry chunks[] = { { 256, 2 }, { 320, 4 }, { 16384, 64 }, { 1 << 20, 1 << 10 } };
	for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
		struct ib_geometry flat = ib_flat_geometry(&chunks[i]);
		ck_assert_uint_eq(flat.chunk_bytes, 1);
		ck_assert_uint_eq(flat.n_chunks & (flat.n_chunks - 1), 0);
		ck_assert_uint_le(ib_geometry_bytes(&flat), ib_geometry_bytes(&chunks[i]));
		ck_assert_uint_gt(2 * ib_geometry_bytes(&flat), ib_geometry_bytes(&chunks[i]));
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("verbs flat ring");
	TCase *tcase = tcase_create("flat");
	tcase_set_timeout(tcase, 300);
	tcase_add_test(tcase, bytes_arrive_in_order_around_the_ring);
	tcase_add_test(tcase, counts_of_bytes_wrap_around);
	tcase_add_test(tcase, nothing_is_there_before_the_head_says_so);
	tcase_add_test(tcase, a_head_beyond_the_ring_is_an_error);
	tcase_add_test(tcase, unread_bytes_are_not_overwritten);
	tcase_add_test(tcase, the_flat_ring_fits_into_that_of_chunks);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
