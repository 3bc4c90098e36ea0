/* SPDX-License-Identifier: BSD-3-Clause */
/* What client and server learn of each other when a client enters. */
#define _GNU_SOURCE
#include "cuda_remote/door/identity.h"
#include "test/cuda/door/door_kit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

START_TEST(cards_are_exchanged_over_a_unix_socket)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
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
	ck_assert_int_eq(client_connect(place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert(welcome.local);
	server_stop(&server);
	ck_assert_int_eq(client_connect(place, RC_DOOR_NEW, NULL, &welcome), -ECONNREFUSED);
}
END_TEST

START_TEST(every_new_session_gets_another_token)
{
	struct test_server server;
	rc_door_welcome_t first, second;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &first), 0);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &second), 0);
	ck_assert_mem_ne(first.token, second.token, sizeof first.token);
	server_stop(&server);
}
END_TEST

START_TEST(join_and_status_carry_what_they_should)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, unix_place("a"), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_JOIN, NULL, &welcome), 0);
	ck_assert_int_eq(server.last.purpose, RC_DOOR_JOIN);
	ck_assert_mem_eq(server.last.token, "0123456789abcdef", 16);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_STATUS, NULL, &welcome), 0);
	ck_assert_int_eq(server.last.purpose, RC_DOOR_STATUS);
	ck_assert_uint_eq(server.last.card.len, 0);
	ck_assert_uint_eq(welcome.card.len, 0);
	server_stop(&server);
}
END_TEST

START_TEST(loopback_knows_the_user_without_a_key)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	server_start(&server, tcp_place(), &(rc_door_policy_t){ 0 });
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	ck_assert(!welcome.local);
	ck_assert_uint_eq(server.last.uid, getuid());
	ck_assert(!server.last.by_key && !server.last.local);
	server_stop(&server);
}
END_TEST

/* As many sessions as a report can have, so that its size is tested with it. */
static void fill_report(void)
{
	server_report.count = RC_DOOR_SESSIONS_MAX;
	server_report.hidden = 3;
	for (uint32_t i = 0; i < RC_DOOR_SESSIONS_MAX; i++) {
		rc_door_session_t *session = &server_report.session[i];
		*session = (rc_door_session_t){ .number = i, .age_us = 5000000, .calls = 1000 + i, .memory = 1 << 20,
						.cpu_us = 90 + i, .uid = 7, .gpu = RC_SERVER_ALL_GPUS };
		memset(session->program, '\033', sizeof session->program);
		snprintf(session->client, sizeof session->client, "unix:pid %u", i);
	}
}

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
		ck_assert_uint_eq(session->cpu_us, 90 + i);
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
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
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

START_TEST(a_peer_says_what_to_count_it_against)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_door_peer_t first;
	rc_door_policy_t policy = key_policy(key_path), other = key_policy(other_key_path);
	const uint8_t no_key[RC_DOOR_KEY_ID_BYTES] = { 0 };
	server_start(&server, unix_place("a"), &policy);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, NULL, &welcome), 0);
	first = server.last;
	ck_assert_mem_eq(first.key_id, no_key, sizeof no_key);
	server_stop(&server);
	server_start(&server, tcp_place(), &policy);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, key_path, &welcome), 0);
	ck_assert_mem_eq(server.last.source, first.source, sizeof first.source); /* the same user of this host */
	first = server.last;
	ck_assert_mem_ne(first.key_id, no_key, sizeof no_key);
	server_stop(&server);
	server_start(&server, tcp_place(), &other);
	ck_assert_int_eq(client_connect(server.place, RC_DOOR_NEW, other_key_path, &welcome), 0);
	ck_assert_mem_ne(server.last.key_id, first.key_id, sizeof first.key_id);
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

