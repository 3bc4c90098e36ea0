/* SPDX-License-Identifier: BSD-3-Clause */
/* Rendezvous by remote write: which payloads are written and which are sent through the pipe, and failures. Accesses to the peer's
 * memory. */
#include "ch3/packet.h"
#include "test/ch3/memory_channel.h"
#include "test/ch3/pair.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LARGE (200 * 1024)

static void setup(void)
{
	memory_remote_bytes = 0;
	setenv("HEADRACE_RENDEZVOUS", "write", 1);
	pair_set_up(LARGE);
}

static bool is_untouched(void)
{
	for (int i = 0; i < LARGE; i++)
		if (target[i] != 0x55)
			return false;
	return true;
}

/* Sends one message and checks that all of it arrives, and that `written` bytes of it were transferred by writes. */
static void arrives(uint64_t written)
{
	memory_remote_bytes = 0;
	memset(target, 0, LARGE);
	int before = pair_b.messages;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	pair_settle();
	pair_expect_end(request, 0);
	ck_assert_int_eq(pair_b.messages, before + 1);
	const struct pair_message *message = &pair_b.message[before];
	ck_assert_int_eq(message->done, 1);
	ck_assert_int_eq(message->error, 0);
	ck_assert_uint_eq(message->bytes, LARGE);
	ck_assert(pair_filled(target, LARGE, 1));
	ck_assert_uint_eq(memory_remote_bytes, written);
}

START_TEST(a_long_payload_is_written)
{
	arrives(LARGE);
	memory_faults.write_polls = 3;
	arrives(LARGE);
}
END_TEST

START_TEST(without_the_setting_it_goes_by_the_pipe)
{
	pair_close();
	unsetenv("HEADRACE_RENDEZVOUS");
	pair_open();
	pair_b.buffer = target;
	pair_b.room = LARGE;
	arrives(0);
}
END_TEST

START_TEST(where_the_channel_cannot_it_goes_by_the_pipe)
{
	memory_faults.no_remote = true;
	arrives(0);
}
END_TEST

START_TEST(memory_that_cannot_be_exposed_is_sent_by_the_pipe)
{
	memory_faults.expose_fails = 1;
	arrives(0);
	pair_b.split = true;
	memory_faults.expose_fails = 1;
	arrives(0);
}
END_TEST

START_TEST(memory_that_cannot_be_written_from_is_sent_by_the_pipe)
{
	memory_faults.write_fails = 1;
	arrives(0);
	arrives(LARGE);
}
END_TEST

/* Sends the source as n pieces, which need n writes. */
static ch3_request_t *send_pieces(int n)
{
	struct iovec iov[CH3_IOV_MAX];
	size_t each = LARGE / (size_t)n;
	for (int i = 0; i < n; i++)
		iov[i] = (struct iovec){ source + (size_t)i * each, i == n - 1 ? LARGE - (size_t)i * each : each };
	ch3_request_t *request;
	ck_assert_int_eq(ch3_send(pair_a.vc, PAIR_TYPE, "abcd", 4, iov, n, 0, &request), 0);
	return request;
}

static void arrives_in_pieces(int n, uint64_t written)
{
	memory_remote_bytes = 0;
	memset(target, 0, LARGE);
	ch3_request_t *request = send_pieces(n);
	pair_settle();
	pair_expect_end(request, 0);
	ck_assert(pair_filled(target, LARGE, 1));
	ck_assert_uint_eq(memory_remote_bytes, written);
}

START_TEST(pieces_of_both_sides_are_matched)
{
	arrives_in_pieces(3, LARGE);
	arrives_in_pieces(16, LARGE);
	/* If not all pieces can be written, some are written first, and then the whole payload is sent through the
	 * pipe. */
	memory_faults.write_polls = 5;
	arrives_in_pieces(17, LARGE / 17 * 16);
	memory_faults.write_fails = 3;
	arrives_in_pieces(4, LARGE / 4 * 2);
}
END_TEST

