/* SPDX-License-Identifier: BSD-3-Clause */
/* Encrypted records, and a man in the middle who changes, drops, repeats, reorders, reflects and cuts off. */
#define _GNU_SOURCE /* memmem */
#include "rdma_channel/tcp/secret.h"

#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RECORD(n) (4 + (n) + 17) /* bytes of a record of n plain bytes on the wire */
#define HEADER 24

static struct hr_secret *sender, *receiver;
static int out[2], in[2]; /* the sender writes out[0]; the middle carries from out[1] to in[0]; the receiver reads in[1] */
static uint8_t wire[1 << 18];

static void set_up(void)
{
	hr_cipher_keys_t keys = { .put = "there", .get = "back" }, mirrored;
	memcpy(mirrored.put, keys.get, sizeof keys.get);
	memcpy(mirrored.get, keys.put, sizeof keys.put);
	ck_assert_int_eq(hr_secret_open(&keys, &sender), 0);
	ck_assert_int_eq(hr_secret_open(&mirrored, &receiver), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, out), 0);
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, in), 0);
}

static void tear_down(void)
{
	hr_secret_close(sender);
	hr_secret_close(receiver);
	for (int i = 0; i < 2; i++) {
		close(out[i]);
		close(in[i]);
	}
}

static void put(const void *bytes, size_t size)
{
	struct iovec iov = { (void *)(uintptr_t)bytes, size };
	size_t accepted;
	ck_assert_int_eq(hr_secret_put(sender, out[0], hr_iov_begin(&iov, 1), &accepted), 0);
	ck_assert_uint_eq(accepted, size);
}

/* What the sender has sent, in wire. */
static size_t intercept(void)
{
	ssize_t n = recv(out[1], wire, sizeof wire, MSG_DONTWAIT);
	return n > 0 ? (size_t)n : 0;
}

static void pass(const void *bytes, size_t size)
{
	ck_assert_int_eq(send(in[0], bytes, size, 0), (ssize_t)size);
}

static int get(void *bytes, size_t size, size_t *delivered)
{
	struct iovec iov = { bytes, size };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	hr_secret_fill(receiver, in[1]);
	return hr_secret_deliver(receiver, &place, delivered);
}

static void ck_assert_get_fails(int error)
{
	uint8_t bytes[64];
	size_t delivered;
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(get(bytes, sizeof bytes, &delivered), error);
		ck_assert_uint_eq(delivered, 0);
	}
	ck_assert(hr_secret_ready(receiver));
}

START_TEST(bytes_arrive_and_are_not_seen_on_the_way)
{
	char got[32];
	size_t delivered;
	put("attack at dawn", 14);
	size_t n = intercept();
	ck_assert_uint_eq(n, HEADER + RECORD(14));
	ck_assert_ptr_null(memmem(wire, n, "attack", 6));
	pass(wire, n);
	/* In two pieces: what is decrypted waits. */
	ck_assert_int_eq(get(got, 6, &delivered), 0);
	ck_assert_uint_eq(delivered, 6);
	ck_assert(hr_secret_ready(receiver));
	ck_assert_int_eq(get(got + 6, 26, &delivered), 0);
	ck_assert_uint_eq(delivered, 8);
	ck_assert_mem_eq(got, "attack at dawn", 14);
	ck_assert(!hr_secret_ready(receiver));
}
END_TEST

START_TEST(an_orderly_end_is_told_after_the_last_byte)
{
	char got[4];
	size_t delivered;
	put("last", 4);
	ck_assert_int_eq(hr_secret_finish(sender, out[0]), 1);
	pass(wire, intercept());
	ck_assert_int_eq(get(got, 4, &delivered), 0);
	ck_assert_uint_eq(delivered, 4);
	ck_assert(hr_secret_is_final(receiver));
	ck_assert_get_fails(-ESHUTDOWN);
}
END_TEST

START_TEST(a_stream_cut_off_at_a_record_is_no_orderly_end)
{
	char got[4];
	size_t delivered;
	put("last", 4);
	size_t n = intercept();
	ck_assert_int_eq(hr_secret_finish(sender, out[0]), 1);
	pass(wire, n); /* without FINAL */
	shutdown(in[0], SHUT_WR);
	ck_assert_int_eq(get(got, 4, &delivered), 0);
	ck_assert_int_eq(hr_secret_fill(receiver, in[1]), -ECONNRESET);
	ck_assert(!hr_secret_is_final(receiver));
}
END_TEST

/* Every bit of a small conversation, its lengths and its FINAL included. */
START_TEST(a_changed_bit_is_found)
{
	put("x", 1);
	ck_assert_int_eq(hr_secret_finish(sender, out[0]), 1);
	size_t n = intercept();
	size_t bit = (size_t)_i;
	if (bit >= 8 * n)
		return;
	wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	pass(wire, n);
	shutdown(in[0], SHUT_WR);
	uint8_t got[8];
	size_t delivered;
	int error = 0;
	/* Either it does not authenticate, or a longer length waits for bytes that never come; FINAL is never believed. */
	for (int i = 0; i < 4 && !error; i++) {
		error = get(got, sizeof got, &delivered);
		ck_assert(!delivered || (delivered == 1 && *got == 'x'));
	}
	ck_assert_int_ne(error, -ESHUTDOWN);
	if (!error)
		ck_assert_int_eq(hr_secret_fill(receiver, in[1]), -ECONNRESET);
}
END_TEST

