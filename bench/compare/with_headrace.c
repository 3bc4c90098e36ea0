/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The contender "headrace": compare_headrace FOLDER NAME channel|ch3. It starts both ranks itself. The channel has no
 * messages, so a window is a sequence of puts (or gets). With ch3 each message is a packet.
 */
#include "config.h"

#include "cells.h"
#include "endpoint.h"
#include "headrace/channel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void headrace_prepare(void *context, void *bytes, size_t len)
{
	endpoint_post(context, bytes, len);
}

static void headrace_send(void *context, const void *bytes, size_t len)
{
	endpoint_send(context, bytes, len);
}

static void headrace_receive(void *context, void *bytes, size_t len)
{
	endpoint_receive(context, bytes, len);
}

static void headrace_send_window(void *context, const void *bytes, size_t len, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		endpoint_send(context, bytes, len);
}

static void headrace_receive_window(void *context, char *bytes, size_t len, size_t stride, unsigned count,
				    void (*arrived)(const void *bytes, size_t len))
{
	for (unsigned i = 0; i < count; i++) {
		endpoint_receive(context, bytes + i * stride, len);
		if (arrived)
			arrived(bytes + i * stride, len);
	}
}

int main(int argc, char **argv)
{
	int sockets[2];
	enum layer layer = LAYER_CHANNEL;
	if (argc != 4 || (strcmp(argv[3], "channel") && strcmp(argv[3], "ch3"))) {
		fprintf(stderr, "usage: %s FOLDER NAME channel|ch3 (started by compare.py)\n", argv[0]);
		return EXIT_FAILURE;
	}
	if (!strcmp(argv[3], "ch3"))
		layer = LAYER_CH3;
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the driver is killed, this process must not go on spinning */
	pid_t child = -1;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) || (child = fork()) < 0) {
		fprintf(stderr, "compare: %s\n", strerror(errno));
		return EXIT_FAILURE;
	}
	int rank = child == 0;
	if (rank)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(sockets[!rank]);
	cells_pin(rank);
	const struct variant variant = { .layer = layer, .transports = HR_TRANSPORT_SHM };
	endpoint_t *endpoint = endpoint_open(&variant, sockets[rank]);
	const struct contender contender = { endpoint, headrace_prepare, headrace_send, headrace_receive,
					     headrace_send_window, headrace_receive_window };
	cells_serve(&contender, rank, argv[1], argv[2]);
	endpoint_close(endpoint);
	close(sockets[rank]);
	if (!rank)
		waitpid(child, NULL, 0);
	return EXIT_SUCCESS;
}
