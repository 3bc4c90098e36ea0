/* SPDX-License-Identifier: BSD-3-Clause */
/* TCP streams within a host are not paced. Both ends are in this process. */
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
static void open_both(void)
{
	hr_card_t card[2];
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = HR_TRANSPORT_TCP;
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hr_channel_init(&attr, &channel[i], &card[i]), 0);
	for (int i = 0; i < 2; i++)
		ck_assert_int_eq(hr_channel_connect(channel[i], &card[!i], NULL, &conn[i]), 0);
	while (hr_conn_state(conn[0]) != 1 || hr_conn_state(conn[1]) != 1)
		for (int i = 0; i < 2; i++)
			ck_assert_int_ge(hr_conn_state(conn[i]), 0);
}

static void close_both(void)
{
	for (int i = 0; i < 2; i++)
		hr_channel_finalize(channel[i]);
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

START_TEST(streams_are_not_paced)
{
	open_both();
	ck_assert_int_ge(for_each_stream(is_unpaced), 2);
	close_both();
}
END_TEST

int main(void)
{
	unsetenv("HEADRACE_RING_BYTES");
	TCase *cases = tcase_create("within a host");
	tcase_set_timeout(cases, 300);
	tcase_add_test(cases, streams_are_not_paced);
	Suite *suite = suite_create("tcp_within_host");
	suite_add_tcase(suite, cases);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
