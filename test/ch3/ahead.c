/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages whose fronts are handled while the payload of an earlier message is incomplete (ch3/ahead.c), over the memory
 * channel, which shows what is in the pipe and aborts if a get does not go on with the memory of the one before it.
 */
#include "ch3/packet.h"
#include "rdma_channel/upper.h"
#include "test/ch3/memory_channel.h"
#include "test/ch3/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 30000, MESSAGES = 400, ROOM = 60000 };

static void setup(void)
{
	pair_set_up((size_t)MESSAGES * ROOM);
	memory_faults.ahead = true;
	memory_faults.capacity = 1 << 20;
	pair_b.room = ROOM;
	pair_b.stride = ROOM;
}

static void send_type(unsigned type, uint32_t header, size_t len)
{
	ch3_request_t *request = NULL;
	struct iovec iov = { source + (size_t)header * ROOM, len };
	ck_assert_int_eq(ch3_send(pair_a.vc, type, &header, sizeof header, &iov, len ? 1 : 0, 0, &request), 0);
	ch3_request_free(request);
}

/* Message i, in its turn, with the first `stored` bytes of its payload. */
static void expect_received(int i, size_t len, size_t stored)
{
	pair_expect_cut(i, (uint32_t)i, len, stored);
	ck_assert_uint_eq(pair_b.done_order[i], i);
	ck_assert_mem_eq(target + (size_t)i * ROOM, source + (size_t)i * ROOM, stored);
}

/* Sends a long message, polls until a part of its payload is there, and sends more by `rest`. */
static void begin_payload(void)
{
	memory_faults.get_max = 100;
	send_type(PAIR_TYPE, 0, LENGTH);
	while (pair_b.messages == 0)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.message[0].done, 0);
}

START_TEST(fronts_are_handled_before_the_payload_in_front_of_them_is_complete)
{
	begin_payload();
	send_type(PAIR_TYPE, 1, LENGTH);
	send_type(PAIR_TYPE, 2, 0);
	send_type(PAIR_TYPE, 3, 40);
	for (int i = 0; i < 3; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 4);
	ck_assert_int_eq(pair_b.dones, 0);
	pair_settle();
	expect_received(0, LENGTH, LENGTH);
	expect_received(1, LENGTH, LENGTH);
	expect_received(2, 0, 0);
	expect_received(3, 40, 40);
}
END_TEST

START_TEST(other_types_wait_for_their_turn)
{
	begin_payload();
	send_type(PAIR_TYPE_OTHER, 1, 40);
	send_type(PAIR_TYPE, 2, LENGTH);
	for (int i = 0; i < 20; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 1);
	pair_settle();
	expect_received(0, LENGTH, LENGTH);
	expect_received(1, 40, 40);
	expect_received(2, LENGTH, LENGTH);
}
END_TEST

START_TEST(layer_above_may_have_a_message_wait_for_its_turn)
{
	begin_payload();
	pair_b.in_turn = true;
	send_type(PAIR_TYPE, 1, LENGTH);
	send_type(PAIR_TYPE, 2, LENGTH);
	for (int i = 0; i < 20; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 1);
	if (_i)
		pair_b.in_turn = false;
	ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, _i ? 3 : 1);
	ck_assert_int_eq(pair_b.dones, 0);
	pair_settle();
	for (int i = 0; i < 3; i++)
		expect_received(i, LENGTH, LENGTH);
}
END_TEST

/* Nothing goes ahead behind a payload that is not received into buffers alone. */
START_TEST(payload_that_is_cut_ends_the_look_ahead)
{
	begin_payload();
	pair_b.room = 1000;
	send_type(PAIR_TYPE, 1, LENGTH);
	send_type(PAIR_TYPE, 2, LENGTH);
	for (int i = 0; i < 20; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 2);
	pair_settle();
	expect_received(0, LENGTH, LENGTH);
	expect_received(1, LENGTH, 1000);
	expect_received(2, LENGTH, 1000);
}
END_TEST

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
	random_state = random_state * 1664525 + 1013904223;
	return (random_state >> 8) % below;
}

/* The receiver changes how it takes messages from one to the next. */
static void change_receiver(void)
{
	pair_b.split = draw(2);
	pair_b.unpack = draw(8) == 0;
}

/* Messages of random types and lengths, also in both directions by rendezvous, over pipes that move a few bytes. */
START_TEST(messages_of_all_kinds_arrive_in_order)
{
	static const size_t get_max[] = { 0, 7, 100, 4000, 40000, 50001 };
	size_t length[MESSAGES];
	random_state = (uint32_t)_i;
	memory_faults.get_max = get_max[(size_t)_i % (sizeof get_max / sizeof *get_max)];
	memory_faults.capacity = _i % 2 ? 100000 : 1 << 20;
	memory_faults.accept_late = _i % 3 == 0;
	for (uint32_t i = 0; i < MESSAGES / 10; i++) {
		length[i] = draw(3) ? draw(ROOM) : draw(200);
		send_type(draw(6) ? PAIR_TYPE : PAIR_TYPE_OTHER, i, length[i]);
		for (uint32_t polls = draw(30); polls > 0; polls--) {
			change_receiver();
			ch3_progress_poll(draw(2) ? pair_a.engine : pair_b.engine);
		}
	}
	pair_settle();
	ck_assert_int_eq(pair_b.messages, MESSAGES / 10);
	for (int i = 0; i < MESSAGES / 10; i++)
		expect_received(i, length[i], length[i]);
}
END_TEST

