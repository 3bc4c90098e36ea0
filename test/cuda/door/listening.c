/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a server may listen. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

START_TEST(a_dead_daemons_socket_is_replaced_a_living_ones_is_not)
{
	rc_server_t place = unix_place("a");
	rc_door_welcome_t welcome;
	struct test_server server;
	rc_door_t *second;
	struct stat status;
	close(listen_raw(place));
	server_start(&server, place, &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(rc_door_open(&(rc_door_policy_t){ 0 }, &second), 0);
	ck_assert_int_eq(rc_door_listen(second, &place), -EADDRINUSE);
	rc_door_close(second);
	ck_assert_int_eq(client_connect(place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
	ck_assert_int_eq(stat(place.path, &status), -1);
}
END_TEST

START_TEST(a_file_that_is_no_socket_is_left_alone)
{
	rc_server_t place = unix_place("a");
	rc_door_t *door;
	close(open(place.path, O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(rc_door_open(&(rc_door_policy_t){ 0 }, &door), 0);
	ck_assert_int_eq(rc_door_listen(door, &place), -EEXIST);
	rc_door_close(door);
	ck_assert_int_eq(unlink(place.path), 0);
}
END_TEST

START_TEST(the_network_needs_a_key)
{
	rc_server_t place = { .host = "0.0.0.0", .port = tcp_place().port };
	rc_door_t *door;
	ck_assert_int_eq(rc_door_open(&(rc_door_policy_t){ 0 }, &door), 0);
	ck_assert_int_eq(rc_door_listen(door, &place), -EPERM);
	strcpy(place.host, "::");
	ck_assert_int_eq(rc_door_listen(door, &place), -EPERM);
	rc_door_close(door);
}
END_TEST

START_TEST(a_server_with_a_key_may_listen_at_the_network)
{
	rc_server_t place = { .host = "0.0.0.0", .port = tcp_place().port };
	rc_door_policy_t policy = key_policy(key_path);
	rc_door_t *door;
	ck_assert_int_eq(rc_door_open(&policy, &door), 0);
	ck_assert_int_eq(rc_door_listen(door, &place), 0);
	rc_door_close(door);
}
END_TEST

void add_listening(TCase *tests)
{
	tcase_add_test(tests, a_dead_daemons_socket_is_replaced_a_living_ones_is_not);
	tcase_add_test(tests, a_file_that_is_no_socket_is_left_alone);
	tcase_add_test(tests, the_network_needs_a_key);
	if (rc_door_keys_supported())
		tcase_add_test(tests, a_server_with_a_key_may_listen_at_the_network);
}
