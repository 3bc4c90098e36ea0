/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may enter by key, when a key is demanded, and what a key file must be. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(the_right_key_opens)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(server.last.by_key);
	ck_assert_uint_eq(server.last.uid, (uid_t)-1);
	setenv("HEADRACE_KEY_FILE", key_path, 1);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

START_TEST(a_wrong_key_or_none_does_not)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, other_key_path, &welcome), -EACCES);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), -EACCES);
	ck_assert_int_eq(server.last.fd, 0);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* Behind a port of loopback may be a forwarder, and behind that anybody. */
START_TEST(a_configured_key_is_demanded_of_every_tcp_server)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), -EKEYREJECTED);
	setenv("HEADRACE_KEY_FILE", key_path, 1);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), -EKEYREJECTED);
	unsetenv("HEADRACE_KEY_FILE");
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* Over a Unix socket the kernel names the server's user. */
START_TEST(a_configured_key_is_not_demanded_over_a_unix_socket)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(!server.last.by_key);
	server_stop(&server);
}
END_TEST

START_TEST(a_key_can_be_demanded_over_a_unix_socket)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_policy_t policy = key_policy(key_path);
	setenv("HEADRACE_KEY_UNIX", "1", 1);
	server_start(&server, unix_place("a"), &policy);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(server.last.by_key);
	ck_assert_uint_eq(server.last.uid, getuid());
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, other_key_path, &welcome), -EACCES);
	server_stop(&server);
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), -EACCES);
	server_stop(&server);
	unsetenv("HEADRACE_KEY_UNIX");
}
END_TEST

START_TEST(a_key_file_must_be_private_and_whole)
{
	rc_door_key_t key;
	struct stat status;
	ck_assert_int_eq(stat(key_path, &status), 0);
	ck_assert_uint_eq(status.st_mode & 07777, 0600);
	ck_assert_int_eq(rc_door_key_make(key_path), -EEXIST);
	ck_assert_int_eq(chmod(key_path, 0640), 0);
	ck_assert_int_eq(rc_door_key_load(key_path, &key), -EPERM);
	ck_assert_int_eq(chmod(key_path, 0600), 0);
	ck_assert_int_eq(rc_door_key_load(key_path, &key), 0);
	ck_assert_int_eq(truncate(key_path, 40), 0);
	ck_assert_int_eq(rc_door_key_load(key_path, &key), -EINVAL);
	ck_assert_int_eq(rc_door_key_load("/dev/null", &key), -EINVAL);
	ck_assert_int_eq(rc_door_key_load("/nonexistent", &key), -ENOENT);
}
END_TEST

void add_keys(TCase *tests)
{
	if (!rc_door_keys_supported())
		return;
	tcase_add_test(tests, the_right_key_opens);
	tcase_add_test(tests, a_wrong_key_or_none_does_not);
	tcase_add_test(tests, a_configured_key_is_demanded_of_every_tcp_server);
	tcase_add_test(tests, a_configured_key_is_not_demanded_over_a_unix_socket);
	tcase_add_test(tests, a_key_can_be_demanded_over_a_unix_socket);
	tcase_add_test(tests, a_key_file_must_be_private_and_whole);
}
