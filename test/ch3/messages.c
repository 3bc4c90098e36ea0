/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between two engines over the memory channel: eager, rendezvous, deferred, copied; over pipes without faults
 * and over pipes that transfer only a few bytes at a time. */
#include "test/ch3/memory_channel.h"
#include "test/ch3/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (200 * 1024 + 7)

static void setup(void)
{
	pair_set_up(LARGE);
}

START_TEST(small_message_leaves_at_once_in_one_put)
{
	uint64_t puts = memory_conn_puts(ch3_vc_conn(pair_a.vc));
	ck_assert_ptr_null(pair_send(7, source, 100, 0));
	ck_assert_uint_eq(memory_conn_puts(ch3_vc_conn(pair_a.vc)), puts + 1);
	ck_assert_int_ge(ch3_progress_poll(pair_b.engine), 2);
	pair_expect(0, 7, 100, false);
	ck_assert(pair_filled(target, 100, 1));
}
END_TEST

START_TEST(empty_payload_and_empty_header_arrive)
{
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE_OTHER, NULL, 0, NULL, 0, 0, &request), 0);
	ck_assert_ptr_null(request);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 1);
	ck_assert_uint_eq(pair_b.message[0].type, PAIR_TYPE_OTHER);
	ck_assert_uint_eq(pair_b.message[0].header_len, 0);
	ck_assert_int_eq(pair_b.message[0].done, 1);
}
END_TEST

START_TEST(vector_of_many_pieces_and_longest_header_arrive)
{
	char header[CH3_HEADER_MAX];
	memset(header, 0x11, sizeof header);
	struct iovec iov[CH3_IOV_MAX];
	size_t at = 0;
	for (size_t i = 0; i < CH3_IOV_MAX; at += i, i++)
		iov[i] = (struct iovec){ source + at, i };
	memory_faults.put_max = 33;
	pair_b.split = true;
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, header, sizeof header, iov, CH3_IOV_MAX, 0, &request), 0);
	ck_assert_ptr_nonnull(request);
	pair_settle();
	pair_expect_end(request, 0);
	pair_expect(0, 0x11111111, at, false);
	ck_assert_uint_eq(pair_b.message[0].header_len, CH3_HEADER_MAX);
	ck_assert(pair_filled(target, at, 1));
}
END_TEST

START_TEST(arguments_are_checked)
{
	ch3_request_t *request;
	char header[CH3_HEADER_MAX + 1] = { 0 };
	ck_assert_int_eq(ch3_send(pair_a.vc, CH3_TYPE_FIRST - 1, NULL, 0, NULL, 0, 0, &request), -EINVAL);
	ck_assert_int_eq(ch3_send(pair_a.vc, CH3_TYPES, NULL, 0, NULL, 0, 0, &request), -EINVAL);
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, NULL, 1, NULL, 0, 0, &request), -EINVAL);
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, NULL, 0, NULL, CH3_IOV_MAX + 1, 0, &request), -EINVAL);
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, NULL, 0, NULL, 0, 0, NULL), -EINVAL);
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, header, sizeof header, NULL, 0, 0, &request), -EMSGSIZE);
	struct iovec huge[2] = { { source, SIZE_MAX }, { source, 2 } };
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, NULL, 0, huge, 2, 0, &request), -EMSGSIZE);
	ck_assert_int_eq(ch3_register(pair_a.engine, PAIR_TYPE_NONE, NULL, NULL), -EINVAL);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 0);
}
END_TEST

