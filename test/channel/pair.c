/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the two processes of a channel test and connects them. */
#include "config.h"

#include "test/channel/pair.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *case_name = "";
static int case_side;

void check_failed(const char *file, int line, const char *what, long long value)
{
	fprintf(stderr, "%s, process %d: %s:%d: not so: %s (value %lld, errno %s)\n", case_name, case_side, file, line,
		what, value, strerror(errno));
	fflush(stderr);
	_exit(1);
}

/* ---- small things ---- */

uint64_t rng(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15ull); /* splitmix64 */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

size_t rng_between(uint64_t *state, size_t low, size_t high)
{
	return low + (size_t)(rng(state) % (high - low + 1));
}

static uint64_t pattern_word(uint64_t seed, uint64_t index)
{
	uint64_t state = seed * 0x2545f4914f6cdd1dull + index;
	return rng(&state);
}

static uint8_t pattern_byte(uint64_t seed, uint64_t offset)
{
	return (uint8_t)(pattern_word(seed, offset / 8) >> (offset % 8 * 8));
}

void pattern_fill(uint64_t seed, uint64_t offset, void *bytes, size_t n)
{
	uint8_t *out = bytes;
	size_t i = 0;
	for (; i < n && (offset + i) % 8; i++)
		out[i] = pattern_byte(seed, offset + i);
	for (; i + 8 <= n; i += 8) {
		uint64_t word = pattern_word(seed, (offset + i) / 8);
		for (int b = 0; b < 8; b++)
			out[i + (size_t)b] = (uint8_t)(word >> (b * 8));
	}
	for (; i < n; i++)
		out[i] = pattern_byte(seed, offset + i);
}

void pattern_check(uint64_t seed, uint64_t offset, const void *bytes, size_t n)
{
	uint8_t expected[4096];
	for (size_t at = 0; at < n; at += sizeof expected) {
		size_t count = n - at < sizeof expected ? n - at : sizeof expected;
		pattern_fill(seed, offset + at, expected, count);
		if (!memcmp(expected, (const uint8_t *)bytes + at, count))
			continue;
		size_t i = 0;
		while (expected[i] == ((const uint8_t *)bytes)[at + i])
			i++;
		check_failed(__FILE__, __LINE__, "content is right; first wrong byte at the value",
			     (long long)(offset + at + i));
	}
}

int count_entries(const char *folder)
{
	DIR *dir = opendir(folder);
	if (!dir)
		return -1;
	int n = 0;
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* Whatever else runs on the machine may put its own names there, and the libibverbs double has a folder. */
static int count_ours_in_shm(void)
{
	DIR *dir = opendir("/dev/shm");
	if (!dir)
		return -1;
	int n = 0;
	for (struct dirent *entry; (entry = readdir(dir));)
		n += (strstr(entry->d_name, "headrace") || !strncmp(entry->d_name, "hr", 2)) &&
		     strncmp(entry->d_name, "hr-verbs-double", 15) != 0;
	closedir(dir);
	return n;
}

void tcp_pair(int fds[2])
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof address;
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(listener >= 0);
	CHECK_IS(bind(listener, (struct sockaddr *)&address, len), 0);
	CHECK_IS(listen(listener, 1), 0);
	CHECK_IS(getsockname(listener, (struct sockaddr *)&address, &len), 0);
	fds[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK_IS(connect(fds[0], (struct sockaddr *)&address, len), 0);
	fds[1] = accept(listener, NULL, NULL);
	CHECK(fds[1] >= 0);
	close(listener);
}

/* ---- between the processes ---- */

void side_send(struct side *side, const void *bytes, size_t n)
{
	CHECK_IS(send(side->sync, bytes, n, MSG_NOSIGNAL), n);
}

void side_receive(struct side *side, void *bytes, size_t n)
{
	CHECK_IS(recv(side->sync, bytes, n, MSG_WAITALL), n);
}

void side_meet(struct side *side)
{
	char byte = 'm';
	side_send(side, &byte, 1);
	side_receive(side, &byte, 1);
}

void side_keeps(struct side *side, uint8_t *bytes, size_t n)
{
	char byte;
	memset(bytes, 0x77, n);
	CHECK_IS(recv(side->sync, &byte, 1, 0), 0);
	for (size_t i = 0; i < n; i++)
		CHECK_IS(bytes[i], 0x77);
}

void side_refuses(const struct side *side, const char *variable, const char *const *values, size_t n)
{
	hr_channel_attr_t attr = side_attr(side);
	hr_channel_t *channel;
	hr_card_t card;
	for (size_t i = 0; i < n; i++) {
		setenv(variable, values[i], 1);
		CHECK(hr_channel_init(&attr, &channel, &card) < 0);
	}
}

void side_swap_cards(struct side *side)
{
	side_send(side, &side->own, sizeof side->own);
	side_receive(side, &side->peer, sizeof side->peer);
}

/* ---- setting up ---- */

hr_channel_attr_t side_attr(const struct side *side)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = side->transport;
	attr.timeout_ms = PAIR_TIMEOUT_MS;
	return attr;
}

