/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process with a thousand connections: the conformance suite's short form on each, and what waiting costs.
 *
 *	many --transport shm|tcp [--conns N] [--peers P]
 *
 * A hub process has one channel and N connections; each of P peer processes has N / P channels, as there is at most one
 * connection between two channels. The hub learns of its peers by hr_channel_incoming alone. Of what costs time only
 * counts are judged: system calls, and the hub's voluntary context switches.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define RING_BYTES 16384
#define STREAM_BYTES 100000 /* each way on each connection: the ring goes round several times */
#define FULL_MAX (4u << 20) /* a pipe that nobody reads takes less than this */
#define PIECE 3000

static const char *transport_name;
static uint32_t transport;
static int n_conns = 1000, n_peers = 5;

/* ---- the linker routes the channel's calls through here: ld --wrap ---- */

static unsigned long calls;
ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *message, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags);
int __real_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
	calls++;
	return __real_recv(fd, bytes, n, flags);
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *message, int flags)
{
	calls++;
	return __real_recvmsg(fd, message, flags);
}

int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms)
{
	calls++;
	return __real_epoll_wait(epoll, events, n, timeout_ms);
}

/* ---- one connection, at either end ---- */

struct end {
	hr_channel_t *channel; /* the hub's is the same for all */
	hr_conn_t *conn;
	int peer; /* number of the peer process; the hub learns it from the first bytes */
	uint32_t number; /* of the connection */
	bool greeted;
	uint64_t put, got, full; /* full: bytes put without anybody's reading */
	int error;
};

static uint64_t seed_of(const struct end *end, bool from_hub)
{
	return end->number * 2 + from_hub + 1;
}

/* Puts of the stream up to a total, as far as there is room; false: the connection has ended. */
static bool put_some(struct end *end, bool from_hub, uint64_t total)
{
	uint8_t bytes[PIECE];
	while (end->put < total) {
		size_t n = total - end->put < sizeof bytes ? (size_t)(total - end->put) : sizeof bytes, accepted;
		pattern_fill(seed_of(end, from_hub), end->put, bytes, n);
		struct iovec iov = { bytes, n };
		end->error = hr_channel_put(end->conn, &iov, 1, &accepted);
		if (end->error || !accepted)
			break;
		end->put += accepted;
	}
	return !end->error;
}

static bool get_some(struct end *end, bool from_hub, uint64_t total)
{
	uint8_t bytes[PIECE];
	while (end->got < total) {
		size_t n = total - end->got < sizeof bytes ? (size_t)(total - end->got) : sizeof bytes, delivered;
		struct iovec iov = { bytes, n };
		end->error = hr_channel_get(end->conn, &iov, 1, &delivered);
		if (end->error || !delivered)
			break;
		pattern_check(seed_of(end, from_hub), end->got, bytes, delivered);
		end->got += delivered;
	}
	return !end->error;
}

/* ---- a peer process ---- */

struct peer_process {
	pid_t pid;
	int sync; /* hub's end */
};

static void meet(int sync, char expected)
{
	char byte = expected;
	CHECK_IS(send(sync, &byte, 1, MSG_NOSIGNAL), 1);
	CHECK_IS(recv(sync, &byte, 1, MSG_WAITALL), 1);
	CHECK_IS(byte, expected);
}

/* Sleeps on all channels at once. */
static void sleep_on_all(struct end *ends, int n)
{
	static struct pollfd *entries;
	if (!entries)
		CHECK(entries = calloc((size_t)n, sizeof *entries));
	bool ready = false;
	for (int i = 0; i < n; i++) {
		entries[i] = (struct pollfd){ .fd = hr_channel_fd(ends[i].channel), .events = POLLIN };
		ready |= hr_channel_arm(ends[i].channel, 1) != 0;
	}
	if (!ready)
		CHECK(poll(entries, (nfds_t)n, -1) >= 0);
}

static void peer_stream(struct end *ends, int n)
{
	for (;;) {
		uint64_t done = 0;
		for (int i = 0; i < n; i++) {
			CHECK(put_some(&ends[i], false, STREAM_BYTES));
			CHECK(get_some(&ends[i], true, STREAM_BYTES));
			done += ends[i].put == STREAM_BYTES && ends[i].got == STREAM_BYTES;
		}
		if (done == (uint64_t)n)
			return;
		sleep_on_all(ends, n);
	}
}

/* Until no more goes in. */
static void peer_fill(struct end *ends, int n, int sync)
{
	for (int i = 0; i < n; i++) {
		uint64_t before = ends[i].put;
		CHECK(put_some(&ends[i], false, before + FULL_MAX));
		CHECK(ends[i].put > before && ends[i].put < before + FULL_MAX);
		ends[i].full = ends[i].put;
		CHECK_IS(send(sync, &ends[i].full, sizeof ends[i].full, MSG_NOSIGNAL), sizeof ends[i].full);
	}
}

