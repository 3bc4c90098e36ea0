/* SPDX-License-Identifier: BSD-3-Clause */
/* A bare TCP stream over loopback to a child process, in pieces as long as the chunks of remote copies. */
#include "config.h"
#include "raw_stream.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE ((size_t)256 << 10)

static int stream = -1;
static size_t length;

static void must(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "headrace-perf: a TCP stream over loopback: %s: %s\n", what, strerror(errno));
	exit(EXIT_FAILURE);
}

/* Moves bytes from or to the socket fd. False: the other process has closed it. */
static int move(int fd, char *memory, size_t bytes, int out)
{
	for (size_t at = 0; at < bytes;) {
		size_t piece = bytes - at < PIECE ? bytes - at : PIECE;
		ssize_t n = out ? send(fd, memory + at, piece, MSG_NOSIGNAL) : recv(fd, memory + at, piece, 0);
		if (n <= 0)
			return 0;
		at += (size_t)n;
	}
	return 1;
}

/* The child process: for each request of the parent, receives all bytes and answers with one byte, or sends all bytes. */
static void serve(int fd)
{
	char *memory = malloc(length), asked;
	must(memory != NULL, "memory");
	memset(memory, 1, length);
	while (move(fd, &asked, 1, 0))
		if (!move(fd, memory, length, asked == 'r') || (asked == 's' && !move(fd, &asked, 1, 1)))
			break;
	_exit(0);
}

static int accept_one(int listener, struct sockaddr_in *at)
{
	int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	must(fd >= 0 && connect(fd, (struct sockaddr *)at, sizeof *at) == 0, "connect");
	stream = fd;
	fd = accept(listener, NULL, NULL);
	must(fd >= 0, "accept");
	setsockopt(stream, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	close(listener);
	return fd;
}

void raw_stream_open(size_t bytes)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	length = bytes;
	must(listener >= 0 && bind(listener, (struct sockaddr *)&at, sizeof at) == 0 && listen(listener, 1) == 0 &&
	     getsockname(listener, (struct sockaddr *)&at, &len) == 0, "listen");
	int other = accept_one(listener, &at);
	pid_t child = fork();
	must(child >= 0, "fork");
	if (child == 0) {
		close(stream);
		serve(other);
	}
	close(other);
}

void raw_stream_send(const char *memory)
{
	char answer = 's';
	must(move(stream, &answer, 1, 1) && move(stream, (char *)(size_t)memory, length, 1) && move(stream, &answer, 1, 0), "send");
}

void raw_stream_receive(char *memory)
{
	char ask = 'r';
	must(move(stream, &ask, 1, 1) && move(stream, memory, length, 0), "receive");
}
