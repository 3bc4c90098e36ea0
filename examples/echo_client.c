/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * echo_client CARD-FILE CLIENTS [MESSAGES]: CLIENTS clients of echo_server in one process, each with a channel of its
 * own. Each sends MESSAGES messages of various lengths, one after the other, and checks what comes back.
 *	cc echo_client.c $(pkg-config --cflags --libs headrace-channel) -o echo_client
 */
#include <headrace/channel.h>

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MESSAGE_MAX 30000

struct client {
	hr_channel_t *channel;
	hr_conn_t *conn;
	unsigned number, message; /* of this client; of the message under way */
	size_t len, sent, received;
	unsigned char out[MESSAGE_MAX], in[MESSAGE_MAX];
};

static unsigned messages = 50;

static void fail(const char *what, int error)
{
	fprintf(stderr, "echo_client: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

/* Reads the server's card; waits until the server has written the file. */
static hr_card_t fetch_card(const char *name)
{
	hr_card_t card;
	FILE *file = NULL;
	for (int tries = 0; !(file = fopen(name, "rb")); tries++) {
		if (errno != ENOENT || tries == 1000)
			fail(name, errno);
		usleep(10000);
	}
	if (fread(&card, sizeof card, 1, file) != 1)
		fail(name, EIO);
	fclose(file);
	return card;
}

static void begin_message(struct client *client)
{
	client->len = 1 + (client->number * 7919u + client->message * 104729u) % MESSAGE_MAX;
	client->sent = client->received = 0;
	for (size_t i = 0; i < client->len; i++)
		client->out[i] = (unsigned char)(client->number + client->message * 31 + i * 7);
}

static void open_client(struct client *client, unsigned number, const hr_card_t *server)
{
	/* No peer connects to a client, so the channel need not listen. */
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	attr.ring_bytes = 65536;
	hr_card_t card;
	int error = hr_channel_init(&attr, &client->channel, &card);
	if (error)
		fail("hr_channel_init", error);
	error = hr_channel_connect(client->channel, server, NULL, &client->conn);
	if (error)
		fail("hr_channel_connect", error);
	client->number = number;
	begin_message(client);
}

/* Puts and gets as much as is possible now. True if any byte moved. */
static bool move(struct client *client)
{
	struct iovec rest = { client->out + client->sent, client->len - client->sent };
	struct iovec room = { client->in + client->received, client->len - client->received };
	size_t accepted = 0, delivered = 0;
	int error = rest.iov_len ? hr_channel_put(client->conn, &rest, 1, &accepted) : 0;
	if (!error && room.iov_len)
		error = hr_channel_get(client->conn, &room, 1, &delivered);
	if (error)
		fail("put or get", error);
	client->sent += accepted;
	client->received += delivered;
	/* The whole echo can arrive before put has accepted everything; keep putting until it has. */
	if (client->sent == client->len && client->received == client->len) {
		if (memcmp(client->in, client->out, client->len))
			fail("what came back is not what was sent", EBADMSG);
		client->message++;
		if (client->message < messages)
			begin_message(client);
		return true;
	}
	return accepted || delivered;
}

/* Runs one client until it must wait. True when it has finished. */
static bool run(struct client *client)
{
	for (;;) {
		while (client->message < messages && move(client))
			continue;
		if (client->message == messages) {
			hr_channel_finalize(client->channel);
			return true;
		}
		int something = hr_channel_arm(client->channel, client->sent < client->len);
		if (something < 0)
			fail("hr_channel_arm", something);
		if (!something)
			return false; /* armed: call nothing of this channel until its descriptor is readable */
	}
}

int main(int argc, char **argv)
{
	int n = argc >= 3 ? atoi(argv[2]) : 0;
	if (argc >= 4)
		messages = (unsigned)atoi(argv[3]);
	if (n <= 0 || messages == 0) {
		fprintf(stderr, "usage: echo_client CARD-FILE CLIENTS [MESSAGES]\n");
		return EXIT_FAILURE;
	}
	hr_card_t server = fetch_card(argv[1]);
	struct client *clients = calloc((size_t)n, sizeof *clients);
	int loop = epoll_create1(EPOLL_CLOEXEC), left = n;
	if (!clients || loop < 0)
		fail("start", errno);
	for (int i = 0; i < n; i++) {
		open_client(&clients[i], (unsigned)i, &server);
		struct epoll_event event = { .events = EPOLLIN, .data.ptr = &clients[i] };
		if (epoll_ctl(loop, EPOLL_CTL_ADD, hr_channel_fd(clients[i].channel), &event))
			fail("epoll_ctl", errno);
		left -= run(&clients[i]);
	}
	while (left > 0) {
		struct epoll_event events[64];
		int count = epoll_wait(loop, events, 64, -1);
		if (count < 0 && errno != EINTR)
			fail("epoll_wait", errno);
		for (int i = 0; i < count; i++)
			left -= run(events[i].data.ptr);
	}
	printf("echo_client: %d clients, %u messages each, all came back\n", n, messages);
	close(loop);
	free(clients);
	return EXIT_SUCCESS;
}