START_TEST(a_repeated_record_is_found)
{
	char got[8];
	size_t delivered;
	put("one", 3);
	size_t n = intercept();
	pass(wire, n);
	pass(wire + HEADER, n - HEADER);
	ck_assert_int_eq(get(got, sizeof got, &delivered), 0);
	ck_assert_uint_eq(delivered, 3);
	ck_assert_get_fails(-EPROTO);
}
END_TEST

START_TEST(reordered_records_are_found)
{
	put("one", 3);
	put("two", 3);
	ck_assert_uint_eq(intercept(), HEADER + 2 * RECORD(3));
	pass(wire, HEADER);
	pass(wire + HEADER + RECORD(3), RECORD(3));
	pass(wire + HEADER, RECORD(3));
	ck_assert_get_fails(-EPROTO);
}
END_TEST

START_TEST(a_dropped_record_is_found)
{
	put("one", 3);
	put("two", 3);
	ck_assert_uint_eq(intercept(), HEADER + 2 * RECORD(3));
	pass(wire, HEADER);
	pass(wire + HEADER + RECORD(3), RECORD(3));
	ck_assert_get_fails(-EPROTO);
}
END_TEST

START_TEST(a_stream_reflected_to_its_sender_is_found)
{
	put("one", 3);
	pass(wire, intercept());
	hr_secret_close(receiver);
	receiver = sender;
	sender = NULL;
	ck_assert_get_fails(-EPROTO);
}
END_TEST

START_TEST(another_connections_stream_is_found)
{
	hr_cipher_keys_t keys = { .put = "another", .get = "key" };
	hr_secret_close(sender);
	ck_assert_int_eq(hr_secret_open(&keys, &sender), 0);
	put("one", 3);
	pass(wire, intercept());
	ck_assert_get_fails(-EPROTO);
}
END_TEST

/* The kernel takes part of the bytes only: the rest is offered again, and nothing is lost, doubled or encrypted anew. */
START_TEST(a_full_kernel_is_waited_for)
{
	enum { SIZE = 3 << 20 };
	uint8_t *sent = malloc(SIZE), *got = malloc(SIZE);
	size_t put_at = 0, got_at = 0, accepted, delivered;
	unsigned state = 1, shorts = 0;
	for (size_t i = 0; i < SIZE; i++)
		sent[i] = (uint8_t)(rand_r(&state) >> 8);
	while (got_at < SIZE) {
		struct iovec iov[2] = { { sent + put_at, (SIZE - put_at) / 3 } };
		iov[1] = (struct iovec){ sent + put_at + iov[0].iov_len, SIZE - put_at - iov[0].iov_len };
		ck_assert_int_eq(hr_secret_put(sender, out[0], hr_iov_begin(iov, 2), &accepted), 0);
		put_at += accepted;
		shorts += put_at < SIZE;
		size_t n = intercept();
		for (size_t at = 0; at < n;) {
			ssize_t passed = send(in[0], wire + at, n - at, MSG_DONTWAIT);
			at += passed > 0 ? (size_t)passed : 0;
			size_t ask = (size_t)rand_r(&state) % 40000;
			ck_assert_int_eq(get(got + got_at, ask < SIZE - got_at ? ask : SIZE - got_at, &delivered), 0);
			got_at += delivered;
		}
		ck_assert_int_eq(get(got + got_at, SIZE - got_at, &delivered), 0);
		got_at += delivered;
	}
	ck_assert_uint_gt(shorts, 0);
	ck_assert_uint_eq(put_at, SIZE);
	ck_assert(!memcmp(sent, got, SIZE));
	free(sent);
	free(got);
}
END_TEST

int main(void)
{
	if (!hr_secret_supported()) {
		puts("SKIP: this build has no libsodium");
		return 77;
	}
	Suite *suite = suite_create("encrypted records");
	TCase *tests = tcase_create("encrypted records");
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, bytes_arrive_and_are_not_seen_on_the_way);
	tcase_add_test(tests, an_orderly_end_is_told_after_the_last_byte);
	tcase_add_test(tests, a_stream_cut_off_at_a_record_is_no_orderly_end);
	tcase_add_loop_test(tests, a_changed_bit_is_found, 0, 8 * (HEADER + RECORD(1) + RECORD(0)));
	tcase_add_test(tests, a_repeated_record_is_found);
	tcase_add_test(tests, reordered_records_are_found);
	tcase_add_test(tests, a_dropped_record_is_found);
	tcase_add_test(tests, a_stream_reflected_to_its_sender_is_found);
	tcase_add_test(tests, another_connections_stream_is_found);
	tcase_add_test(tests, a_full_kernel_is_waited_for);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
