/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two peers connect to each other at the very same moment: each has seen nothing of the other when it opens its stream.
 * The linker routes socket() through here, so that both have got there before either goes on. And sendmsg(), which says
 * hello, so that a stream has been accepted before a hello comes on it.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static struct side *about_to_dial, *about_to_say_hello;

int __real_socket(int domain, int type, int protocol);
int __wrap_socket(int domain, int type, int protocol);

int __wrap_socket(int domain, int type, int protocol)
{
	struct side *side = about_to_dial;
	about_to_dial = NULL;
	if (side)
		side_meet(side);
	return __real_socket(domain, type, protocol);
}

ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags);

ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	struct side *side = about_to_say_hello;
	about_to_say_hello = NULL;
	if (side) {
		side_meet(side);
		side_meet(side); /* the other one accepts */
	}
	return __real_sendmsg(fd, message, flags);
}

/* The hello and the end of the stream are there at once: nobody comes. */
static void hello_and_goodbye(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	hr_card_t card;
	side_open(side, &attr);
	side_meet(side);
	if (side->index == 0) {
		about_to_say_hello = side;
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		while (about_to_say_hello) /* tcp: it is connected a little later */
			CHECK_IS(hr_conn_state(side->conn), 0);
		hr_conn_close(side->conn);
		side_meet(side);
		side_meet(side);
		return;
	}
	side_meet(side);
	CHECK_IS(hr_channel_incoming(side->channel, &card), 0); /* accepts, and reads that there is no hello */
	CHECK_IS(hr_channel_incoming(side->channel, &card), 0);
	side_meet(side);
	side_meet(side);
	CHECK_IS(hr_channel_incoming(side->channel, &card), 0);
	side_meet(side);
}

static void streams_that_cross(struct side *side)
{
	for (int i = 0; i < 30; i++) {
		hr_channel_attr_t attr = side_attr(side);
		side_open(side, &attr); /* other uids each time */
		side_meet(side);
		about_to_dial = side;
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		CHECK(!about_to_dial);
		uint64_t mine = (uint64_t)side->index + 5, theirs = 0;
		put_all(side, &mine, sizeof mine);
		get_all(side, &theirs, sizeof theirs);
		CHECK_IS(theirs, 5 + !side->index);
		hr_channel_finalize(side->channel);
	}
	side->channel = NULL;
}

int main(void)
{
	static const struct test_case tests[] = {
		{ "streams-that-cross", streams_that_cross, PAIR_OWN_SETUP },
		{ "hello-and-goodbye", hello_and_goodbye, PAIR_OWN_SETUP },
	};
	bool passed = true;
	for (int i = 0; i < 2; i++) {
		passed &= pair_run(&tests[i], HR_TRANSPORT_SHM, "shm", 1);
		passed &= pair_run(&tests[i], HR_TRANSPORT_TCP, "tcp", 1);
	}
	puts(passed ? "PASS: streams that cross" : "FAIL: streams that cross");
	return !passed;
}
