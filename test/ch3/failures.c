/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that end a connection: a broken pipe, a peer that closes, invalid packets, a handler that returns an error.
 * Every request completes exactly once, and on_failure is called exactly once. */
#include "ch3/packet.h"
#include "test/ch3/memory_channel.h"
#include "test/ch3/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (100 * 1024)

static void setup(void)
{
	pair_set_up(LARGE);
}

static void expect_failed(const struct pair_end *end, int error)
{
	ck_assert_int_eq(end->failures, 1);
	ck_assert_int_eq(end->failure, error);
	ck_assert_int_eq(ch3_vc_state(end->vc), error);
}

START_TEST(broken_pipe_completes_queued_and_announced_sends_once)
{
	pair_b.defer = true;
	ch3_request_t *announced = pair_send(1, source, LARGE, 0);
	pair_settle();
	memory_faults.capacity = 10;
	ch3_request_t *partial = pair_send(2, source, 100, 0);
	ch3_request_t *queued = pair_send(3, source, LARGE, 0);
	memory_conn_break(ch3_vc_conn(pair_a.vc), -ECONNRESET);
	ck_assert_int_eq(ch3_progress_poll(pair_a.engine), 4); /* three completions, one failure */
	ck_assert_int_eq(ch3_progress_poll(pair_a.engine), 0);
	ch3_request_t *request[] = { announced, partial, queued };
	for (int i = 0; i < 3; i++) {
		pair_expect_end(request[i], -ECONNRESET);
	}
	expect_failed(&pair_a, -ECONNRESET);
	ch3_request_t *refused;
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, NULL, 0, NULL, 0, 0, &refused), -ECONNRESET);
	pair_settle();
	expect_failed(&pair_b, -ECONNRESET);
	/* The deferred payload can no longer be accepted. */
	struct iovec iov = { target, LARGE };
	ck_assert_int_eq(ch3_rndv_accept(pair_b.message[0].rndv, &iov, 1, NULL, NULL), -ECONNRESET);
}
END_TEST

START_TEST(broken_pipe_completes_receives_once)
{
	ch3_request_free(pair_send(1, source, LARGE, 0)); /* accepted, the data has not arrived */
	ch3_progress_poll(pair_b.engine);
	memory_faults.capacity = 60;
	ch3_request_free(pair_send(2, source, 1000, 0)); /* a part of it arrives */
	ch3_progress_poll(pair_b.engine);
	memory_conn_break(ch3_vc_conn(pair_b.vc), -ETIMEDOUT);
	pair_settle();
	expect_failed(&pair_b, -ETIMEDOUT);
	ck_assert_int_eq(pair_b.messages, 2);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(pair_b.message[i].done, 1);
		ck_assert_int_eq(pair_b.message[i].error, -ETIMEDOUT);
	}
}
END_TEST

START_TEST(last_words_of_a_peer_arrive_before_its_end)
{
	ck_assert_ptr_null(pair_send(4, source, 50, 0));
	ch3_vc_close(pair_a.vc);
	/* A send of b fails first. The bytes in the pipe must still be received. */
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(pair_b.vc, PAIR_TYPE, NULL, 0, NULL, 0, 0, &request), -ESHUTDOWN);
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 1);
	ck_assert_int_eq(pair_b.message[0].error, 0);
	expect_failed(&pair_b, -ESHUTDOWN);
}
END_TEST

START_TEST(close_cancels_what_waits)
{
	pair_b.defer = true;
	ch3_request_t *request = pair_send(1, source, LARGE, 0);
	pair_settle();
	ch3_vc_close(pair_a.vc);
	pair_expect_end(request, -ECANCELED);
	ck_assert_int_eq(pair_a.failures, 0);
}
END_TEST

