/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections on demand: many engines in one process, over the real channel. Engines that exchange no messages have no
 * connection. Both sides may begin at the same time. Peers are closed, were not added, or make no progress for a while.
 */
#include "ch3/ch3.h"

#include "rdma_channel/clock.h"

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE = CH3_TYPE_FIRST };

#define BUILD 7
#define ENDS_MAX 42
#define TIMEOUT_MS 100
#define ABSENT_MS (4 * TIMEOUT_MS)
#define LONG_MESSAGE (300 * 1024) /* by rendezvous */

static const uint32_t transports[] = { HR_TRANSPORT_SHM, HR_TRANSPORT_TCP };

struct end {
	ch3_t *engine;
	hr_card_t card;
	ch3_vc_t *vc[ENDS_MAX]; /* vc[i]: to end[i] */
	int messages, failures, failure;
	int refuse; /* return value of the handler */
	bool deaf, misled; /* find_card fails; find_card returns another card */
	char *room;
};
static struct end end[ENDS_MAX];
static int n_ends;

static int on_message(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct end *self = context;
	ck_assert_uint_eq(incoming->header_len, sizeof(int));
	int from;
	memcpy(&from, incoming->header, sizeof from);
	ck_assert_ptr_eq(incoming->vc, self->vc[from]); /* the connection is that of the sender in the header */
	self->messages++;
	if (incoming->payload_len) {
		sink->iov[0] = (struct iovec){ self->room, LONG_MESSAGE };
		sink->n = 1;
	}
	return self->refuse;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)vc;
	struct end *self = context;
	self->failures++;
	self->failure = error;
}

/* Opens n ends that have not added each other. */
static void open_ends(int n, uint32_t transport, uint32_t flags)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = transport;
	attr.flags = flags;
	attr.timeout_ms = flags & HR_CHANNEL_PATIENT ? TIMEOUT_MS : 0;
	attr.ring_bytes = 16384;
	n_ends = n;
	memset(end, 0, sizeof end);
	for (int i = 0; i < n; i++) {
		end[i].room = malloc(LONG_MESSAGE);
		ck_assert_int_eq(ch3_open(&attr, &end[i].engine, &end[i].card), 0);
		ck_assert_int_eq(ch3_register(end[i].engine, TYPE, on_message, &end[i]), 0);
		ch3_on_failure(end[i].engine, on_failure, &end[i]);
	}
}

static void add(int to, int peer)
{
	ck_assert_int_eq(ch3_add(end[to].engine, &end[peer].card, NULL, &end[to].vc[peer]), 0);
}

/* Opens n ends and adds each to all others. */
static void open_known(int n, uint32_t transport, uint32_t flags)
{
	open_ends(n, transport, flags);
	for (int i = 0; i < n; i++)
		for (int k = 0; k < n; k++)
			if (i != k)
				add(i, k);
}

static void close_end(int i)
{
	ch3_close(end[i].engine);
	end[i].engine = NULL;
}

static void close_all(void)
{
	for (int i = 0; i < n_ends; i++) {
		close_end(i);
		free(end[i].room);
	}
}

static ch3_request_t *send_bytes(int from, int to, size_t len)
{
	static char bytes[LONG_MESSAGE];
	struct iovec iov = { bytes, len };
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(end[from].vc[to], TYPE, &from, sizeof from, &iov, len > 0, 0, &request), 0);
	return request;
}

static void send_empty(int from, int to)
{
	ch3_request_free(send_bytes(from, to, 0));
}

static void poll_all(void)
{
	for (int i = 0; i < n_ends; i++)
		if (end[i].engine)
			ch3_progress_poll(end[i].engine);
}

static void until_received(int i, int messages)
{
	while (end[i].messages < messages)
		poll_all();
	ck_assert_int_eq(end[i].messages, messages);
}

