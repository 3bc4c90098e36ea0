/* SPDX-License-Identifier: BSD-3-Clause */
/* Encryption: who demands it, that each connection has its own keys, and that a man in the middle cannot turn it off. */
#define _GNU_SOURCE
#include "test/cuda/door/door_kit.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

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

void add_encryption(TCase *tests)
{
	if (!rc_door_keys_supported())
		return;
	tcase_add_test(tests, either_side_can_demand_encryption);
	tcase_add_test(tests, loopback_without_a_key_is_encrypted_too);
	tcase_add_test(tests, a_unix_socket_is_not_encrypted);
	tcase_add_test(tests, a_client_that_cannot_encrypt_is_refused_by_a_server_that_demands_it);
	tcase_add_test(tests, a_man_in_the_middle_cannot_turn_encryption_off);
}
