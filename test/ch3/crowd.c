/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More connections than a poll looks at (CH3_ACTIVE_MAX), over the memory channel: which events make a connection
 * active and which keep it active. The linker redirects malloc() to __wrap_malloc, so that allocations can fail.
 */
#include "ch3/ch3.h"
#include "ch3/packet.h"
#include "test/ch3/memory_channel.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE = CH3_TYPE_FIRST, SPOKES = 40, LARGE = 200 * 1024, INBOX = 8192, GETS_PER_PASS = 16 };

/* The hub is an engine with a connection to each spoke. The spokes have no other connections. */
static ch3_t *hub, *spoke[SPOKES];
static ch3_vc_t *to_spoke[SPOKES], *to_hub[SPOKES];
static int messages, failures, failure, dones, done_error;
static ch3_vc_t *failed;
static ch3_rndv_t *deferred;
static char *room;
static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
	return no_memory ? NULL : __real_malloc(size);
}

static int on_hub(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	messages++;
	if (!incoming->rndv)
		return 0;
	deferred = incoming->rndv;
	sink->defer = true;
	return 0;
}

static int on_spoke(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	if (!incoming->payload_len)
		return 0;
	sink->iov[0] = (struct iovec){ room, LARGE };
	sink->n = 1;
	return 0;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	failures++;
	failed = vc;
	failure = error;
}

static void on_done(void *context, int error, size_t bytes)
{
	(void)context;
	(void)bytes;
	dones++;
	done_error = error;
}

static void say(ch3_vc_t *vc)
{
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(vc, TYPE, NULL, 0, NULL, 0, 0, &request), 0);
	ck_assert_ptr_null(request);
}

static void setup(void)
{
	hr_card_t card, of_hub;
	memory_faults = (struct memory_faults){ 0 };
	messages = failures = failure = dones = done_error = 0;
	room = calloc(1, LARGE);
	ck_assert_int_eq(ch3_open(NULL, &hub, &of_hub), 0);
	ck_assert_int_eq(ch3_register(hub, TYPE, on_hub, NULL), 0);
	ch3_on_failure(hub, on_failure, NULL);
	for (int i = 0; i < SPOKES; i++) {
		ck_assert_int_eq(ch3_open(NULL, &spoke[i], &card), 0);
		ck_assert_int_eq(ch3_register(spoke[i], TYPE, on_spoke, NULL), 0);
		ck_assert_int_eq(ch3_connect(hub, &card, NULL, NULL, &to_spoke[i]), 0);
		ck_assert_int_eq(ch3_connect(spoke[i], &of_hub, NULL, NULL, &to_hub[i]), 0);
	}
}

static void teardown(void)
{
	ch3_close(hub);
	for (int i = 0; i < SPOKES; i++)
		ch3_close(spoke[i]);
	free(room);
}

static void poll_spokes(void)
{
	for (int i = 0; i < SPOKES; i++)
		ch3_progress_poll(spoke[i]);
}

/* The hub sends to all spokes from first on. Then the connections to the spokes before first are not active, unless
 * something else keeps them active. */
static void busy_elsewhere(int first)
{
	for (int i = first; i < SPOKES; i++)
		say(to_spoke[i]);
	ch3_progress_poll(hub);
	poll_spokes();
}

START_TEST(who_is_spoken_to_is_heard_at_once)
{
	/* If the send did not make the connection active, the message would arrive only after many polls. */
	for (int i = 0; i < 3; i++) {
		busy_elsewhere(3);
		say(to_spoke[i]);
		say(to_hub[i]);
		ch3_progress_poll(hub);
		ck_assert_int_eq(messages, i + 1);
	}
}
END_TEST

START_TEST(a_send_that_fails_is_told_at_once)
{
	for (int i = 0; i < 3; i++) {
		ch3_request_t *request;
		busy_elsewhere(3);
		memory_conn_break(ch3_vc_conn(to_spoke[i]), -ECONNRESET);
		ck_assert_int_eq(ch3_send(to_spoke[i], TYPE, NULL, 0, NULL, 0, 0, &request), -ECONNRESET);
		ch3_progress_poll(hub);
		ck_assert_int_eq(failures, i + 1);
		ck_assert_ptr_eq(failed, to_spoke[i]);
	}
}
END_TEST