START_TEST(ranks_of_a_ring_have_two_connections_each)
{
	open_known(7, transports[_i], 0);
	for (int lap = 1; lap <= 3; lap++) {
		for (int i = 0; i < 6; i++)
			send_empty(i, (i + 1) % 6);
		for (int i = 0; i < 6; i++)
			until_received(i, lap);
	}
	for (int i = 0; i < 6; i++)
		ck_assert_int_eq(ch3_connections(end[i].engine), 2);
	ck_assert_int_eq(ch3_connections(end[6].engine), 0);
	ck_assert_ptr_null(ch3_vc_conn(end[6].vc[0]));
	ck_assert_int_eq(ch3_vc_state(end[6].vc[0]), 0);
	close_all();
}
END_TEST

START_TEST(both_sides_that_begin_at_once_share_one_connection)
{
	open_known(2, transports[_i], 0);
	ch3_request_t *request[2];
	for (int i = 0; i < 2; i++)
		request[i] = send_bytes(i, 1 - i, LONG_MESSAGE);
	for (int i = 0; i < 2; i++) {
		while (!ch3_request_test(request[i]))
			poll_all();
		ck_assert_int_eq(ch3_request_error(request[i]), 0);
		ch3_request_free(request[i]);
		ck_assert_int_eq(ch3_connections(end[i].engine), 1);
		ck_assert_int_eq(end[i].failures, 0);
	}
	close_all();
}
END_TEST

/* One or both sides call ch3_vc_open, because they wait for the other. */
START_TEST(opening_without_sending_brings_it_up_on_both_sides)
{
	open_known(2, transports[_i], 0);
	ck_assert_int_eq(ch3_vc_open(end[0].vc[1]), 0);
	if (_i == 0)
		ck_assert_int_eq(ch3_vc_open(end[1].vc[0]), 0);
	ck_assert_int_eq(ch3_vc_open(end[0].vc[1]), 0);
	while (!ch3_vc_state(end[0].vc[1]) || !ch3_vc_state(end[1].vc[0]))
		poll_all();
	ck_assert_int_eq(ch3_vc_state(end[0].vc[1]), 1);
	ck_assert_int_eq(ch3_vc_state(end[1].vc[0]), 1);
	close_end(1);
	while (!end[0].failures)
		poll_all();
	ck_assert_int_eq(end[0].failure, -ESHUTDOWN);
	close_all();
}
END_TEST

START_TEST(first_send_to_a_peer_that_is_gone_fails_once)
{
	open_known(3, transports[_i], _i ? HR_CHANNEL_PATIENT : 0);
	close_end(1);
	ch3_request_t *request;
	int error = ch3_send(end[0].vc[1], TYPE, &(int){ 0 }, sizeof(int), NULL, 0, 0, &request);
	if (!error) {
		while (!ch3_request_test(request))
			poll_all();
		error = ch3_request_error(request);
		ch3_request_free(request);
	}
	ck_assert_int_eq(error, -ECONNRESET);
	while (!end[0].failures)
		poll_all();
	for (int i = 0; i < 1000; i++)
		poll_all();
	ck_assert_int_eq(end[0].failures, 1);
	ck_assert_int_eq(end[0].failure, -ECONNRESET);
	ck_assert_int_eq(ch3_vc_state(end[0].vc[1]), -ECONNRESET);
	ck_assert_int_eq(ch3_vc_open(end[0].vc[1]), -ECONNRESET);
	/* The connections to other peers still work. */
	send_empty(0, 2);
	until_received(2, 1);
	close_all();
}
END_TEST

/* ch3_vc_state consumes the channel's event of a failure. Progress must report the failure nevertheless. */
START_TEST(a_failure_that_the_state_showed_first_is_told)
{
	open_known(2, transports[_i], 0);
	ch3_request_t *request = send_bytes(0, 1, 0);
	ck_assert_ptr_nonnull(request); /* queued: the connection is not up yet */
	close_end(1);
	int state;
	while ((state = ch3_vc_state(end[0].vc[1])) == 0)
		continue;
	ck_assert_int_eq(state, -ECONNRESET);
	for (int i = 0; i < 1000; i++)
		poll_all();
	ck_assert_int_eq(end[0].failures, 1);
	ck_assert_int_eq(ch3_request_test(request), 1);
	ck_assert_int_eq(ch3_request_error(request), -ECONNRESET);
	ch3_request_free(request);
	close_all();
}
END_TEST

