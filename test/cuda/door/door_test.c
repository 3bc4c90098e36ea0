/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The door: who may enter, who may not, and that no client delays another. Compiled a second time, with
 * DOOR_TEST_OTHER_USERS, for the cases that need root because the test becomes other users.
 */
#define _GNU_SOURCE
#include "cuda_remote/door/identity.h"
#include "cuda_remote/door/wire.h"

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef DOOR_TEST_OTHER_USERS
#define OTHER_USERS true
#else
#define OTHER_USERS false
#endif
#define NOBODY 65534

static char folder[64];
static char key_path[96], other_key_path[96];

/* ---- a server that welcomes everybody who may come in, in a thread of its own ---- */

struct test_server {
	rc_door_t *door;
	pthread_t thread;
	int stop[2];
	rc_server_t place;
	rc_door_peer_t last; /* valid once its visit returned: the welcome is sent after it is written */
};

static const hr_card_t client_card = { 5, "CLIEN" }, server_card = { 6, "SERVER" };

static rc_door_report_t server_report;

/* As many sessions as a report can have, so that its size is tested with it. */
static void fill_report(void)
{
	server_report.count = RC_DOOR_SESSIONS_MAX;
	server_report.hidden = 3;
	for (uint32_t i = 0; i < RC_DOOR_SESSIONS_MAX; i++) {
		rc_door_session_t *session = &server_report.session[i];
		*session = (rc_door_session_t){ .number = i, .age_us = 5000000, .calls = 1000 + i, .memory = 1 << 20,
						.uid = 7, .gpu = RC_SERVER_ALL_GPUS };
		memset(session->program, '\033', sizeof session->program);
		snprintf(session->client, sizeof session->client, "unix:pid %u", i);
	}
}

static void *serve(void *argument)
{
	struct test_server *server = argument;
	for (;;) {
		struct pollfd wait[2] = { { .fd = rc_door_fd(server->door), .events = POLLIN },
					  { .fd = server->stop[0], .events = POLLIN } };
		rc_door_peer_t guest;
		poll(wait, 2, rc_door_timeout(server->door));
		if (wait[1].revents)
			return NULL;
		if (rc_door_next(server->door, &guest) != 1)
			continue;
		server->last = guest;
		if (guest.gpu == 5) {
			rc_door_peer_refuse(&guest, RC_DOOR_NO_GPU, "no such GPU index %u: the server has 1",
					     guest.gpu);
			continue;
		}
		bool report = guest.purpose == RC_DOOR_REPORT;
		rc_door_peer_welcome(&guest, guest.purpose == RC_DOOR_STATUS || report ? NULL : &server_card, 1, 2, 3,
				      "test\033server");
		if (report)
			rc_door_peer_report(&guest, &server_report);
		close(guest.fd);
	}
}

static rc_server_t unix_place(const char *name)
{
	rc_server_t place = { .gpu = RC_SERVER_ALL_GPUS };
	snprintf(place.path, sizeof place.path, "%s/%s", folder, name);
	return place;
}

/* A port of loopback that was free a moment ago. */
static rc_server_t tcp_place(void)
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
static void server_start_at(struct test_server *server, const rc_server_t *places, int n,
			    const rc_door_policy_t *policy)
{
	memset(server, 0, sizeof *server);
	server->place = places[0];
	ck_assert_int_eq(rc_door_open(policy, &server->door), 0);
	for (int i = 0; i < n; i++)
		ck_assert_int_eq(rc_door_listen(server->door, &places[i]), 0);
	ck_assert_int_eq(pipe(server->stop), 0);
	ck_assert_int_eq(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void server_start(struct test_server *server, rc_server_t place, const rc_door_policy_t *policy)
{
	server_start_at(server, &place, 1, policy);
}

static void server_stop(struct test_server *server)
{
	close(server->stop[1]);
	pthread_join(server->thread, NULL);
	close(server->stop[0]);
	rc_door_close(server->door);
}

static int visit(rc_server_t place, enum rc_door_purpose purpose, const char *key_file, rc_door_welcome_t *welcome)
{
	rc_door_connect_t wanted = { .server = place, .purpose = purpose, .card = &client_card, .key_file = key_file,
				   .timeout_ms = 3000 };
	memcpy(wanted.token, "0123456789abcdef", sizeof wanted.token);
	int error = rc_door_connect(&wanted, welcome);
	if (!error)
		close(welcome->fd);
	return error;
}

static rc_door_policy_t key_policy(const char *path)
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

/* ---- coming in ---- */

START_TEST(cards_are_exchanged_over_a_unix_socket)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert(welcome.local);
	ck_assert_uint_eq(welcome.card.len, 6);
	ck_assert_mem_eq(welcome.card.data, "SERVER", 6);
	ck_assert_uint_eq(welcome.gpus, 1);
	ck_assert_uint_eq(welcome.clients, 2);
	ck_assert_uint_eq(welcome.workers, 3);
	ck_assert_str_eq(welcome.text, "test?server");
	ck_assert_uint_eq(server.last.card.len, 5);
	ck_assert_mem_eq(server.last.card.data, "CLIEN", 5);
	ck_assert_mem_eq(server.last.token, welcome.token, sizeof welcome.token);
	ck_assert_uint_eq(server.last.uid, getuid());
	ck_assert_int_eq(server.last.pid, getpid());
	ck_assert_uint_eq(server.last.gpu, RC_SERVER_ALL_GPUS);
	ck_assert(server.last.local && !server.last.by_key);
	server_stop(&server);
}
END_TEST

START_TEST(an_abstract_socket_leaves_no_file)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_server_t place = { .gpu = RC_SERVER_ALL_GPUS };
	snprintf(place.path, sizeof place.path, "@%s", folder);
	server_start(&server, place, &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert(welcome.local);
	server_stop(&server);
	ck_assert_int_eq(visit(place, RC_DOOR_NEW, NULL, &welcome), -ECONNREFUSED);
}
END_TEST

START_TEST(every_new_session_gets_another_token)
{
	struct test_server server;
	rc_door_welcome_t first, second;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &first), 0);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &second), 0);
	ck_assert_mem_ne(first.token, second.token, sizeof first.token);
	server_stop(&server);
}
END_TEST

