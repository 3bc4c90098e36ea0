/* SPDX-License-Identifier: BSD-3-Clause */
/* What the door's tests share: a server, clients, keys in a folder of the test's own, and the test runner. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

char folder[64];
char key_path[96], other_key_path[96];
rc_door_report_t server_report;
const hr_card_t client_card = { 5, "CLIEN" };
static const hr_card_t server_card = { 6, "SERVER" };

static void *serve(void *argument)
{
	struct test_server *server = argument;
	for (;;) {
		struct pollfd wait[2] = { { .fd = rc_door_fd(server->door), .events = POLLIN },
					  { .fd = server->stop[0], .events = POLLIN } };
		rc_door_peer_t peer;
		poll(wait, 2, rc_door_timeout(server->door));
		if (wait[1].revents)
			return NULL;
		if (rc_door_next(server->door, &peer) != 1)
			continue;
		server->last = peer;
		if (peer.gpu == 5) {
			rc_door_peer_refuse(&peer, RC_DOOR_NO_GPU, "no such GPU index %u: the server has 1",
					     peer.gpu);
			continue;
		}
		bool report = peer.purpose == RC_DOOR_REPORT;
		rc_door_peer_welcome(&peer, peer.purpose == RC_DOOR_STATUS || report ? NULL : &server_card, 1, 2, 3,
				      "test\033server");
		if (report)
			rc_door_peer_report(&peer, &server_report);
		close(peer.fd);
	}
}

rc_server_t unix_place(const char *name)
{
	rc_server_t place = { .gpu = RC_SERVER_ALL_GPUS };
	snprintf(place.path, sizeof place.path, "%s/%s", folder, name);
	return place;
}

/* A port of loopback that was free a moment ago. */
rc_server_t tcp_place(void)
{
	rc_server_t place = { .host = "127.0.0.1", .gpu = RC_SERVER_ALL_GPUS };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	close(fd);
	place.port = ntohs(address.sin_port);
	return place;
}

/* n places; server->place is the first. */
void server_start_at(struct test_server *server, const rc_server_t *places, int n, const rc_door_policy_t *policy)
{
	memset(server, 0, sizeof *server);
	server->place = places[0];
	ck_assert_int_eq(rc_door_open(policy, &server->door), 0);
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(rc_door_listen(server->door, &places[i]), 0);
	ck_assert_int_eq(pipe(server->stop), 0);
	ck_assert_int_eq(pthread_create(&server->thread, NULL, serve, server), 0);
}

void server_start(struct test_server *server, rc_server_t place, const rc_door_policy_t *policy)
{
	server_start_at(server, &place, 1, policy);
}

void server_stop(struct test_server *server)
{
	close(server->stop[1]);
	pthread_join(server->thread, NULL);
	close(server->stop[0]);
	rc_door_close(server->door);
}

int client_connect(rc_server_t place, enum rc_door_purpose purpose, const char *key_file, rc_door_welcome_t *welcome)
{
	rc_door_connect_t wanted = { .server = place, .purpose = purpose, .card = &client_card, .key_file = key_file,
				   .timeout_ms = 3000 };
	memcpy(wanted.token, "0123456789abcdef", sizeof wanted.token);
	int error = rc_door_connect(&wanted, welcome);
	if (!error)
		close(welcome->fd);
	return error;
}

rc_door_policy_t key_policy(const char *path)
{
	rc_door_policy_t policy = { .have_key = true };
	ck_assert_int_eq(rc_door_key_load(path, &policy.key), 0);
	return policy;
}

static void set_up(void)
{
	snprintf(folder, sizeof folder, "/tmp/headrace-door-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(key_path, sizeof key_path, "%s/key", folder);
	snprintf(other_key_path, sizeof other_key_path, "%s/other", folder);
	unsetenv("HEADRACE_KEY_FILE");
	if (rc_door_keys_supported()) {
		ck_assert_int_eq(rc_door_key_make(key_path), 0);
		ck_assert_int_eq(rc_door_key_make(other_key_path), 0);
	}
}

/* Fails if a test leaves anything but its keys behind. */
static void tear_down(void)
{
	unlink(key_path);
	unlink(other_key_path);
	ck_assert_msg(!rmdir(folder), "%s: %s", folder, strerror(errno));
}

int listen_raw(rc_server_t place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, place.path, sizeof address.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	return fd;
}

struct door_hello good_hello(void)
{
	struct door_hello hello = { 0 };
	door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	hello.build = door_build;
	return hello;
}

int connect_raw(rc_server_t place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, place.path, sizeof address.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

int connect_tcp(rc_server_t place)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

int run_cases(const char *name, void (*const add[])(TCase *tests), int n)
{
	Suite *suite = suite_create(name);
	TCase *tests = tcase_create(name);
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	for (int i = 0; i < n; i++)
		add[i](tests);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
