/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The input is what a process manager sends: the client of PMI-1 or PMI-2 starts, publishes a card, fetches cards of other
 * ranks, meets and ends. The first byte chooses the version, and in how many parts the messages arrive is up to the socket.
 * Whatever is sent, each call ends with a result; a card that the client accepts has a valid length.
 */
#include "adi/core/launch.h"
#include "test/fuzz/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX 65536

/* The process manager's end: everything that it will say, then the end of the stream. What the client sends is not read: the
 * socket buffers it, and the client sends a few KiB at most for each answer. */
static bool answers(const struct fuzz_input *input, int end[2])
{
	int room = 1 << 20;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end))
		return false;
	setsockopt(end[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	setsockopt(end[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
	bool sent = send(end[0], input->at, input->left, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)input->left;
	shutdown(end[0], SHUT_WR);
	return sent;
}

static void check_card(const hr_card_t *card)
{
	if (card->len == 0 || card->len > sizeof card->data)
		abort();
}

static void use(const struct launch_manager *manager)
{
	int rank = -1, size = -1, local_size = -1, error = manager->init(&rank, &size, &local_size);
	hr_card_t card = { .len = 8, .data = "card" };
	if (!error && (rank < 0 || rank >= size || local_size < 1 || local_size > size))
		abort();
	if (!error)
		error = manager->publish(&card);
	for (int i = 0; !error && i < 4; i++) {
		error = manager->fetch(i, &card);
		if (!error)
			check_card(&card);
	}
	if (!error && !manager->meet_start())
		for (int met = 0; !met;)
			met = manager->meet_test();
	manager->finalize();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input input = { data, size };
	char number[16];
	int end[2];
	if (size > INPUT_MAX)
		return 0;
	const struct launch_manager *manager = fuzz_u8(&input) % 2 ? &launch_pmi1 : &launch_pmi2;
	if (!answers(&input, end))
		abort();
	snprintf(number, sizeof number, "%d", end[1]);
	setenv("PMI_FD", number, 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "4", 1);
	use(manager); /* closes end[1] */
	close(end[0]);
	return 0;
}
