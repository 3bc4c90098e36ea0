/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP streams within a host: no pacing, small frames that the kernel gathers, and acknowledgements at once. Both ends
 * are in this process. setsockopt is the test's: it counts the acknowledgements that are asked for.
 */
#include "config.h"

#include "headrace/channel.h"

#include <check.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static hr_channel_t *channel[2];
static hr_conn_t *conn[2];
static int acknowledged; /* times that TCP_QUICKACK was set to 1 */
static int quickack;     /* its last value */

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (level == IPPROTO_TCP && name == TCP_QUICKACK) {
		memcpy(&quickack, value, sizeof quickack);
		acknowledged += quickack;
	}
	return __real_setsockopt(fd, level, name, value, len);
}

/* ring_bytes: 0: the default. */
static void open_with(uint32_t first_ring, uint32_t second_ring)
{
	hr_card_t card[2];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = HR_TRANSPORT_TCP;
	for (int i = 0; i < 2; i++) {
		attr.ring_bytes = i ? second_ring : first_ring;
		ck_assert_int_eq(hr_channel_init(&attr, &channel[i], &card[i]), 0);
	}
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hr_channel_connect(channel[i], &card[!i], NULL, &conn[i]), 0);
	while (hr_conn_state(conn[0]) != 1 || hr_conn_state(conn[1]) != 1)
		for (int i = 0; i < 2; i++)
			ck_assert_int_ge(hr_conn_state(conn[i]), 0);
}

static void open_both(void)
{
	open_with(0, 0);
}

static void close_both(void)
{
	for (int i = 0; i < 2; i++)
		hr_channel_finalize(channel[i]);
}

static void put(int side, const char *text)
{
	struct iovec iov = { (void *)(uintptr_t)text, strlen(text) };
	size_t accepted;
	ck_assert_int_eq(hr_channel_put(conn[side], &iov, 1, &accepted), 0);
	ck_assert_uint_eq(accepted, iov.iov_len);
}

static size_t get(int side, char *bytes, size_t len)
{
	struct iovec iov = { bytes, len };
	size_t delivered;
	ck_assert_int_eq(hr_channel_get(conn[side], &iov, 1, &delivered), 0);
	return delivered;
}

/* Gets exactly the text. */
static void get_text(int side, const char *text)
{
	char bytes[64];
	size_t len = strlen(text), got = 0;
	while (got < len)
		got += get(side, bytes + got, len - got);
	ck_assert_mem_eq(bytes, text, len);
}

/* Calls judge for each connected TCP socket of this process. Returns their number. */
static int for_each_stream(void (*judge)(int fd))
{
	struct rlimit limit;
	int n = 0;
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	for (int fd = 0; fd < 1024 && (rlim_t)fd < limit.rlim_cur; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof peer;
		if (getpeername(fd, (struct sockaddr *)&peer, &len) || peer.ss_family == AF_UNIX)
			continue;
		judge(fd);
		n++;
	}
	return n;
}

static void is_unpaced(int fd)
{
	char name[16] = "";
	socklen_t len = sizeof name;
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len), 0);
	ck_assert_str_eq(name, "reno");
}

static void gathers(int fd)
{
	int delay_off;
	socklen_t len = sizeof delay_off;
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &delay_off, &len), 0);
	ck_assert_int_eq(delay_off, 0);
}

START_TEST(streams_are_not_paced)
{
	open_both();
	ck_assert_int_ge(for_each_stream(is_unpaced), 2);
	close_both();
}
END_TEST

START_TEST(small_frames_are_gathered_after_the_first_put)
{
	open_both();
	put(0, "one");
	get_text(1, "one");
	put(1, "two");
	get_text(0, "two");
	ck_assert_int_ge(for_each_stream(gathers), 2);
	close_both();
}
END_TEST

/* A get that finds nothing acknowledges what the gets before it have found, once. */
START_TEST(a_get_that_finds_nothing_acknowledges)
{
	char byte;
	open_both();
	put(0, "one");
	get_text(1, "one");
	int before = acknowledged;
	ck_assert_uint_eq(get(1, &byte, 1), 0);
	ck_assert_int_eq(acknowledged, before + 1);
	ck_assert_int_eq(quickack, 0);
	for (int i = 0; i < 10; i++)
		ck_assert_uint_eq(get(1, &byte, 1), 0);
	ck_assert_int_eq(acknowledged, before + 1);
	close_both();
}
END_TEST

START_TEST(a_side_that_goes_to_sleep_acknowledges)
{
	open_both();
	put(0, "one");
	get_text(1, "one");
	int before = acknowledged;
	while (hr_channel_wait(channel[1], 0, 1)) /* also returns once because the connection has come up */
		hr_channel_ready(channel[1], 0);
	ck_assert_int_eq(acknowledged, before + 1);
	close_both();
}
END_TEST

static int gathering; /* streams that judge_gathering has found gathering */

static void judge_gathering(int fd)
{
	int delay_off = 1;
	socklen_t len = sizeof delay_off;
	ck_assert_int_eq(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &delay_off, &len), 0);
	gathering += !delay_off;
}

/* A side with a small ring does not gather, and acknowledges what the other one gathers. */
START_TEST(a_small_ring_acknowledges_too)
{
	char byte;
	open_with(0, 16384);
	for (int side = 0; side < 2; side++) {
		put(side, "one");
		get_text(!side, "one");
	}
	gathering = 0;
	for_each_stream(judge_gathering);
	ck_assert_int_eq(gathering, 1);
	int before = acknowledged;
	ck_assert_uint_eq(get(1, &byte, 1), 0);
	ck_assert_int_eq(acknowledged, before + 1);
	close_both();
}
END_TEST

/* Each side puts two small frames before it gets any: the second ones wait for acknowledgements. */
START_TEST(frames_that_wait_on_both_sides_arrive)
{
	open_both();
	for (int round = 0; round < 1000; round++) {
		for (int side = 0; side < 2; side++) {
			put(side, "one");
			put(side, "two");
		}
		for (int side = 0; side < 2; side++) {
			get_text(side, "one");
			put(side, "three");
		}
		/* In turn, as each of the two waits for the other's acknowledgements. */
		char bytes[2][8];
		size_t got[2] = { 0, 0 };
		while (got[0] < 8 || got[1] < 8)
			for (int side = 0; side < 2; side++)
				got[side] += got[side] < 8 ? get(side, bytes[side] + got[side], 8 - got[side]) : get(side, bytes[side], 0);
		for (int side = 0; side < 2; side++)
			ck_assert_mem_eq(bytes[side], "twothree", 8);
	}
	close_both();
}
END_TEST

int main(void)
{
	unsetenv("HEADRACE_RING_BYTES");
	TCase *cases = tcase_create("within a host");
	tcase_set_timeout(cases, 300);
	tcase_add_test(cases, streams_are_not_paced);
	tcase_add_test(cases, small_frames_are_gathered_after_the_first_put);
	tcase_add_test(cases, a_get_that_finds_nothing_acknowledges);
	tcase_add_test(cases, a_side_that_goes_to_sleep_acknowledges);
	tcase_add_test(cases, a_small_ring_acknowledges_too);
	tcase_add_test(cases, frames_that_wait_on_both_sides_arrive);
	Suite *suite = suite_create("tcp_within_host");
	suite_add_tcase(suite, cases);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
