/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that says anything to a server with a key, over TCP. The server admits it only with a valid proof, and only
 * with fields in their bounds. The input: a byte that cuts the hello in two, as messages may arrive in pieces; a byte
 * that is odd if the request is to have a valid proof; then the hello and the request.
 */
#include "cuda_remote/door/proof.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rc_door_t *door;
static rc_door_policy_t policy = { .have_key = true, .key.bytes = "a key for the fuzzer" };
static struct sockaddr_in address = { .sin_family = AF_INET };

static void open_door(void)
{
	rc_server_t place = { .host = "127.0.0.1", .port = (uint16_t)(20000 + getpid() % 20000) };
	if (rc_door_open(&policy, &door) || rc_door_listen(door, &place))
		abort();
	address.sin_port = htons(place.port);
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
}

static int connect_door(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	/* Closing resets the connection. Otherwise closed connections would use up the ports. */
	struct linger at_once = { .l_onoff = 1 };
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	if (fd < 0)
		abort();
	/* libFuzzer's alarm interrupts system calls. A second connect waits for the connection that the first began. */
	while (connect(fd, (struct sockaddr *)&address, sizeof address))
		if (errno != EINTR)
			abort();
	return fd;
}

static void step(bool proved)
{
	rc_door_peer_t peer;
	while (rc_door_next(door, &peer) == 1) {
		if (!proved || !peer.by_key || peer.card.len > HR_CARD_MAX || peer.purpose < RC_DOOR_NEW ||
		    peer.purpose > RC_DOOR_MEMORY || !memchr(peer.program, 0, sizeof peer.program))
			abort();
		close(peer.fd);
	}
}

static void say(int fd, const void *bytes, size_t size, bool proved)
{
	if (size)
		(void)!send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	step(proved);
}

/* Fills a message with the input's bytes, and with 0 where the input is too short. Returns the bytes taken. */
static size_t take(void *message, size_t wanted, const uint8_t **data, size_t *size)
{
	size_t n = *size < wanted ? *size : wanted;
	memset(message, 0, wanted);
	memcpy(message, *data, n);
	*data += n;
	*size -= n;
	return n;
}

static void converse(int fd, const uint8_t *data, size_t size, uint8_t cut, bool prove)
{
	struct door_hello hello;
	struct door_challenge challenge;
	struct door_request request;
	struct door_proofs proofs;
	size_t n = take(&hello, sizeof hello, &data, &size);
	/* No input would have the hash of this build, so every hello gets it. */
	hello.build = door_build;
	cut = cut < n ? cut : (uint8_t)n;
	say(fd, &hello, cut, false);
	say(fd, (char *)&hello + cut, n - cut, false);
	if (recv(fd, &challenge, sizeof challenge, MSG_DONTWAIT) != sizeof challenge ||
	    challenge.header.kind != DOOR_CHALLENGE)
		return;
	n = take(&request, sizeof request, &data, &size);
	bool proved = prove && n == sizeof request;
	if (proved) {
		if (door_proofs(&policy.key, &hello, &challenge, &request, &proofs))
			abort();
		memcpy(request.proof, proofs.client, sizeof request.proof);
	}
	say(fd, &request, n, proved);
	say(fd, data, size, proved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!rc_door_keys_supported())
		return 0;
	if (!door)
		open_door();
	if (size < 2)
		return 0;
	int fd = connect_door();
	step(false);
	converse(fd, data + 2, size - 2, data[0], data[1] & 1);
	close(fd);
	step(false);
	return 0;
}
