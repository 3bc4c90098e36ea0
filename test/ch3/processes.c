/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes over a real channel: messages of every kind in both directions at once, sleeping and waking, a peer
 * that dies, a peer that closes. Over shared memory and TCP, or over the transports that the arguments name.
 */
#include "ch3/ch3.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                             \
	do {                                                                                         \
		if (!(condition)) {                                                                  \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);    \
			_exit(1);                                                                    \
		}                                                                                    \
	} while (0)

enum { TYPE = CH3_TYPE_FIRST, TYPE_DEFERRED };
#define LONGEST (3 << 20)

struct header {
	uint32_t number;
	uint32_t len;
};

/* A message being received. */
struct arrival {
	struct header header;
	ch3_rndv_t *rndv;
	struct arrival *next;
	char bytes[];
};

/* State of this process, one of the two. */
static struct {
	ch3_t *engine;
	ch3_vc_t *vc;
	uint32_t started, finished;
	uint64_t sent; /* bytes of payload */
	int failure;
	struct arrival *deferred;
	int sync; /* a socket to the other process, for synchronisation outside the channel */
} me;

static char byte_at(size_t i, uint32_t seed)
{
	return (char)(seed * 29 + i * 3 + (i >> 9));
}

static void on_done(void *context, int error, size_t bytes)
{
	struct arrival *arrival = context;
	CHECK(error == 0);
	CHECK(bytes == arrival->header.len);
	for (size_t i = 0; i < bytes; i += bytes < 4096 ? 1 : 61)
		CHECK(arrival->bytes[i] == byte_at(i, arrival->header.number));
	free(arrival);
	me.finished++;
}

static int on_message(void *defer, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct header header;
	CHECK(incoming->header_len == sizeof header);
	memcpy(&header, incoming->header, sizeof header);
	CHECK(header.number == me.started++);
	CHECK(header.len == incoming->payload_len);
	struct arrival *arrival = malloc(sizeof *arrival + header.len);
	arrival->header = header;
	arrival->rndv = incoming->rndv;
	if (defer && incoming->rndv) {
		arrival->next = me.deferred;
		me.deferred = arrival;
		sink->defer = true;
		return 0;
	}
	/* Three pieces, the first two of odd sizes. */
	size_t a = header.len / 3, b = header.len / 2;
	sink->iov[0] = (struct iovec){ arrival->bytes, a };
	sink->iov[1] = (struct iovec){ arrival->bytes + a, b - a };
	sink->iov[2] = (struct iovec){ arrival->bytes + b, header.len - b };
	sink->n = header.len ? 3 : 0;
	sink->done = on_done;
	sink->context = arrival;
	return 0;
}

static void accept_deferred(void)
{
	while (me.deferred) {
		struct arrival *arrival = me.deferred;
		me.deferred = arrival->next;
		struct iovec iov = { arrival->bytes, arrival->header.len };
		CHECK(ch3_rndv_accept(arrival->rndv, &iov, 1, on_done, arrival) == 0);
	}
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)context;
	CHECK(vc == me.vc && me.failure == 0);
	me.failure = error;
}

static void progress(void)
{
	CHECK(ch3_progress_wait(me.engine, 20000) > 0);
}

static void side_open(uint32_t transport, const char *name, int fd)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_card_t mine, peer;
	memset(&me, 0, sizeof me);
	me.sync = fd;
	attr.transports = transport;
	CHECK(ch3_open(&attr, &me.engine, &mine) == 0);
	CHECK(ch3_register(me.engine, TYPE, on_message, NULL) == 0);
	CHECK(ch3_register(me.engine, TYPE_DEFERRED, on_message, &me) == 0);
	ch3_on_failure(me.engine, on_failure, NULL);
	CHECK(write(fd, &mine, sizeof mine) == sizeof mine);
	CHECK(read(fd, &peer, sizeof peer) == sizeof peer);
	CHECK(ch3_connect(me.engine, &peer, NULL, NULL, &me.vc) == 0);
	int state;
	while ((state = ch3_vc_state(me.vc)) == 0)
		CHECK(ch3_progress_wait(me.engine, 1) >= 0);
	CHECK(state == 1 && !strcmp(hr_conn_transport(ch3_vc_conn(me.vc)), name));
}