/* The default threshold: a payload of 64 KB is eager, one byte more is sent by rendezvous. */
START_TEST(eager_up_to_the_threshold_then_rendezvous)
{
	ch3_request_free(pair_send(1, source, 65536, 0));
	pair_settle();
	pair_expect(0, 1, 65536, false);
	ch3_request_t *request = pair_send(2, source, 65537, 0);
	ck_assert_ptr_nonnull(request);
	ck_assert_int_eq(ch3_request_test(request), 0);
	pair_settle();
	pair_expect_end(request, 0);
	pair_expect(1, 2, 65537, true);
	ck_assert(pair_filled(target, 65537, 1));
	ch3_request_free(pair_send(3, source, LARGE, CH3_SEND_EAGER));
	pair_settle();
	pair_expect(2, 3, LARGE, false);
	ck_assert(pair_filled(target, LARGE, 1));
}
END_TEST

START_TEST(deferred_rendezvous_waits_for_its_buffer)
{
	pair_b.defer = true;
	ch3_request_t *request = pair_send(1, source, LARGE, 0);
	ck_assert_ptr_null(pair_send(2, source, 10, 0));
	pair_settle();
	ck_assert_int_eq(ch3_request_test(request), 0);
	ck_assert_int_eq(pair_b.messages, 2);
	ck_assert_int_eq(pair_b.message[0].done, 0);
	ck_assert_int_eq(pair_b.message[1].done, 1);
	memset(target, 0, LARGE);
	pair_b.split = true;
	pair_accept(0);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(request), 1);
	ch3_request_free(request);
	pair_expect(0, 1, LARGE, true);
	ck_assert(pair_filled(target, LARGE, 1));
}
END_TEST

START_TEST(short_sink_takes_what_fits_and_the_rest_is_dropped)
{
	for (int large = 0; large < 2; large++) {
		size_t len = large ? LARGE : 60000;
		pair_b.room = 1000;
		memset(target, 0, LARGE);
		ch3_request_free(pair_send(5, source, len, 0));
		pair_b.room = 1000;
		pair_settle();
		ck_assert_int_eq(pair_b.message[2 * large].done, 1);
		ck_assert_uint_eq(pair_b.message[2 * large].bytes, 1000);
		ck_assert(pair_filled(target, 1000, 1));
		ck_assert_int_eq(target[1000], 0);
		ch3_request_free(pair_send(6, source, 10, 0));
		pair_settle();
		pair_expect(2 * large + 1, 6, 10, false);
	}
	pair_b.room = 0; /* the whole payload is dropped */
	ch3_request_free(pair_send(8, source, LARGE, 0));
	ch3_request_free(pair_send(9, source, LARGE, CH3_SEND_EAGER));
	pair_settle();
	ck_assert_uint_eq(pair_b.message[4].bytes + pair_b.message[5].bytes, 0);
	ck_assert_int_eq(pair_b.message[4].done + pair_b.message[5].done, 2);
}
END_TEST

START_TEST(sync_completes_only_when_the_message_is_taken)
{
	pair_b.defer = true;
	ch3_request_t *empty = pair_send(1, source, 0, CH3_SEND_SYNC);
	ch3_request_t *small = pair_send(2, source, 8, CH3_SEND_SYNC);
	ck_assert_ptr_nonnull(empty);
	ck_assert_ptr_nonnull(small);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(empty) + ch3_request_test(small), 0);
	pair_accept(0);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(empty), 1);
	ck_assert_int_eq(ch3_request_test(small), 0);
	pair_accept(1);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(small), 1);
	ch3_request_free(empty);
	ch3_request_free(small);
	pair_expect(1, 2, 8, true);
}
END_TEST

START_TEST(copied_sends_let_the_buffers_go)
{
	static const size_t sizes[] = { 0, 8, 5000, HR_ZERO_COPY_MIN, 60000, LARGE };
	memory_faults.capacity = 500;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		for (unsigned eager = 0; eager < 2; eager++) {
			pair_fill(source, LARGE, i);
			size_t third = sizes[i] / 3;
			struct iovec iov[2] = { { source, third }, { source + third, sizes[i] - third } };
			ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, &i, sizeof i, iov, 2,
						  CH3_SEND_COPY | (eager ? CH3_SEND_EAGER : 0), NULL), 0);
			memset(source, 0xee, LARGE);
			memset(target, 0, LARGE);
			pair_settle();
			pair_expect((int)(2 * i + eager), i, sizes[i], !eager && sizes[i] > 65536);
			ck_assert(pair_filled(target, sizes[i], i));
		}
	}
}
END_TEST