/* On a socket for IPv4 and IPv6, the addresses of IPv4 clients have the form of IPv6. */
START_TEST(ipv4_is_recognised_on_a_socket_for_both_families)
{
	rc_server_t place = tcp_place();
	struct sockaddr_in6 both = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT, .sin6_port = htons(place.port) };
	struct door_identity client;
	int no = 0, listener = socket(AF_INET6, SOCK_STREAM, 0);
	if (listener < 0)
		return; /* this kernel has no IPv6 */
	ck_assert_int_eq(setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no), 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&both, sizeof both), 0);
	ck_assert_int_eq(listen(listener, 4), 0);
	int fd = connect_tcp(place), accepted = accept(listener, NULL, NULL);
	ck_assert_int_ge(accepted, 0);
	ck_assert_int_eq(door_identify(accepted, &client), 0);
	ck_assert_int_eq(strncmp(client.name, "127.0.0.1:", 10), 0);
	ck_assert(client.loopback);
	ck_assert_uint_eq(client.uid, getuid());
	close(fd);
	close(accepted);
	close(listener);
}
END_TEST

/* The server's part of a handshake up to its challenge. */
static int challenged_client(rc_door_t *door, rc_server_t place)
{
	struct door_hello hello = good_hello();
	struct door_challenge challenge;
	rc_door_peer_t peer;
	int fd = connect_raw(place);
	ck_assert_int_eq(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), (ssize_t)sizeof hello);
	while (recv(fd, &challenge, sizeof challenge, MSG_DONTWAIT) < 0)
		ck_assert_int_eq(rc_door_next(door, &peer), 0);
	ck_assert_uint_eq(challenge.header.kind, DOOR_CHALLENGE);
	return fd;
}

START_TEST(a_handshake_does_not_outlive_its_policy)
{
	rc_door_policy_t policy = key_policy(key_path), none = { 0 };
	rc_server_t place = unix_place("a");
	rc_door_t *door;
	char byte;
	ck_assert_int_eq(rc_door_open(&none, &door), 0);
	ck_assert_int_eq(rc_door_listen(door, &place), 0);
	int fd = challenged_client(door, place);
	ck_assert_int_eq(rc_door_set_policy(door, &none), 0);
	ck_assert_int_lt(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* the same policy: it goes on */
	ck_assert_int_eq(rc_door_set_policy(door, &policy), 0);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* closed */
	close(fd);
	fd = challenged_client(door, place);
	policy = key_policy(other_key_path);
	ck_assert_int_eq(rc_door_set_policy(door, &policy), 0);
	ck_assert_int_eq(recv(fd, &byte, 1, MSG_DONTWAIT), 0); /* closed */
	close(fd);
	rc_door_close(door);
}
END_TEST

START_TEST(a_refusal_reaches_the_client_as_its_error)
{
	struct test_server server;
	rc_door_welcome_t welcome;
	rc_server_t place = unix_place("a");
	server_start(&server, place, &(rc_door_policy_t){ 0 });
	place.gpu = 5;
	ck_assert_int_eq(client_connect(place, RC_DOOR_NEW, NULL, &welcome), -ENODEV);
	server_stop(&server);
}
END_TEST

void add_entering(TCase *tests)
{
	tcase_add_test(tests, cards_are_exchanged_over_a_unix_socket);
	tcase_add_test(tests, an_abstract_socket_leaves_no_file);
	tcase_add_test(tests, every_new_session_gets_another_token);
	tcase_add_test(tests, join_and_status_carry_what_they_should);
	tcase_add_test(tests, loopback_knows_the_user_without_a_key);
	tcase_add_test(tests, a_report_carries_the_sessions);
	tcase_add_test(tests, a_connection_that_nobody_has_accepted_has_no_user);
	tcase_add_test(tests, ipv4_is_recognised_on_a_socket_for_both_families);
	tcase_add_test(tests, a_refusal_reaches_the_client_as_its_error);
	if (!rc_door_keys_supported())
		return;
	tcase_add_test(tests, a_report_is_proved_with_the_key);
	tcase_add_test(tests, a_peer_says_what_to_count_it_against);
	tcase_add_test(tests, a_handshake_does_not_outlive_its_policy);
}
