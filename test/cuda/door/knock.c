/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of headraced for the scripts of this folder: the door's handshake, then the echo worker's bytes.
 *
 *	knock SERVER status          prints "GPUS CLIENTS READY TEXT"
 *	knock SERVER new             enters, then each line of stdin is one command byte; prints what comes back;
 *	                             "t" prints the session's token in hexadecimal
 *	knock SERVER join            enters twice, the second time as a further connection; prints both answers to "p"
 *	knock SERVER garbage N       N connections with random bytes
 *	knock SERVER idle N          N connections that say nothing, held until stdin ends
 *	knock SERVER flood N         N connections one after the other
 *	knock ADDRESS answer VERSION listens there and answers one client as a server of that protocol version
 *
 * Exit status: 0, or the errno of the failure.
 */
#define _GNU_SOURCE
#include "cuda_remote/door/listen.h"
#include "cuda_remote/door/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static const hr_card_t card = { 5, "KNOCK" };

static int enter(const rc_server_t *server, enum rc_door_purpose purpose, const rc_door_welcome_t *session,
		 rc_door_welcome_t *welcome)
{
	rc_door_connect_t wanted = { .server = *server, .purpose = purpose, .card = &card };
	if (session)
		memcpy(wanted.token, session->token, sizeof wanted.token);
	return rc_door_connect(&wanted, welcome);
}

static int ask_status(const rc_server_t *server)
{
	rc_door_welcome_t welcome;
	int error = enter(server, RC_DOOR_STATUS, NULL, &welcome);
	if (!error)
		printf("%u %u %u %s\n", welcome.gpus, welcome.clients, welcome.workers, welcome.text);
	return error;
}

/* Sends one command; prints the answer up to a newline if there is to be one. */
static int command(int fd, char byte)
{
	char answer = 0;
	if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
		return -errno;
	do {
		ssize_t n = read(fd, &answer, 1);
		if (n != 1)
			return n < 0 ? -errno : -ECONNRESET;
		putchar(answer);
	} while (strchr("pgqswW", byte) && answer != '\n');
	fflush(stdout);
	return 0;
}

static void print_token(const uint8_t *token)
{
	for (int i = 0; i < RC_DOOR_TOKEN_BYTES; i++)
		printf("%02x", token[i]);
	putchar('\n');
	fflush(stdout);
}

static int new_session(const rc_server_t *server)
{
	rc_door_welcome_t welcome;
	char line[64];
	int error = enter(server, RC_DOOR_NEW, NULL, &welcome);
	while (!error && fgets(line, sizeof line, stdin)) {
		if (line[0] == 't')
			print_token(welcome.token);
		else
			error = command(welcome.fd, line[0]);
	}
	return error;
}

static int join_session(const rc_server_t *server)
{
	rc_door_welcome_t first, second;
	int error = enter(server, RC_DOOR_NEW, NULL, &first);
	if (!error)
		error = enter(server, RC_DOOR_JOIN, &first, &second);
	if (!error)
		error = command(first.fd, 'p');
	if (!error)
		error = command(second.fd, 'p');
	/* A guess of the token does not get in. */
	first.token[3] ^= 1;
	if (!error && enter(server, RC_DOOR_JOIN, &first, &second) != -ESRCH)
		error = -EPERM;
	return error;
}

static int open_raw(const rc_server_t *server)
{
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
	} address = { 0 };
	socklen_t length = sizeof address.in;
	if (*server->path) {
		address.un.sun_family = AF_UNIX;
		memcpy(address.un.sun_path, server->path, sizeof server->path);
		length = sizeof address.un;
	} else {
		address.in.sin_family = AF_INET;
		address.in.sin_port = htons(server->port);
		address.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	}
	int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !connect(fd, &address.any, length))
		return fd;
	perror("connect");
	exit(errno);
}

static int garbage(const rc_server_t *server, int n)
{
	unsigned state = 7;
	for (int i = 0; i < n; i++) {
		uint8_t bytes[1000];
		size_t size = (size_t)rand_r(&state) % sizeof bytes;
		int fd = open_raw(server);
		for (size_t at = 0; at < size; at++)
			bytes[at] = (uint8_t)rand_r(&state);
		(void)!send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
		close(fd);
	}
	return 0;
}

static int idle(const rc_server_t *server, int n)
{
	for (int i = 0; i < n; i++)
		open_raw(server);
	puts("idle");
	fflush(stdout);
	while (getchar() != EOF)
		;
	return 0;
}

static int flood(const rc_server_t *server, int n)
{
	rc_door_welcome_t welcome;
	int error = 0;
	for (int i = 0; i < n && !error; i++) {
		error = enter(server, RC_DOOR_NEW, NULL, &welcome);
		if (!error)
			error = command(welcome.fd, 'e');
		if (!error)
			close(welcome.fd);
	}
	putchar('\n');
	return error;
}

static int answer_as(const rc_server_t *place, int version)
{
	struct door_listener listener;
	size_t n;
	struct door_hello hello;
	struct door_refusal refusal = { .reason = RC_DOOR_BAD_VERSION, .text = "another version" };
	int error = door_listen(place, false, &listener, 1, &n);
	if (error)
		return error;
	puts("listening");
	fflush(stdout);
	struct pollfd wait = { .fd = listener.fd, .events = POLLIN };
	poll(&wait, 1, 20000);
	int fd = accept(listener.fd, NULL, NULL);
	if (fd < 0 || recv(fd, &hello, sizeof hello, MSG_WAITALL) != sizeof hello)
		error = -EPROTO;
	door_header_set(&refusal.header, DOOR_REFUSAL, sizeof refusal);
	refusal.header.version = (uint16_t)version;
	if (!error && send(fd, &refusal, sizeof refusal, MSG_NOSIGNAL) != sizeof refusal)
		error = -EPIPE;
	door_listener_close(&listener);
	return error;
}

static int run(const rc_server_t *server, const char *what, const char *argument)
{
	int n = argument ? atoi(argument) : 0;
	if (!strcmp(what, "status"))
		return ask_status(server);
	if (!strcmp(what, "new"))
		return new_session(server);
	if (!strcmp(what, "join"))
		return join_session(server);
	if (!strcmp(what, "garbage"))
		return garbage(server, n);
	if (!strcmp(what, "idle"))
		return idle(server, n);
	if (!strcmp(what, "flood"))
		return flood(server, n);
	if (!strcmp(what, "answer"))
		return answer_as(server, n);
	return -EINVAL;
}

int main(int argc, char **argv)
{
	rc_server_t server;
	size_t n;
	if (argc < 3 || rc_server_parse(argv[1], &server, 1, &n))
		return EINVAL;
	return -run(&server, argv[2], argv[3]);
}
