/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns: while one peer keeps sending short messages, a message of another peer is handled too. Three engines in one
 * process, over shared memory.
 */
#include "ch3/ch3.h"

#include <check.h>

enum { TYPE = CH3_TYPE_FIRST, RECEIVER = 0, ENDS = 3 };

#define MESSAGES_MOST 1000 /* of the busy peer, before the message of the other peer is handled */
#define WARM_UP 3

static ch3_t *engine[ENDS];
static ch3_vc_t *vc_of[ENDS]; /* of the receiver, to the end of this index */
static ch3_vc_t *vc_from[ENDS]; /* of the end of this index, to the receiver */
static int handled[ENDS];

static void count(const ch3_vc_t *vc)
{
	for (int i = 0; i < ENDS; i++)
		handled[i] += vc == vc_of[i];
}

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context, (void)sink;
	count(incoming->vc);
	return 0;
}

static int on_short(void *context, ch3_vc_t *vc, const void *header, size_t header_len, const void *payload,
		    size_t payload_len)
{
	(void)context, (void)header, (void)header_len, (void)payload, (void)payload_len;
	count(vc);
	return 1;
}

static void open_ends(void)
{
	hr_card_t card[ENDS];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = HR_TRANSPORT_SHM;
	for (int i = 0; i < ENDS; i++) {
		handled[i] = 0;
		vc_of[i] = NULL;
		ck_assert_int_eq(ch3_open(&attr, &engine[i], &card[i]), 0);
		ck_assert_int_eq(ch3_register(engine[i], TYPE, on_message, NULL), 0);
		ck_assert_int_eq(ch3_register_short(engine[i], TYPE, on_short), 0);
	}
	for (int i = RECEIVER + 1; i < ENDS; i++) {
		ck_assert_int_eq(ch3_connect(engine[RECEIVER], &card[i], NULL, NULL, &vc_of[i]), 0);
		ck_assert_int_eq(ch3_connect(engine[i], &card[RECEIVER], NULL, NULL, &vc_from[i]), 0);
	}
}

static void send_short(int from)
{
	const char header[8] = { 0 };
	const unsigned flags = CH3_SEND_EAGER | CH3_SEND_COPY;
	ck_assert_int_eq(ch3_send(vc_from[from], TYPE, header, sizeof header, NULL, 0, flags, NULL), 0);
}

/* Makes the connection the latest active one of the receiver. */
static void warm_up(int from)
{
	for (int n = 1; n <= WARM_UP; n++) {
		send_short(from);
		while (handled[from] < n)
			for (int i = 0; i < ENDS; i++)
				ch3_progress_poll(engine[i]);
	}
	handled[from] = 0;
}

/* As MPI does while it waits. */
static void short_then_wait(void)
{
	if (!ch3_progress_short(engine[RECEIVER], 1))
		ck_assert_int_ge(ch3_progress_wait(engine[RECEIVER], -1), 0);
}

static void wait_only(void)
{
	ck_assert_int_ge(ch3_progress_wait(engine[RECEIVER], -1), 0);
}

static void (*const progress[])(void) = { short_then_wait, wait_only };

START_TEST(a_busy_connection_leaves_turns_to_the_others)
{
	const int busy = 1 + _i / 2, other = 2 - _i / 2;
	open_ends();
	warm_up(other);
	warm_up(busy);
	send_short(other);
	for (int sent = 0; !handled[other]; sent++) {
		ck_assert_int_le(sent, MESSAGES_MOST);
		send_short(busy);
		while (handled[busy] <= sent && !handled[other]) {
			ch3_progress_poll(engine[busy]);
			progress[_i % 2]();
		}
	}
	for (int i = 0; i < ENDS; i++)
		ch3_close(engine[i]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("turns");
	TCase *tests = tcase_create("turns");
	tcase_set_timeout(tests, 120);
	tcase_add_loop_test(tests, a_busy_connection_leaves_turns_to_the_others, 0, 4);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
