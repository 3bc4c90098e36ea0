/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file_copy SOURCE DESTINATION [CONNECTIONS]: two processes copy one file over several connections at once, each with a
 * thread and a channel of its own, directly from the one file's mapping into the other's. Each part's checksum follows it.
 *	cc -pthread file_copy.c $(pkg-config --cflags --libs headrace-channel) -o file_copy
 * The cards go over sockets that both processes have, and the connections are then set up over the same sockets.
 */
#include <headrace/channel.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64

struct part {
	int socket;
	char *bytes;
	size_t len;
	pthread_t thread;
};

static void fail(const char *what, int error)
{
	fprintf(stderr, "file_copy: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

/* Opens a connection over a socket that both sides have: exchanges the cards over it, then gives it to the channel. */
static hr_conn_t *connect_over(int socket, hr_channel_t **channel)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	hr_card_t mine = { 0 }, theirs;
	int error = hr_channel_init(&attr, channel, &mine);
	if (error)
		fail("hr_channel_init", error);
	if (send(socket, &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine ||
	    recv(socket, &theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs)
		fail("exchange of cards", errno ? errno : EPIPE);
	hr_connect_attr_t over = HR_CONNECT_ATTR_INIT;
	over.fd = socket;
	hr_conn_t *conn;
	error = hr_channel_connect(*channel, &theirs, &over, &conn);
	if (error)
		fail("hr_channel_connect", error);
	return conn;
}

static void put_all(hr_channel_t *channel, hr_conn_t *conn, void *bytes, size_t len)
{
	struct iovec rest = { bytes, len };
	while (rest.iov_len) {
		size_t accepted;
		int error = hr_channel_put(conn, &rest, 1, &accepted);
		if (error)
			fail("hr_channel_put", error);
		rest.iov_base = (char *)rest.iov_base + accepted;
		rest.iov_len -= accepted;
		if (!accepted && (error = hr_channel_wait(channel, 1, -1)) < 0)
			fail("hr_channel_wait", error);
	}
}

static void get_all(hr_channel_t *channel, hr_conn_t *conn, void *bytes, size_t len)
{
	struct iovec room = { bytes, len };
	while (room.iov_len) {
		size_t delivered;
		int error = hr_channel_get(conn, &room, 1, &delivered);
		if (error)
			fail("hr_channel_get", error);
		room.iov_base = (char *)room.iov_base + delivered;
		room.iov_len -= delivered;
		if (!delivered && (error = hr_channel_wait(channel, 0, -1)) < 0)
			fail("hr_channel_wait", error);
	}
}

/* A checksum that depends on the order of the words. */
static uint64_t checksum(const char *bytes, size_t len)
{
	uint64_t sum = len, word;
	for (; len >= sizeof word; bytes += sizeof word, len -= sizeof word) {
		memcpy(&word, bytes, sizeof word);
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	for (word = 0; len > 0; len--)
		word = word << 8 | (unsigned char)bytes[len - 1];
	return (sum ^ word) * 0x9e3779b97f4a7c15u;
}

static void *send_part(void *argument)
{
	struct part *part = argument;
	hr_channel_t *channel;
	hr_conn_t *conn = connect_over(part->socket, &channel);
	put_all(channel, conn, part->bytes, part->len);
	uint64_t sum = checksum(part->bytes, part->len);
	put_all(channel, conn, &sum, sizeof sum);
	hr_channel_finalize(channel);
	return NULL;
}

static void *receive_part(void *argument)
{
	struct part *part = argument;
	hr_channel_t *channel;
	uint64_t sum;
	hr_conn_t *conn = connect_over(part->socket, &channel);
	get_all(channel, conn, part->bytes, part->len);
	get_all(channel, conn, &sum, sizeof sum);
	if (sum != checksum(part->bytes, part->len))
		fail("checksum", EBADMSG);
	hr_channel_finalize(channel);
	return NULL;
}

/* Runs all parts, a thread each. Returns nanoseconds. */
static double run(struct part *parts, int n, char *bytes, size_t len, void *(*body)(void *))
{
	struct timespec begin, end;
	size_t each = (len / (size_t)n + 4095) & ~(size_t)4095;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (int i = 0; i < n; i++) {
		size_t from = each * (size_t)i < len ? each * (size_t)i : len;
		parts[i].bytes = bytes + from;
		parts[i].len = i == n - 1 || len - from < each ? len - from : each;
		int error = pthread_create(&parts[i].thread, NULL, body, &parts[i]);
		if (error)
			fail("pthread_create", error);
	}
	for (int i = 0; i < n; i++)
		pthread_join(parts[i].thread, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	return (double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec);
}

int main(int argc, char **argv)
{
	int n = argc == 4 ? atoi(argv[3]) : 2;
	if (argc < 3 || argc > 4 || n < 1 || n > CONNECTIONS_MAX) {
		fprintf(stderr, "usage: file_copy SOURCE DESTINATION [CONNECTIONS]   (at most %d)\n", CONNECTIONS_MAX);
		return EXIT_FAILURE;
	}
	struct stat status;
	int source = open(argv[1], O_RDONLY);
	if (source < 0 || fstat(source, &status) || status.st_size == 0)
		fail(argv[1], errno ? errno : ENODATA);
	size_t len = (size_t)status.st_size;
	struct part sending[CONNECTIONS_MAX], receiving[CONNECTIONS_MAX];
	for (int i = 0; i < n; i++) {
		int ends[2];
		if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
			fail("socketpair", errno);
		sending[i].socket = ends[0];
		receiving[i].socket = ends[1];
	}
	pid_t child = fork();
	if (child < 0)
		fail("fork", errno);
	for (int i = 0; i < n; i++)
		close(child ? sending[i].socket : receiving[i].socket);
	if (child == 0) {
		char *bytes = mmap(NULL, len, PROT_READ, MAP_SHARED, source, 0);
		if (bytes == MAP_FAILED)
			fail(argv[1], errno);
		run(sending, n, bytes, len, send_part);
		return EXIT_SUCCESS;
	}
	int destination = open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0666);
	if (destination < 0 || ftruncate(destination, status.st_size))
		fail(argv[2], errno);
	char *bytes = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, destination, 0);
	if (bytes == MAP_FAILED)
		fail(argv[2], errno);
	double ns = run(receiving, n, bytes, len, receive_part);
	int child_status;
	if (waitpid(child, &child_status, 0) < 0 || child_status || munmap(bytes, len) || close(destination))
		fail("the sending process or the file", EIO);
	printf("file_copy: %zu bytes over %d connections, checksums agree, %.2f GB/s\n", len, n, (double)len / ns);
	return EXIT_SUCCESS;
}
