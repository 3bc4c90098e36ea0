/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pipe SEND-FILE RECEIVED-FILE: two processes move a file through the bare channel.
 * Build it anywhere with nothing but the installed package:
 *	cc pipe.c $(pkg-config --cflags --libs headrace-channel) -o pipe
 *
 * The cards travel through a pair of ordinary pipes here; between two machines a shared file or a socket does as well.
 */
#include <headrace/channel.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PIECE (1 << 20)

static void fail(const char *what, int error)
{
	fprintf(stderr, "pipe: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

/* Opens a channel, exchanges cards over two descriptors and connects. */
static hr_conn_t *open_connection(int card_out, int card_in, hr_channel_t **channel)
{
	hr_card_t mine = { 0 }, theirs;
	hr_conn_t *conn;
	int error = hr_channel_init(NULL, channel, &mine);
	if (error)
		fail("hr_channel_init", error);
	if (write(card_out, &mine, sizeof mine) != sizeof mine || read(card_in, &theirs, sizeof theirs) != sizeof theirs)
		fail("exchange of cards", errno ? errno : EPIPE);
	error = hr_channel_connect(*channel, &theirs, NULL, &conn);
	if (error)
		fail("hr_channel_connect", error);
	return conn;
}

/* Puts all of the bytes, sleeping while the pipe is full. */
static void put_all(hr_channel_t *channel, hr_conn_t *conn, const void *bytes, size_t len)
{
	struct iovec rest = { (void *)bytes, len };
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

/* Gets at least one byte and at most len. Returns 0 when the peer has finalized. */
static size_t get_some(hr_channel_t *channel, hr_conn_t *conn, void *bytes, size_t len)
{
	struct iovec room = { bytes, len };
	for (;;) {
		size_t delivered;
		int error = hr_channel_get(conn, &room, 1, &delivered);
		if (error == -ESHUTDOWN)
			return 0;
		if (error)
			fail("hr_channel_get", error);
		if (delivered)
			return delivered;
		if ((error = hr_channel_wait(channel, 0, -1)) < 0)
			fail("hr_channel_wait", error);
	}
}

static void send_file(const char *name, int card_out, int card_in)
{
	int file = open(name, O_RDONLY);
	if (file < 0)
		fail(name, errno);
	hr_channel_t *channel;
	hr_conn_t *conn = open_connection(card_out, card_in, &channel);
	static char piece[PIECE];
	ssize_t len;
	while ((len = read(file, piece, sizeof piece)) > 0)
		put_all(channel, conn, piece, (size_t)len);
	if (len < 0)
		fail(name, errno);
	hr_channel_finalize(channel); /* delivers the bytes that are still on their way */
	close(file);
}

static void receive_file(const char *name, int card_out, int card_in)
{
	int file = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	if (file < 0)
		fail(name, errno);
	hr_channel_t *channel;
	hr_conn_t *conn = open_connection(card_out, card_in, &channel);
	static char piece[PIECE];
	uint64_t total = 0;
	size_t len;
	/* Each get continues where the previous one stopped, until the buffer is full. */
	for (size_t have = 0; (len = get_some(channel, conn, piece + have, sizeof piece - have)) > 0;
	     have = (have + len) % sizeof piece) {
		for (size_t done = 0; done < len;) {
			ssize_t written = write(file, piece + have + done, len - done);
			if (written < 0)
				fail(name, errno);
			done += (size_t)written;
		}
		total += len;
	}
	printf("pipe: %" PRIu64 " bytes over %s from %s\n", total, hr_conn_transport(conn), hr_conn_peer(conn));
	hr_channel_finalize(channel);
	if (close(file))
		fail(name, errno);
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: pipe SEND-FILE RECEIVED-FILE\n");
		return EXIT_FAILURE;
	}
	int to_child[2], to_parent[2];
	if (pipe(to_child) || pipe(to_parent))
		fail("pipe", errno);
	pid_t child = fork();
	if (child < 0)
		fail("fork", errno);
	if (child == 0) {
		close(to_parent[0]);
		close(to_child[1]);
		send_file(argv[1], to_parent[1], to_child[0]);
		return EXIT_SUCCESS;
	}
	close(to_parent[1]);
	close(to_child[0]);
	receive_file(argv[2], to_child[1], to_parent[0]);
	int status;
	if (waitpid(child, &status, 0) < 0 || !WIFEXITED(status) || WEXITSTATUS(status))
		return EXIT_FAILURE;
	return EXIT_SUCCESS;
}
