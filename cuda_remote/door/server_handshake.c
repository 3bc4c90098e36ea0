/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The server's side of the handshake. Every handshake is a small state machine on a non-blocking socket, so a client
 * that stalls, sends garbage or floods does not delay the others. A handshake may take timeout_ms.
 *
 * Limits. At most max_handshakes may be in progress over Unix sockets, and as many over TCP; each is a place. The two
 * kinds are separate, so that hosts of the network cannot keep out users of this host. One source (a user of this host,
 * or an address) may have half of the places of its kind. If all places of a kind are taken and a source with fewer
 * places connects, the source with the most places loses its oldest handshake. So a flood, even from many addresses,
 * mostly displaces its own handshakes.
 */
#define _GNU_SOURCE /* accept4 */
#include "cuda_remote/door/door.h"

#include "cuda_remote/door/answer.h"
#include "cuda_remote/door/listen.h"
#include "cuda_remote/door/identity.h"
#include "cuda_remote/door/munge.h"
#include "cuda_remote/door/proof.h"
#include "rdma_channel/base/log.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_HANDSHAKES 256
#define DEFAULT_TIMEOUT_MS 5000

enum state { AWAIT_HELLO, AWAIT_REQUEST, AWAIT_MUNGE };

struct handshake {
	struct handshake *next; /* in order of arrival, so also of deadline */
	int fd;
	enum state state;
	int64_t deadline_ms; /* CLOCK_MONOTONIC */
	struct door_identity peer;
	struct door_exchange exchange;
	struct door_challenge challenge;
	struct door_hello hello;
	struct door_request request;
	size_t have; /* bytes received of the message that is expected */
	uint64_t number; /* different for each handshake */
	struct door_munge_result munge; /* BY_MUNGE, after the answer of munged */
};

struct rc_door {
	rc_door_policy_t policy;
	int epoll_fd;
	int spare_fd; /* closed briefly when no descriptor is free, to accept and refuse a client */
	struct door_listener listeners[DOOR_LISTENERS_MAX];
	size_t listener_count;
	struct handshake *first;
	uint8_t key_id[RC_DOOR_KEY_ID_BYTES];
	struct door_munge_queue *munge; /* NULL until the policy accepts MUNGE */
	uint64_t handshakes; /* begun; with those turned away */
	uint64_t refused[RC_REFUSED_KINDS];
};

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

