/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that sends anything to a server without a key, over a Unix socket. The server refuses it, or admits it with
 * all fields in their bounds. The input: a byte that cuts the rest in two, as messages may arrive in pieces, and that is odd
 * if the headers are the input's and not the right ones; the rest. */
#include "cuda_remote/door/wire.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rc_door_t *door;
static rc_server_t place;

static void open_door(void)
{
	snprintf(place.path, sizeof place.path, "@headrace-fuzz-%d", (int)getpid());
	if (rc_door_open(&(rc_door_policy_t){ 0 }, &door) || rc_door_listen(door, &place))
		abort();
}

static int knock(void)
{
	struct sockaddr_un address;
	socklen_t length;
	rc_server_unix_address(place.path, &address, &length);
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd < 0)
		abort();
	/* libFuzzer's alarm interrupts system calls. */
	while (connect(fd, (struct sockaddr *)&address, length))
		if (errno != EINTR)
			abort();
	return fd;
}

static void check_admitted(void)
{
	rc_door_peer_t peer;
	while (rc_door_next(door, &peer) == 1) {
		if (peer.card.len > HR_CARD_MAX || peer.purpose < RC_DOOR_NEW || peer.purpose > RC_DOOR_HANDLE ||
		    peer.by_key || peer.by_munge || peer.uid != geteuid())
			abort();
		close(peer.fd);
	}
}

static void say(int fd, const uint8_t *data, size_t size)
{
	if (size && send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	check_admitted();
}

static void set_header(uint8_t *to, enum door_kind kind, size_t length)
{
	struct door_header header;
	door_header_set(&header, kind, length);
	memcpy(to, &header, sizeof header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!door)
		open_door();
	if (!size)
		return 0;
	size_t cut = data[0] < size - 1 ? data[0] : size - 1;
	int fd = knock();
	check_admitted();
	/* No input would have the hash of this build, so every hello gets it. */
	uint8_t *said = malloc(size);
	memcpy(said, data + 1, size - 1);
	size_t hello = sizeof(struct door_hello), both = hello + sizeof(struct door_request);
	if (size - 1 >= hello)
		memcpy(said + offsetof(struct door_hello, build), &door_build, sizeof door_build);
	if (size - 1 >= hello && !(data[0] & 1))
		set_header(said, DOOR_HELLO, hello);
	if (size - 1 >= both && !(data[0] & 1))
		set_header(said + hello, DOOR_REQUEST, sizeof(struct door_request));
	say(fd, said, cut);
	say(fd, said + cut, size - 1 - cut);
	free(said);
	close(fd);
	check_admitted();
	return 0;
}