START_TEST(order_is_kept_under_back_pressure)
{
	memory_faults.capacity = 100;
	enum { N = 1000 };
	static ch3_request_t *request[N];
	for (uint32_t i = 0; i < N; i++) {
		request[i] = pair_send(i, source, i % 300, i % 3 ? 0 : CH3_SEND_COPY);
		if (i % 3 == 0)
			ck_assert_ptr_null(request[i]);
	}
	pair_settle();
	ck_assert_int_eq(pair_b.messages, N);
	for (uint32_t i = 0; i < N; i++) {
		pair_expect((int)i, i, i % 300, false);
		ck_assert_uint_eq(pair_b.done_order[i], i);
		if (request[i])
			ck_assert_int_eq(ch3_request_test(request[i]), 1);
		ch3_request_free(request[i]);
	}
}
END_TEST

/* Rendezvous and eager messages mixed: the handlers run in the order of sending, although the payloads arrive in
 * another order. */
START_TEST(handlers_run_in_order_of_sending)
{
	pair_b.defer = true;
	for (uint32_t i = 0; i < 100; i++)
		ch3_request_free(pair_send(i, source, i % 2 ? 70000 : 16, 0));
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 100);
	for (uint32_t i = 0; i < 100; i++)
		ck_assert_uint_eq(pair_b.message[i].header, i);
	for (int i = 99; i > 0; i -= 2)
		pair_accept(i);
	pair_settle();
	for (int i = 1; i < 100; i += 2)
		pair_expect(i, (uint32_t)i, 70000, true);
}
END_TEST

static const struct memory_faults slow_pipes[] = {
	{ .put_max = 1 },
	{ .get_max = 1 },
	{ .put_max = 7, .get_max = 5 },
	{ .put_max = 1, .get_max = 1, .put_every = 2, .capacity = 3 },
	{ .capacity = 1 },
	{ .put_max = 23, .get_max = 151, .put_every = 3 },
};

START_TEST(messages_survive_pipes_that_move_a_few_bytes)
{
	memory_faults = slow_pipes[_i];
	static const size_t sizes[] = { 0, 1, 23, 24, 300, 8192, 9000, 66000 };
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		memset(target, 0, LARGE);
		pair_b.split = i % 2;
		ch3_request_free(pair_send(i, source + i, sizes[i], 0));
		pair_settle();
		pair_expect((int)i, i, sizes[i], sizes[i] > 65536);
		ck_assert_int_eq(memcmp(source + i, target, sizes[i]), 0);
	}
	ck_assert_int_eq(pair_a.failures + pair_b.failures, 0);
}
END_TEST

/* Packed on one side, on the other, or on both; the pipes have no faults after the last entry of slow_pipes. */
START_TEST(packed_payloads_arrive)
{
	static const size_t sizes[] = { 1, 23, 300, 3000, 9000, 66000, LARGE };
	int i = 0;
	if (_i < (int)(sizeof slow_pipes / sizeof *slow_pipes))
		memory_faults = slow_pipes[_i];
	for (unsigned k = 0; k < 4 * sizeof sizes / sizeof *sizes; k++, i++) {
		size_t size = sizes[k / 4];
		bool packs = k % 4 != 1, sync = k % 4 == 3;
		if (_i < (int)(sizeof slow_pipes / sizeof *slow_pipes) && size > 66000)
			break;
		memset(target, 0, LARGE);
		pair_b.unpack = k % 4 != 2;
		pair_b.defer = sync;
		unsigned flags = sync ? CH3_SEND_SYNC : 0;
		ch3_request_t *request = packs ? pair_send_pack(k, source, size, flags) : pair_send(k, source, size, flags);
		pair_settle();
		if (sync) {
			pair_accept(i);
			pair_settle();
		}
		ck_assert(!request || (ch3_request_test(request) && !ch3_request_error(request)));
		ch3_request_free(request);
		pair_expect(i, k, size, sync || size > 65536);
		ck_assert_uint_eq(pair_b.message[i].unpacked, pair_b.unpack ? size : 0);
		ck_assert_int_eq(memcmp(source, target, size), 0);
	}
	ck_assert_int_eq(pair_a.failures + pair_b.failures, 0);
}
END_TEST

