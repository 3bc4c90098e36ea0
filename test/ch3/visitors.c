/* SPDX-License-Identifier: BSD-3-Clause */
/* Incoming peers while other connections are active. A wait of the channel reports each incoming peer only once. */
#include "ch3/ch3.h"
#include "test/ch3/memory_channel.h"

#include <check.h>
#include <stdlib.h>

enum { TYPE = CH3_TYPE_FIRST, AT_WORK = 3, VISITOR = 1 + AT_WORK, ENDS };

static ch3_t *engine[ENDS];
static hr_card_t card[ENDS];
static ch3_vc_t *of_first[ENDS], *to_first[ENDS]; /* of engine 0 to engine i, and of engine i to engine 0 */
static int messages;

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)incoming;
	(void)sink;
	messages++;
	return 0;
}

static void send_to_first(int from)
{
	ck_assert_int_eq(ch3_send(to_first[from], TYPE, NULL, 0, NULL, 0, CH3_SEND_COPY, NULL), 0);
}

static void one_at_work_sends(void)
{
	send_to_first(1);
}

/* Engine 0 has added all others, and is connected to engines 1 to AT_WORK. */
static void setup(void)
{
	memory_faults = (struct memory_faults){ 0 };
	messages = 0;
	for (int i = 0; i < ENDS; i++) {
		ck_assert_int_eq(ch3_open(NULL, &engine[i], &card[i]), 0);
		ck_assert_int_eq(ch3_register(engine[i], TYPE, on_message, NULL), 0);
	}
	for (int i = 1; i < ENDS; i++) {
		ck_assert_int_eq(ch3_add(engine[0], &card[i], NULL, &of_first[i]), 0);
		ck_assert_int_eq(ch3_add(engine[i], &card[0], NULL, &to_first[i]), 0);
	}
	for (int i = 1; i <= AT_WORK; i++) {
		ck_assert_int_eq(ch3_vc_open(of_first[i]), 0);
		send_to_first(i);
	}
	for (int i = 0; i < 100; i++)
		ch3_progress_poll(engine[0]);
	ck_assert_int_eq(messages, AT_WORK);
}

static void teardown(void)
{
	for (int i = 0; i < ENDS; i++)
		ch3_close(engine[i]);
}

START_TEST(a_peer_that_comes_beside_a_message_is_answered_before_the_next_sleep)
{
	/* The number of earlier polls decides whether progress asks the channel before it waits. */
	for (int i = 0; i < _i; i++)
		ch3_progress_poll(engine[0]);
	memory_channel_visit(ch3_channel(engine[0]), &card[VISITOR]);
	memory_visited = one_at_work_sends;
	ck_assert_int_ge(ch3_progress_wait(engine[0], 1), 0);
	ck_assert_int_eq(messages, AT_WORK + !memory_visited);
	/* The incoming peer sends only after its connection is complete, so this wait must complete the connection. */
	ck_assert_int_eq(ch3_progress_wait(engine[0], 1), 0);
	ck_assert_int_eq(ch3_connections(engine[0]), AT_WORK + 1);
	send_to_first(VISITOR);
	ck_assert_int_gt(ch3_progress_wait(engine[0], 1), 0);
}
END_TEST

START_TEST(a_peer_that_comes_alone_is_answered)
{
	memory_channel_visit(ch3_channel(engine[0]), &card[VISITOR]);
	ck_assert_int_eq(ch3_progress_wait(engine[0], 1), 0);
	ck_assert_int_eq(ch3_connections(engine[0]), AT_WORK + 1);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ch3 visitors");
	TCase *tcase = tcase_create("visitors");
	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_loop_test(tcase, a_peer_that_comes_beside_a_message_is_answered_before_the_next_sleep, 0, 64);
	tcase_add_test(tcase, a_peer_that_comes_alone_is_answered);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