/* The peer gets the failure although this side does not close the failed connection. */
START_TEST(a_failure_here_is_heard_there)
{
	open_known(3, transports[_i], 0);
	ch3_request_t *request = send_bytes(0, 1, LONG_MESSAGE);
	end[1].refuse = -EBADMSG;
	while (!end[0].failures)
		poll_all();
	ck_assert_int_eq(end[1].failures, 1);
	ck_assert_int_eq(end[1].failure, -EBADMSG);
	ck_assert_int_eq(ch3_vc_state(end[1].vc[0]), -EBADMSG);
	ck_assert_int_eq(end[0].failure, -ECONNRESET);
	ck_assert_int_eq(ch3_request_error(request), -ECONNRESET);
	ch3_request_free(request);
	/* The failed connection has no pending event that would keep its engine from sleeping. */
	ck_assert_int_eq(hr_channel_arm(ch3_channel(end[1].engine), 0), 0);
	send_empty(2, 0);
	until_received(0, 1);
	close_all();
}
END_TEST

START_TEST(who_was_not_added_gets_no_connection)
{
	open_ends(3, transports[_i], 0);
	add(0, 1);
	add(1, 0);
	add(2, 0);
	send_empty(2, 0);
	for (int i = 0; i < 5000; i++)
		poll_all();
	ck_assert_int_eq(ch3_connections(end[0].engine), 0);
	send_empty(1, 0);
	until_received(0, 1);
	ck_assert_int_eq(ch3_connections(end[0].engine), 1);
	ck_assert_int_eq(ch3_add(end[0].engine, &end[1].card, NULL, &end[0].vc[2]), -EEXIST);
	close_all();
}
END_TEST

static int fetched; /* calls of find_card */

static int find_card(void *context, uint32_t number, hr_card_t *card)
{
	const struct end *self = context;
	fetched++;
	if (self->deaf)
		return -EHOSTUNREACH;
	*card = end[self->misled ? (int)(number + 1) % n_ends : (int)number].card;
	return 0;
}

/* Opens n ends that know each other by number. */
static void open_numbered(int n, uint32_t transport)
{
	open_ends(n, transport, 0);
	fetched = 0;
	for (int i = 0; i < n; i++) {
		ck_assert_int_eq(ch3_number(end[i].engine, (uint32_t)i, (uint32_t)n, BUILD, find_card, &end[i], &end[i].card), 0);
		for (int k = 0; k < n; k++)
			if (i != k)
				ck_assert_int_eq(ch3_add_number(end[i].engine, (uint32_t)k, NULL, &end[i].vc[k]), 0);
	}
}

START_TEST(a_card_is_fetched_by_the_side_that_begins)
{
	open_numbered(4, transports[_i]);
	ck_assert_int_eq(fetched, 0);
	send_empty(0, 2);
	ck_assert_int_eq(fetched, 1);
	until_received(2, 1);
	send_empty(2, 0);
	send_empty(0, 2);
	until_received(0, 1);
	until_received(2, 2);
	ck_assert_int_eq(fetched, 1);
	ck_assert_int_eq(ch3_connections(end[1].engine), 0);
	close_all();
}
END_TEST

START_TEST(both_sides_that_fetch_at_once_share_one_connection)
{
	open_numbered(3, transports[_i]);
	send_empty(0, 1);
	send_empty(1, 0);
	until_received(0, 1);
	until_received(1, 1);
	ck_assert_int_eq(fetched, 2);
	ck_assert_int_eq(ch3_connections(end[0].engine), 1);
	ck_assert_int_eq(ch3_connections(end[1].engine), 1);
	close_all();
}
END_TEST

START_TEST(a_card_that_cannot_be_had_is_an_error)
{
	ch3_request_t *request;
	int from = 0;
	open_numbered(3, transports[_i]);
	end[0].deaf = true;
	ck_assert_int_eq(ch3_send(end[0].vc[1], TYPE, &from, sizeof from, NULL, 0, 0, &request), -EHOSTUNREACH);
	ck_assert_int_eq(ch3_vc_open(end[0].vc[1]), -EHOSTUNREACH);
	end[0].deaf = false;
	end[0].misled = true;
	ck_assert_int_eq(ch3_vc_open(end[0].vc[1]), -EPROTO);
	end[0].misled = false;
	send_empty(0, 1);
	until_received(1, 1);
	close_all();
}
END_TEST