/* The last put of peer_fill, which was short, gets what it lacks: over tcp an end in the middle of one looks like death. */
static void peer_finish(struct end *ends, int n)
{
	for (int i = 0; i < n; i++) {
		uint64_t pieces = (ends[i].full - STREAM_BYTES + PIECE - 1) / PIECE, target = STREAM_BYTES + pieces * PIECE;
		struct side side = { .channel = ends[i].channel, .conn = ends[i].conn };
		uint8_t bytes[PIECE];
		pattern_fill(seed_of(&ends[i], false), ends[i].put, bytes, (size_t)(target - ends[i].put));
		put_all(&side, bytes, (size_t)(target - ends[i].put));
		ends[i].put = target;
	}
}

/* The hub's echoes come to one connection; the others sleep. */
static void peer_answer_one(struct end *end, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		uint64_t target = end->got + 8;
		while (end->got < target) {
			CHECK(get_some(end, true, target));
			if (end->got < target)
				CHECK_IS(hr_channel_wait(end->channel, 0, -1), 1);
		}
		CHECK(put_some(end, false, end->put + 8));
	}
}

static void be_peer(int index, int sync, const hr_card_t *hub)
{
	int n = n_conns / n_peers;
	struct end *ends = calloc((size_t)n, sizeof *ends);
	CHECK(ends);
	for (int i = 0; i < n; i++) {
		hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
		attr.transports = transport;
		attr.ring_bytes = RING_BYTES;
		attr.timeout_ms = 60000;
		attr.flags = i % 4 ? HR_CHANNEL_NO_LISTEN : 0; /* either side may connect to the other where both listen */
		hr_card_t own;
		ends[i].number = (uint32_t)(index * n + i);
		CHECK_IS(hr_channel_init(&attr, &ends[i].channel, &own), 0);
		CHECK_IS(hr_channel_connect(ends[i].channel, hub, NULL, &ends[i].conn), 0);
	}
	/* Which one this is goes first. */
	for (int i = 0; i < n; i++) {
		struct side side = { .channel = ends[i].channel, .conn = ends[i].conn };
		put_all(&side, &ends[i].number, sizeof ends[i].number);
	}
	peer_stream(ends, n);
	meet(sync, 's');
	peer_fill(ends, n, sync);
	meet(sync, 'f');
	meet(sync, 'r');
	peer_finish(ends, n);
	meet(sync, 'p');
	if (index == 0)
		peer_answer_one(&ends[0], 200);
	meet(sync, 'w');
	meet(sync, 'i');
	if (index == 1)
		raise(SIGKILL);
	for (int i = 0; i < n; i++)
		hr_channel_finalize(ends[i].channel);
	free(ends);
	_exit(0);
}

/* ---- the hub ---- */

struct hub {
	hr_channel_t *channel;
	struct end *ends;     /* by number */
	int known;
	struct peer_process *peers;
};

/* A new connection says its number first. */
static struct end *greet(struct hub *hub, hr_conn_t *conn)
{
	uint32_t number = UINT32_MAX;
	struct iovec iov = { &number, sizeof number };
	size_t delivered;
	CHECK_IS(hr_channel_get(conn, &iov, 1, &delivered), 0);
	if (!delivered)
		return NULL;
	CHECK_IS(delivered, sizeof number);
	CHECK(number < (uint32_t)n_conns && !hub->ends[number].conn);
	struct end *end = &hub->ends[number];
	end->conn = conn;
	end->number = number;
	end->peer = (int)number / (n_conns / n_peers);
	hr_conn_set_user(conn, end);
	hub->known++;
	return end;
}

static void take_incoming(struct hub *hub)
{
	hr_card_t card;
	hr_conn_t *conn;
	while (hr_channel_incoming(hub->channel, &card))
		CHECK_IS(hr_channel_connect(hub->channel, &card, NULL, &conn), 0);
}

/* Serves what is ready until each has moved as much, both ways. Looks at no connection that has nothing. */
static void hub_stream(struct hub *hub)
{
	for (int done = 0; done < n_conns;) {
		hr_conn_t *conn;
		take_incoming(hub);
		while ((conn = hr_channel_ready(hub->channel, 1))) {
			struct end *end = hr_conn_user(conn);
			if (!end)
				end = greet(hub, conn);
			if (!end)
				continue;
			bool before = end->put == STREAM_BYTES && end->got == STREAM_BYTES;
			CHECK(get_some(end, false, STREAM_BYTES));
			CHECK(put_some(end, true, STREAM_BYTES));
			done += !before && end->put == STREAM_BYTES && end->got == STREAM_BYTES;
		}
		if (done < n_conns)
			CHECK_IS(hr_channel_wait(hub->channel, 1, 60000), 1);
	}
	CHECK_IS(hub->known, n_conns);
}

