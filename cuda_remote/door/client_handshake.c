/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of the handshake: connects, authenticates itself and the server, returns the socket. */
#define _GNU_SOURCE /* EAI_ADDRFAMILY */
#include "cuda_remote/door/identity.h"
#include "cuda_remote/door/munge.h"
#include "cuda_remote/door/proof.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

HR_SETTING(key_file, "HEADRACE_KEY_FILE", "", 0, 0, "key file; over TCP a server must prove that it has the key");
HR_SETTING(key_unix, "HEADRACE_KEY_UNIX", "0", 0, 1,
	   "1: a server at a Unix socket must prove that it has the key too");
HR_SETTING(credential, "HEADRACE_CREDENTIAL", "key", 0, 0,
	   "how a client authenticates itself over TCP: key: by the key file, or by its user on loopback; munge: by MUNGE");
HR_SETTING(encrypt, "HEADRACE_ENCRYPT", "0", 0, 1,
	   "1: demand that TCP connections to servers are encrypted; 0: only if the server demands it");
HR_SETTING(connect_timeout, "HEADRACE_CONNECT_TIMEOUT_MS", "5000", 1, 3600000,
	   "time-out of connection and handshake with a server, ms; a session may take 6 times as long, as the server starts its worker");

/* Until a session begins, in times of connect_timeout: the server may have to start a worker for it, and the driver of a GPU takes a
 * second or more for that. */
#define WORKER_TIMES 6