void side_open(struct side *side, const hr_channel_attr_t *attr)
{
	CHECK_IS(hr_channel_init(attr, &side->channel, &side->own), 0);
	CHECK(side->own.len > 0 && side->own.len <= HR_CARD_MAX);
	side_swap_cards(side);
}

void side_wait_up(struct side *side, hr_conn_t *conn)
{
	int state;
	while ((state = hr_conn_state(conn)) == 0)
		CHECK(hr_channel_wait(side->channel, 1, 1000) >= 0);
	CHECK_IS(state, 1);
	CHECK(!strcmp(hr_conn_transport(conn), side->transport_name));
}

static void run_side(const struct test_case *test, struct side *side)
{
	int fds_before = count_entries("/proc/self/fd");
	hr_channel_attr_t attr = side_attr(side);
	if (test->flags & PAIR_SMALL_RING)
		attr.ring_bytes = 65536;
	if (test->flags & (side->index ? PAIR_1_SLEEPS : PAIR_0_SLEEPS))
		attr.flags |= HR_CHANNEL_SLEEPS;
	if (!(test->flags & PAIR_OWN_SETUP)) {
		side_open(side, &attr);
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		side_wait_up(side, side->conn);
	}
	test->run(side);
	hr_channel_finalize(side->channel);
	int given = side->given[side->index] >= 0;
	if (given)
		close(side->given[side->index]);
	int passed_on = (test->flags & (PAIR_GIVEN_UNIX | PAIR_GIVEN_TCP)) != 0;
	CHECK_IS(count_entries("/proc/self/fd"), fds_before - passed_on);
}

static void make_given(const struct test_case *test, int given[2])
{
	given[0] = given[1] = -1;
	if (test->flags & PAIR_GIVEN_UNIX)
		CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, given), 0);
	if (test->flags & PAIR_GIVEN_TCP)
		tcp_pair(given);
}

static void be_side(const struct test_case *test, struct side *side, const int sync[2], int index)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	case_side = side->index = index;
	side->sync = sync[index];
	close(sync[!index]);
	if (side->given[!index] >= 0)
		close(side->given[!index]);
	if (test->flags & PAIR_NO_SPIN)
		setenv("HEADRACE_SPIN_US", "0", 1);
	if (test->flags & PAIR_FULL_FENCE)
		setenv("HEADRACE_MEMBARRIER", "0", 1);
	run_side(test, side);
	fflush(stdout);
	_exit(0);
}

/* ---- the supervisor ---- */