START_TEST(handler_refuses_and_the_connection_fails)
{
	pair_b.refuse = -EBADMSG;
	ck_assert_ptr_null(pair_send(1, source, 10, 0));
	ck_assert_ptr_null(pair_send(2, source, 10, 0));
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 1);
	expect_failed(&pair_b, -EBADMSG);
	expect_failed(&pair_a, -ECONNRESET); /* without b closing its side */
}
END_TEST

START_TEST(unregistered_type_is_refused)
{
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE_NONE, NULL, 0, NULL, 0, 0, &request), 0);
	pair_settle();
	expect_failed(&pair_b, -EPROTO);
	ck_assert_int_eq(pair_b.messages, 0);
}
END_TEST

/* Packets that each violate one rule of packet.h. The sequence number is 1, because a valid message precedes them. */
struct bad {
	struct ch3_packet packet;
	struct ch3_packet_more more;
};
#define BAD(...) { .packet = { .sequence = 1, __VA_ARGS__ } }
#define BAD_MORE(packet_type, packet_flags, ...) \
	{ { .sequence = 1, .type = packet_type, .flags = CH3_PACKET_MORE | packet_flags }, { __VA_ARGS__ } }
static const struct bad bad_packets[] = {
	BAD(.type = 0),
	BAD(.type = 5),
	BAD(.type = CH3_TYPES),
	BAD(.type = 255),
	{ .packet = { .type = PAIR_TYPE, .sequence = 0 } },
	{ .packet = { .type = PAIR_TYPE, .sequence = 2 } },
	BAD(.type = PAIR_TYPE, .header_len = CH3_HEADER_MAX + 1),
	BAD(.type = PAIR_TYPE, .header_len = UINT8_MAX),
	BAD(.type = PAIR_TYPE, .flags = 4),
	BAD(.type = PAIR_TYPE, .flags = CH3_PACKET_WAITS),
	BAD(.type = PAIR_TYPE, .flags = CH3_PACKET_MORE, .payload_len = 1),
	BAD(.type = CH3_PACKET_CLEAR),
	BAD(.type = CH3_PACKET_CLEAR, .flags = CH3_PACKET_MORE, .header_len = 4),
	BAD(.type = CH3_PACKET_DATA),
	BAD_MORE(PAIR_TYPE, CH3_PACKET_WAITS, .sender_id = 0),
	BAD_MORE(PAIR_TYPE, CH3_PACKET_WAITS, .sender_id = 1, .receiver_id = 1),
	BAD_MORE(PAIR_TYPE, 0, .sender_id = 1),
	BAD_MORE(PAIR_TYPE, 0, .receiver_id = 1),
	BAD_MORE(CH3_PACKET_CLEAR, 0, .sender_id = 0),
	BAD_MORE(CH3_PACKET_CLEAR, 0, .sender_id = 1, .payload_len = 10),
	BAD_MORE(CH3_PACKET_CLEAR, 0, .sender_id = UINT32_MAX, .payload_len = 10),
	BAD_MORE(CH3_PACKET_CLEAR, CH3_PACKET_WAITS, .sender_id = 1),
	BAD_MORE(CH3_PACKET_DATA, 0, .receiver_id = 0),
	BAD_MORE(CH3_PACKET_DATA, 0, .receiver_id = 1u << 20 | 1, .payload_len = 1),
	BAD_MORE(CH3_PACKET_DATA, CH3_PACKET_WAITS, .receiver_id = 1),
};

START_TEST(packet_that_no_peer_sends_is_refused)
{
	ck_assert_ptr_null(pair_send(1, source, 10, 0));
	pair_settle();
	ck_assert_int_eq(pair_b.messages, 1);
	uint8_t bytes[sizeof(struct bad) + 256] = { 0 };
	memcpy(bytes, &bad_packets[_i], sizeof bad_packets[_i]);
	memory_conn_inject(ch3_vc_conn(pair_b.vc), bytes, sizeof bytes);
	ch3_progress_poll(pair_b.engine);
	expect_failed(&pair_b, -EPROTO);
	ck_assert_int_eq(pair_b.messages, 1);
}
END_TEST

