/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients and a server that misuse MUNGE, for munge_test.sh.
 *
 *	munge_rogue SERVER replay             uses one credential twice
 *	munge_rogue SERVER stolen             has another client's credential, without its secret
 *	munge_rogue SERVER other-user         its credential is for a server of user 4242
 *	munge_rogue SERVER text CREDENTIAL    sends this credential
 *	munge_rogue SERVER endless            a credential without an end
 *	munge_rogue SERVER leave              closes the connection before munged answers
 *	munge_rogue ADDRESS pose UID          listens there, and poses to one client as a server of that user
 *
 * Prints "welcome" or the text of the refusal, a line for each connection; pose prints "ready" first.
 */
#include "cuda_remote/door/listen.h"
#include "cuda_remote/door/munge.h"
#include "cuda_remote/door/proof.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static rc_server_t server;

static int dial(void)
{
	struct addrinfo hints = { .ai_family = AF_INET, .ai_socktype = SOCK_STREAM }, *found;
	char port[8];
	snprintf(port, sizeof port, "%u", server.port);
	if (getaddrinfo(server.host, port, &hints, &found))
		exit(2);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen))
		exit(3);
	freeaddrinfo(found);
	return fd;
}

static void read_whole(int fd, void *message, size_t size)
{
	if (recv(fd, message, size, MSG_WAITALL) != (ssize_t)size) {
		puts("the connection has ended");
		exit(4);
	}
}

static void write_whole(int fd, const void *message, size_t size)
{
	if (send(fd, message, size, MSG_NOSIGNAL) != (ssize_t)size)
		exit(5);
}

/* Sends a request with this credential and a proof by this secret. Returns the connection. */
static int request(const char credential[DOOR_CREDENTIAL_BYTES], const rc_door_key_t *secret)
{
	struct door_hello hello = { .build = door_build, .flags = DOOR_WANT_MUNGE };
	struct door_challenge challenge;
	struct door_request wanted = { .purpose = RC_DOOR_STATUS, .gpu = RC_SERVER_ALL_GPUS };
	struct door_proofs proofs;
	int fd = dial();
	door_header_set(&hello.header, DOOR_HELLO, sizeof hello);
	write_whole(fd, &hello, sizeof hello);
	read_whole(fd, &challenge, sizeof challenge);
	if (challenge.method != DOOR_BY_MUNGE || challenge.uid != geteuid())
		exit(6);
	door_header_set(&wanted.header, DOOR_REQUEST, sizeof wanted);
	memcpy(wanted.credential, credential, sizeof wanted.credential);
	if (door_proofs(secret, &hello, &challenge, &wanted, &proofs))
		exit(7);
	memcpy(wanted.proof, proofs.client, sizeof wanted.proof);
	write_whole(fd, &wanted, sizeof wanted);
	return fd;
}

static void print_answer(int fd)
{
	struct door_header header;
	struct door_refusal refusal;
	read_whole(fd, &header, sizeof header);
	if (header.kind == DOOR_WELCOME) {
		puts("welcome");
	} else {
		read_whole(fd, (char *)&refusal + sizeof header, sizeof refusal - sizeof header);
		door_text_clean(refusal.text, sizeof refusal.text);
		puts(refusal.text);
	}
	close(fd);
}

static void pose(uid_t uid)
{
	struct door_listener listener;
	size_t n;
	struct door_hello hello;
	struct door_challenge challenge = { .method = DOOR_BY_MUNGE, .uid = uid };
	struct door_request wanted;
	struct door_welcome welcome = { .gpus = 1 };
	if (door_listen(&server, false, &listener, 1, &n))
		exit(8);
	puts("ready");
	fflush(stdout);
	poll(&(struct pollfd){ .fd = listener.fd, .events = POLLIN }, 1, 30000);
	int fd = accept(listener.fd, NULL, NULL);
	read_whole(fd, &hello, sizeof hello);
	door_header_set(&challenge.header, DOOR_CHALLENGE, sizeof challenge);
	write_whole(fd, &challenge, sizeof challenge);
	read_whole(fd, &wanted, sizeof wanted);
	door_header_set(&welcome.header, DOOR_WELCOME, sizeof welcome);
	write_whole(fd, &welcome, sizeof welcome);
	close(fd);
}

static void make(uid_t uid, rc_door_key_t *secret, char credential[DOOR_CREDENTIAL_BYTES])
{
	if (door_munge_encode(uid, secret, credential))
		exit(9);
}

int main(int argc, char **argv)
{
	char credential[DOOR_CREDENTIAL_BYTES] = "";
	rc_door_key_t secret = { { 0 } };
	if (argc < 3 || rc_server_parse_place(argv[1], &server))
		return 1;
	const char *what = argv[2], *more = argc > 3 ? argv[3] : "";
	if (!strcmp(what, "pose")) {
		pose((uid_t)atoi(more));
		return 0;
	}
	if (!strcmp(what, "endless"))
		memset(credential, 'a', sizeof credential);
	else if (!strcmp(what, "text"))
		snprintf(credential, sizeof credential, "%s", more);
	else
		make(!strcmp(what, "other-user") ? 4242 : geteuid(), &secret, credential);
	if (!strcmp(what, "stolen"))
		memset(&secret, 0, sizeof secret);
	int fd = request(credential, &secret);
	if (!strcmp(what, "leave"))
		close(fd);
	else
		print_answer(fd);
	if (!strcmp(what, "replay"))
		print_answer(request(credential, &secret));
	return 0;
}