START_TEST(join_and_status_carry_what_they_should)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_JOIN, NULL, &welcome), 0);
	ck_assert_int_eq(server.last.purpose, RC_DOOR_JOIN);
	ck_assert_mem_eq(server.last.token, "0123456789abcdef", 16);
	ck_assert_int_eq(visit(server.place, RC_DOOR_STATUS, NULL, &welcome), 0);
	ck_assert_int_eq(server.last.purpose, RC_DOOR_STATUS);
	ck_assert_uint_eq(server.last.card.len, 0);
	ck_assert_uint_eq(welcome.card.len, 0);
	server_stop(&server);
}
END_TEST

static void check_report(rc_server_t place, const char *key_file)
{
	rc_door_connect_t wanted = { .server = place, .key_file = key_file };
	rc_door_welcome_t welcome;
	rc_door_report_t report;
	ck_assert_int_eq(rc_door_ask_report(&wanted, &welcome, &report), 0);
	ck_assert_uint_eq(welcome.clients, 2);
	ck_assert_uint_eq(report.count, RC_DOOR_SESSIONS_MAX);
	ck_assert_uint_eq(report.hidden, 3);
	for (uint32_t i = 0; i < report.count; i++) {
		const rc_door_session_t *session = &report.session[i];
		ck_assert_uint_eq(session->number, i);
		ck_assert_uint_eq(session->calls, 1000 + i);
		ck_assert_uint_eq(session->memory, 1 << 20);
		ck_assert_uint_eq(session->uid, 7);
		/* What a terminal would obey is gone, and the text ends. */
		ck_assert_uint_eq(strspn(session->program, "?"), sizeof session->program - 1);
		ck_assert_str_eq(session->client, server_report.session[i].client);
	}
}

START_TEST(a_report_carries_the_sessions)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	fill_report();
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	check_report(server.place, NULL);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert_str_eq(server.last.program, "door_test");
	server_stop(&server);
}
END_TEST

START_TEST(a_report_is_proved_with_the_key)
{
	struct test_server server;
	rc_door_policy_t policy = key_policy(key_path);
	fill_report();
	server_start(&server, tcp_place(), &policy);
	check_report(server.place, key_path);
	server_stop(&server);
}
END_TEST

START_TEST(loopback_knows_the_user_without_a_key)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert(!welcome.local);
	ck_assert_uint_eq(server.last.uid, getuid());
	ck_assert(!server.last.by_key && !server.last.local);
	server_stop(&server);
}
END_TEST

START_TEST(the_right_key_opens)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(server.last.by_key);
	ck_assert_uint_eq(server.last.uid, (uid_t)-1);
	setenv("HEADRACE_KEY_FILE", key_path, 1);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

START_TEST(a_wrong_key_or_none_does_not)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, other_key_path, &welcome), -EACCES);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), -EACCES);
	ck_assert_int_eq(server.last.fd, 0);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* Behind a port of loopback may be a forwarder, and behind that anybody. */
START_TEST(a_configured_key_is_demanded_of_every_tcp_server)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), -EKEYREJECTED);
	setenv("HEADRACE_KEY_FILE", key_path, 1);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), -EKEYREJECTED);
	unsetenv("HEADRACE_KEY_FILE");
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* Over a Unix socket the kernel names the server's user. */
START_TEST(a_configured_key_is_not_demanded_over_a_unix_socket)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(!server.last.by_key);
	server_stop(&server);
}
END_TEST