/* One handshake under way. */
struct attempt {
	const rc_door_connect_t *wanted;
	rc_door_report_t *report; /* output of a REPORT, else NULL */
	char server[RC_SERVER_NAME_MAX + 16];
	int fd;
	int64_t deadline; /* ns of CLOCK_MONOTONIC */
	int64_t timeout;  /* ns */
	struct door_identity peer;
	bool by_key, by_munge; /* proofs are exchanged */
	bool want_key, want_munge, want_encryption; /* demanded by this side */
	bool encrypts;                              /* demanded of TCP connections */
	struct door_exchange exchange;
	rc_door_key_t key;
	struct door_hello hello;
	struct door_challenge challenge;
	struct door_request request;
	struct door_proofs proofs;
	uint16_t call_number[RC_DOOR_CALLS_MAX]; /* if the request has send_calls */
};

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Waits until fd is ready: 0. -ETIMEDOUT once the time is until. */
static int await(int fd, short events, int64_t until)
{
	for (;;) {
		int64_t left = until - now_ns();
		if (left <= 0)
			return -ETIMEDOUT;
		struct pollfd ready = { .fd = fd, .events = events };
		int n = poll(&ready, 1, (int)(left / 1000000) + 1);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* ---- opening the socket ---- */

/* Connects to one address. Returns the descriptor, or -ETIMEDOUT once the time is until. */
static int connect_address(const struct sockaddr *address, socklen_t length, int64_t until)
{
	int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int error = 0;
	while (connect(fd, address, length)) {
		error = errno;
		if (error == EAGAIN) {
			/* The queue of a Unix socket is full. poll(2) cannot wait for that, so retry after a pause. */
			if (now_ns() >= until) {
				error = ETIMEDOUT;
				break;
			}
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
			error = 0;
			continue;
		}
		if (error == EINPROGRESS || error == EINTR) {
			socklen_t size = sizeof error;
			error = -await(fd, POLLOUT, until);
			if (!error && getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
				error = errno;
		}
		break;
	}
	if (error) {
		close(fd);
		return -error;
	}
	return fd;
}

static int connect_unix(struct attempt *attempt)
{
	struct sockaddr_un address;
	socklen_t length;
	rc_server_unix_address(attempt->wanted->server.path, &address, &length);
	return connect_address((const struct sockaddr *)&address, length, attempt->deadline);
}

static int connect_inet(struct attempt *attempt)
{
	const rc_server_t *server = &attempt->wanted->server;
	struct addrinfo hints = { .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	struct addrinfo *found;
	char port[8];
	snprintf(port, sizeof port, "%u", server->port);
	int status = getaddrinfo(server->host, port, &hints, &found);
	if (status == EAI_NONAME || status == EAI_ADDRFAMILY) {
		/* AI_ADDRCONFIG hides loopback on a host that has no other address. */
		hints.ai_flags = 0;
		status = getaddrinfo(server->host, port, &hints, &found);
	}
	if (status) {
		hr_log(HR_LOG_ERROR, "server %s: cannot find host %s: %s", attempt->server, server->host,
		       status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
		return -ENXIO;
	}
	int fd = -ENXIO, left = 0;
	for (const struct addrinfo *at = found; at; at = at->ai_next)
		left++;
	for (const struct addrinfo *at = found; at && fd < 0; at = at->ai_next, left--)
		fd = connect_address(at->ai_addr, at->ai_addrlen, now_ns() + (attempt->deadline - now_ns()) / left);
	freeaddrinfo(found);
	if (fd >= 0)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	return fd;
}

static int attempt_connect(struct attempt *attempt)
{
	int fd = *attempt->wanted->server.path ? connect_unix(attempt) : connect_inet(attempt);
	if (fd >= 0) {
		attempt->fd = fd;
		return 0;
	}
	if (fd == -ECONNREFUSED || fd == -ENOENT)
		hr_log(HR_LOG_ERROR, "server %s: no headraced listens there (%s)", attempt->server, strerror(-fd));
	else if (fd != -ENXIO)
		hr_log(HR_LOG_ERROR, "server %s: cannot connect: %s", attempt->server, strerror(-fd));
	return fd;
}

/* ---- messages ---- */

static int lost(const struct attempt *attempt, int error)
{
	if (error == -ETIMEDOUT)
		hr_log(HR_LOG_ERROR, "server %s: connected, but no answer in time: is it a headraced?", attempt->server);
	else
		hr_log(HR_LOG_ERROR, "server %s: closed the connection before it let us in (%s)", attempt->server,
		       strerror(-error));
	return error;
}

static int send_all(struct attempt *attempt, const void *message, size_t size)
{
	const char *at = message;
	while (size) {
		ssize_t n = send(attempt->fd, at, size, MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN) {
			int error = await(attempt->fd, POLLOUT, attempt->deadline);
			if (error)
				return lost(attempt, error);
		} else if (n < 0 && errno != EINTR) {
			/* The server may have sent a refusal before it closed the connection. Reading will find it. */
			if (errno == EPIPE || errno == ECONNRESET)
				return 0;
			return lost(attempt, -errno);
		} else if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int receive_all(struct attempt *attempt, void *message, size_t size)
{
	char *at = message;
	while (size) {
		ssize_t n = recv(attempt->fd, at, size, 0);
		if (n == 0)
			return lost(attempt, -ECONNRESET);
		if (n < 0 && errno == EAGAIN) {
			int error = await(attempt->fd, POLLIN, attempt->deadline);
			if (error)
				return lost(attempt, error);
		} else if (n < 0 && errno != EINTR) {
			return lost(attempt, -errno);
		} else if (n > 0) {
			at += n;
			size -= (size_t)n;
		}
	}
	return 0;
}

static int bad_version(const struct attempt *attempt, unsigned version)
{
	hr_log(HR_LOG_ERROR,
	       "server %s: speaks protocol %u, this client %u: install the same version of Headrace on both",
	       attempt->server, version, RC_DOOR_VERSION);
	return -EPROTONOSUPPORT;
}

static int not_headrace(const struct attempt *attempt)
{
	hr_log(HR_LOG_ERROR, "server %s: what answers there is not a headraced", attempt->server);
	return -EPROTO;
}

static int refused(struct attempt *attempt, const struct door_header *header)
{
	static const int errors[] = {
		[RC_DOOR_BAD_VERSION] = -EPROTONOSUPPORT, [RC_DOOR_DENIED] = -EACCES, [RC_DOOR_NO_GPU] = -ENODEV,
		[RC_DOOR_NO_SESSION] = -ESRCH, [RC_DOOR_BUSY] = -EBUSY, [RC_DOOR_MALFORMED] = -EPROTO,
		[RC_DOOR_FAILED] = -EIO, [RC_DOOR_ENCRYPTION] = -EOPNOTSUPP,
	};
	struct door_refusal refusal = { .header = *header };
	int error = receive_all(attempt, (char *)&refusal + sizeof *header, sizeof refusal - sizeof *header);
	if (error)
		return error;
	if (header->version != RC_DOOR_VERSION)
		return bad_version(attempt, header->version);
	door_text_clean(refusal.text, sizeof refusal.text);
	hr_log(HR_LOG_ERROR, "server %s: %s", attempt->server, refusal.text);
	return refusal.reason && refusal.reason < sizeof errors / sizeof *errors ? errors[refusal.reason] : -EPROTO;
}

/* Reads a message of this kind. If a refusal comes in its place, logs it and returns its error. */
static int receive_message(struct attempt *attempt, enum door_kind kind, void *message, size_t size)
{
	struct door_header header;
	int error = receive_all(attempt, &header, sizeof header);
	if (error)
		return error;
	if (memcmp(header.magic, DOOR_MAGIC, sizeof header.magic))
		return not_headrace(attempt);
	if (header.kind == DOOR_REFUSAL && header.length == sizeof(struct door_refusal))
		return refused(attempt, &header);
	if (header.version != RC_DOOR_VERSION)
		return bad_version(attempt, header.version);
	if (header.kind != (uint16_t)kind || header.length != size)
		return not_headrace(attempt);
	memcpy(message, &header, sizeof header);
	return receive_all(attempt, (char *)message + sizeof header, size - sizeof header);
}

/* ---- the handshake ---- */

/* Sets the hello's flags: what this side can do, and what it demands. */
static int set_flags(struct attempt *attempt)
{
	struct door_hello *hello = &attempt->hello;
	int error = door_exchange_begin(&attempt->exchange, hello->public_key);
	if (!error)
		hello->flags |= DOOR_CAN_ENCRYPT;
	else if (error != -ENOTSUP)
		return error;
	if (attempt->want_encryption && error) {
		hr_log(HR_LOG_ERROR, "server %s: HEADRACE_ENCRYPT=1, and this build has no encryption (no libsodium)",
		       attempt->server);
		return -EOPNOTSUPP;
	}
	if (attempt->want_encryption)
		hello->flags |= DOOR_ENCRYPT;
	if (attempt->want_key)
		hello->flags |= DOOR_WANT_KEY;
	if (attempt->want_munge)
		hello->flags |= DOOR_WANT_MUNGE;
	return 0;
}

static int say_hello(struct attempt *attempt)
{
	door_header_set(&attempt->hello.header, DOOR_HELLO, sizeof attempt->hello);
	attempt->hello.build = door_build;
	int error = door_random(attempt->hello.nonce, sizeof attempt->hello.nonce);
	if (!error)
		error = set_flags(attempt);
	if (!error)
		error = send_all(attempt, &attempt->hello, sizeof attempt->hello);
	if (!error)
		error = receive_message(attempt, DOOR_CHALLENGE, &attempt->challenge, sizeof attempt->challenge);
	return error;
}

/* The key file that the user has configured; "" if none. */
static const char *key_path(const struct attempt *attempt)
{
	return attempt->wanted->key_file ? attempt->wanted->key_file : hr_setting_text(&key_file);
}

static int load_key(struct attempt *attempt)
{
	const char *path = key_path(attempt);
	if (!*path) {
		hr_log(HR_LOG_ERROR, "server %s: asks for a key: name a copy of its key file in HEADRACE_KEY_FILE",
		       attempt->server);
		return -EACCES;
	}
	return rc_door_key_load(path, &attempt->key);
}

/* Decides whether to trust a server that authenticates by user and does not prove the key. */
static int judge_user(const struct attempt *attempt)
{
	const struct door_identity *peer = &attempt->peer;
	/* A forwarder may own a port of this host. So a server at TCP must prove the key, if one is configured. */
	if (attempt->want_key || (!peer->local && *key_path(attempt))) {
		hr_log(HR_LOG_ERROR,
		       "server %s: does not prove that it has the key of HEADRACE_KEY_FILE=%s: start headraced with "
		       "--key-file, or unset HEADRACE_KEY_FILE for a server of this host",
		       attempt->server, key_path(attempt));
		return -EKEYREJECTED;
	}
	if (door_client_trusts(peer))
		return 0;
	if (!peer->local && !peer->loopback)
		hr_log(HR_LOG_ERROR, "server %s: offers no proof that it has our key; not trusted", attempt->server);
	else if (peer->uid == DOOR_UID_UNKNOWN)
		hr_log(HR_LOG_ERROR, "server %s: the kernel does not name its user; use a Unix socket or a key",
		       attempt->server);
	else
		hr_log(HR_LOG_ERROR, "server %s: is run by user %u, neither this user nor root; not trusted",
		       attempt->server, (unsigned)peer->uid);
	return -EKEYREJECTED;
}

/* The server says which user it is. Only this user can decode the credential, so a lie does not help it. */
static int judge_munge(struct attempt *attempt)
{
	uid_t server = attempt->challenge.uid;
	if (!attempt->want_munge || attempt->challenge.method != DOOR_BY_MUNGE)
		return not_headrace(attempt);
	if (server != 0 && server != geteuid()) {
		hr_log(HR_LOG_ERROR, "server %s: is run by user %u, neither this user nor root; not trusted", attempt->server,
		       (unsigned)server);
		return -EKEYREJECTED;
	}
	attempt->by_munge = true;
	return door_munge_encode(server, &attempt->key, attempt->request.credential);
}

/* The server has answered, so its process has accepted the connection and the kernel can name its user. */
static int judge_challenge(struct attempt *attempt)
{
	int error = door_identify(attempt->fd, &attempt->peer);
	if (error)
		return error;
	if (attempt->want_encryption && !(attempt->challenge.flags & DOOR_ENCRYPT)) {
		hr_log(HR_LOG_ERROR, "server %s: does not encrypt, and HEADRACE_ENCRYPT=1 demands it", attempt->server);
		return -EOPNOTSUPP;
	}
	if (attempt->want_munge || attempt->challenge.method == DOOR_BY_MUNGE)
		return judge_munge(attempt);
	if (attempt->challenge.method == DOOR_BY_KEY) {
		attempt->by_key = true;
		if (attempt->peer.local && !door_client_trusts(&attempt->peer))
			return judge_user(attempt);
		return load_key(attempt);
	}
	return attempt->challenge.method == DOOR_BY_USER ? judge_user(attempt) : not_headrace(attempt);
}

static int make_request(struct attempt *attempt)
{
	const rc_door_connect_t *wanted = attempt->wanted;
	struct door_request *request = &attempt->request;
	door_header_set(&request->header, DOOR_REQUEST, sizeof *request);
	request->purpose = wanted->purpose;
	request->gpu = wanted->server.gpu;
	if (wanted->purpose == RC_DOOR_JOIN || wanted->purpose == RC_DOOR_MEMORY || wanted->purpose == RC_DOOR_HANDLE)
		memcpy(request->token, wanted->token, sizeof request->token);
	if (wanted->purpose == RC_DOOR_NEW) {
		snprintf(request->program, sizeof request->program, "%s", program_invocation_short_name);
		request->send_calls = door_calls_differ(&door_build, &attempt->challenge.build);
	}
	if (door_has_card(wanted->purpose)) {
		request->card_len = wanted->card->len;
		memcpy(request->card, wanted->card->data, wanted->card->len);
	}
	if (!attempt->by_key && !attempt->by_munge)
		return 0;
	int error = door_proofs(&attempt->key, &attempt->hello, &attempt->challenge, request, &attempt->proofs);
	memcpy(request->proof, attempt->proofs.client, sizeof request->proof);
	return error;
}

static int check_welcome(struct attempt *attempt, struct door_welcome *answer)
{
	bool card_expected = door_has_card(attempt->wanted->purpose);
	if (attempt->by_key || attempt->by_munge) {
		uint8_t proof[RC_DOOR_KEY_BYTES];
		int error = door_welcome_proof(attempt->proofs.seal, answer, proof);
		if (error || !door_proof_equal(proof, answer->proof)) {
			hr_log(HR_LOG_ERROR, "server %s: %s; not trusted", attempt->server,
			       attempt->by_key ? "does not have our key" : "cannot decode our credential of MUNGE");
			return -EKEYREJECTED;
		}
	}
	if (answer->card_len > HR_CARD_MAX || (answer->card_len > 0) != card_expected)
		return not_headrace(attempt);
	door_text_clean(answer->text, sizeof answer->text);
	return 0;
}

static void fill_session(struct door_session *wire, rc_door_session_t *session)
{
	door_text_clean(wire->program, sizeof wire->program);
	door_text_clean(wire->client, sizeof wire->client);
	*session = (rc_door_session_t){ .number = wire->number, .age_us = wire->age_us, .calls = wire->calls,
					.memory = wire->memory, .cpu_us = wire->cpu_us, .uid = wire->uid, .gpu = wire->gpu };
	memcpy(session->program, wire->program, sizeof session->program);
	memcpy(session->client, wire->client, sizeof session->client);
}

/* The sender states the message's length and count. They are checked before the entries are read. */
static int receive_report(struct attempt *attempt)
{
	struct {
		struct door_report head;
		struct door_session session[RC_DOOR_SESSIONS_MAX];
	} message;
	struct door_report *head = &message.head;
	uint8_t proof[RC_DOOR_KEY_BYTES], computed[RC_DOOR_KEY_BYTES];
	int error = receive_all(attempt, head, sizeof *head);
	if (error)
		return error;
	size_t size = sizeof *head + (size_t)head->count * sizeof *message.session;
	if (memcmp(head->header.magic, DOOR_MAGIC, sizeof head->header.magic) || head->header.kind != DOOR_REPORT ||
	    head->count > RC_DOOR_SESSIONS_MAX || head->header.length != size ||
	    head->counters.gpus > RC_COUNTERS_GPUS)
		return not_headrace(attempt);
	error = receive_all(attempt, message.session, size - sizeof *head);
	memcpy(proof, head->proof, sizeof proof);
	memset(head->proof, 0, sizeof head->proof);
	if (!error && (attempt->by_key || attempt->by_munge) &&
	    (door_message_proof(attempt->proofs.seal, head, size, computed) || !door_proof_equal(proof, computed))) {
		hr_log(HR_LOG_ERROR, "server %s: its report was changed on the way; not trusted", attempt->server);
		error = -EKEYREJECTED;
	}
	attempt->report->count = head->count;
	attempt->report->hidden = head->hidden;
	attempt->report->counters = head->counters;
	for (uint32_t i = 0; i < head->count && !error; i++)
		fill_session(&message.session[i], &attempt->report->session[i]);
	return error;
}

/* The server's list of calls, which is another one than this build's. */
static int receive_calls(struct attempt *attempt)
{
	struct door_calls calls;
	uint8_t proof[RC_DOOR_KEY_BYTES], computed[RC_DOOR_KEY_BYTES];
	char text[RC_DOOR_TEXT_MAX];
	int error = receive_message(attempt, DOOR_CALLS, &calls, sizeof calls);
	if (error)
		return error;
	memcpy(proof, calls.proof, sizeof proof);
	memset(calls.proof, 0, sizeof calls.proof);
	if ((attempt->by_key || attempt->by_munge) &&
	    (door_message_proof(attempt->proofs.seal, &calls, sizeof calls, computed) || !door_proof_equal(proof, computed))) {
		hr_log(HR_LOG_ERROR, "server %s: its list of calls was changed on the way; not trusted", attempt->server);
		return -EKEYREJECTED;
	}
	if (calls.count > RC_DOOR_CALLS_MAX)
		return not_headrace(attempt);
	int missing = door_calls_match(&calls, attempt->call_number, text);
	hr_log(missing < 0 ? HR_LOG_ERROR : missing ? HR_LOG_WARN : HR_LOG_INFO, "server %s: %s", attempt->server, text);
	return missing < 0 ? missing : 0;
}

static void fill_welcome(const struct attempt *attempt, const struct door_welcome *answer, rc_door_welcome_t *welcome)
{
	memset(welcome, 0, sizeof *welcome);
	welcome->fd = attempt->fd;
	memcpy(welcome->token, answer->token, sizeof welcome->token);
	welcome->card.len = answer->card_len;
	memcpy(welcome->card.data, answer->card, answer->card_len);
	welcome->gpus = answer->gpus;
	welcome->clients = answer->clients;
	welcome->workers = answer->workers;
	memcpy(welcome->text, answer->text, sizeof welcome->text);
	welcome->local = attempt->peer.local;
	welcome->other_calls = attempt->request.send_calls;
	memcpy(welcome->call_number, attempt->call_number, sizeof welcome->call_number);
}

/* Makes the keys of the channel, if it is to be encrypted. */
static int make_cipher(const struct attempt *attempt, rc_door_welcome_t *welcome)
{
	welcome->encrypts = attempt->encrypts;
	welcome->encrypted = attempt->challenge.flags & DOOR_ENCRYPT;
	if (!welcome->encrypted)
		return 0;
	int error = door_exchange_keys(&attempt->exchange, attempt->by_key || attempt->by_munge ? &attempt->key : NULL, &attempt->hello,
				       &attempt->challenge, &attempt->request, false, &welcome->cipher);
	if (error)
		hr_log(HR_LOG_ERROR, "server %s: its public key is invalid", attempt->server);
	return error;
}

static int run_attempt(struct attempt *attempt, rc_door_welcome_t *welcome)
{
	struct door_welcome answer;
	int error = attempt_connect(attempt);
	if (!error)
		error = say_hello(attempt);
	if (!error)
		error = judge_challenge(attempt);
	if (!error)
		error = make_request(attempt);
	if (!error)
		error = send_all(attempt, &attempt->request, sizeof attempt->request);
	if (attempt->wanted->purpose == RC_DOOR_NEW)
		attempt->deadline += (WORKER_TIMES - 1) * attempt->timeout;
	if (!error)
		error = receive_message(attempt, DOOR_WELCOME, &answer, sizeof answer);
	if (!error)
		error = check_welcome(attempt, &answer);
	if (!error && attempt->report)
		error = receive_report(attempt);
	if (!error && attempt->request.send_calls)
		error = receive_calls(attempt);
	if (!error) {
		int flags = fcntl(attempt->fd, F_GETFL);
		if (flags < 0 || fcntl(attempt->fd, F_SETFL, flags & ~O_NONBLOCK))
			error = -errno;
	}
	if (!error)
		fill_welcome(attempt, &answer, welcome);
	if (!error)
		error = make_cipher(attempt, welcome);
	return error;
}

static int read_credential(struct attempt *attempt)
{
	const char *kind = hr_setting_text(&credential);
	bool munge = !strcmp(kind, "munge");
	if (!munge && strcmp(kind, "key") != 0) {
		hr_log(HR_LOG_ERROR, "HEADRACE_CREDENTIAL=%s: want key or munge", kind);
		return -EINVAL;
	}
	/* Over a Unix socket the kernel names the user. */
	attempt->want_munge = munge && !*attempt->wanted->server.path;
	return 0;
}

/* Reads the time-out, and what this side demands. */
static int read_settings(struct attempt *attempt, uint64_t *timeout_ms)
{
	const rc_door_connect_t *wanted = attempt->wanted;
	uint64_t number = 0;
	int error = hr_setting_u64(&encrypt, &number);
	/* Unix sockets are not encrypted, as their bytes do not leave the kernel. */
	attempt->encrypts = wanted->encrypt || number;
	attempt->want_encryption = !*wanted->server.path && attempt->encrypts;
	if (!error)
		error = hr_setting_u64(&key_unix, &number);
	attempt->want_key = *wanted->server.path && number;
	if (!error)
		error = read_credential(attempt);
	*timeout_ms = wanted->timeout_ms;
	if (!error && !*timeout_ms)
		error = hr_setting_u64(&connect_timeout, timeout_ms);
	return error;
}

static int run_handshake(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome, rc_door_report_t *report)
{
	struct attempt attempt = { .wanted = wanted, .report = report, .fd = -1 };
	bool card_needed = door_has_card(wanted->purpose);
	if (card_needed && (!wanted->card || !wanted->card->len || wanted->card->len > HR_CARD_MAX))
		return -EINVAL;
	uint64_t timeout_ms;
	int error = read_settings(&attempt, &timeout_ms);
	if (error)
		return error;
	rc_server_name(&wanted->server, attempt.server, sizeof attempt.server);
	attempt.timeout = (int64_t)timeout_ms * 1000000;
	attempt.deadline = now_ns() + attempt.timeout;
	error = run_attempt(&attempt, welcome);
	if (error && attempt.fd >= 0)
		close(attempt.fd);
	door_forget(&attempt.key, sizeof attempt.key);
	door_forget(&attempt.exchange, sizeof attempt.exchange);
	door_forget(&attempt.proofs, sizeof attempt.proofs);
	return error;
}

int rc_door_connect(const rc_door_connect_t *wanted, rc_door_welcome_t *welcome)
{
	return run_handshake(wanted, welcome, NULL);
}

int rc_door_ask_report(const rc_door_connect_t *server, rc_door_welcome_t *welcome, rc_door_report_t *report)
{
	rc_door_connect_t wanted = *server;
	wanted.purpose = RC_DOOR_REPORT;
	int error = run_handshake(&wanted, welcome, report);
	if (error)
		return error;
	close(welcome->fd);
	welcome->fd = -1;
	explicit_bzero(&welcome->cipher, sizeof welcome->cipher); /* no channel follows */
	return 0;
}