START_TEST(packed_payload_is_cut_to_the_room_of_its_receiver)
{
	static const size_t sizes[] = { 300, 30000, LARGE };
	pair_b.unpack = true;
	pair_b.room = 100;
	for (int i = 0; i < 3; i++) {
		ch3_request_free(pair_send_pack(0, source, sizes[i], 0));
		pair_settle();
		ck_assert_uint_eq(pair_b.message[i].bytes, 100);
		ck_assert_uint_eq(pair_b.message[i].unpacked, 100);
	}
	ck_assert_int_eq(pair_a.failures + pair_b.failures, 0);
}
END_TEST

START_TEST(connection_that_breaks_fails_a_packed_payload)
{
	pair_b.unpack = true;
	memory_faults.capacity = 5000;
	ch3_request_t *request = pair_send_pack(0, source, 50000, 0);
	ck_assert_ptr_nonnull(request);
	for (int i = 0; i < 3; i++)
		ch3_progress_poll(pair_b.engine);
	memory_conn_break(ch3_vc_conn(pair_a.vc), -ECONNRESET);
	pair_settle();
	ck_assert_int_eq(ch3_request_error(request), -ECONNRESET);
	ch3_request_free(request);
	ck_assert_int_eq(pair_b.message[0].error, -ECONNRESET);
	ck_assert_int_eq(pair_b.message[0].done, 1);
}
END_TEST

START_TEST(close_delivers_what_was_copied)
{
	memory_faults.capacity = 64;
	ck_assert_ptr_null(pair_send(1, source, 40, CH3_SEND_COPY));
	ck_assert_ptr_null(pair_send(2, source, 20, CH3_SEND_COPY));
	memory_faults.capacity = 1000;
	ch3_vc_close(pair_a.vc);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 2);
	pair_expect(1, 2, 20, false);
	ck_assert_int_eq(pair_b.failure, -ESHUTDOWN);
}
END_TEST