/* Kernels report user 0 for a connection that no process has accepted. */
START_TEST(a_connection_that_nobody_has_accepted_has_no_user)
{
	rc_server_t place = tcp_place();
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	struct door_identity server;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(listener, 4), 0);
	ck_assert_int_eq(connect(client, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(door_identify(client, &server), 0);
	ck_assert_uint_eq(server.uid, DOOR_UID_UNKNOWN);
	ck_assert(!door_client_trusts(&server));
	int accepted = accept(listener, NULL, NULL);
	ck_assert_int_eq(door_identify(client, &server), 0);
	ck_assert_uint_eq(server.uid, getuid());
	close(accepted);
	ck_assert_int_eq(door_identify(client, &server), 0);
	ck_assert_uint_eq(server.uid, DOOR_UID_UNKNOWN);
	close(client);
	close(listener);
}
END_TEST

/* ---- encryption ---- */

static int connect_encrypted(rc_server_t place, const char *key_file, bool encrypt, rc_door_welcome_t *welcome)
{
	rc_door_connect_t wanted = { .server = place, .purpose = RC_DOOR_NEW, .card = &client_card,
				     .key_file = key_file, .encrypt = encrypt, .timeout_ms = 3000 };
	int error = rc_door_connect(&wanted, welcome);
	if (!error)
		close(welcome->fd);
	return error;
}

static void ck_assert_same_keys(const rc_door_welcome_t *client, const rc_door_peer_t *server)
{
	ck_assert(client->encrypted && server->encrypted);
	ck_assert_mem_eq(client->cipher.put, server->cipher.get, HR_CIPHER_KEY_BYTES);
	ck_assert_mem_eq(client->cipher.get, server->cipher.put, HR_CIPHER_KEY_BYTES);
	ck_assert_mem_ne(client->cipher.get, client->cipher.put, HR_CIPHER_KEY_BYTES);
}

START_TEST(either_side_can_demand_encryption)
{
	struct test_server server;
	rc_door_welcome_t welcome, second;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(connect_encrypted(server.place, key_path, false, &welcome), 0);
	ck_assert(!welcome.encrypted && !server.last.encrypted);
	ck_assert_int_eq(connect_encrypted(server.place, key_path, true, &welcome), 0);
	ck_assert_same_keys(&welcome, &server.last);
	/* Every connection has keys of its own. */
	setenv("HEADRACE_ENCRYPT", "1", 1);
	ck_assert_int_eq(connect_encrypted(server.place, key_path, false, &second), 0);
	unsetenv("HEADRACE_ENCRYPT");
	ck_assert_same_keys(&second, &server.last);
	ck_assert_mem_ne(welcome.cipher.put, second.cipher.put, HR_CIPHER_KEY_BYTES);
	server_stop(&server);
	policy.encrypt = true;
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(connect_encrypted(server.place, key_path, false, &welcome), 0);
	ck_assert_same_keys(&welcome, &server.last);
	server_stop(&server);
}
END_TEST

START_TEST(loopback_without_a_key_is_encrypted_too)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ .encrypt = true });
	ck_assert_int_eq(connect_encrypted(server.place, NULL, false, &welcome), 0);
	ck_assert_same_keys(&welcome, &server.last);
	server_stop(&server);
}
END_TEST

START_TEST(a_unix_socket_is_not_encrypted)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ .encrypt = true });
	ck_assert_int_eq(connect_encrypted(server.place, NULL, true, &welcome), 0);
	ck_assert(!welcome.encrypted && !server.last.encrypted);
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
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert(server.last.by_key);
	ck_assert_uint_eq(server.last.uid, getuid());
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, other_key_path, &welcome), -EACCES);
	server_stop(&server);
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), -EACCES);
	server_stop(&server);
	unsetenv("HEADRACE_KEY_UNIX");
}
END_TEST

START_TEST(a_peer_says_what_to_count_it_against)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_peer_t first;
	rc_door_policy_t policy = key_policy(key_path), other = key_policy(other_key_path);
	const uint8_t no_key[RC_DOOR_KEY_ID_BYTES] = { 0 };
	server_start(&server, unix_place("a"), &policy);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	first = server.last;
	ck_assert_mem_eq(first.key_id, no_key, sizeof no_key);
	server_stop(&server);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert_mem_eq(server.last.source, first.source, sizeof first.source); /* the same user of this host */
	first = server.last;
	ck_assert_mem_ne(first.key_id, no_key, sizeof no_key);
	server_stop(&server);
	server_start(&server, tcp_place(), &other);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, other_key_path, &welcome), 0);
	ck_assert_mem_ne(server.last.key_id, first.key_id, sizeof first.key_id);
	server_stop(&server);
}
END_TEST