START_TEST(a_deferred_and_a_short_receive_are_written_too)
{
	pair_b.defer = true;
	pair_b.room = LARGE / 2;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(request), 0);
	pair_accept(0);
	pair_settle();
	ck_assert_int_eq(ch3_request_test(request), 1);
	ch3_request_free(request);
	ck_assert_uint_eq(memory_remote_bytes, LARGE / 2);
	ck_assert_uint_eq(pair_b.message[0].bytes, LARGE / 2);
	ck_assert(pair_filled(target, LARGE / 2, 1));
	ck_assert_int_eq(target[LARGE / 2], 0);
}
END_TEST

/* The receiver's connection fails while the sender writes. */
START_TEST(nothing_is_written_after_the_receive_failed)
{
	memory_faults.write_polls = 20;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	for (int i = 0; i < 4; i++) {
		ch3_progress_poll(pair_a.engine);
		ch3_progress_poll(pair_b.engine);
	}
	ck_assert_int_eq(pair_b.message[0].done, 0);
	static const char garbage[64] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	memory_conn_inject(ch3_vc_conn(pair_b.vc), garbage, sizeof garbage);
	ch3_progress_poll(pair_b.engine);
	ck_assert_int_eq(pair_b.failures, 1);
	ck_assert_int_eq(pair_b.message[0].done, 1);
	ck_assert_int_eq(pair_b.message[0].error, -EPROTO);
	memset(target, 0x55, LARGE);
	pair_settle();
	ck_assert(is_untouched());
	ck_assert_int_eq(ch3_request_test(request), 1);
	ck_assert_int_ne(ch3_request_error(request), 0);
	ch3_request_free(request);
	ck_assert_int_eq(pair_a.failures, 1);
}
END_TEST

/* After the receiver has closed the connection, the sender must not write into its memory either. */
START_TEST(nothing_is_written_after_the_receiver_closed)
{
	memory_faults.write_polls = 20;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	for (int i = 0; i < 4; i++) {
		ch3_progress_poll(pair_a.engine);
		ch3_progress_poll(pair_b.engine);
	}
	ch3_vc_close(pair_b.vc);
	ck_assert_int_eq(pair_b.message[0].error, -ECANCELED);
	ck_assert_int_eq(pair_b.message[0].connections, 1); /* the receiver's was closed before its receive completed */
	memset(target, 0x55, LARGE);
	pair_settle();
	ck_assert(is_untouched());
	ck_assert_int_ne(ch3_request_error(request), 0);
	ch3_request_free(request);
}
END_TEST

START_TEST(a_sender_may_close_while_it_writes)
{
	memory_faults.write_polls = 20;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	for (int i = 0; i < 4; i++) {
		ch3_progress_poll(pair_a.engine);
		ch3_progress_poll(pair_b.engine);
	}
	ch3_vc_close(pair_a.vc);
	ck_assert_int_eq(ch3_request_error(request), -ECANCELED);
	ch3_request_free(request);
	pair_settle();
	ck_assert_int_eq(pair_b.message[0].done, 1);
	ck_assert_int_ne(pair_b.message[0].error, 0);
}
END_TEST

/* Injects an invalid packet and checks that the connection fails with -EPROTO. */
static void expect_refused(struct pair_end *end, const void *bytes, size_t len)
{
	memory_conn_inject(ch3_vc_conn(end->vc), bytes, len);
	pair_settle();
	ck_assert_int_eq(end->failures, 1);
	ck_assert_int_eq(end->failure, -EPROTO);
}

struct clear {
	struct ch3_packet packet;
	struct ch3_packet_more more;
	struct ch3_place place[2];
} __attribute__((packed));