START_TEST(a_write_under_way_goes_on_while_others_are_at_work)
{
	static char bytes[LARGE];
	struct iovec iov = { bytes, LARGE };
	ch3_request_t *request;
	memory_faults.write_polls = 10;
	busy_elsewhere(1);
	ck_assert_int_eq(ch3_send(to_spoke[0], TYPE, NULL, 0, &iov, 1, 0, &request), 0);
	poll_spokes();
	ch3_progress_poll(hub); /* the hub receives the CLEAR and starts the write */
	for (int i = 0; i < 200; i++)
		busy_elsewhere(1);
	ck_assert_int_eq(ch3_request_test(request), 1);
	ck_assert_int_eq(ch3_request_error(request), 0);
	ck_assert_uint_eq(memory_remote_bytes, LARGE);
	ch3_request_free(request);
}
END_TEST

/* The hub accepts the rendezvous of the first spoke, but has no memory to queue the CLEAR. */
static void accept_without_memory(void)
{
	struct iovec into = { room, LARGE };
	for (int i = 0; i < SPOKES; i++) /* fills the pipe to the first spoke, and makes the others active */
		say(to_spoke[i]);
	ch3_progress_poll(hub);
	memory_faults.capacity = 1;
	no_memory = true;
	int error = ch3_rndv_accept(deferred, &into, 1, on_done, NULL);
	no_memory = false;
	memory_faults.capacity = 0;
	ck_assert_int_eq(error, 0);
	ck_assert_int_eq(dones, 0);
}

static void announce(void)
{
	static char bytes[LARGE];
	struct iovec iov = { bytes, LARGE };
	ch3_request_t *request;
	memory_faults.no_remote = true;
	ck_assert_int_eq(ch3_send(to_hub[0], TYPE, NULL, 0, &iov, 1, 0, &request), 0);
	ch3_request_free(request);
	for (int i = 0; i < 65; i++)
		ch3_progress_poll(hub);
	ck_assert_ptr_nonnull(deferred);
}

START_TEST(an_answer_that_cannot_be_queued_fails_its_connection)
{
	announce();
	accept_without_memory();
	for (int i = 0; i < 200; i++)
		ch3_progress_poll(hub);
	ck_assert_int_eq(dones, 1);
	ck_assert_int_eq(done_error, -ENOMEM);
	ck_assert_int_eq(failures, 1);
	ck_assert_ptr_eq(failed, to_spoke[0]);
	ck_assert_int_eq(failure, -ENOMEM);
}
END_TEST

/* More bytes have arrived than one pass of progress receives, and no more arrive afterwards. */
START_TEST(a_connection_that_cannot_send_is_kept_until_that_is_told)
{
	struct ch3_packet packet = { .type = TYPE, .sequence = 1 };
	announce();
	accept_without_memory();
	for (int i = 0; i < GETS_PER_PASS * INBOX; i += (int)sizeof packet) {
		memory_conn_inject(ch3_vc_conn(to_spoke[0]), &packet, sizeof packet);
		packet.sequence++;
	}
	for (int i = 0; i < 200; i++)
		busy_elsewhere(1);
	ck_assert_int_eq(messages, 1 + GETS_PER_PASS * INBOX / (int)sizeof packet);
	ck_assert_int_eq(dones, 1);
	ck_assert_int_eq(done_error, -ENOMEM);
	ck_assert_ptr_eq(failed, to_spoke[0]);
}
END_TEST

/* Closing waits for room in the pipe. Bytes on another connection do not end that wait. */
START_TEST(closing_waits_for_its_own_connection_alone)
{
	ch3_request_t *request;
	memory_faults.capacity = 4;
	ck_assert_int_eq(ch3_send(to_spoke[0], TYPE, "12345678", 8, NULL, 0, 0, &request), 0);
	ck_assert_ptr_nonnull(request);
	ck_assert_int_eq(ch3_send(to_hub[1], TYPE, NULL, 0, NULL, 0, CH3_SEND_COPY, NULL), 0);
	unsigned before = memory_attempts;
	ch3_vc_close(to_spoke[0]);
	ck_assert_uint_le(memory_attempts - before, 4);
	ck_assert_int_eq(ch3_request_error(request), -ECANCELED);
	ch3_request_free(request);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ch3 in a crowd");
	TCase *tcase = tcase_create("crowd");
	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, teardown);
	setenv("HEADRACE_RENDEZVOUS", "write", 1);
	tcase_add_test(tcase, who_is_spoken_to_is_heard_at_once);
	tcase_add_test(tcase, a_send_that_fails_is_told_at_once);
	tcase_add_test(tcase, a_write_under_way_goes_on_while_others_are_at_work);
	tcase_add_test(tcase, an_answer_that_cannot_be_queued_fails_its_connection);
	tcase_add_test(tcase, a_connection_that_cannot_send_is_kept_until_that_is_told);
	tcase_add_test(tcase, closing_waits_for_its_own_connection_alone);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed_tests = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed_tests ? EXIT_FAILURE : EXIT_SUCCESS;
}