static ch3_request_t *send_message(uint32_t number, uint32_t len, unsigned type, unsigned flags, char *bytes)
{
	struct header header = { number, len };
	ch3_request_t *request;
	me.sent += len;
	for (size_t i = 0; i < len; i++)
		bytes[i] = byte_at(i, number);
	struct iovec iov[2] = { { bytes, len / 5 }, { bytes + len / 5, len - len / 5 } };
	CHECK(ch3_send(me.vc, type, &header, sizeof header, iov, len ? 2 : 0, flags, &request) == 0);
	return request;
}

/* Sends a short message and waits for its completion. */
static void send_short(uint32_t number, uint32_t len, char *bytes)
{
	ch3_request_t *request = send_message(number, len, TYPE, 0, bytes);
	while (request && !ch3_request_test(request))
		progress();
	CHECK(!request || ch3_request_error(request) == 0);
	ch3_request_free(request);
}

/* Both sides send many messages of all sizes and flags, up to UNDER_WAY at a time. */
static void all_kinds(bool child)
{
	enum { N = 600, UNDER_WAY = 4 };
	static const uint32_t sizes[] = { 0, 1, 8, 100, 1000, 4096, 9000, 20000, 65536, 65537, 300000, LONGEST };
	static const unsigned flags[] = { 0, CH3_SEND_EAGER, CH3_SEND_COPY, CH3_SEND_SYNC,
					  CH3_SEND_COPY | CH3_SEND_EAGER };
	static char bytes[UNDER_WAY][LONGEST];
	ch3_request_t *request[UNDER_WAY] = { NULL };
	uint32_t state = child ? 1 : 2;
	for (uint32_t i = 0; i < N; i++) {
		unsigned slot = i % UNDER_WAY;
		while (request[slot] && !ch3_request_test(request[slot])) {
			progress();
			accept_deferred();
		}
		if (request[slot])
			CHECK(ch3_request_error(request[slot]) == 0);
		ch3_request_free(request[slot]);
		state = state * 1664525 + 1013904223;
		uint32_t len = sizes[(state >> 8) % (i % 10 ? 8 : 12)];
		unsigned type = state >> 16 & 1 ? TYPE : TYPE_DEFERRED;
		request[slot] = send_message(i, len, type, flags[(state >> 17) % 5], bytes[slot]);
		if (i % 50 == 0)
			ch3_progress_poll(me.engine);
	}
	for (int slot = 0; slot < UNDER_WAY; slot++) {
		while (request[slot] && !ch3_request_test(request[slot])) {
			progress();
			accept_deferred();
		}
		ch3_request_free(request[slot]);
	}
	while (me.finished < N) {
		accept_deferred();
		if (me.finished < N)
			progress();
	}
	CHECK(me.failure == 0);
	/* Payloads that are written into the receiver's memory do not go through the pipe. */
	const char *mode = getenv("HEADRACE_RENDEZVOUS");
	bool written = mode && !strcmp(mode, "write") && !strcmp(hr_conn_transport(ch3_vc_conn(me.vc)), "verbs");
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK(hr_conn_stats(ch3_vc_conn(me.vc), &stats) == 0);
	CHECK(written == (stats.put_bytes < me.sent));
}

/* One side sleeps in ch3_progress_wait until the other side sends, 100 ms later. */
static void sleeper_wakes(bool child)
{
	static char bytes[100];
	for (uint32_t i = 0; i < 3; i++) {
		if (child) {
			usleep(100000);
			send_short(i, sizeof bytes, bytes);
			while (me.finished < i + 1)
				progress();
		} else {
			while (me.finished < i + 1)
				progress();
			send_short(i, sizeof bytes, bytes);
		}
	}
	CHECK(child || ch3_progress_wait(me.engine, 0) >= 0);
}

static void wait_failure(int error, int other)
{
	while (!me.failure)
		progress();
	CHECK(me.failure == error || me.failure == other);
	CHECK(ch3_vc_state(me.vc) == me.failure);
}