static int watch(const struct rc_door *door, int fd, void *pointer)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = pointer };
	return epoll_ctl(door->epoll_fd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* The thread that asks munged stays when the policy changes. epoll's data for its results is the address of the door. */
static int open_munge(struct rc_door *door, const rc_door_policy_t *policy)
{
	if (!policy->munge || door->munge)
		return 0;
	if (!rc_door_munge_supported())
		return -ENOTSUP;
	int error = door_munge_open(&door->munge);
	return error ? error : watch(door, door_munge_fd(door->munge), door);
}

int rc_door_open(const rc_door_policy_t *policy, rc_door_t **out)
{
	struct rc_door *door = calloc(1, sizeof *door);
	if (!door)
		return -ENOMEM;
	door->policy = *policy;
	if (!door->policy.max_handshakes)
		door->policy.max_handshakes = DEFAULT_HANDSHAKES;
	if (!door->policy.timeout_ms)
		door->policy.timeout_ms = DEFAULT_TIMEOUT_MS;
	door->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (door->epoll_fd < 0) {
		int error = -errno;
		free(door);
		return error;
	}
	door->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (door->policy.have_key)
		door_key_id(&door->policy.key, door->key_id);
	int error = open_munge(door, policy);
	if (error) {
		rc_door_abandon(door);
		return error;
	}
	*out = door;
	return 0;
}

/* epoll's data is the address of a listener, which lies in the array, or of a handshake. True for a listener. */
static bool is_listener(const struct rc_door *door, const void *pointer)
{
	const char *at = pointer;
	return at >= (const char *)door->listeners && at < (const char *)(door->listeners + DOOR_LISTENERS_MAX);
}

int rc_door_listen(rc_door_t *door, const rc_server_t *place)
{
	size_t n;
	struct door_listener *fresh = door->listeners + door->listener_count;
	int error = door_listen(place, door->policy.have_key || door->policy.munge, fresh, DOOR_LISTENERS_MAX - door->listener_count, &n);
	if (error)
		return error;
	door->listener_count += n;
	for (size_t i = 0; i < n && !error; i++)
		error = watch(door, fresh[i].fd, &fresh[i]);
	return error;
}

int rc_door_adopt(rc_door_t *door, int fd)
{
	struct door_listener *fresh = door->listeners + door->listener_count;
	if (door->listener_count == DOOR_LISTENERS_MAX)
		return -ENOSPC;
	int error = door_adopt(fd, door->policy.have_key || door->policy.munge, fresh);
	if (error)
		return error;
	door->listener_count++;
	return watch(door, fresh->fd, fresh);
}

void rc_door_add_addresses(const rc_door_t *door, char *text, size_t size)
{
	for (size_t i = 0; i < door->listener_count; i++) {
		char address[INET6_ADDRSTRLEN];
		size_t used = strlen(text);
		if (door_listens_to_network(&door->listeners[i]) && !door_listener_address(&door->listeners[i], address, sizeof address) &&
		    used + 1 + strlen(address) < size)
			snprintf(text + used, size - used, ",%s", address);
	}
}

/* ---- handshakes ---- */

/* Removes a handshake from the list and frees it. Returns its descriptor, which the caller owns. */
static int handshake_take(struct rc_door *door, struct handshake *handshake)
{
	struct handshake **at = &door->first;
	while (*at != handshake)
		at = &(*at)->next;
	*at = handshake->next;
	int fd = handshake->fd;
	epoll_ctl(door->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	door_forget(handshake, sizeof *handshake);
	free(handshake);
	return fd;
}

static enum rc_refused kind_of(enum rc_door_reason reason)
{
	switch (reason) {
	case RC_DOOR_BAD_VERSION: return RC_REFUSED_VERSION;
	case RC_DOOR_DENIED: return RC_REFUSED_DENIED;
	case RC_DOOR_MALFORMED: return RC_REFUSED_MALFORMED;
	case RC_DOOR_ENCRYPTION: return RC_REFUSED_ENCRYPTION;
	case RC_DOOR_BUSY: return RC_REFUSED_DROPPED;
	default: return RC_REFUSED_FAILED;
	}
}

static void handshake_refuse(struct rc_door *door, struct handshake *handshake, enum rc_door_reason reason, const char *text)
{
	char name[sizeof handshake->peer.name];
	memcpy(name, handshake->peer.name, sizeof name);
	door->refused[kind_of(reason)]++;
	door_refuse(handshake_take(door, handshake), name, reason, text);
}

static void handshake_drop(struct rc_door *door, struct handshake *handshake, const char *why)
{
	hr_log(HR_LOG_INFO, "%s dropped: %s", handshake->peer.name, why);
	door->refused[RC_REFUSED_DROPPED]++;
	close(handshake_take(door, handshake));
}

static bool same_policy(const rc_door_policy_t *a, const rc_door_policy_t *b)
{
	return a->have_key == b->have_key && a->munge == b->munge && a->encrypt == b->encrypt && a->own_user_only == b->own_user_only &&
	       (!a->have_key || !memcmp(&a->key, &b->key, sizeof a->key));
}

/* A challenge says what the policy demands, so handshakes that began under another policy end. */
int rc_door_set_policy(rc_door_t *door, const rc_door_policy_t *policy)
{
	for (size_t i = 0; i < door->listener_count && !policy->have_key && !policy->munge; i++)
		if (door_listens_to_network(&door->listeners[i])) {
			hr_log(HR_LOG_ERROR, "this daemon listens to the network, so it needs a credential: give key-file, or credential = munge");
			return -EPERM;
		}
	int error = open_munge(door, policy);
	if (error)
		return error;
	while (door->first && !same_policy(&door->policy, policy))
		handshake_drop(door, door->first, "the daemon was given another policy; connect again");
	door->policy.have_key = policy->have_key;
	door->policy.munge = policy->munge;
	door->policy.key = policy->key;
	door->policy.encrypt = policy->encrypt;
	door->policy.own_user_only = policy->own_user_only;
	memset(door->key_id, 0, sizeof door->key_id);
	if (policy->have_key)
		door_key_id(&door->policy.key, door->key_id);
	return 0;
}

static void expire(struct rc_door *door)
{
	int64_t now = now_ms();
	while (door->first && door->first->deadline_ms <= now)
		handshake_drop(door, door->first, "its handshake took too long");
}

/* ---- places ---- */

static bool same_source(const struct handshake *a, const struct door_identity *peer)
{
	return a->peer.local == peer->local && !memcmp(a->peer.source, peer->source, sizeof peer->source);
}

static uint32_t places_of(const struct rc_door *door, const struct door_identity *peer)
{
	uint32_t n = 0;
	for (const struct handshake *at = door->first; at; at = at->next)
		n += same_source(at, peer);
	return n;
}

/* The oldest handshake of the source that has the most places of this kind; *most: how many it has. */
static struct handshake *busiest(const struct rc_door *door, bool local, uint32_t *most)
{
	struct handshake *found = NULL;
	*most = 0;
	for (struct handshake *at = door->first; at; at = at->next) {
		uint32_t n = at->peer.local == local ? places_of(door, &at->peer) : 0;
		if (n > *most) {
			*most = n;
			found = at;
		}
	}
	return found;
}

/* True if there is a place for one more handshake of this peer. May refuse another source's handshake for that. */
static bool make_place(struct rc_door *door, const struct door_identity *peer)
{
	uint32_t taken = 0, own = places_of(door, peer), most;
	for (const struct handshake *at = door->first; at; at = at->next)
		taken += at->peer.local == peer->local;
	if (own >= (door->policy.max_handshakes + 1) / 2)
		return false;
	if (taken < door->policy.max_handshakes)
		return true;
	struct handshake *victim = busiest(door, peer->local, &most);
	if (!victim || most <= own + 1)
		return false;
	handshake_refuse(door, victim, RC_DOOR_BUSY, "other clients need its place; try again");
	return true;
}

/* For when no descriptor is free. A connection left in the queue would wake the daemon again and again, so this accepts
 * and refuses it. */
static void turn_away(struct rc_door *door, const struct door_listener *listener)
{
	hr_log_once(HR_LOG_ERROR, "accept: %s", strerror(errno));
	close(door->spare_fd);
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	door->handshakes += fd >= 0;
	door->refused[RC_REFUSED_DROPPED] += fd >= 0;
	if (fd >= 0)
		door_refuse(fd, "a client", RC_DOOR_BUSY, "the server is out of descriptors; try again");
	door->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void accept_handshake(struct rc_door *door, const struct door_listener *listener)
{
	struct door_identity peer;
	int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE)
			turn_away(door, listener);
		return;
	}
	door->handshakes++;
	if (door_identify(fd, &peer)) { /* the client's socket is connected, so it has an owner already */
		door->refused[RC_REFUSED_DROPPED]++;
		close(fd);
		return;
	}
	if (!make_place(door, &peer)) {
		door->refused[RC_REFUSED_DROPPED]++;
		door_refuse(fd, peer.name, RC_DOOR_BUSY, "too many handshakes are under way; try again");
		return;
	}
	struct handshake *handshake = calloc(1, sizeof *handshake);
	if (!handshake || watch(door, fd, handshake)) {
		free(handshake);
		door->refused[RC_REFUSED_FAILED]++;
		door_refuse(fd, peer.name, RC_DOOR_BUSY, "the server is out of memory; try again");
		return;
	}
	handshake->fd = fd;
	handshake->peer = peer;
	handshake->number = door->handshakes;
	handshake->deadline_ms = now_ms() + door->policy.timeout_ms;
	struct handshake **last = &door->first;
	while (*last)
		last = &(*last)->next;
	*last = handshake;
	if (!peer.local)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
}

/* Reads more of a message. 1: it is complete; 0: it is not; negative: the peer has closed the connection. */
static int read_on(struct handshake *handshake, void *message, size_t size)
{
	ssize_t n = recv(handshake->fd, (char *)message + handshake->have, size - handshake->have, 0);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	handshake->have += (size_t)n;
	return handshake->have == size;
}

/* Checks the header as soon as it has arrived, and refuses a peer with another protocol. True: refused. */
static bool refuse_header(struct rc_door *door, struct handshake *handshake, const struct door_header *header,
			  enum door_kind kind, size_t size)
{
	char text[RC_DOOR_TEXT_MAX];
	if (handshake->have < sizeof *header)
		return false;
	if (memcmp(header->magic, DOOR_MAGIC, sizeof header->magic)) {
		handshake_refuse(door, handshake, RC_DOOR_MALFORMED, "not a Headrace client");
		return true;
	}
	if (header->version != RC_DOOR_VERSION) {
		snprintf(text, sizeof text, "this server speaks protocol %d, the client %u", RC_DOOR_VERSION,
			 header->version);
		handshake_refuse(door, handshake, RC_DOOR_BAD_VERSION, text);
		return true;
	}
	if (header->kind != (uint16_t)kind || header->length != size) {
		handshake_refuse(door, handshake, RC_DOOR_MALFORMED, "an unexpected message");
		return true;
	}
	return false;
}

/* Why a handshake without a key is refused, or NULL. */
static const char *user_fault(const struct rc_door *door, const struct handshake *handshake, char *text, size_t size)
{
	if (door_server_trusts(&handshake->peer, door->policy.own_user_only))
		return NULL;
	if (handshake->peer.uid == DOOR_UID_UNKNOWN)
		return "the kernel does not name this socket's owner: use the daemon's Unix socket, or a key file on "
		       "both sides";
	snprintf(text, size, "this daemon serves user %u, not user %u", (unsigned)geteuid(),
		 (unsigned)handshake->peer.uid);
	return text;
}

/* Chooses how this client authenticates itself. Why it is refused, or NULL. */
static const char *method_fault(const struct rc_door *door, struct handshake *handshake, char *text, size_t size)
{
	const rc_door_policy_t *policy = &door->policy;
	uint32_t flags = handshake->hello.flags;
	bool local = handshake->peer.local, by_key = policy->have_key && (!local || (flags & DOOR_WANT_KEY));
	if (!local && (flags & DOOR_WANT_MUNGE)) {
		handshake->challenge.method = DOOR_BY_MUNGE;
		handshake->challenge.uid = geteuid();
		return policy->munge ? NULL : "this daemon does not accept MUNGE: unset HEADRACE_CREDENTIAL, or credential = munge";
	}
	handshake->challenge.method = by_key ? DOOR_BY_KEY : DOOR_BY_USER;
	if (by_key && !local)
		return NULL;
	if (!by_key && policy->munge && !local && !handshake->peer.loopback)
		return "this daemon asks for MUNGE: set HEADRACE_CREDENTIAL=munge";
	const char *fault = user_fault(door, handshake, text, size);
	if (!fault && (flags & DOOR_WANT_KEY) && !by_key)
		fault = "the client demands a key, and this daemon has none";
	return fault;
}

/* Decides how this client authenticates itself, and whether the channel is encrypted. False: it was refused. */
static bool choose_method(struct rc_door *door, struct handshake *handshake)
{
	const struct door_hello *hello = &handshake->hello;
	struct door_challenge *challenge = &handshake->challenge;
	bool local = handshake->peer.local;
	bool encrypt = !local && (door->policy.encrypt || (hello->flags & DOOR_ENCRYPT));
	char text[RC_DOOR_TEXT_MAX];
	const char *fault = method_fault(door, handshake, text, sizeof text);
	if (fault) {
		handshake_refuse(door, handshake, RC_DOOR_DENIED, fault);
		return false;
	}
	if (encrypt && !(hello->flags & DOOR_CAN_ENCRYPT)) {
		handshake_refuse(door, handshake, RC_DOOR_ENCRYPTION,
				 "this daemon demands encryption, and the client's build has none (no libsodium)");
		return false;
	}
	if (encrypt && door_exchange_begin(&handshake->exchange, challenge->public_key)) {
		handshake_refuse(door, handshake, RC_DOOR_ENCRYPTION,
				 "the client demands encryption, and this daemon's build has none (no libsodium)");
		return false;
	}
	challenge->flags = encrypt ? DOOR_ENCRYPT : 0;
	return true;
}

static void challenge_handshake(struct rc_door *door, struct handshake *handshake)
{
	struct door_challenge *challenge = &handshake->challenge;
	door_header_set(&challenge->header, DOOR_CHALLENGE, sizeof *challenge);
	challenge->build = door_build;
	if (!choose_method(door, handshake))
		return;
	if (door_random(challenge->nonce, sizeof challenge->nonce) ||
	    send(handshake->fd, challenge, sizeof *challenge, MSG_NOSIGNAL) != (ssize_t)sizeof *challenge) {
		handshake_drop(door, handshake, "could not be answered");
		return;
	}
	handshake->have = 0;
	handshake->state = AWAIT_REQUEST;
}

/* The fault of a request whose sender is authenticated; NULL: none. */
static const char *request_fault(const struct door_request *request)
{
	if (request->purpose < RC_DOOR_NEW || request->purpose > RC_DOOR_HANDLE)
		return "a purpose that this server does not know";
	if (request->card_len > HR_CARD_MAX || (request->card_len > 0) != door_has_card(request->purpose))
		return "a card of a wrong size";
	return NULL;
}

static void fill_peer(const struct rc_door *door, const struct handshake *handshake, const struct door_proofs *proofs, rc_door_peer_t *peer)
{
	const struct door_request *request = &handshake->request;
	memset(peer, 0, sizeof *peer);
	peer->purpose = request->purpose;
	peer->gpu = request->gpu;
	peer->card.len = request->card_len;
	memcpy(peer->card.data, request->card, request->card_len);
	memcpy(peer->token, request->token, sizeof peer->token);
	peer->send_calls = request->purpose == RC_DOOR_NEW && request->send_calls;
	peer->by_key = handshake->challenge.method == DOOR_BY_KEY;
	peer->by_munge = handshake->challenge.method == DOOR_BY_MUNGE;
	peer->local = handshake->peer.local;
	peer->uid = peer->by_key && !peer->local ? DOOR_UID_UNKNOWN : handshake->peer.uid;
	if (peer->by_munge)
		peer->uid = handshake->munge.uid;
	peer->pid = handshake->peer.pid;
	memcpy(peer->source, handshake->peer.source, sizeof peer->source);
	memcpy(peer->program, request->program, sizeof peer->program);
	door_text_clean(peer->program, sizeof peer->program);
	if (peer->by_key)
		memcpy(peer->key_id, door->key_id, sizeof peer->key_id);
	memcpy(peer->name, handshake->peer.name, sizeof peer->name);
	memcpy(peer->seal, proofs->seal, sizeof peer->seal);
}

/* The key that both sides prove to have; NULL: they prove nothing. */
static const rc_door_key_t *key_of(const struct rc_door *door, const struct handshake *handshake)
{
	switch (handshake->challenge.method) {
	case DOOR_BY_KEY: return &door->policy.key;
	case DOOR_BY_MUNGE: return &handshake->munge.secret;
	default: return NULL;
	}
}

/* Makes the keys of the channel, if it is to be encrypted. False: the client's public key is invalid. */
static bool make_cipher(const struct rc_door *door, const struct handshake *handshake, rc_door_peer_t *peer)
{
	peer->encrypts = door->policy.encrypt;
	peer->encrypted = handshake->challenge.flags & DOOR_ENCRYPT;
	return !peer->encrypted ||
	       !door_exchange_keys(&handshake->exchange, key_of(door, handshake), &handshake->hello,
				   &handshake->challenge, &handshake->request, true, &peer->cipher);
}

/* Checks a complete request. 1: *peer is set; 0: the request was refused. */
static int admit_handshake(struct rc_door *door, struct handshake *handshake, rc_door_peer_t *peer)
{
	const struct door_request *request = &handshake->request;
	struct door_proofs proofs = { 0 };
	if (handshake->challenge.method == DOOR_BY_KEY && !door->policy.have_key) { /* a reload has taken the key away */
		handshake_refuse(door, handshake, RC_DOOR_DENIED, "the server's key has changed");
		return 0;
	}
	const rc_door_key_t *key = key_of(door, handshake);
	if (key) {
		int error = door_proofs(key, &handshake->hello, &handshake->challenge, request, &proofs);
		if (error || !door_proof_equal(proofs.client, request->proof)) {
			door_forget(&proofs, sizeof proofs);
			handshake_refuse(door, handshake, RC_DOOR_DENIED,
				       handshake->challenge.method == DOOR_BY_KEY ?
				       "wrong key: client and server have different key files" :
				       "MUNGE: the credential is another client's");
			return 0;
		}
	}
	const char *fault = request_fault(request);
	if (!fault && request->purpose == RC_DOOR_MEMORY && !handshake->peer.local)
		fault = "memory, which only a Unix socket can pass";
	if (fault) {
		door_forget(&proofs, sizeof proofs);
		handshake_refuse(door, handshake, RC_DOOR_MALFORMED, fault);
		return 0;
	}
	fill_peer(door, handshake, &proofs, peer);
	door_forget(&proofs, sizeof proofs);
	if (!make_cipher(door, handshake, peer)) {
		handshake_refuse(door, handshake, RC_DOOR_MALFORMED, "an invalid public key");
		return 0;
	}
	if (peer->purpose == RC_DOOR_NEW && door_random(peer->token, sizeof peer->token)) {
		handshake_refuse(door, handshake, RC_DOOR_FAILED, "the server has no random numbers");
		return 0;
	}
	peer->fd = handshake_take(door, handshake);
	return 1;
}

/* Gives the credential of a complete request to the thread that asks munged. */
static int ask_munge(struct rc_door *door, struct handshake *handshake)
{
	const char *credential = handshake->request.credential;
	struct epoll_event none = { .data.ptr = handshake };
	if (!*credential || !memchr(credential, 0, DOOR_CREDENTIAL_BYTES)) {
		handshake_refuse(door, handshake, RC_DOOR_MALFORMED, "a credential that is empty or has no end");
		return 0;
	}
	/* Until munged answers, what else the client sends does not count. */
	if (!door->munge || door_munge_ask(door->munge, handshake->number, credential) ||
	    epoll_ctl(door->epoll_fd, EPOLL_CTL_MOD, handshake->fd, &none)) {
		handshake_refuse(door, handshake, RC_DOOR_BUSY, "too many clients wait for the server's munged; try again");
		return 0;
	}
	handshake->state = AWAIT_MUNGE;
	return 0;
}

/* Takes an answer of munged. 1: *peer is set. */
static int hear_munge(struct rc_door *door, rc_door_peer_t *peer)
{
	struct door_munge_result result;
	struct handshake *handshake = door->first;
	int admitted = 0;
	if (!door_munge_take(door->munge, &result))
		return 0;
	while (handshake && handshake->number != result.number)
		handshake = handshake->next;
	if (handshake && !result.error) {
		/* The client is not the owner of a socket of this host, but its user number is a user's of this host. */
		handshake->munge = result;
		struct door_identity user = { .uid = result.uid };
		if (door_server_trusts(&user, door->policy.own_user_only))
			admitted = admit_handshake(door, handshake, peer);
		else
			handshake_refuse(door, handshake, RC_DOOR_DENIED, "MUNGE: this daemon does not serve your user");
	} else if (handshake) {
		handshake_refuse(door, handshake, result.error == -EACCES ? RC_DOOR_DENIED : RC_DOOR_FAILED, result.text);
	}
	door_forget(&result, sizeof result);
	return admitted;
}

static int handshake_step(struct rc_door *door, struct handshake *handshake, rc_door_peer_t *peer)
{
	bool hello = handshake->state == AWAIT_HELLO;
	if (handshake->state == AWAIT_MUNGE) { /* only the end of the connection is reported */
		handshake_drop(door, handshake, "hung up");
		return 0;
	}
	struct door_header *header = hello ? &handshake->hello.header : &handshake->request.header;
	size_t size = hello ? sizeof handshake->hello : sizeof handshake->request;
	int status = read_on(handshake, header, size);
	if (status < 0) {
		handshake_drop(door, handshake, "hung up");
		return 0;
	}
	if (refuse_header(door, handshake, header, hello ? DOOR_HELLO : DOOR_REQUEST, size) || !status)
		return 0;
	if (!hello)
		return handshake->challenge.method == DOOR_BY_MUNGE ? ask_munge(door, handshake) :
			admit_handshake(door, handshake, peer);
	char text[RC_DOOR_TEXT_MAX];
	if (door_build_differs(&handshake->hello.build, &door_build, text))
		handshake_refuse(door, handshake, RC_DOOR_BAD_VERSION, text);
	else
		challenge_handshake(door, handshake);
	return 0;
}

int rc_door_next(rc_door_t *door, rc_door_peer_t *peer)
{
	struct epoll_event event;
	expire(door);
	/* One event at a time, as a step may free the handshake that a second event points to. The kernel serves the
	 * descriptors in rotation. The number of steps is bounded, so that a flood does not delay the caller. */
	for (int turns = 0; turns < 64; turns++) {
		int n = epoll_wait(door->epoll_fd, &event, 1, 0);
		if (n <= 0)
			return n < 0 && errno != EINTR ? -errno : 0;
		if (is_listener(door, event.data.ptr))
			accept_handshake(door, event.data.ptr);
		else if (event.data.ptr == door ? hear_munge(door, peer) : handshake_step(door, event.data.ptr, peer))
			return 1;
	}
	return 0;
}

void rc_door_count(const rc_door_t *door, struct rc_counters *counters)
{
	counters->handshakes_total = door->handshakes;
	memcpy(counters->refused_total, door->refused, sizeof door->refused);
}

int rc_door_fd(const rc_door_t *door)
{
	return door->epoll_fd;
}

int rc_door_timeout(const rc_door_t *door)
{
	if (!door->first)
		return -1;
	int64_t left = door->first->deadline_ms - now_ms();
	return left > 0 ? (int)left : 0;
}

void rc_door_abandon(rc_door_t *door)
{
	if (!door)
		return;
	/* Without its path, door_listener_close does not remove the file. The parent shares the epoll instance, so no
	 * descriptor is removed from it; they are only closed. */
	for (size_t i = 0; i < door->listener_count; i++) {
		door->listeners[i].path[0] = 0;
		door_listener_close(&door->listeners[i]);
	}
	for (struct handshake *at = door->first, *next; at; at = next) {
		next = at->next;
		close(at->fd);
		free(at);
	}
	door_munge_close(door->munge);
	close(door->epoll_fd);
	close(door->spare_fd);
	door_forget(door, sizeof *door);
	free(door);
}

void rc_door_close(rc_door_t *door)
{
	if (!door)
		return;
	for (size_t i = 0; i < door->listener_count; i++)
		door_listener_close(&door->listeners[i]);
	rc_door_abandon(door);
}