/* The caller posts a receive when its send is complete. So the handler of the answer must not run earlier. */
START_TEST(send_is_complete_before_the_handler_of_its_answer_runs)
{
	memory_faults.capacity = 30000;
	ch3_request_t *request = pair_send(1, source, 50000, 0);
	ck_assert_ptr_nonnull(request);
	/* The receiver has taken all that is in the pipe, so there is room for the rest of the message. */
	for (int i = 0; i < 10; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(ch3_request_test(request), 0);
	ch3_request_t *answer;
	struct iovec iov = { source, 100 };
	ck_assert_int_eq(ch3_send(pair_b.vc, PAIR_TYPE_OTHER, NULL, 0, &iov, 1, 0, &answer), 0);
	ck_assert_ptr_null(answer);
	ch3_progress_poll(pair_a.engine);
	ck_assert_int_eq(ch3_request_test(request), 1);
	ck_assert_int_eq(pair_a.messages, 0);
	pair_settle();
	ck_assert_int_eq(pair_a.messages, 1);
	ch3_request_free(request);
}
END_TEST

/* Sends i as header and the first len bytes of the source. */
static bool send_short(uint32_t i, size_t len)
{
	return ch3_send_short(pair_a.vc, PAIR_TYPE_SHORT, &i, sizeof i, source, len);
}

static int taken_in_place(void)
{
	int taken = 0;
	for (int i = 0; i < pair_b.messages; i++)
		taken += pair_b.message[i].in_place;
	return taken;
}

/* The memory channel lets the receiver read in place in two of three calls. */
START_TEST(short_message_goes_to_its_function_or_to_the_handler)
{
	static const size_t lengths[] = { 0, 1, 8, 9, 33, 64, 65, 1000, 8192 - 12 };
	for (uint32_t i = 0; i < 9; i++) {
		memset(target, 0, 8192);
		ck_assert(send_short(i, lengths[i]));
		pair_settle();
		ck_assert_int_eq(pair_b.messages, (int)i + 1);
		pair_expect((int)i, i, lengths[i], false);
		ck_assert(pair_filled(target, lengths[i], 1));
	}
	ck_assert_int_gt(taken_in_place(), 0);
	ck_assert_int_lt(taken_in_place(), 9);
}
END_TEST

START_TEST(short_messages_keep_their_order_among_others)
{
	for (uint32_t i = 0; i < 60; i++) {
		if (i % 3 == 1)
			ck_assert_ptr_null(pair_send(i, source, 100, 0));
		else
			ck_assert(send_short(i, 50));
		if (i % 4 == 3)
			pair_settle();
	}
	pair_settle();
	for (int i = 0; i < 60; i++)
		pair_expect(i, (uint32_t)i, i % 3 == 1 ? 100 : 50, false);
}
END_TEST

START_TEST(declined_short_message_goes_to_the_handler)
{
	pair_b.declines = 0;
	for (uint32_t i = 0; i < 6; i++) {
		ck_assert(send_short(i, 100));
		pair_settle();
		pair_expect((int)i, i, 100, false);
	}
	ck_assert_int_eq(taken_in_place(), 0);
	ck_assert(pair_filled(target, 100, 1));
}
END_TEST

START_TEST(error_of_the_function_for_short_messages_fails_the_connection)
{
	pair_b.declines = -EBADMSG;
	for (uint32_t i = 0; i < 3 && !pair_b.failures; i++) {
		ck_assert(send_short(i, 100));
		pair_settle();
	}
	ck_assert_int_eq(pair_b.failures, 1);
	ck_assert_int_eq(pair_b.failure, -EBADMSG);
}
END_TEST

/* Whether b takes the message that has arrived. Of three calls in a row, one cannot read in place: see hr_conn_peek. */
static bool short_progress(void)
{
	return ch3_progress_short(pair_b.engine, 1) || ch3_progress_short(pair_b.engine, 1);
}

START_TEST(short_progress_takes_messages_until_a_poll_is_due)
{
	uint32_t i = 0;
	ck_assert(!short_progress());
	ck_assert(send_short(i++, 8));
	pair_settle(); /* the connection is active, and its word is watched */
	for (int turn = 0; turn < 3; turn++) {
		uint32_t first = i;
		ck_assert(!short_progress());
		for (;; i++) {
			ck_assert(send_short(i, 8));
			if (!short_progress())
				break;
			ck_assert_uint_lt(i - first, 16);
			ck_assert_int_eq(pair_b.messages, (int)i + 1);
			ck_assert(pair_b.message[i].in_place);
			pair_expect((int)i, i, 8, false);
		}
		ck_assert_uint_gt(i - first, 8);
		ck_assert(!short_progress());
		ck_assert_int_eq(pair_b.messages, (int)i);
		pair_settle();
		ck_assert_int_eq(pair_b.messages, (int)++i);
	}
}
END_TEST

START_TEST(short_progress_takes_no_more_messages_than_asked)
{
	uint32_t i = 0;
	bool two = false; /* in one call */
	ck_assert(send_short(i++, 8));
	pair_settle();
	for (int turn = 0; turn < 4; turn++) {
		for (int k = 0; k < 5; k++)
			ck_assert(send_short(i++, 8));
		int before = pair_b.messages;
		while (ch3_progress_short(pair_b.engine, 2)) {
			ck_assert_int_le(pair_b.messages, before + 2);
			two |= pair_b.messages == before + 2;
			before = pair_b.messages;
		}
		pair_settle();
		ck_assert_int_eq(pair_b.messages, (int)i);
	}
	ck_assert(two);
	while (i % 64)
		ck_assert(send_short(i++, 8));
	for (int most = pair_b.messages + 16; ch3_progress_short(pair_b.engine, 64);)
		ck_assert_int_le(pair_b.messages, most);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, (int)i);
}
END_TEST