/* End 1 has another build. Neither side connects, whoever begins, and whether or not the other side would refuse. */
START_TEST(another_build_gets_no_connection)
{
	ch3_request_t *request;
	int from = 0;
	open_ends(3, transports[_i], 0);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(ch3_number(end[i].engine, (uint32_t)i, 3, BUILD + (i == 1), find_card, &end[i], &end[i].card), 0);
		for (int k = 0; k < 3; k++)
			if (i != k)
				ck_assert_int_eq(ch3_add_number(end[i].engine, (uint32_t)k, NULL, &end[i].vc[k]), 0);
	}
	ck_assert_int_eq(ch3_send(end[0].vc[1], TYPE, &from, sizeof from, NULL, 0, 0, &request), -EPROTO);
	ck_assert_int_eq(ch3_vc_open(end[1].vc[0]), -EPROTO);
	send_empty(0, 2);
	until_received(2, 1);
	ck_assert_int_eq(ch3_add(end[1].engine, &end[2].card, NULL, &end[1].vc[2]), 0); /* does not look at the build */
	send_empty(1, 2);
	send_empty(0, 2);
	until_received(2, 2);
	for (int i = 0; i < 5000; i++)
		poll_all();
	ck_assert_int_eq(end[2].messages, 2);
	ck_assert_int_eq(ch3_connections(end[2].engine), 1);
	close_all();
}
END_TEST

/* A process whose card has no number, or the number of a peer whose card is known, gets no connection. */
START_TEST(wrong_numbers_get_no_connection)
{
	open_ends(4, transports[_i], 0);
	ck_assert_int_eq(ch3_number(end[0].engine, 3, 3, BUILD, find_card, &end[0], &end[0].card), -EINVAL);
	for (int i = 0; i < 3; i++)
		ck_assert_int_eq(ch3_number(end[i].engine, i == 2, 3, BUILD, find_card, &end[i], &end[i].card), 0);
	ck_assert_int_eq(ch3_number(end[0].engine, 0, 3, BUILD, find_card, &end[0], &end[0].card), -EINVAL);
	ck_assert_int_eq(ch3_add_number(end[0].engine, 1, NULL, &end[0].vc[2]), 0);
	ck_assert_int_eq(ch3_add_number(end[0].engine, 1, NULL, &end[0].vc[2]), -EEXIST);
	ck_assert_int_eq(ch3_add_number(end[0].engine, 3, NULL, &end[0].vc[2]), -EINVAL);
	add(1, 0); /* has number 0, as end 0 itself has: not added there */
	add(2, 0);
	add(3, 0); /* has no number */
	send_empty(2, 0);
	until_received(0, 1);
	send_empty(1, 0);
	send_empty(3, 0);
	for (int i = 0; i < 5000; i++)
		poll_all();
	ck_assert_int_eq(ch3_connections(end[0].engine), 1);
	close_all();
}
END_TEST

static uint64_t gets_of(hr_conn_t *conn)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	ck_assert_int_eq(hr_conn_stats(conn, &stats), 0);
	return stats.get_calls;
}

START_TEST(progress_asks_only_those_at_work)
{
	open_ends(ENDS_MAX, transports[_i], 0);
	for (int i = 1; i < ENDS_MAX; i++) {
		add(0, i);
		add(i, 0);
		send_empty(i, 0);
	}
	until_received(0, ENDS_MAX - 1);
	ck_assert_int_eq(ch3_connections(end[0].engine), ENDS_MAX - 1);
	uint64_t before[ENDS_MAX];
	for (int i = 1; i < ENDS_MAX; i++)
		before[i] = gets_of(ch3_vc_conn(end[0].vc[i]));
	for (int n = 0; n < 200; n++) {
		send_empty(1, 0);
		until_received(0, ENDS_MAX + n);
	}
	int asked = 0;
	for (int i = 1; i < ENDS_MAX; i++)
		asked += gets_of(ch3_vc_conn(end[0].vc[i])) > before[i];
	ck_assert_int_le(asked, 17); /* 16, and end 1, which may have replaced an active connection */
	/* Messages of all other ends still arrive. */
	for (int i = 1; i < ENDS_MAX; i++)
		send_empty(i, 0);
	until_received(0, ENDS_MAX - 1 + 200 + ENDS_MAX - 1);
	close_all();
}
END_TEST