/* The payloads of accepted rendezvous follow each other too. */
START_TEST(payloads_of_rendezvous_go_ahead)
{
	ch3_close(pair_a.engine);
	ch3_close(pair_b.engine);
	setenv("HEADRACE_EAGER_MAX", "1000", 1);
	pair_open();
	pair_b.buffer = target;
	pair_b.room = pair_b.stride = ROOM;
	random_state = 5;
	for (uint32_t i = 0; i < 40; i++) {
		send_type(PAIR_TYPE, i, LENGTH);
		ch3_progress_poll(pair_b.engine);
		if (draw(3) == 0)
			ch3_progress_poll(pair_a.engine);
	}
	memory_faults.get_max = 9000;
	pair_settle();
	for (int i = 0; i < 40; i++) {
		ck_assert(pair_b.message[i].waited);
		expect_received(i, LENGTH, LENGTH);
	}
	unsetenv("HEADRACE_EAGER_MAX");
}
END_TEST

START_TEST(broken_connection_completes_all_of_them_once)
{
	begin_payload();
	for (uint32_t i = 1; i < 6; i++)
		send_type(PAIR_TYPE, i, LENGTH);
	for (int i = 0; i < 3; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 6);
	if (_i)
		ch3_vc_close(pair_b.vc);
	else
		hr_conn_abort(ch3_vc_conn(pair_b.vc), -ETIMEDOUT);
	while (!_i && !pair_b.failures)
		ch3_progress_poll(pair_b.engine);
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(pair_b.message[i].done, 1);
		ck_assert_int_eq(pair_b.message[i].error, _i ? -ECANCELED : -ETIMEDOUT);
	}
}
END_TEST

/* The peer's bytes that are dropped while b closes still go into the buffers that were offered. */
START_TEST(closing_goes_on_with_the_same_memory)
{
	ch3_request_t *request = NULL;
	begin_payload();
	for (uint32_t i = 1; i < 6; i++)
		send_type(PAIR_TYPE, i, LENGTH);
	for (int i = 0; i < 3; i++)
		ch3_progress_poll(pair_b.engine);
	memory_faults.capacity = 10;
	struct iovec iov = { source, 100 };
	ck_assert_int_eq(ch3_send(pair_b.vc, PAIR_TYPE, NULL, 0, &iov, 1, CH3_SEND_COPY, &request), 0);
	memory_faults.get_max = 20000;
	ch3_close(pair_b.engine);
	for (int i = 0; i < 6; i++) {
		ck_assert_int_eq(pair_b.message[i].done, 1);
		ck_assert_int_eq(pair_b.message[i].error, -ECANCELED);
	}
	pair_b.engine = NULL;
}
END_TEST

/* An invalid front fails the connection in its turn. */
START_TEST(invalid_front_fails_the_connection_in_its_turn)
{
	begin_payload();
	struct ch3_packet packet = { .type = PAIR_TYPE, .sequence = 77 };
	memory_conn_inject(ch3_vc_conn(pair_b.vc), &packet, sizeof packet);
	for (int i = 0; i < 20; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.failures, 0);
	pair_settle();
	expect_received(0, LENGTH, LENGTH);
	ck_assert_int_eq(pair_b.failure, -EPROTO);
	ck_assert_int_eq(pair_b.messages, 1);
}
END_TEST

START_TEST(error_of_a_handler_fails_the_connection_in_its_turn)
{
	begin_payload();
	pair_b.refuse = -EBADMSG;
	send_type(PAIR_TYPE, 1, 100);
	for (int i = 0; i < 20; i++)
		ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.messages, 2);
	ck_assert_int_eq(pair_b.failures, 0);
	pair_settle();
	expect_received(0, LENGTH, LENGTH);
	ck_assert_int_eq(pair_b.failure, -EBADMSG);
	ck_assert_int_eq(pair_b.message[1].done, 0);
}
END_TEST

int main(void)
{
	TCase *tcase = pair_tests(setup);
	tcase_add_test(tcase, fronts_are_handled_before_the_payload_in_front_of_them_is_complete);
	tcase_add_test(tcase, other_types_wait_for_their_turn);
	tcase_add_loop_test(tcase, layer_above_may_have_a_message_wait_for_its_turn, 0, 2);
	tcase_add_test(tcase, payload_that_is_cut_ends_the_look_ahead);
	tcase_add_loop_test(tcase, messages_of_all_kinds_arrive_in_order, 0, 24);
	tcase_add_test(tcase, payloads_of_rendezvous_go_ahead);
	tcase_add_loop_test(tcase, broken_connection_completes_all_of_them_once, 0, 2);
	tcase_add_test(tcase, closing_goes_on_with_the_same_memory);
	tcase_add_test(tcase, invalid_front_fails_the_connection_in_its_turn);
	tcase_add_test(tcase, error_of_a_handler_fails_the_connection_in_its_turn);
	return pair_run("ch3 ahead", tcase);
}
