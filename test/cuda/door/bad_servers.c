/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client makes of a server that is absent, silent, of another version, or no server of ours. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

START_TEST(an_address_without_a_server_is_an_error_at_once)
{
	rc_door_welcome_t welcome;
	ck_assert_int_eq(client_connect(unix_place("none"), RC_DOOR_NEW, NULL, &welcome), -ENOENT);
	ck_assert_int_eq(client_connect(tcp_place(), RC_DOOR_NEW, NULL, &welcome), -ECONNREFUSED);
}
END_TEST

START_TEST(a_silent_server_is_given_up_after_the_timeout)
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
static int connect_by(const char *key_file, const void *answer, size_t size)
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
	int error = client_connect(place, RC_DOOR_NEW, key_file, &welcome);
	if (!error)
		close(welcome.fd);
	close(fd);
	waitpid(child, NULL, 0);
	unlink(place.path);
	return error;
}

static int connect_answered_with(const void *answer, size_t size)
{
	return connect_by(rc_door_keys_supported() ? key_path : NULL, answer, size);
}

/* The client has no key. */
static int connect_unproved(const void *answer, size_t size)
{
	return connect_by(NULL, answer, size);
}

START_TEST(a_server_of_another_version_is_named)
{
	struct door_refusal refusal = { .reason = RC_DOOR_BAD_VERSION, .text = "another one" };
	struct door_challenge challenge = { .method = DOOR_BY_USER };
	door_header_set(&refusal.header, DOOR_REFUSAL, sizeof refusal);
	refusal.header.version = RC_DOOR_VERSION + 1;
	ck_assert_int_eq(connect_answered_with(&refusal, sizeof refusal), -EPROTONOSUPPORT);
	door_header_set(&challenge.header, DOOR_CHALLENGE, sizeof challenge);
	challenge.header.version = RC_DOOR_VERSION + 1;
	ck_assert_int_eq(connect_answered_with(&challenge, sizeof challenge), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(answers_of_other_programs_are_errors)
{
	struct door_challenge challenge = { .method = 77 };
	ck_assert_int_eq(connect_answered_with("HTTP/1.1 400 Bad Request\r\n\r\n", 28), -EPROTO);
	ck_assert_int_eq(connect_answered_with("", 0), -ECONNRESET);
	ck_assert_int_eq(connect_answered_with(&challenge, 20), -EPROTO);
	door_header_set(&challenge.header, DOOR_CHALLENGE, sizeof challenge);
	ck_assert_int_eq(connect_answered_with(&challenge, sizeof challenge), -EPROTO);
	ck_assert_int_eq(connect_answered_with(&challenge, 20), -ECONNRESET);
	challenge.header.length = 1u << 30;
	ck_assert_int_eq(connect_answered_with(&challenge, sizeof challenge), -EPROTO);
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
	ck_assert_int_eq(connect_answered_with(&answer, sizeof answer), -EKEYREJECTED);
}
END_TEST

START_TEST(a_wrong_list_of_calls_is_an_error)
{
	static struct {
		struct door_challenge challenge;
		struct door_welcome welcome;
		struct door_calls calls;
	} answer;
	answer.challenge.method = DOOR_BY_USER; /* a build of zeros is another one, so the client asks for the list */
	answer.welcome.card_len = 4;
	door_header_set(&answer.challenge.header, DOOR_CHALLENGE, sizeof answer.challenge);
	door_header_set(&answer.welcome.header, DOOR_WELCOME, sizeof answer.welcome);
	door_calls_fill(&answer.calls);
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer), 0);
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer - 1), -ECONNRESET);
	answer.calls.count = RC_DOOR_CALLS_MAX + 1;
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer), -EPROTO);
	answer.calls.count = UINT32_MAX;
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer), -EPROTO);
	answer.calls.count = 0;
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer), -EPROTONOSUPPORT);
	door_calls_fill(&answer.calls);
	answer.calls.header.length--;
	ck_assert_int_eq(connect_unproved(&answer, sizeof answer), -EPROTO);
}
END_TEST

void add_bad_servers(TCase *tests)
{
	tcase_add_test(tests, an_address_without_a_server_is_an_error_at_once);
	tcase_add_test(tests, a_silent_server_is_given_up_after_the_timeout);
	tcase_add_test(tests, a_server_of_another_version_is_named);
	tcase_add_test(tests, answers_of_other_programs_are_errors);
	if (!rc_door_keys_supported())
		return;
	tcase_add_test(tests, a_server_without_the_key_is_not_trusted);
	tcase_add_test(tests, a_wrong_list_of_calls_is_an_error);
}