START_TEST(short_progress_leaves_other_messages_to_a_poll)
{
	ck_assert(send_short(0, 8));
	pair_settle();
	pair_b.declines = 0;
	ck_assert(send_short(1, 8));
	ck_assert(!short_progress());
	pair_settle();
	ck_assert_ptr_null(pair_send(2, source, 100, 0));
	ck_assert(!short_progress());
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 3);
	pair_b.declines = -EBADMSG;
	ck_assert(send_short(3, 8));
	ck_assert(short_progress());
	ck_assert_int_eq(pair_b.failures, 1);
	ck_assert(!short_progress());
}
END_TEST

START_TEST(short_send_does_nothing_if_it_is_not_possible)
{
	ck_assert(!send_short(1, 8192));
	ck_assert(!send_short(1, 65537));
	memory_faults.capacity = 1000;
	ck_assert(!send_short(1, 1000));
	ch3_request_t *queued = pair_send(2, source, 2000, 0);
	ck_assert_ptr_nonnull(queued);
	ck_assert(!send_short(3, 8)); /* it would overtake */
	memory_faults.capacity = 0;
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 1);
	pair_expect(0, 2, 2000, false);
	ch3_request_free(queued);
	memory_conn_break(ch3_vc_conn(pair_a.vc), -ECONNRESET);
	pair_settle();
	ck_assert(!send_short(4, 8));
	ck_assert_int_eq(pair_b.messages, 1);
}
END_TEST

/* Queued messages go out together: the peer gets them all although the sender is not called after it got the first. */
START_TEST(several_messages_are_under_way_together)
{
	enum { MESSAGES = 10, LENGTH = 20000 };
	ch3_request_t *request[MESSAGES];
	memory_faults.accept_late = true;
	for (uint32_t i = 0; i < MESSAGES; i++)
		request[i] = pair_send(i, source + i, LENGTH, 0);
	ch3_progress_poll(pair_a.engine);
	for (int i = 0; i < 20 * MESSAGES; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, MESSAGES);
	for (int i = 0; i < MESSAGES; i++) {
		pair_expect(i, (uint32_t)i, LENGTH, false);
		ck_assert_int_eq(ch3_request_test(request[i]), 0);
	}
	pair_settle();
	for (int i = 0; i < MESSAGES; i++) {
		pair_expect_end(request[i], 0);
	}
}
END_TEST

/* The peer answers an announcement when it has received it. The announcement must be accepted by then, and so must not go
 * out together with a message that is accepted later. */
START_TEST(an_announcement_is_not_answered_before_it_is_accepted)
{
	ch3_request_t *request[3];
	memory_faults.accept_late = true;
	memory_faults.get_max = 21000;
	request[0] = pair_send(0, source, 20000, 0);
	request[1] = pair_send(1, source, LARGE, 0);
	request[2] = pair_send(2, source, 60000, 0);
	ch3_progress_poll(pair_a.engine);
	for (int i = 0; i < 2; i++)
		ch3_progress_poll(pair_b.engine);
	pair_settle();
	for (uint32_t i = 0; i < 3; i++) {
		pair_expect_end(request[i], 0);
	}
	pair_expect(0, 0, 20000, false);
	pair_expect(1, 1, LARGE, true);
	pair_expect(2, 2, 60000, false);
	ck_assert(pair_filled(target, 60000, 1));
}
END_TEST