/* Injects a CLEAR with two places for the payload that a has announced. Its sequence number is 0, as b has not sent. */
static void refuse_places(uint64_t wanted, uint64_t first, uint64_t second)
{
	pair_b.defer = true;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	pair_settle();
	struct clear clear = {
		.packet = { .type = CH3_PACKET_CLEAR, .flags = CH3_PACKET_MORE,
			    .header_len = 2 * sizeof(struct ch3_place) },
		.more = { wanted, 1u << 20 | 1, 9 }, /* the first id of a fresh table */
		.place = { { { 0, 77, 0 }, first }, { { 0, 78, 0 }, second } },
	};
	expect_refused(&pair_a, &clear, sizeof clear);
	ck_assert_int_eq(ch3_request_error(request), -EPROTO);
	ch3_request_free(request);
	ck_assert_uint_eq(memory_remote_bytes, 0);
}

START_TEST(places_that_do_not_add_up_are_refused)
{
	static const uint64_t places[][3] = {
		{ 100, 50, 49 }, { 100, 50, 51 }, { 100, 100, 0 }, { 100, UINT64_MAX, 101 }, { LARGE + 1, LARGE, 1 },
	};
	refuse_places(places[_i][0], places[_i][1], places[_i][2]);
}
END_TEST

START_TEST(done_for_what_was_not_exposed_is_refused)
{
	struct {
		struct ch3_packet packet;
		struct ch3_packet_more more;
	} __attribute__((packed)) done = {
		.packet = { .type = CH3_PACKET_DONE, .flags = CH3_PACKET_MORE }, .more = { 100, 0, 1 },
	};
	expect_refused(&pair_b, &done, sizeof done);
}
END_TEST

/* A DONE with a wrong length (case 0), or for a payload that has no exposed memory (case 1). */
START_TEST(done_that_does_not_fit_is_refused)
{
	memory_faults.write_polls = 1000;
	memory_faults.expose_fails = _i;
	pair_b.defer = true;
	ch3_request_t *request = pair_send(5, source, LARGE, 0);
	pair_settle();
	pair_accept(0);
	struct {
		struct ch3_packet packet;
		struct ch3_packet_more more;
	} __attribute__((packed)) done = {
		.packet = { .type = CH3_PACKET_DONE, .flags = CH3_PACKET_MORE, .sequence = 1 },
		.more = { _i ? LARGE : LARGE - 1, 0, 1u << 20 | 1 },
	};
	expect_refused(&pair_b, &done, sizeof done);
	ck_assert_int_eq(pair_b.message[0].error, -EPROTO);
	ch3_request_free(request);
}
END_TEST

/* ---- accesses ---- */

#define ACCESSES 20

static int ended[ACCESSES], n_ended, ended_error;

static void on_access(void *context, int error, size_t bytes)
{
	ck_assert_uint_eq(bytes, error ? 0 : LARGE / ACCESSES);
	ended_error = error;
	ended[n_ended++] = *(int *)context;
}

/* Starts accesses to the target: writes of the source, or reads into it. */
static void access_all(bool writes, const struct ch3_key *key)
{
	static int number[ACCESSES];
	n_ended = ended_error = 0;
	for (int i = 0; i < ACCESSES; i++) {
		size_t at = (size_t)i * (LARGE / ACCESSES);
		number[i] = i;
		ck_assert_int_eq((writes ? ch3_write(pair_a.vc, key, at, source + at, LARGE / ACCESSES, on_access, &number[i]) :
					   ch3_read(pair_a.vc, key, at, source + at, LARGE / ACCESSES, on_access, &number[i])),
				 0);
	}
	ck_assert_int_eq(n_ended, 0);
}

START_TEST(accesses_complete_in_order)
{
	ch3_shared_t *shared;
	struct ch3_key key;
	ck_assert(ch3_access_can(pair_a.vc));
	ck_assert_int_eq(ch3_share(pair_b.vc, target, LARGE, &shared, &key), 0);
	memory_faults.write_polls = 3;
	access_all(true, &key);
	pair_settle();
	while (n_ended < ACCESSES)
		ch3_progress_poll(pair_a.engine);
	ck_assert_int_eq(ended_error, 0);
	ck_assert(pair_filled(target, LARGE, 1));
	memset(source, 0, LARGE);
	access_all(false, &key);
	while (n_ended < ACCESSES)
		ch3_progress_poll(pair_a.engine);
	ck_assert(pair_filled(source, LARGE / ACCESSES * ACCESSES, 1));
	for (int i = 0; i < ACCESSES; i++)
		ck_assert_int_eq(ended[i], i);
	ck_assert_int_eq(pair_a.failures, 0);
	ch3_unshare(shared);
}
END_TEST