START_TEST(a_refusal_reaches_the_client_as_its_error)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_server_t place = unix_place("a");
	server_start(&server, place, &(rc_door_policy_t){ 0 });
	place.gpu = 5;
	ck_assert_int_eq(visit(place, RC_DOOR_NEW, NULL, &welcome), -ENODEV);
	server_stop(&server);
}
END_TEST

/* ---- other users (as root only: the test becomes nobody) ---- */

static int visit_as(uid_t uid, rc_server_t place)
{
	pid_t child = fork();
	if (!child) {
		rc_door_welcome_t welcome;
		if (setuid(uid))
			_exit(255);
		_exit(-visit(place, RC_DOOR_NEW, NULL, &welcome));
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
	ck_assert_int_eq(visit_as(NOBODY, server.place), 0);
	ck_assert_uint_eq(server.last.uid, NOBODY);
	server_stop(&server);
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(visit_as(NOBODY, server.place), 0);
	ck_assert_uint_eq(server.last.uid, NOBODY);
	server_stop(&server);
}
END_TEST

/* Runs the visits of the test below against a server of user nobody, in a process of its own. */
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
	ck_assert_int_eq(visit(place, RC_DOOR_NEW, NULL, &welcome), -EKEYREJECTED);
	ck_assert_int_eq(visit_as(NOBODY, place), 0);
	ck_assert_int_eq(visit_as(NOBODY - 1, place), -EACCES);
}

START_TEST(a_private_root_server_takes_root_only)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	ck_assert_int_eq(chmod(folder, 0755), 0);
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ .own_user_only = true });
	ck_assert_int_eq(visit_as(NOBODY, server.place), -EACCES);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
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

START_TEST(users_who_flood_crowd_out_themselves)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	int hold[2];
	ck_assert_int_eq(pipe(hold), 0);
	server_start(&server, tcp_place(), &(rc_door_policy_t){ .max_handshakes = 8, .timeout_ms = 60000 });
	/* All eight places are taken; the third user gets in by the place of a flood. */
	flood_as(NOBODY, 6, server.place, hold);
	flood_as(NOBODY - 1, 6, server.place, hold);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	close(hold[1]);
	close(hold[0]);
	while (wait(NULL) > 0)
		continue;
	server_stop(&server);
}
END_TEST

/* ---- nobody there, or somebody else ---- */

START_TEST(nobody_there_is_told_at_once)
{
	rc_door_welcome_t welcome;
	ck_assert_int_eq(visit(unix_place("none"), RC_DOOR_NEW, NULL, &welcome), -ENOENT);
	ck_assert_int_eq(visit(tcp_place(), RC_DOOR_NEW, NULL, &welcome), -ECONNREFUSED);
}
END_TEST

static int listen_raw(rc_server_t place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, place.path, sizeof address.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(fd, 4), 0);
	return fd;
}

START_TEST(a_silent_server_is_given_up_in_time)
{
	rc_server_t place = unix_place("silent");
	rc_door_connect_t wanted = { .server = place, .purpose = RC_DOOR_NEW, .card = &client_card, .timeout_ms = 200 };
	rc_door_welcome_t welcome;
	int fd = listen_raw(place);
	ck_assert_int_eq(rc_door_connect(&wanted, &welcome), -ETIMEDOUT);
	close(fd);
	unlink(place.path);
}
END_TEST

/* A server that reads a hello and answers with the bytes given, whatever they are. */
static int visit_answered_with(const void *answer, size_t size)
{
	rc_server_t place = unix_place("fake");
	int fd = listen_raw(place);
	pid_t child = fork();
	if (!child) {
		char hello[sizeof(struct door_hello)];
		int client = accept(fd, NULL, NULL);
		ssize_t n = recv(client, hello, sizeof hello, MSG_WAITALL);
		_exit(n != sizeof hello || write(client, answer, size) != (ssize_t)size);
	}
	rc_door_welcome_t welcome;
	int error = visit(place, RC_DOOR_NEW, rc_door_keys_supported() ? key_path : NULL, &welcome);
	close(fd);
	waitpid(child, NULL, 0);
	unlink(place.path);
	return error;
}