/* What the peers' puts were told was accepted arrives, and no more. */
static void hub_drain(struct hub *hub)
{
	for (int i = 0; i < n_conns; i++) {
		struct end *end = &hub->ends[i];
		CHECK_IS(recv(hub->peers[end->peer].sync, &end->full, sizeof end->full, MSG_WAITALL), sizeof end->full);
	}
	for (int p = 0; p < n_peers; p++)
		meet(hub->peers[p].sync, 'f');
	for (int i = 0; i < n_conns; i++) {
		struct end *end = &hub->ends[i];
		while (end->got < end->full) {
			CHECK(get_some(end, false, end->full));
			if (end->got < end->full)
				CHECK_IS(hr_channel_wait(hub->channel, 0, 60000), 1);
		}
		CHECK(get_some(end, false, end->full + 1));
		CHECK_IS(end->got, end->full);
	}
}

static void hub_takes_rest(struct hub *hub)
{
	for (int i = 0; i < n_conns; i++) {
		struct end *end = &hub->ends[i];
		uint64_t pieces = (end->full - STREAM_BYTES + PIECE - 1) / PIECE, target = STREAM_BYTES + pieces * PIECE;
		while (end->got < target) {
			CHECK(get_some(end, false, target));
			if (end->got < target)
				CHECK_IS(hr_channel_wait(hub->channel, 0, 60000), 1);
		}
	}
}

static uint64_t looks_at_others(const struct hub *hub)
{
	uint64_t looks = 0;
	for (int i = 1; i < n_conns; i++) {
		hr_conn_stats_t stats = { .size = sizeof stats };
		CHECK_IS(hr_conn_stats(hub->ends[i].conn, &stats), 0);
		looks += stats.looks;
	}
	return looks;
}

/* Puts and gets on one connection, with all others idle: what that costs must not depend on how many there are. */
static void hub_serves_one(struct hub *hub, int rounds)
{
	struct end *end = &hub->ends[0];
	uint64_t looks;
	int waited;
	do { /* until all are asleep: a wait that times out may have handled events without effect last */
		looks = looks_at_others(hub);
		waited = hr_channel_wait(hub->channel, 0, 10);
		CHECK(waited == 0 || (waited == 1 && !hr_channel_ready(hub->channel, 0)));
	} while (waited || looks_at_others(hub) != looks);
	unsigned long before = calls;
	for (int i = 0; i < rounds; i++) {
		uint64_t target = end->got + 8;
		CHECK(put_some(end, true, end->put + 8));
		while (end->got < target) {
			hr_conn_t *conn = hr_channel_ready(hub->channel, 0);
			if (conn)
				CHECK(conn == end->conn);
			if (conn)
				CHECK(get_some(end, false, target));
			else
				CHECK_IS(hr_channel_wait(hub->channel, 0, 60000), 1);
		}
	}
	printf("one of %d connections at work: %.1f receiving system calls per round trip\n", n_conns,
	       (double)(calls - before) / rounds);
	CHECK((calls - before) / (unsigned long)rounds < 12);
	CHECK_IS(looks_at_others(hub), looks);
}

static long voluntary_switches(void)
{
	struct rusage usage;
	CHECK_IS(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_nvcsw;
}

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* All connections idle: the sleep is one sleep. */
static void hub_idles(struct hub *hub)
{
	CHECK_IS(hr_channel_wait(hub->channel, 0, 10), 0);
	long switches = voluntary_switches();
	double cpu = cpu_seconds();
	CHECK_IS(hr_channel_wait(hub->channel, 0, 2000), 0);
	cpu = cpu_seconds() - cpu;
	switches = voluntary_switches() - switches;
	printf("%d idle connections for 2 s: %ld voluntary context switches, %.3f %% of a core\n", n_conns, switches,
	       100 * cpu / 2);
	CHECK(switches <= 3); /* falling asleep is one; a time-out of set-ups or a check of silence may come in between */
}

static long resident_kb(void)
{
	long pages = 0, resident = 0;
	FILE *file = fopen("/proc/self/statm", "r");
	CHECK(file && fscanf(file, "%ld %ld", &pages, &resident) == 2);
	fclose(file);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* What a connection says of its memory is what the process has more, and within what was asked for. */
static void check_memory(struct hub *hub, long before_kb)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(hub->ends[0].conn, &stats), 0);
	long each = (resident_kb() - before_kb) * 1024 / n_conns;
	printf("memory per connection: %llu bytes by its statistics, %zu expected, %ld more resident\n",
	       (unsigned long long)stats.memory_bytes, hr_channel_conn_bytes(hub->channel, transport), each);
	CHECK_IS(stats.memory_bytes, hr_channel_conn_bytes(hub->channel, transport));
	CHECK(stats.memory_bytes <= 65536);
#ifndef HR_SANITIZED /* whose own memory is resident, too */
	CHECK(each <= (long)stats.memory_bytes + 4096); /* the kernel's part is not resident here; a page is rounded up */
#endif
}

