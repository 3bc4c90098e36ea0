/* SPDX-License-Identifier: BSD-3-Clause */
/* Other users at the door. The test becomes other users: exit status 77 unless it runs as root. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOBODY 65534

static int client_connect_as(uid_t uid, rc_server_t place)
{
	pid_t child = fork();
	if (!child) {
		rc_door_welcome_t welcome;
		if (setuid(uid))
			_exit(255);
		_exit(-client_connect(place, RC_DOOR_NEW, NULL, &welcome));
	}
	int status = 0;
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	return -WEXITSTATUS(status);
}

START_TEST(a_root_server_takes_every_user)
{
	struct test_server server;
	ck_assert_int_eq(chmod(folder, 0755), 0);
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect_as(NOBODY, server.place), 0);
	ck_assert_uint_eq(server.last.uid, NOBODY);
	server_stop(&server);
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect_as(NOBODY, server.place), 0);
	ck_assert_uint_eq(server.last.uid, NOBODY);
	server_stop(&server);
}
END_TEST

/* Runs check against a server of user nobody, in a process of its own. */
static void with_server_of_nobody(rc_server_t place, void (*check)(rc_server_t place))
{
	int ready[2];
	char byte;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		struct test_server server;
		if (setuid(NOBODY))
			_exit(1);
		server_start(&server, place, &(rc_door_policy_t){ 0 });
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		pthread_join(server.thread, NULL);
	}
	close(ready[1]);
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	check(place);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	if (*place.path)
		unlink(place.path);
}

static void check_strangers(rc_server_t place)
{
	rc_door_welcome_t welcome;
	/* The client does not hand itself to another user's server, and the server serves its own user only. */
	ck_assert_int_eq(client_connect(place, RC_DOOR_NEW, NULL, &welcome), -EKEYREJECTED);
	ck_assert_int_eq(client_connect_as(NOBODY, place), 0);
	ck_assert_int_eq(client_connect_as(NOBODY - 1, place), -EACCES);
}

START_TEST(a_private_root_server_takes_root_only)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	ck_assert_int_eq(chmod(folder, 0755), 0);
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ .own_user_only = true });
	ck_assert_int_eq(client_connect_as(NOBODY, server.place), -EACCES);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

START_TEST(strangers_do_not_trust_each_other)
{
	with_server_of_nobody(tcp_place(), check_strangers);
	ck_assert_int_eq(chown(folder, NOBODY, NOBODY), 0);
	with_server_of_nobody(unix_place("a"), check_strangers);
}
END_TEST

/* A child of that user takes n places over TCP and holds them until *hold is closed. */
static pid_t flood_as(uid_t uid, int n, rc_server_t place, const int hold[2])
{
	int ready[2];
	char byte;
	ck_assert_int_eq(pipe(ready), 0);
	pid_t child = fork();
	if (!child) {
		struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
					       .sin_port = htons(place.port) };
		close(hold[1]);
		if (setuid(uid))
			_exit(1);
		for (int i = 0; i < n; i++)
			if (connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&address, sizeof address))
				_exit(1);
		(void)!write(ready[1], "r", 1);
		(void)!read(hold[0], &byte, 1);
		_exit(0);
	}
	ck_assert_int_eq(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	close(ready[1]);
	return child;
}

START_TEST(a_flood_takes_the_places_of_its_own_user_only)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	int hold[2];
	ck_assert_int_eq(pipe(hold), 0);
	server_start(&server, tcp_place(), &(rc_door_policy_t){ .max_handshakes = 8, .timeout_ms = 60000 });
	/* All eight places are taken; the third user gets in by the place of a flood. */
	flood_as(NOBODY, 6, server.place, hold);
	flood_as(NOBODY - 1, 6, server.place, hold);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	close(hold[1]);
	close(hold[0]);
	while (wait(NULL) > 0)
		continue;
	server_stop(&server);
}
END_TEST

static void add_other_users(TCase *tests)
{
	tcase_add_test(tests, a_root_server_takes_every_user);
	tcase_add_test(tests, a_private_root_server_takes_root_only);
	tcase_add_test(tests, strangers_do_not_trust_each_other);
	tcase_add_test(tests, a_flood_takes_the_places_of_its_own_user_only);
}

int main(void)
{
	if (getuid()) {
		puts("SKIP: the cases of other users need root");
		return 77;
	}
	return run_cases("other users at the door", (void (*const[])(TCase *)){ add_other_users }, 1);
}