START_TEST(a_server_of_another_version_is_named)
{
	struct door_refusal refusal = { .reason = RC_DOOR_BAD_VERSION, .text = "another one" };
	struct door_challenge challenge = { .method = DOOR_BY_USER };
	door_header_set(&refusal.header, DOOR_REFUSAL, sizeof refusal);
	refusal.header.version = RC_DOOR_VERSION + 1;
	ck_assert_int_eq(visit_answered_with(&refusal, sizeof refusal), -EPROTONOSUPPORT);
	door_header_set(&challenge.header, DOOR_CHALLENGE, sizeof challenge);
	challenge.header.version = RC_DOOR_VERSION + 1;
	ck_assert_int_eq(visit_answered_with(&challenge, sizeof challenge), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(a_server_that_is_none_is_seen_through)
{
	struct door_challenge challenge = { .method = 77 };
	ck_assert_int_eq(visit_answered_with("HTTP/1.1 400 Bad Request\r\n\r\n", 28), -EPROTO);
	ck_assert_int_eq(visit_answered_with("", 0), -ECONNRESET);
	ck_assert_int_eq(visit_answered_with(&challenge, 20), -EPROTO);
	door_header_set(&challenge.header, DOOR_CHALLENGE, sizeof challenge);
	ck_assert_int_eq(visit_answered_with(&challenge, sizeof challenge), -EPROTO);
	ck_assert_int_eq(visit_answered_with(&challenge, 20), -ECONNRESET);
	challenge.header.length = 1u << 30;
	ck_assert_int_eq(visit_answered_with(&challenge, sizeof challenge), -EPROTO);
}
END_TEST

START_TEST(a_server_without_the_key_is_not_trusted)
{
	struct {
		struct door_challenge challenge;
		struct door_welcome welcome;
	} answer = { .challenge.method = DOOR_BY_KEY, .welcome.card_len = 4 };
	door_header_set(&answer.challenge.header, DOOR_CHALLENGE, sizeof answer.challenge);
	door_header_set(&answer.welcome.header, DOOR_WELCOME, sizeof answer.welcome);
	ck_assert_int_eq(visit_answered_with(&answer, sizeof answer), -EKEYREJECTED);
}
END_TEST

/* ---- bad visitors ---- */

static struct door_hello good_hello(void)
{
	struct door_hello hello = { 0 };
	door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	hello.build = door_build;
	return hello;
}

static int connect_raw(rc_server_t place)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	memcpy(address.sun_path, place.path, sizeof address.sun_path);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* The reason in the refusal that the server sends to a visitor who says these bytes; 0: it just hangs up. */
static unsigned refusal_of(rc_server_t place, const void *bytes, size_t size)
{
	struct door_refusal refusal;
	int fd = connect_raw(place);
	ck_assert_int_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
	ssize_t n = recv(fd, &refusal, sizeof refusal, MSG_WAITALL);
	close(fd);
	return n == sizeof refusal && refusal.header.kind == DOOR_REFUSAL ? refusal.reason : 0;
}

START_TEST(wrong_hellos_are_refused_with_the_reason)
{
	struct test_server server;
	struct door_hello hello = { 0 };
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_uint_eq(refusal_of(server.place, "GET / HTTP/1.1\r\n\r\n", 18), RC_DOOR_MALFORMED);
	door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	hello.header.version = RC_DOOR_VERSION + 1;
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello.header), RC_DOOR_BAD_VERSION);
	door_header_set(&hello.header, DOOR_WELCOME, sizeof hello);
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello), RC_DOOR_MALFORMED);
	door_header_set(&hello.header, DOOR_HELLO, 1u << 31);
	ck_assert_uint_eq(refusal_of(server.place, &hello, sizeof hello), RC_DOOR_MALFORMED);
	server_stop(&server);
}
END_TEST

/* The text of the refusal that a server of this build sends to a client of that build; "" for a challenge. */
static const char *answer_to_build(rc_server_t place, const struct door_build *build)
{
	static struct door_refusal refusal;
	struct door_hello hello = good_hello();
	hello.build = *build;
	int fd = connect_raw(place);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), (ssize_t)sizeof hello);
	ck_assert_int_eq(recv(fd, &refusal.header, sizeof refusal.header, MSG_WAITALL), (ssize_t)sizeof refusal.header);
	size_t rest = refusal.header.length - sizeof refusal.header;
	ck_assert_uint_le(rest, sizeof refusal - sizeof refusal.header);
	ck_assert_int_eq(recv(fd, &refusal.reason, rest, MSG_WAITALL), (ssize_t)rest);
	close(fd);
	if (refusal.header.kind == DOOR_CHALLENGE)
		return "";
	ck_assert_uint_eq(refusal.header.kind, DOOR_REFUSAL);
	ck_assert_uint_eq(refusal.reason, RC_DOOR_BAD_VERSION);
	return refusal.text;
}