/* One peer process has been killed, the others finalize: each connection learns what became of its own peer. */
static void hub_sees_ends(struct hub *hub)
{
	for (int ended = 0; ended < n_conns;) {
		hr_conn_t *conn;
		while ((conn = hr_channel_ready(hub->channel, 0))) {
			struct end *end = hr_conn_user(conn);
			CHECK(!end->error);
			get_some(end, false, end->got + 1);
			ended += end->error != 0;
		}
		if (ended < n_conns)
			CHECK_IS(hr_channel_wait(hub->channel, 0, 60000), 1);
	}
	for (int i = 0; i < n_conns; i++) {
		const struct end *end = &hub->ends[i];
		CHECK_IS(end->error, end->peer == 1 ? -ECONNRESET : -ESHUTDOWN);
	}
}

static void start_peers(struct hub *hub, const hr_card_t *card)
{
	for (int p = 0; p < n_peers; p++) {
		int sync[2];
		CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync), 0);
		fflush(NULL);
		hub->peers[p] = (struct peer_process){ fork(), sync[0] };
		CHECK(hub->peers[p].pid >= 0);
		if (hub->peers[p].pid == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			be_peer(p, sync[1], card);
		}
		close(sync[1]);
	}
}

static void meet_all(struct hub *hub, char what)
{
	for (int p = 0; p < n_peers; p++)
		meet(hub->peers[p].sync, what);
}

static void be_hub(void)
{
	struct hub hub = { .ends = calloc((size_t)n_conns, sizeof(struct end)),
			   .peers = calloc((size_t)n_peers, sizeof(struct peer_process)) };
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	hr_card_t card;
	CHECK(hub.ends && hub.peers);
	attr.transports = transport;
	attr.ring_bytes = RING_BYTES;
	attr.timeout_ms = 60000;
	CHECK_IS(hr_channel_init(&attr, &hub.channel, &card), 0);
	long before_kb = resident_kb();
	start_peers(&hub, &card);
	hub_stream(&hub);
	meet_all(&hub, 's');
	hub_drain(&hub);
	check_memory(&hub, before_kb);
	meet_all(&hub, 'r');
	meet_all(&hub, 'p');
	hub_takes_rest(&hub);
	hub_serves_one(&hub, 200);
	meet_all(&hub, 'w');
	hub_idles(&hub);
	meet_all(&hub, 'i');
	hub_sees_ends(&hub);
	hr_channel_finalize(hub.channel);
	for (int p = 0; p < n_peers; p++) {
		int status;
		CHECK_IS(waitpid(hub.peers[p].pid, &status, 0), hub.peers[p].pid);
		CHECK(p == 1 ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
			     : WIFEXITED(status) && WEXITSTATUS(status) == 0);
		close(hub.peers[p].sync);
	}
	free(hub.ends);
	free(hub.peers);
}

/* As many as the system lets us. False: not enough, neither here nor in a peer process. */
static bool raise_descriptors(void)
{
	struct rlimit limit;
	CHECK_IS(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = limit.rlim_max;
	CHECK_IS(setrlimit(RLIMIT_NOFILE, &limit), 0);
	rlim_t here = (rlim_t)n_conns * 2 + 100, there = (rlim_t)(n_conns / n_peers) * 6 + 100;
	return limit.rlim_cur >= (here > there ? here : there);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "transport", required_argument, NULL, 't' },
						 { "conns", required_argument, NULL, 'c' },
						 { "peers", required_argument, NULL, 'p' },
						 { 0 } };
	int option;
	while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (option) {
		case 't': transport_name = optarg; break;
		case 'c': n_conns = atoi(optarg); break;
		case 'p': n_peers = atoi(optarg); break;
		default: return 2;
		}
	}
	if (!transport_name || n_peers < 2 || n_conns < n_peers || n_conns % n_peers)
		return 2;
	transport = !strcmp(transport_name, "shm") ? HR_TRANSPORT_SHM : HR_TRANSPORT_TCP;
	if (!raise_descriptors()) {
		printf("SKIP: the limit of open files does not allow %d connections\n", n_conns);
		return 77;
	}
	alarm(300);
	setenv("HEADRACE_SPIN_US", "0", 1); /* so that the counts are those of sleeping */
	be_hub();
	printf("PASS: %s: %d connections in one process, %d peer processes\n", transport_name, n_conns, n_peers);
	return 0;
}