/* A message that may wait for others. */
static void send_more(uint32_t header, size_t len)
{
	ck_assert_ptr_null(pair_send(header, source, len, CH3_SEND_EAGER | CH3_SEND_MORE));
}

START_TEST(gathered_messages_leave_in_one_put)
{
	memory_faults.put_max = 1u << 20; /* and no records in place */
	uint64_t puts = memory_conn_puts(ch3_vc_conn(pair_a.vc));
	for (uint32_t i = 0; i < 50; i++)
		send_more(i, 20 + i);
	ck_assert_uint_eq(memory_conn_puts(ch3_vc_conn(pair_a.vc)), puts);
	ck_assert_uint_eq(ch3_sent(pair_a.vc), 50);
	ck_assert(ch3_flush(pair_a.vc));
	ck_assert_uint_eq(memory_conn_puts(ch3_vc_conn(pair_a.vc)), puts + 1);
	ck_assert(ch3_flush(pair_a.vc));
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 50);
	for (uint32_t i = 0; i < 50; i++)
		pair_expect((int)i, i, 20 + i, false);
	ck_assert(pair_filled(target, 20, 1));
}
END_TEST

/* Whatever is sent after gathered messages arrives after them, and before those that are gathered later. */
START_TEST(gathered_messages_keep_their_order_among_others)
{
	static const size_t lengths[] = { 16, 70000, 3000, 0, 60000 };
	ch3_request_t *request[100];
	memory_faults.put_max = 1u << 20;
	memory_faults.capacity = 1u << 24;
	for (uint32_t i = 0; i < 100; i++) {
		size_t len = lengths[i / 2 % 5];
		request[i] = NULL;
		if (i % 2)
			send_more(i, 30);
		else if (i == 48) /* of 60000 bytes; one at a time */
			request[i] = pair_send_pack(i, source, len, 0);
		else
			request[i] = pair_send(i, source, len, 0);
	}
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 100);
	for (uint32_t i = 0; i < 100; i++) {
		ck_assert_uint_eq(pair_b.message[i].header, i);
		ck_assert_int_eq(pair_b.message[i].done, 1);
		ch3_request_free(request[i]);
	}
}
END_TEST

START_TEST(gathered_messages_leave_when_their_memory_is_full)
{
	memory_faults.put_max = 1u << 20;
	uint64_t puts = memory_conn_puts(ch3_vc_conn(pair_a.vc));
	for (uint32_t i = 0; i < 1000; i++) {
		send_more(i, 100);
		if (i % 100 == 99)
			pair_settle();
	}
	ck_assert_uint_lt(memory_conn_puts(ch3_vc_conn(pair_a.vc)), puts + 30);
	ck_assert_int_eq(pair_b.messages, 1000);
	for (uint32_t i = 0; i < 1000; i++)
		pair_expect((int)i, i, 100, false);
}
END_TEST

START_TEST(flush_says_what_the_pipe_did_not_accept)
{
	memory_faults.put_max = 10;
	send_more(1, 40);
	ck_assert(!ch3_flush(pair_a.vc));
	memory_faults.put_max = 1000;
	ck_assert(ch3_flush(pair_a.vc));
	pair_settle();
	pair_expect(0, 1, 40, false);
}
END_TEST

START_TEST(gathered_messages_survive_back_pressure)
{
	enum { N = 1000 };
	static ch3_request_t *request[N];
	memory_faults.capacity = 100;
	memory_faults.put_max = 70;
	for (uint32_t i = 0; i < N; i++) {
		request[i] = pair_send(i, source, i % 300, CH3_SEND_EAGER | (i % 10 ? CH3_SEND_MORE : 0));
		if (i % 50 == 49)
			pair_settle();
	}
	pair_settle();
	ck_assert_int_eq(pair_b.messages, N);
	for (uint32_t i = 0; i < N; i++) {
		pair_expect((int)i, i, i % 300, false);
		ch3_request_free(request[i]);
	}
}
END_TEST

