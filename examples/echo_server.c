/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * echo_server CARD-FILE CLIENTS: sends back every byte that its clients send, until CLIENTS of them have connected and
 * finalized. The server does not know its clients beforehand: it writes its card into a file, and the channel returns the
 * cards of the clients that connect. The program has an epoll loop of its own, with the channel's descriptor and a timer.
 *	cc echo_server.c $(pkg-config --cflags --libs headrace-channel) -o echo_server
 */
#include <headrace/channel.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define BUFFER 65536
#define TURNS 256 /* connections served before the next check for new clients and the timer */

/* One client. Bytes from begin to end were received and not sent back yet. The next get continues at end. */
struct client {
	size_t begin, end;
	char bytes[BUFFER];
};

static int served, come;
static uint64_t echoed;

static void fail(const char *what, int error)
{
	fprintf(stderr, "echo_server: %s: %s\n", what, strerror(error < 0 ? -error : error));
	exit(EXIT_FAILURE);
}

/* Writes the card into a file that is complete as soon as it has its name. */
static void leave_card(const char *name, const hr_card_t *card)
{
	char draft[4096];
	snprintf(draft, sizeof draft, "%s.draft", name);
	FILE *file = fopen(draft, "wb");
	if (!file || fwrite(card, sizeof *card, 1, file) != 1 || fclose(file) || rename(draft, name))
		fail(name, errno);
}

static void drop(hr_conn_t *conn)
{
	free(hr_conn_user(conn));
	hr_conn_close(conn);
	served++;
}

/* Accepts the peers that called hr_channel_connect with this process's card. */
static void let_in(hr_channel_t *channel)
{
	hr_card_t card;
	int more;
	while ((more = hr_channel_incoming(channel, &card)) == 1) {
		hr_conn_t *conn = NULL;
		struct client *client = calloc(1, sizeof *client);
		int error = client ? hr_channel_connect(channel, &card, NULL, &conn) : -ENOMEM;
		if (error)
			fail("hr_channel_connect", error);
		hr_conn_set_user(conn, client);
		come++;
	}
	if (more < 0)
		fail("hr_channel_incoming", more);
}

/* Sends back the received bytes of one client. */
static void serve(hr_conn_t *conn)
{
	struct client *client = hr_conn_user(conn);
	size_t moved;
	int error = 0;
	if (client->begin == BUFFER)
		client->begin = client->end = 0;
	if (client->begin == client->end) {
		struct iovec room = { client->bytes + client->end, BUFFER - client->end };
		error = hr_channel_get(conn, &room, 1, &moved);
		client->end += error ? 0 : moved;
	}
	if (!error && client->begin < client->end) {
		struct iovec rest = { client->bytes + client->begin, client->end - client->begin };
		error = hr_channel_put(conn, &rest, 1, &moved);
		client->begin += error ? 0 : moved;
		echoed += error ? 0 : moved;
	}
	if (error && error != -ESHUTDOWN)
		fprintf(stderr, "echo_server: %s: %s\n", hr_conn_peer(conn), strerror(-error));
	if (error)
		drop(conn);
}

static void watch(int loop, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };
	if (epoll_ctl(loop, EPOLL_CTL_ADD, fd, &event))
		fail("epoll_ctl", errno);
}

int main(int argc, char **argv)
{
	int clients = argc == 3 ? atoi(argv[2]) : 0;
	if (clients <= 0) {
		fprintf(stderr, "usage: echo_server CARD-FILE CLIENTS\n");
		return EXIT_FAILURE;
	}
	hr_channel_t *channel;
	hr_card_t card = { 0 };
	int error = hr_channel_init(NULL, &channel, &card);
	if (error)
		fail("hr_channel_init", error);
	leave_card(argv[1], &card);

	int loop = epoll_create1(EPOLL_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	struct itimerspec each_minute = { { 60, 0 }, { 60, 0 } };
	if (loop < 0 || timer < 0 || timerfd_settime(timer, 0, &each_minute, NULL))
		fail("epoll or timer", errno);
	watch(loop, hr_channel_fd(channel));
	watch(loop, timer);

	while (served < clients) {
		hr_conn_t *conn;
		let_in(channel);
		for (int turn = 0; turn < TURNS && (conn = hr_channel_ready(channel, 1)); turn++)
			serve(conn);
		/* If hr_channel_arm returned 0, call nothing of the channel before epoll_wait. */
		int something = hr_channel_arm(channel, 1);
		if (something < 0)
			fail("hr_channel_arm", something);
		struct epoll_event event;
		uint64_t minutes;
		if (epoll_wait(loop, &event, 1, something || served >= clients ? 0 : -1) == 1 && event.data.fd == timer &&
		    read(timer, &minutes, sizeof minutes) == sizeof minutes)
			printf("echo_server: %d clients, %" PRIu64 " bytes so far\n", come - served, echoed);
	}
	printf("echo_server: %d clients, %" PRIu64 " bytes\n", come, echoed);
	hr_channel_finalize(channel);
	unlink(argv[1]);
	close(timer);
	close(loop);
	return EXIT_SUCCESS;
}
