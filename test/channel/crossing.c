/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two peers connect to each other at the very same moment: each has seen nothing of the other when it opens its stream.
 * The linker routes socket() through here, so that both have got there before either goes on.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

static struct side *about_to_dial;

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
	static const struct test_case test = { "streams-that-cross", streams_that_cross, PAIR_OWN_SETUP };
	bool passed = pair_run(&test, HR_TRANSPORT_SHM, "shm", 1);
	passed &= pair_run(&test, HR_TRANSPORT_TCP, "tcp", 1);
	puts(passed ? "PASS: streams that cross" : "FAIL: streams that cross");
	return !passed;
}