/* The child dies with announced and deferred payloads on both sides. */
static void peer_dies(bool child)
{
	static char a[LONGEST], b[LONGEST];
	ch3_request_t *request[2];
	request[0] = send_message(0, LONGEST, TYPE_DEFERRED, 0, a);
	request[1] = send_message(1, LONGEST, TYPE_DEFERRED, CH3_SEND_SYNC, b);
	while (me.started < 2)
		progress();
	/* The child's announcements may still be in its queue. It dies when the parent has received all of them. */
	char byte = 0;
	if (!child)
		CHECK(write(me.sync, &byte, 1) == 1);
	while (child && recv(me.sync, &byte, 1, MSG_DONTWAIT) < 0)
		CHECK(ch3_progress_wait(me.engine, 1) >= 0);
	if (child)
		kill(getpid(), SIGKILL);
	wait_failure(-ECONNRESET, -ETIMEDOUT);
	for (int i = 0; i < 2; i++) {
		CHECK(ch3_request_test(request[i]) == 1);
		CHECK(ch3_request_error(request[i]) == me.failure);
		ch3_request_free(request[i]);
	}
	while (me.deferred) {
		struct arrival *arrival = me.deferred;
		me.deferred = arrival->next;
		struct iovec iov = { arrival->bytes, arrival->header.len };
		CHECK(ch3_rndv_accept(arrival->rndv, &iov, 1, on_done, arrival) == me.failure);
		free(arrival);
	}
	CHECK(ch3_progress_wait(me.engine, 50) == 0);
}

/* The child sends and closes at once: the parent receives all messages, then -ESHUTDOWN. */
static void peer_closes(bool child)
{
	enum { N = 200, LEN = 20000 };
	static char bytes[LEN];
	if (child) {
		for (uint32_t i = 0; i < N; i++)
			CHECK(send_message(i, LEN, TYPE, CH3_SEND_COPY | CH3_SEND_EAGER, bytes) == NULL);
		return;
	}
	wait_failure(-ESHUTDOWN, -ESHUTDOWN);
	CHECK(me.finished == N);
}

static const struct {
	const char *name;
	void (*side)(bool child);
	int status; /* of the child: 0 or the signal */
} tests[] = {
	{ "messages of all kinds, both ways at once", all_kinds, 0 },
	{ "a sleeper wakes", sleeper_wakes, 0 },
	{ "a peer dies", peer_dies, SIGKILL },
	{ "a peer closes", peer_closes, 0 },
};

static void run(size_t test, uint32_t transport, const char *name)
{
	int fd[2], status;
	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
	pid_t child = fork();
	CHECK(child >= 0);
	alarm(60);
	side_open(transport, name, fd[child == 0]);
	tests[test].side(child == 0);
	/* A side must not close while the other still waits for a message: each reports that it is done. */
	if (tests[test].side == all_kinds || tests[test].side == sleeper_wakes) {
		char byte = 0;
		CHECK(write(fd[child == 0], &byte, 1) == 1 && read(fd[child == 0], &byte, 1) == 1);
	}
	ch3_close(me.engine);
	if (child == 0)
		exit(0);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(tests[test].status ? WIFSIGNALED(status) && WTERMSIG(status) == tests[test].status :
				   WIFEXITED(status) && WEXITSTATUS(status) == 0);
	close(fd[0]);
	close(fd[1]);
	printf("%s: %s: passed\n", name, tests[test].name);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		uint32_t bit;
		bool by_default;
	} transports[] = {
		{ "shm", HR_TRANSPORT_SHM, true },
		{ "tcp", HR_TRANSPORT_TCP, true },
		{ "verbs", HR_TRANSPORT_VERBS, false },
	};
	for (size_t i = 0; i < sizeof transports / sizeof *transports; i++) {
		bool wanted = argc == 1 && transports[i].by_default;
		for (int a = 1; a < argc; a++)
			wanted |= !strcmp(argv[a], transports[i].name);
		for (size_t test = 0; wanted && test < sizeof tests / sizeof *tests; test++)
			run(test, transports[i].bit, transports[i].name);
	}
	return 0;
}
