/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One end of a TCP pipe between two hosts, for between_hosts.sh, which cuts the cable.
 *
 *	between_hosts DIR INDEX MODE
 *
 * The two ends (INDEX 0 and 1) exchange their cards through files in DIR, and tell in DIR/up.INDEX that they are ready
 * for the cut. Modes: exchange (nothing is cut), idle (both sleep), stream (0 puts all the time), full (1 never gets, 0
 * sleeps for room), unwanted (as full, but 0 does not want to know of room), late (as full, and 0 gets what 1 has put only
 * after its own put has failed). Exit status 0: it ended as the mode wants it.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *folder;

static void write_file(const char *name, int index, const void *bytes, size_t n)
{
	char path[300], temporary[310];
	snprintf(path, sizeof path, "%s/%s.%d", folder, name, index);
	snprintf(temporary, sizeof temporary, "%s.new", path);
	int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
	CHECK_IS(write(fd, bytes, n), n);
	close(fd);
	CHECK_IS(rename(temporary, path), 0);
}

static void read_card(int index, hr_card_t *card)
{
	char path[300];
	snprintf(path, sizeof path, "%s/card.%d", folder, index);
	int fd;
	while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		usleep(10000);
	CHECK_IS(read(fd, card, sizeof *card), sizeof *card);
	close(fd);
}

/* The streams to other hosts have the system's congestion control, and send at once. */
static void check_streams(void)
{
	char system[32] = "";
	FILE *file = fopen("/proc/sys/net/ipv4/tcp_congestion_control", "r");
	CHECK(file && fscanf(file, "%31s", system) == 1);
	fclose(file);
	for (int fd = 0; fd < 64; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof peer, name_len = 16, on_len = sizeof(int);
		char name[17] = "";
		int on = 0;
		if (getpeername(fd, (struct sockaddr *)&peer, &len) || peer.ss_family == AF_UNIX)
			continue;
		CHECK_IS(getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &name_len), 0);
		CHECK(!strcmp(name, system));
		CHECK_IS(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, &on_len), 0);
		CHECK(on);
	}
}

static void exchange(struct side *side)
{
	static uint8_t bytes[300000];
	pattern_fill((uint64_t)side->index, 0, bytes, sizeof bytes);
	if (side->index == 0)
		put_all(side, bytes, sizeof bytes);
	else
		get_all(side, bytes, sizeof bytes);
	pattern_check(0, 0, bytes, sizeof bytes);
	pattern_fill(1, 0, bytes, sizeof bytes);
	if (side->index == 1)
		put_all(side, bytes, sizeof bytes);
	else
		get_all(side, bytes, sizeof bytes);
	pattern_check(1, 0, bytes, sizeof bytes);
	check_streams();
}

/* Puts or gets as the mode says, asleep in between, until an error ends it. */
static int until_error(struct side *side, bool puts, bool gets, bool *full)
{
	static uint8_t bytes[65536];
	for (;;) {
		struct iovec iov = { bytes, sizeof bytes };
		size_t put = 0, got = 0;
		int error = puts ? hr_channel_put(side->conn, &iov, 1, &put) : 0;
		if (!error && gets)
			error = hr_channel_get(side->conn, &iov, 1, &got);
		if (error)
			return error;
		if (puts && put < sizeof bytes && full && !*full) {
			*full = true;
			write_file("up", side->index, "", 0);
		}
		if (put < sizeof bytes && !got)
			CHECK_IS(hr_channel_wait(side->channel, puts, -1), 1);
	}
}

static void put_until_full(struct side *side)
{
	static uint8_t bytes[65536];
	for (;;) {
		struct iovec iov = { bytes, sizeof bytes };
		size_t put;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &put), 0);
		if (!put)
			break;
		usleep(1000); /* the kernel still makes its buffers larger */
	}
	write_file("up", side->index, "", 0);
}

static int sleep_until_error(struct side *side)
{
	uint8_t byte;
	struct iovec iov = { &byte, 1 };
	for (;;) {
		size_t got;
		int error = hr_channel_get(side->conn, &iov, 1, &got);
		if (error)
			return error;
		CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
	}
}

#define LATE 60000 /* bytes: more than the transport's own buffer holds */

static int get_after_error(struct side *side)
{
	static uint8_t bytes[65536];
	uint64_t offset = 1;
	get_all(side, bytes, 1);
	put_until_full(side);
	CHECK_IS(until_error(side, true, false, NULL), -ETIMEDOUT);
	int error = get_until_error(side, 1, &offset);
	CHECK_IS(offset, LATE);
	return error;
}

static int run(struct side *side, const char *mode)
{
	bool full = false, never_gets = !strcmp(mode, "full") || !strcmp(mode, "unwanted") || !strcmp(mode, "late");
	if (!strcmp(mode, "exchange")) {
		exchange(side);
		return 0;
	}
	if (!strcmp(mode, "late") && side->index == 1) {
		static uint8_t bytes[LATE];
		pattern_fill(1, 0, bytes, sizeof bytes);
		put_all(side, bytes, sizeof bytes);
	}
	if (!never_gets || side->index == 1)
		write_file("up", side->index, "", 0);
	int error;
	if (never_gets && side->index == 1) {
		pause(); /* until the script ends it */
		return 1;
	}
	if (!strcmp(mode, "late")) {
		error = get_after_error(side);
	} else if (!strcmp(mode, "unwanted")) {
		put_until_full(side);
		error = sleep_until_error(side);
	} else {
		error = until_error(side, side->index == 0 && strcmp(mode, "idle"), strcmp(mode, "full"),
				    strcmp(mode, "full") ? NULL : &full);
	}
	if (error == -ETIMEDOUT)
		return 0;
	fprintf(stderr, "process %d: the error is %d\n", side->index, error);
	return 1;
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	folder = argv[1];
	struct side side = { .index = atoi(argv[2]), .transport = HR_TRANSPORT_TCP, .transport_name = "tcp" };
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = HR_TRANSPORT_TCP;
	alarm(100);
	CHECK_IS(hr_channel_init(&attr, &side.channel, &side.own), 0);
	write_file("card", side.index, &side.own, sizeof side.own);
	read_card(!side.index, &side.peer);
	CHECK_IS(hr_channel_connect(side.channel, &side.peer, NULL, &side.conn), 0);
	side_wait_up(&side, side.conn);
	int status = run(&side, argv[3]);
	hr_channel_finalize(side.channel);
	return status;
}