START_TEST(another_build_is_refused_and_told_what_differs)
{
	struct test_server server;
	struct door_build build = door_build;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_str_eq(answer_to_build(server.place, &build), "");
	build.calls++;
	ck_assert_str_eq(answer_to_build(server.place, &build),
			 "builds differ: table of calls; install the same build of Headrace on both hosts");
	build = door_build;
	build.structs++;
	ck_assert_str_eq(answer_to_build(server.place, &build),
			 "builds differ: sizes of CUDA's structs; install the same build of Headrace on both hosts");
	build = door_build;
	build.wire++;
	ck_assert_str_eq(answer_to_build(server.place, &build),
			 "builds differ: wire headers; install the same build of Headrace on both hosts");
	build = door_build;
	build.cuda = 12080;
	ck_assert_ptr_nonnull(strstr(answer_to_build(server.place, &build), ", client 12.8)"));
	build = (struct door_build){ 0, 0, 0, 0 };
	ck_assert_ptr_nonnull(strstr(answer_to_build(server.place, &build), "on both hosts")); /* the longest text fits */
	server_stop(&server);
}
END_TEST

/* Goes through the door by hand with this request. */
static unsigned refusal_of_request(rc_server_t place, struct door_request *request)
{
	struct door_hello hello = good_hello();
	struct door_challenge challenge;
	struct door_refusal refusal;
	int fd = connect_raw(place);
	door_header_set(&request->header, DOOR_REQUEST, sizeof *request);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, 0), sizeof hello);
	ck_assert_int_eq(recv(fd, &challenge, sizeof challenge, MSG_WAITALL), sizeof challenge);
	ck_assert_int_eq(send(fd, request, sizeof *request, 0), sizeof *request);
	ssize_t n = recv(fd, &refusal, sizeof refusal, MSG_WAITALL);
	close(fd);
	return n == sizeof refusal && refusal.header.kind == DOOR_REFUSAL ? refusal.reason : 0;
}

static int connect_tcp(rc_server_t place)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

/* A client whose build cannot encrypt, at a server that demands it. */
START_TEST(a_client_that_cannot_encrypt_is_refused_by_a_server_that_demands_it)
{
	struct test_server server;
	struct door_hello hello = good_hello();
	struct door_refusal refusal;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ .encrypt = true });
	int fd = connect_tcp(server.place);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, 0), sizeof hello);
	ck_assert_int_eq(recv(fd, &refusal, sizeof refusal, MSG_WAITALL), sizeof refusal);
	ck_assert_uint_eq(refusal.header.kind, DOOR_REFUSAL);
	ck_assert_uint_eq(refusal.reason, RC_DOOR_ENCRYPTION);
	close(fd);
	server_stop(&server);
}
END_TEST

/* Carries one handshake between a client and a server, and takes the demand for encryption out of the hello, the
 * decision out of the challenge, or changes the public key. */
enum tampering { DROP_DEMAND = 1, DROP_DECISION, CHANGE_PUBLIC_KEY };
struct middle {
	int listener;
	rc_server_t server;
	enum tampering tampering;
};

static void *carry(void *argument)
{
	struct middle *middle = argument;
	struct door_hello hello;
	struct door_challenge challenge;
	char rest[sizeof(struct door_request) + sizeof(struct door_welcome)];
	int client = accept(middle->listener, NULL, NULL), server = connect_tcp(middle->server);
	(void)!recv(client, &hello, sizeof hello, MSG_WAITALL);
	if (middle->tampering == DROP_DEMAND)
		hello.flags &= ~(uint32_t)DOOR_ENCRYPT;
	if (middle->tampering == CHANGE_PUBLIC_KEY)
		hello.public_key[3] ^= 1;
	(void)!send(server, &hello, sizeof hello, MSG_NOSIGNAL);
	(void)!recv(server, &challenge, sizeof challenge, MSG_WAITALL);
	if (middle->tampering == DROP_DECISION)
		challenge.flags &= ~(uint32_t)DOOR_ENCRYPT;
	(void)!send(client, &challenge, sizeof challenge, MSG_NOSIGNAL);
	ssize_t n = recv(client, rest, sizeof(struct door_request), MSG_WAITALL);
	if (n > 0) {
		(void)!send(server, rest, (size_t)n, MSG_NOSIGNAL);
		n = recv(server, rest, sizeof rest, 0);
		if (n > 0)
			(void)!send(client, rest, (size_t)n, MSG_NOSIGNAL);
	}
	close(client);
	close(server);
	return NULL;
}

static int connect_through(struct test_server *server, enum tampering tampering, bool demand)
{
	rc_server_t place = tcp_place();
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	struct middle middle = { socket(AF_INET, SOCK_STREAM, 0), server->place, tampering };
	rc_door_welcome_t welcome;
	pthread_t thread;
	ck_assert_int_eq(bind(middle.listener, (struct sockaddr *)&address, sizeof address), 0);
	ck_assert_int_eq(listen(middle.listener, 1), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, carry, &middle), 0);
	int error = connect_encrypted(place, key_path, demand, &welcome);
	pthread_join(thread, NULL);
	close(middle.listener);
	return error;
}