/* One side makes no progress for several times the time-out. Case 0: the answering side, before it has noticed the
 * connection; case 1: the answering side, after it has begun to connect; case 2: the side that sends first. */
START_TEST(patient_peers_wait_for_one_that_computes)
{
	int who = _i % 3;
	open_known(2, transports[_i / 3], HR_CHANNEL_PATIENT);
	send_empty(0, 1);
	while (who == 1 && !ch3_connections(end[1].engine))
		ch3_progress_wait(end[1].engine, 1);
	struct end *present = who == 2 ? &end[1] : &end[0];
	/* Wait until the time-out has passed several times. */
	for (uint64_t until = hr_now_ns() + ABSENT_MS * HR_NS_PER_MS; hr_now_ns() < until;) {
		ch3_progress_poll(present->engine);
		ch3_progress_wait(present->engine, 5);
	}
	until_received(1, 1);
	ck_assert_int_eq(end[0].failures, 0);
	ck_assert_int_eq(end[1].failures, 0);
	close_all();
}
END_TEST

/* Both sides send, then make no progress for a while. One of the two crossing streams is used, whichever side makes
 * progress first. */
START_TEST(patient_peers_that_both_began_and_computed)
{
	open_known(2, transports[_i / 2], HR_CHANNEL_PATIENT);
	for (int i = 0; i < 2; i++)
		send_empty(i, 1 - i);
	for (uint64_t until = hr_now_ns() + ABSENT_MS * HR_NS_PER_MS; hr_now_ns() < until;)
		poll(NULL, 0, ABSENT_MS);
	ch3_progress_wait(end[_i % 2].engine, 1);
	for (int i = 0; i < 2; i++)
		until_received(i, 1);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(end[i].failures, 0);
	close_all();
}
END_TEST

/* Without HR_CHANNEL_PATIENT: if the peer never answers, ch3_progress_wait reports the time-out. */
START_TEST(impatient_ones_give_up)
{
	setenv("HEADRACE_TIMEOUT_MS", "100", 1);
	open_known(2, transports[_i], 0);
	send_empty(0, 1);
	while (!end[0].failures)
		ch3_progress_wait(end[0].engine, 1000);
	ck_assert_int_eq(end[0].failure, -ETIMEDOUT);
	close_all();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("ch3 on demand");
	TCase *tcase = tcase_create("demand");
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, ranks_of_a_ring_have_two_connections_each, 0, 2);
	tcase_add_loop_test(tcase, both_sides_that_begin_at_once_share_one_connection, 0, 2);
	tcase_add_loop_test(tcase, opening_without_sending_brings_it_up_on_both_sides, 0, 2);
	tcase_add_loop_test(tcase, first_send_to_a_peer_that_is_gone_fails_once, 0, 2);
	tcase_add_loop_test(tcase, a_failure_that_the_state_showed_first_is_told, 0, 2);
	tcase_add_loop_test(tcase, a_failure_here_is_heard_there, 0, 2);
	tcase_add_loop_test(tcase, who_was_not_added_gets_no_connection, 0, 2);
	tcase_add_loop_test(tcase, a_card_is_fetched_by_the_side_that_begins, 0, 2);
	tcase_add_loop_test(tcase, both_sides_that_fetch_at_once_share_one_connection, 0, 2);
	tcase_add_loop_test(tcase, a_card_that_cannot_be_had_is_an_error, 0, 2);
	tcase_add_loop_test(tcase, another_build_gets_no_connection, 0, 2);
	tcase_add_loop_test(tcase, wrong_numbers_get_no_connection, 0, 2);
	tcase_add_loop_test(tcase, progress_asks_only_those_at_work, 0, 2);
	tcase_add_loop_test(tcase, patient_peers_wait_for_one_that_computes, 0, 6);
	tcase_add_loop_test(tcase, patient_peers_that_both_began_and_computed, 0, 4);
	tcase_add_loop_test(tcase, impatient_ones_give_up, 0, 2);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