START_TEST(close_delivers_what_was_gathered)
{
	memory_faults.put_max = 1u << 20;
	send_more(1, 40);
	send_more(2, 20);
	ch3_vc_close(pair_a.vc);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 2);
	pair_expect(1, 2, 20, false);
	ck_assert_int_eq(pair_b.failure, -ESHUTDOWN);
}
END_TEST

START_TEST(connection_that_breaks_drops_what_was_gathered)
{
	memory_faults.put_max = 1u << 20;
	send_more(1, 40);
	memory_conn_break(ch3_vc_conn(pair_a.vc), -ECONNRESET);
	ck_assert(ch3_flush(pair_a.vc));
	pair_settle();
	ck_assert_int_eq(pair_a.failure, -ECONNRESET);
	ck_assert_int_eq(pair_b.messages, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = pair_tests(setup);
	tcase_add_test(tcase, small_message_leaves_at_once_in_one_put);
	tcase_add_test(tcase, empty_payload_and_empty_header_arrive);
	tcase_add_test(tcase, vector_of_many_pieces_and_longest_header_arrive);
	tcase_add_test(tcase, arguments_are_checked);
	tcase_add_test(tcase, eager_up_to_the_threshold_then_rendezvous);
	tcase_add_test(tcase, deferred_rendezvous_waits_for_its_buffer);
	tcase_add_test(tcase, short_sink_takes_what_fits_and_the_rest_is_dropped);
	tcase_add_test(tcase, sync_completes_only_when_the_message_is_taken);
	tcase_add_test(tcase, copied_sends_let_the_buffers_go);
	tcase_add_test(tcase, order_is_kept_under_back_pressure);
	tcase_add_test(tcase, handlers_run_in_order_of_sending);
	tcase_add_loop_test(tcase, messages_survive_pipes_that_move_a_few_bytes, 0,
			    sizeof slow_pipes / sizeof *slow_pipes);
	tcase_add_loop_test(tcase, packed_payloads_arrive, 0, sizeof slow_pipes / sizeof *slow_pipes + 1);
	tcase_add_test(tcase, packed_payload_is_cut_to_the_room_of_its_receiver);
	tcase_add_test(tcase, connection_that_breaks_fails_a_packed_payload);
	tcase_add_test(tcase, close_delivers_what_was_copied);
	tcase_add_test(tcase, send_is_complete_before_the_handler_of_its_answer_runs);
	tcase_add_test(tcase, short_message_goes_to_its_function_or_to_the_handler);
	tcase_add_test(tcase, short_messages_keep_their_order_among_others);
	tcase_add_test(tcase, declined_short_message_goes_to_the_handler);
	tcase_add_test(tcase, error_of_the_function_for_short_messages_fails_the_connection);
	tcase_add_test(tcase, short_progress_takes_messages_until_a_poll_is_due);
	tcase_add_test(tcase, short_progress_takes_no_more_messages_than_asked);
	tcase_add_test(tcase, short_progress_leaves_other_messages_to_a_poll);
	tcase_add_test(tcase, short_send_does_nothing_if_it_is_not_possible);
	tcase_add_test(tcase, several_messages_are_under_way_together);
	tcase_add_test(tcase, an_announcement_is_not_answered_before_it_is_accepted);
	tcase_add_test(tcase, gathered_messages_leave_in_one_put);
	tcase_add_test(tcase, gathered_messages_keep_their_order_among_others);
	tcase_add_test(tcase, gathered_messages_leave_when_their_memory_is_full);
	tcase_add_test(tcase, flush_says_what_the_pipe_did_not_accept);
	tcase_add_test(tcase, gathered_messages_survive_back_pressure);
	tcase_add_test(tcase, close_delivers_what_was_gathered);
	tcase_add_test(tcase, connection_that_breaks_drops_what_was_gathered);
	return pair_run("ch3 messages", tcase);
}