START_TEST(a_man_in_the_middle_cannot_turn_encryption_off)
{
	struct test_server server;
	rc_door_policy_t policy = key_policy(key_path);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(connect_through(&server, 0, true), 0); /* one that changes nothing is a forwarder */
	ck_assert_int_eq(connect_through(&server, DROP_DEMAND, true), -EOPNOTSUPP);
	ck_assert_int_eq(connect_through(&server, DROP_DECISION, true), -EOPNOTSUPP);
	ck_assert_int_eq(connect_through(&server, CHANGE_PUBLIC_KEY, true), -EACCES);
	server_stop(&server);
	/* Where the server alone demands it, the proofs cover what it decided. */
	policy.encrypt = true;
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(connect_through(&server, DROP_DECISION, false), -EACCES);
	server_stop(&server);
}
END_TEST

START_TEST(wrong_requests_are_refused_with_the_reason)
{
	struct test_server server;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ 0 }), RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = 5 }), RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_NEW }),
			  RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_NEW,
										   .card_len = HR_CARD_MAX + 1 }),
			  RC_DOOR_MALFORMED);
	ck_assert_uint_eq(refusal_of_request(server.place, &(struct door_request){ .purpose = RC_DOOR_STATUS,
										   .card_len = 8 }),
			  RC_DOOR_MALFORMED);
	ck_assert_int_eq(server.last.fd, 0);
	server_stop(&server);
}
END_TEST

START_TEST(random_bytes_never_get_in_nor_harm)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	unsigned state = 1;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	for (int round = 0; round < 500; round++) {
		uint8_t bytes[700];
		size_t size = (size_t)rand_r(&state) % sizeof bytes;
		for (size_t i = 0; i < size; i++)
			bytes[i] = (uint8_t)rand_r(&state);
		/* Half of them begin as a hello does. */
		if (round % 2 && size >= sizeof(struct door_header))
			door_header_set((struct door_header *)(void *)bytes, DOOR_HELLO, sizeof(struct door_hello));
		int fd = connect_raw(server.place);
		(void)!send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
	ck_assert_int_eq(server.last.fd, 0);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* The next descriptor that the kernel will give out, once the server has taken those who wait. */
static int free_descriptor(void)
{
	int fd = -1;
	for (int i = 0; i < 20; i++) {
		fd = open("/dev/null", O_RDONLY);
		close(fd);
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return fd;
}

START_TEST(visitors_who_stall_hold_up_nobody)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	struct door_hello hello = good_hello();
	int idle[20];
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	for (int i = 0; i < 20; i++) {
		idle[i] = connect_raw(server.place);
		/* Nothing, half a hello, or a whole one and then nothing. */
		size_t size = i % 3 * sizeof hello / 2;
		ck_assert_int_eq(send(idle[i], &hello, size, 0), (ssize_t)size);
	}
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	for (int i = 0; i < 20; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

START_TEST(places_at_the_door_are_limited_and_come_free)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	int idle[2];
	char byte;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ .max_handshakes = 4, .timeout_ms = 300 });
	for (int i = 0; i < 2; i++)
		idle[i] = connect_raw(server.place);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), -EBUSY);
	for (int i = 0; i < 2; i++) {
		ck_assert_int_eq(recv(idle[i], &byte, 1, 0), 0);
		close(idle[i]);
	}
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	server_stop(&server);
}
END_TEST

/* A connection from that address of loopback that says nothing. */
static int stall_from(const char *from, rc_server_t place)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				       .sin_port = htons(place.port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	ck_assert_int_eq(inet_pton(AF_INET, from, &own.sin_addr), 1);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
	ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
	return fd;
}

START_TEST(a_flood_from_two_addresses_leaves_local_users_able_to_enter)
{
	rc_server_t places[2] = { tcp_place(), unix_place("a") };
	struct test_server server;
	rc_door_welcome_t welcome;
	int idle[24];
	server_start_at(&server, places, 2, &(rc_door_policy_t){ .max_handshakes = 8, .timeout_ms = 60000 });
	for (int i = 0; i < 24; i++)
		idle[i] = stall_from(i % 2 ? "127.0.0.1" : "127.0.0.2", places[0]);
	/* The last of each address are refused, so all places that the flood can have are taken. */
	for (int i = 22; i < 24; i++) {
		char bytes[sizeof(struct door_refusal)];
		ck_assert_int_eq(recv(idle[i], bytes, sizeof bytes, MSG_WAITALL), sizeof bytes);
	}
	ck_assert_int_eq(visit(places[1], RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert_int_eq(visit(places[1], RC_DOOR_STATUS, NULL, &welcome), 0);
	for (int i = 0; i < 24; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

START_TEST(a_server_out_of_descriptors_says_so)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	struct rlimit limit, tight;
	int idle[3];
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	for (int i = 0; i < 3; i++)
		idle[i] = connect_raw(server.place);
	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
	/* Room for this side's socket, and for none at the server's. */
	tight = limit;
	tight.rlim_cur = (rlim_t)free_descriptor() + 1;
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &tight), 0);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), -EBUSY);
	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_eq(visit(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	for (int i = 0; i < 3; i++)
		close(idle[i]);
	server_stop(&server);
}
END_TEST

/* ---- listening ---- */

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
	ck_assert_int_eq(visit(place, RC_DOOR_NEW, NULL, &welcome), 0);
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
	if (!rc_door_keys_supported())
		return;
	rc_door_policy_t policy = key_policy(key_path);
	ck_assert_int_eq(rc_door_open(&policy, &door), 0);
	strcpy(place.host, "0.0.0.0");
	ck_assert_int_eq(rc_door_listen(door, &place), 0);
	rc_door_close(door);
}
END_TEST

