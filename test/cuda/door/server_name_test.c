/* SPDX-License-Identifier: BSD-3-Clause */
/* How servers are named. */
#include "cuda_remote/door/server_name.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static rc_server_t list[4];
static size_t count;

static int parse(const char *text)
{
	count = 99;
	return rc_server_parse(text, list, 4, &count);
}

START_TEST(a_host_alone_gets_the_default_port_and_all_gpus)
{
	ck_assert_int_eq(parse("node7"), 0);
	ck_assert_uint_eq(count, 1);
	ck_assert_str_eq(list[0].host, "node7");
	ck_assert_str_eq(list[0].path, "");
	ck_assert_uint_eq(list[0].port, RC_DOOR_PORT);
	ck_assert_uint_eq(list[0].gpu, RC_SERVER_ALL_GPUS);
}
END_TEST

START_TEST(port_and_gpu_are_taken)
{
	ck_assert_int_eq(parse("node7.cluster:4711/3"), 0);
	ck_assert_str_eq(list[0].host, "node7.cluster");
	ck_assert_uint_eq(list[0].port, 4711);
	ck_assert_uint_eq(list[0].gpu, 3);
}
END_TEST

START_TEST(ipv6_goes_in_brackets)
{
	ck_assert_int_eq(parse("[fe80::1]/0,[::1]:99"), 0);
	ck_assert_uint_eq(count, 2);
	ck_assert_str_eq(list[0].host, "fe80::1");
	ck_assert_uint_eq(list[0].port, RC_DOOR_PORT);
	ck_assert_uint_eq(list[0].gpu, 0);
	ck_assert_str_eq(list[1].host, "::1");
	ck_assert_uint_eq(list[1].port, 99);
}
END_TEST

START_TEST(a_unix_path_keeps_its_slashes)
{
	ck_assert_int_eq(parse("unix:/run/a/b.sock"), 0);
	ck_assert_str_eq(list[0].path, "/run/a/b.sock");
	ck_assert_str_eq(list[0].host, "");
	ck_assert_uint_eq(list[0].gpu, RC_SERVER_ALL_GPUS);
	ck_assert_int_eq(parse("unix:/run/a/b.sock/12"), 0);
	ck_assert_str_eq(list[0].path, "/run/a/b.sock");
	ck_assert_uint_eq(list[0].gpu, 12);
	ck_assert_int_eq(parse("unix:b.sock"), 0);
	ck_assert_str_eq(list[0].path, "b.sock");
	ck_assert_int_eq(parse("unix:@name/2"), 0);
	ck_assert_str_eq(list[0].path, "@name");
}
END_TEST

START_TEST(a_list_keeps_its_order)
{
	ck_assert_int_eq(parse("a/1,b:2,unix:/c/0,d"), 0);
	ck_assert_uint_eq(count, 4);
	ck_assert_str_eq(list[0].host, "a");
	ck_assert_str_eq(list[1].host, "b");
	ck_assert_str_eq(list[2].path, "/c");
	ck_assert_str_eq(list[3].host, "d");
	ck_assert_int_eq(parse("a,b,c,d,e"), -E2BIG);
}
END_TEST

static const char *const wrong[] = {
	"",
	",",
	"a,",
	",a",
	":1",
	"a:",
	"a:0",
	"a:65536",
	"a:1x",
	"a:-1",
	"a:+1",
	"a: 1",
	"a:99999999999",
	"/1",
	"a/",
	"a/x",
	"a/-1",
	"a/4294967295",
	"a/1/2x",
	"a/b/1",
	"::1",
	"fe80::1:99",
	"[::1",
	"[::1]x",
	"[]",
	"[]:1",
	"unix:",
	"unix:/1",
	"a b",
	"[::1]:",
	"a:1:2",
	"a//1",
	"unix",
	"unix/1",
	"[unix]:2",
	"a[",
	"[[a]",
	"a\033b",
};

START_TEST(what_is_no_server_is_refused)
{
	ck_assert_msg(parse(wrong[_i]) == -EINVAL, "\"%s\" was taken", wrong[_i]);
	ck_assert_uint_eq(count, 99);
}
END_TEST

START_TEST(sizes_are_bounded)
{
	char text[400] = "unix:/";
	memset(text + 6, 'x', 200);
	ck_assert_int_eq(parse(text), -EINVAL);
	text[5 + 107] = 0;
	ck_assert_int_eq(parse(text), 0);
	ck_assert_uint_eq(strlen(list[0].path), 107);
	memset(text, 'h', 300);
	text[300] = 0;
	ck_assert_int_eq(parse(text), -EINVAL);
	text[255] = 0;
	ck_assert_int_eq(parse(text), 0);
}
END_TEST

START_TEST(a_name_can_be_printed_and_parsed_again)
{
	static const char *const names[] = { "a:1", "[::1]:2", "unix:/x/y" };
	char name[64];
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		rc_server_t server;
		ck_assert_int_eq(rc_server_parse_place(names[i], &server), 0);
		ck_assert_str_eq(rc_server_name(&server, name, sizeof name), names[i]);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("server names");
	TCase *tests = tcase_create("server names");
	tcase_set_timeout(tests, 300);
	tcase_add_test(tests, a_host_alone_gets_the_default_port_and_all_gpus);
	tcase_add_test(tests, port_and_gpu_are_taken);
	tcase_add_test(tests, ipv6_goes_in_brackets);
	tcase_add_test(tests, a_unix_path_keeps_its_slashes);
	tcase_add_test(tests, a_list_keeps_its_order);
	tcase_add_loop_test(tests, what_is_no_server_is_refused, 0, sizeof wrong / sizeof *wrong);
	tcase_add_test(tests, sizes_are_bounded);
	tcase_add_test(tests, a_name_can_be_printed_and_parsed_again);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
