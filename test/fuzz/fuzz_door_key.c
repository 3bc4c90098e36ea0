/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that says anything to a server with a key and with MUNGE, over TCP. The server admits it only with a valid proof,
 * and only with fields in their bounds. The input: a byte that cuts the hello in two, as messages may arrive in pieces; a byte
 * whose bit 0 says that the request has a valid proof, and bit 1 that the headers are the input's and not the right ones;
 * then the hello and the request. In the place of munged, the first byte of a credential says whether it is valid.
 */
#include "cuda_remote/door/munge.h"
#include "cuda_remote/door/proof.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rc_door_t *door;
static rc_door_policy_t policy = { .have_key = true, .key.bytes = "a key for the fuzzer" };
static struct sockaddr_in address = { .sin_family = AF_INET };

/* What the client has said, and so may be: it has proved the key, or the secret of a valid credential. */
static struct {
	bool key, munge;
} proved;
static uint64_t admitted;

static int fault_of(const char *credential)
{
	return *credential % 4 == 3 ? -EACCES : *credential % 4 == 1 ? -EIO : 0;
}

static uid_t user_of(const char *credential)
{
	return geteuid() ? geteuid() : 1000u + (uint8_t)*credential;
}

static rc_door_key_t secret_of(const char *credential)
{
	rc_door_key_t secret;
	memset(secret.bytes, *credential, sizeof secret.bytes);
	return secret;
}

void __wrap_door_munge_decode(const char credential[DOOR_CREDENTIAL_BYTES], struct door_munge_result *result);
void __wrap_door_munge_decode(const char credential[DOOR_CREDENTIAL_BYTES], struct door_munge_result *result)
{
	if (!memchr(credential, 0, DOOR_CREDENTIAL_BYTES) || !*credential)
		abort();
	*result = (struct door_munge_result){ .number = result->number, .error = fault_of(credential),
					      .uid = user_of(credential), .secret = secret_of(credential),
					      .text = "the fuzzer's refusal" };
}

static void open_door(void)
{
	policy.munge = rc_door_munge_supported();
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

static void step(void)
{
	rc_door_peer_t peer;
	while (rc_door_next(door, &peer) == 1) {
		admitted++;
		if (peer.by_key ? !proved.key || peer.by_munge || peer.uid != (uint32_t)-1 : !proved.munge || !peer.by_munge)
			abort();
		if (peer.card.len > HR_CARD_MAX || peer.purpose < RC_DOOR_NEW ||
		    peer.purpose > RC_DOOR_HANDLE || !memchr(peer.program, 0, sizeof peer.program))
			abort();
		close(peer.fd);
	}
}

static void say(int fd, const void *bytes, size_t size)
{
	if (size)
		(void)!send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);
	step();
}

/* The answer to a credential comes from another thread. */
static void await_munge(int fd)
{
	uint64_t before = admitted;
	struct pollfd both[] = { { .fd = rc_door_fd(door), .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	for (int i = 0; i < 100 && admitted == before && !both[1].revents; i++) {
		(void)poll(both, 2, 10);
		step();
	}
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

static void converse(int fd, const uint8_t *data, size_t size, uint8_t cut, bool prove, bool any_header)
{
	struct door_hello hello;
	struct door_challenge challenge;
	struct door_request request;
	struct door_proofs proofs;
	size_t n = take(&hello, sizeof hello, &data, &size);
	/* No input would have the hash of this build, so every hello gets it. */
	hello.build = door_build;
	if (!any_header)
		door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	cut = cut < n ? cut : (uint8_t)n;
	say(fd, &hello, cut);
	say(fd, (char *)&hello + cut, n - cut);
	if (recv(fd, &challenge, sizeof challenge, MSG_DONTWAIT) != sizeof challenge ||
	    challenge.header.kind != DOOR_CHALLENGE)
		return;
	bool munge = challenge.method == DOOR_BY_MUNGE;
	n = take(&request, sizeof request, &data, &size);
	if (!any_header)
		door_header_set(&request.header, DOOR_REQUEST, sizeof request);
	if (prove && n == sizeof request) {
		rc_door_key_t key = munge ? secret_of(request.credential) : policy.key;
		if (door_proofs(&key, &hello, &challenge, &request, &proofs))
			abort();
		memcpy(request.proof, proofs.client, sizeof request.proof);
		proved.key = !munge;
		proved.munge = munge && *request.credential && !fault_of(request.credential);
	}
	say(fd, &request, n);
	if (munge && n == sizeof request)
		await_munge(fd);
	say(fd, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!rc_door_keys_supported())
		return 0;
	if (!door)
		open_door();
	if (size < 2)
		return 0;
	proved.key = proved.munge = false;
	int fd = connect_door();
	step();
	converse(fd, data + 2, size - 2, data[0], data[1] & 1, data[1] & 2);
	close(fd);
	step();
	return 0;
}