/* The connection breaks (case 0), or is closed (case 1). */
START_TEST(accesses_of_a_lost_connection_fail)
{
	ch3_shared_t *shared;
	struct ch3_key key;
	ck_assert_int_eq(ch3_share(pair_b.vc, target, LARGE, &shared, &key), 0);
	memset(target, 0x55, LARGE);
	memory_faults.write_polls = 1000;
	access_all(true, &key);
	if (_i) {
		ch3_vc_close(pair_a.vc);
	} else {
		memory_conn_break(ch3_vc_conn(pair_a.vc), -ETIMEDOUT);
		pair_settle();
		ck_assert_int_eq(ch3_write(pair_a.vc, &key, 0, source, 1, on_access, NULL), -ETIMEDOUT);
		ck_assert_int_eq(pair_a.failures, 1);
	}
	ck_assert_int_eq(n_ended, ACCESSES);
	ck_assert_int_eq(ended_error, _i ? -ECANCELED : -ETIMEDOUT);
	ck_assert(is_untouched());
	ch3_unshare(shared);
}
END_TEST

START_TEST(without_remote_memory_there_is_no_access)
{
	ch3_shared_t *shared;
	struct ch3_key key = { { 0, 0 } };
	memory_faults.no_remote = true;
	ck_assert(!ch3_access_can(pair_a.vc));
	ck_assert_int_eq(ch3_share(pair_b.vc, target, LARGE, &shared, &key), -ENOTSUP);
	ck_assert_int_eq(ch3_read(pair_a.vc, &key, 0, source, 1, on_access, NULL), -ENOTSUP);
}
END_TEST

START_TEST(a_setting_that_is_none_is_refused)
{
	ch3_t *engine;
	hr_card_t card;
	setenv("HEADRACE_RENDEZVOUS", "sideways", 1);
	ck_assert_int_eq(ch3_open(NULL, &engine, &card), -EINVAL);
}
END_TEST

int main(void)
{
	TCase *tests = pair_tests(setup);
	tcase_add_test(tests, a_long_payload_is_written);
	tcase_add_test(tests, without_the_setting_it_goes_by_the_pipe);
	tcase_add_test(tests, where_the_channel_cannot_it_goes_by_the_pipe);
	tcase_add_test(tests, memory_that_cannot_be_exposed_is_sent_by_the_pipe);
	tcase_add_test(tests, memory_that_cannot_be_written_from_is_sent_by_the_pipe);
	tcase_add_test(tests, pieces_of_both_sides_are_matched);
	tcase_add_test(tests, a_deferred_and_a_short_receive_are_written_too);
	tcase_add_test(tests, nothing_is_written_after_the_receive_failed);
	tcase_add_test(tests, nothing_is_written_after_the_receiver_closed);
	tcase_add_test(tests, a_sender_may_close_while_it_writes);
	tcase_add_loop_test(tests, places_that_do_not_add_up_are_refused, 0, 5);
	tcase_add_test(tests, done_for_what_was_not_exposed_is_refused);
	tcase_add_loop_test(tests, done_that_does_not_fit_is_refused, 0, 2);
	tcase_add_test(tests, accesses_complete_in_order);
	tcase_add_loop_test(tests, accesses_of_a_lost_connection_fail, 0, 2);
	tcase_add_test(tests, without_remote_memory_there_is_no_access);
	tcase_add_test(tests, a_setting_that_is_none_is_refused);
	return pair_run("ch3 remote writes", tests);
}