/* A receiver requests more than was announced (case 0), or sends CLEAR twice (case 1). */
START_TEST(rendezvous_that_does_not_fit_is_refused)
{
	pair_b.defer = true;
	ch3_request_t *request = pair_send(1, source, LARGE, 0);
	pair_settle();
	/* The sender_id is the first id of a new table: slot 0, generation 1. */
	struct bad clear = { { .type = CH3_PACKET_CLEAR, .flags = CH3_PACKET_MORE },
			     { .sender_id = 1u << 20 | 1, .payload_len = LARGE } };
	if (_i == 0)
		clear.more.payload_len = LARGE + 1;
	memory_conn_inject(ch3_vc_conn(pair_a.vc), &clear, sizeof clear);
	clear.packet.sequence = 1;
	if (_i == 1)
		memory_conn_inject(ch3_vc_conn(pair_a.vc), &clear, sizeof clear);
	ch3_progress_poll(pair_a.engine);
	expect_failed(&pair_a, -EPROTO);
	pair_expect_end(request, -EPROTO);
}
END_TEST

START_TEST(data_of_another_length_is_refused)
{
	pair_b.defer = true;
	ch3_request_free(pair_send(1, source, LARGE, 0));
	pair_settle();
	pair_accept(0);
	struct bad data = { { .type = CH3_PACKET_DATA, .flags = CH3_PACKET_MORE, .sequence = 1 },
			    { .receiver_id = 1u << 20 | 1, .payload_len = LARGE - 1 } };
	memory_conn_inject(ch3_vc_conn(pair_b.vc), &data, sizeof data);
	ch3_progress_poll(pair_b.engine);
	expect_failed(&pair_b, -EPROTO);
	ck_assert_int_eq(pair_b.message[0].done, 1);
	ck_assert_int_eq(pair_b.message[0].error, -EPROTO);
}
END_TEST

/* Random bytes must fail the connection or be handled as messages. They must not crash the engine or hang it. */
START_TEST(random_bytes_do_no_harm)
{
	srandom((unsigned)_i);
	pair_b.room = 100;
	uint8_t bytes[4096];
	struct ch3_packet packet = { .type = PAIR_TYPE };
	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (uint8_t)random();
	if (_i % 2) { /* a valid first packet, except for its lengths */
		packet.payload_len = (uint32_t)random() >> (random() % 32);
		packet.header_len = (uint8_t)(random() % 140);
		memcpy(bytes, &packet, sizeof packet);
	}
	memory_conn_inject(ch3_vc_conn(pair_b.vc), bytes, sizeof bytes);
	ch3_progress_poll(pair_b.engine);
	memory_conn_break(ch3_vc_conn(pair_b.vc), -ECONNRESET);
	ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.failures, 1);
	for (int i = 0; i < pair_b.messages; i++)
		ck_assert_int_eq(pair_b.message[i].done, 1);
}
END_TEST

int main(void)
{
	TCase *tcase = pair_tests(setup);
	tcase_add_test(tcase, broken_pipe_completes_queued_and_announced_sends_once);
	tcase_add_test(tcase, broken_pipe_completes_receives_once);
	tcase_add_test(tcase, last_words_of_a_peer_arrive_before_its_end);
	tcase_add_test(tcase, close_cancels_what_waits);
	tcase_add_test(tcase, handler_refuses_and_the_connection_fails);
	tcase_add_test(tcase, unregistered_type_is_refused);
	tcase_add_loop_test(tcase, packet_that_no_peer_sends_is_refused, 0, sizeof bad_packets / sizeof *bad_packets);
	tcase_add_loop_test(tcase, rendezvous_that_does_not_fit_is_refused, 0, 2);
	tcase_add_test(tcase, data_of_another_length_is_refused);
	tcase_add_loop_test(tcase, random_bytes_do_no_harm, 0, 64);
	return pair_run("ch3 failures", tcase);
}