/* ---- key files ---- */

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

static void add_other_users(TCase *tests)
{
	tcase_add_test(tests, a_root_server_takes_every_user);
	tcase_add_test(tests, a_private_root_server_takes_root_only);
	tcase_add_test(tests, strangers_do_not_trust_each_other);
	tcase_add_test(tests, users_who_flood_crowd_out_themselves);
}

static void add_tests(TCase *tests)
{
	if (OTHER_USERS) {
		add_other_users(tests);
		return;
	}
	tcase_add_test(tests, cards_are_exchanged_over_a_unix_socket);
	tcase_add_test(tests, an_abstract_socket_leaves_no_file);
	tcase_add_test(tests, every_new_session_gets_another_token);
	tcase_add_test(tests, join_and_status_carry_what_they_should);
	tcase_add_test(tests, a_report_carries_the_sessions);
	tcase_add_test(tests, loopback_knows_the_user_without_a_key);
	tcase_add_test(tests, a_connection_that_nobody_has_accepted_has_no_user);
	tcase_add_test(tests, a_refusal_reaches_the_client_as_its_error);
	tcase_add_test(tests, nobody_there_is_told_at_once);
	tcase_add_test(tests, a_silent_server_is_given_up_in_time);
	tcase_add_test(tests, a_server_of_another_version_is_named);
	tcase_add_test(tests, a_server_that_is_none_is_seen_through);
	tcase_add_test(tests, wrong_hellos_are_refused_with_the_reason);
	tcase_add_test(tests, another_build_is_refused_and_told_what_differs);
	tcase_add_test(tests, wrong_requests_are_refused_with_the_reason);
	tcase_add_test(tests, random_bytes_never_get_in_nor_harm);
	tcase_add_test(tests, visitors_who_stall_hold_up_nobody);
	tcase_add_test(tests, places_at_the_door_are_limited_and_come_free);
	tcase_add_test(tests, a_flood_from_two_addresses_leaves_local_users_able_to_enter);
	tcase_add_test(tests, a_server_out_of_descriptors_says_so);
	tcase_add_test(tests, a_dead_daemons_socket_is_replaced_a_living_ones_is_not);
	tcase_add_test(tests, a_file_that_is_no_socket_is_left_alone);
	tcase_add_test(tests, the_network_needs_a_key);
	if (rc_door_keys_supported()) {
		tcase_add_test(tests, the_right_key_opens);
		tcase_add_test(tests, a_report_is_proved_with_the_key);
		tcase_add_test(tests, a_wrong_key_or_none_does_not);
		tcase_add_test(tests, a_configured_key_is_demanded_of_every_tcp_server);
		tcase_add_test(tests, a_configured_key_is_not_demanded_over_a_unix_socket);
		tcase_add_test(tests, either_side_can_demand_encryption);
		tcase_add_test(tests, loopback_without_a_key_is_encrypted_too);
		tcase_add_test(tests, a_unix_socket_is_not_encrypted);
		tcase_add_test(tests, a_key_can_be_demanded_over_a_unix_socket);
		tcase_add_test(tests, a_client_that_cannot_encrypt_is_refused_by_a_server_that_demands_it);
		tcase_add_test(tests, a_man_in_the_middle_cannot_turn_encryption_off);
		tcase_add_test(tests, a_peer_says_what_to_count_it_against);
		tcase_add_test(tests, a_server_without_the_key_is_not_trusted);
		tcase_add_test(tests, a_key_file_must_be_private_and_whole);
	}
}

int main(void)
{
	if (OTHER_USERS && getuid()) {
		puts("SKIP: the cases of other users need root");
		return 77;
	}
	Suite *suite = suite_create("door");
	TCase *tests = tcase_create("door");
	tcase_set_timeout(tests, 300);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	add_tests(tests);
	suite_add_tcase(suite, tests);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