/* Waits for a child up to the limit, and kills it then; false if it had to, or it ended as it should not. */
static bool reap(pid_t pid, unsigned flags, const struct timespec *limit)
{
	int status = 0;
	for (;;) {
		pid_t got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			break;
		struct timespec now, pause = { 0, 2000000 };
		clock_gettime(CLOCK_MONOTONIC, &now);
		if (now.tv_sec > limit->tv_sec) {
			fprintf(stderr, "%s: hangs\n", case_name);
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return false;
		}
		nanosleep(&pause, NULL);
	}
	bool died = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	if (died || flags & PAIR_0_DIES)
		return died && flags & (PAIR_0_DIES | PAIR_0_MAY_DIE);
	if (WIFSIGNALED(status))
		fprintf(stderr, "%s: killed by signal %d\n", case_name, WTERMSIG(status));
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool pair_run(const struct test_case *test, uint32_t transport, const char *name, unsigned scale)
{
	struct side side = { .transport = transport, .transport_name = name, .scale = scale };
	int sync[2];
	pid_t pids[2];
	int in_shm = count_ours_in_shm();
	case_name = test->name;
	CHECK_IS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync), 0);
	make_given(test, side.given);
	fflush(NULL);
	for (int i = 0; i < 2; i++) {
		pids[i] = fork();
		CHECK(pids[i] >= 0);
		if (pids[i] == 0)
			be_side(test, &side, sync, i);
	}
	for (int i = 0; i < 2; i++) {
		close(sync[i]);
		if (side.given[i] >= 0)
			close(side.given[i]);
	}
	struct timespec limit;
	clock_gettime(CLOCK_MONOTONIC, &limit);
	limit.tv_sec += PAIR_LIMIT_S;
	bool first = reap(pids[0], test->flags, &limit);
	bool second = reap(pids[1], 0, &limit);
	if (count_ours_in_shm() > in_shm)
		fprintf(stderr, "%s: something new lies in /dev/shm\n", case_name);
	return first && second && count_ours_in_shm() <= in_shm;
}

int pair_run_all(const struct test_case *tests, size_t count, uint32_t transport, const char *name)
{
	int failed = 0;
	for (size_t i = 0; i < count; i++) {
		bool passed = pair_run(&tests[i], transport, name, 1);
		printf("%s: %s\n", passed ? "PASS" : "FAIL", tests[i].name);
		fflush(stdout);
		failed += !passed;
	}
	return failed ? 1 : 0;
}

/* ---- whole transfers ---- */

static void skip(struct iovec **iov, int *n, size_t count)
{
	while (*n > 0 && count >= (*iov)->iov_len) {
		count -= (*iov)->iov_len;
		(*iov)++;
		(*n)--;
	}
	if (*n > 0) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + count;
		(*iov)->iov_len -= count;
	}
}

void put_all_iov(struct side *side, struct iovec *iov, int n)
{
	skip(&iov, &n, 0);
	while (n > 0) {
		size_t accepted = 12345;
		CHECK_IS(hr_channel_put(side->conn, iov, n, &accepted), 0);
		skip(&iov, &n, accepted);
		if (accepted == 0)
			CHECK(hr_channel_wait(side->channel, 1, 1000) >= 0);
	}
}

void get_all_iov(struct side *side, struct iovec *iov, int n)
{
	skip(&iov, &n, 0);
	while (n > 0) {
		size_t delivered = 12345;
		CHECK_IS(hr_channel_get(side->conn, iov, n, &delivered), 0);
		skip(&iov, &n, delivered);
		if (delivered == 0)
			CHECK(hr_channel_wait(side->channel, 0, 1000) >= 0);
	}
}

void put_all(struct side *side, const void *bytes, size_t n)
{
	struct iovec iov = { (void *)bytes, n };
	put_all_iov(side, &iov, 1);
}

void get_all(struct side *side, void *bytes, size_t n)
{
	struct iovec iov = { bytes, n };
	get_all_iov(side, &iov, 1);
}

int get_until_error(struct side *side, uint64_t seed, uint64_t *offset)
{
	static uint8_t bytes[100000];
	for (size_t begin = 0;;) {
		struct iovec iov = { bytes + begin, sizeof bytes - begin };
		size_t delivered = 0;
		int error = hr_channel_get(side->conn, &iov, 1, &delivered);
		if (error)
			return error;
		pattern_check(seed, *offset, iov.iov_base, delivered);
		*offset += delivered;
		begin = (begin + delivered) % sizeof bytes;
		if (delivered == 0)
			CHECK(hr_channel_wait(side->channel, 0, PAIR_TIMEOUT_MS) >= 0);
	}
}
