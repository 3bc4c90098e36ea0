/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process that serves the metrics. A loop over poll(2): the daemon's answers, the listening sockets, the visitors. A
 * visitor is one connection with one request. Limits: VISITORS_MAX visitors, VISIT_MS for each, a head of
 * METRICS_REQUEST_MAX bytes. If all places are taken, the oldest visitor loses its place to the next one.
 */
#define _GNU_SOURCE /* accept4 */
#include "cuda_remote/server/daemon/metrics_process.h"

#include "cuda_remote/server/daemon/child.h"
#include "cuda_remote/server/daemon/confine.h"
#include "cuda_remote/server/daemon/filter.h"
#include "cuda_remote/server/daemon/metrics_http.h"
#include "cuda_remote/server/daemon/metrics_text.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define VISITORS_MAX 32
#define VISIT_MS 5000
#define ASK_MS 20 /* between two questions to the daemon */

enum state {
	READING, /* its request */
	WAITING, /* for a question to the daemon */
	ASKED,   /* the question has been sent */
	WRITING, /* its answer */
	LEAVING, /* all is sent; it closes the connection */
};

struct visitor {
	int fd; /* -1: the place is free */
	enum state state;
	int64_t deadline_ms; /* CLOCK_MONOTONIC; the oldest visitor has the earliest */
	enum metrics_request request;
	size_t have; /* bytes of its request */
	char *answer;
	size_t len, sent; /* of the answer */
	char bytes[METRICS_REQUEST_MAX];
};

static struct metrics_plan plan;
static struct visitor visitors[VISITORS_MAX];
static bool asking; /* a question is open */
static int64_t asked_ms = INT64_MIN / 2;

static int64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* ---- a visitor ---- */

static void leave(struct visitor *visitor)
{
	if (visitor->fd >= 0)
		close(visitor->fd);
	free(visitor->answer);
	visitor->answer = NULL;
	visitor->fd = -1;
}

static void write_on(struct visitor *visitor)
{
	ssize_t n = send(visitor->fd, visitor->answer + visitor->sent, visitor->len - visitor->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		leave(visitor);
		return;
	}
	visitor->sent += n > 0 ? (size_t)n : 0;
	if (visitor->sent < visitor->len)
		return;
	/* Bytes that the visitor has sent and nobody has read would make close(2) reset the connection, and the answer could
	 * be lost. So the visitor closes first. */
	shutdown(visitor->fd, SHUT_WR);
	visitor->state = LEAVING;
}

/* Gives the visitor its answer. body: the page for GET and HEAD; NULL: there is none. */
static void answer(struct visitor *visitor, const char *body, size_t length)
{
	char head[METRICS_HEAD_MAX];
	size_t n = metrics_http_head(visitor->request, !body, length, head);
	bool whole = body && visitor->request == METRICS_GET;
	visitor->len = n + (whole ? length : 0);
	visitor->sent = 0;
	visitor->answer = malloc(visitor->len);
	if (!visitor->answer) {
		leave(visitor);
		return;
	}
	memcpy(visitor->answer, head, n);
	if (whole)
		memcpy(visitor->answer + n, body, length);
	visitor->state = WRITING;
	write_on(visitor);
}

static void read_on(struct visitor *visitor)
{
	ssize_t n = recv(visitor->fd, visitor->bytes + visitor->have, sizeof visitor->bytes - visitor->have, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		leave(visitor);
		return;
	}
	visitor->have += (size_t)n;
	visitor->request = metrics_http_judge(visitor->bytes, visitor->have);
	if (visitor->request == METRICS_GET || visitor->request == METRICS_HEAD)
		visitor->state = WAITING;
	else if (visitor->request != METRICS_INCOMPLETE)
		answer(visitor, NULL, 0);
}

/* The rest of what a visitor sends does not count. */
static void await_end(struct visitor *visitor)
{
	ssize_t n = recv(visitor->fd, visitor->bytes, sizeof visitor->bytes, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		leave(visitor);
}

static void step(struct visitor *visitor, short events)
{
	if (visitor->state == READING)
		read_on(visitor);
	else if (visitor->state == WRITING)
		write_on(visitor);
	else if (visitor->state == LEAVING)
		await_end(visitor);
	else if (events & (POLLHUP | POLLERR))
		leave(visitor);
}

static short wanted_events(const struct visitor *visitor)
{
	if (visitor->state == WRITING)
		return POLLOUT;
	return visitor->state == READING || visitor->state == LEAVING ? POLLIN : 0;
}

/* ---- the places ---- */

static struct visitor *find_place(void)
{
	struct visitor *oldest = &visitors[0];
	for (struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++) {
		if (at->fd < 0)
			return at;
		if (at->deadline_ms < oldest->deadline_ms)
			oldest = at;
	}
	leave(oldest);
	return oldest;
}

static void admit(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	struct visitor *visitor = find_place();
	visitor->fd = fd;
	visitor->state = READING;
	visitor->have = 0;
	visitor->deadline_ms = now_ms() + VISIT_MS;
}

/* Ends the visits that take too long. Returns the ms until the next one does; -1: there is no visitor. */
static int expire(void)
{
	int64_t now = now_ms(), soonest = -1;
	for (struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++) {
		if (at->fd >= 0 && at->deadline_ms <= now) {
			if (at->state == ASKED || at->state == WAITING)
				answer(at, NULL, 0);
			leave(at);
		}
		if (at->fd >= 0 && (soonest < 0 || at->deadline_ms - now < soonest))
			soonest = at->deadline_ms - now;
	}
	return (int)soonest;
}

/* ---- the daemon ---- */

/* Asks for the counters if a visitor waits for them. Returns the ms until it may ask; -1: there is no need. */
static int ask(void)
{
	bool waiting = false;
	for (const struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++)
		waiting |= at->fd >= 0 && at->state == WAITING;
	if (!waiting || asking)
		return -1;
	int64_t left = asked_ms + ASK_MS - now_ms();
	if (left > 0)
		return (int)left;
	asked_ms = now_ms();
	if (send(METRICS_CONTROL, "?", 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
		return ASK_MS;
	asking = true;
	for (struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++)
		if (at->fd >= 0 && at->state == WAITING)
			at->state = ASKED;
	return -1;
}

/* Reads the daemon's answer. False: the daemon has ended. */
static bool hear(void)
{
	static struct rc_counters counters;
	static char text[METRICS_TEXT_MAX];
	ssize_t n = recv(METRICS_CONTROL, &counters, sizeof counters, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n != (ssize_t)sizeof counters)
		return false;
	asking = false;
	size_t length = metrics_text(&counters, plan.driver, text);
	for (struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++)
		if (at->fd >= 0 && at->state == ASKED)
			answer(at, text, length);
	return true;
}

/* ---- the loop ---- */

static int sooner(int a, int b)
{
	if (a < 0 || b < 0)
		return a < 0 ? b : a;
	return a < b ? a : b;
}

static bool turn(void)
{
	struct pollfd set[1 + METRICS_LISTENERS_MAX + VISITORS_MAX] = { { .fd = METRICS_CONTROL, .events = POLLIN } };
	struct pollfd *listeners = set + 1, *places = listeners + plan.listeners;
	for (uint32_t i = 0; i < plan.listeners; i++)
		listeners[i] = (struct pollfd){ .fd = METRICS_LISTENERS + (int)i, .events = POLLIN };
	int timeout = sooner(expire(), ask());
	for (int i = 0; i < VISITORS_MAX; i++)
		places[i] = (struct pollfd){ .fd = visitors[i].fd, .events = wanted_events(&visitors[i]) };
	if (poll(set, 1 + plan.listeners + VISITORS_MAX, timeout) < 0)
		return errno == EINTR;
	for (int i = 0; i < VISITORS_MAX; i++)
		if (places[i].fd >= 0 && places[i].revents)
			step(&visitors[i], places[i].revents);
	if (set[0].revents && !hear())
		return false;
	for (uint32_t i = 0; i < plan.listeners; i++)
		if (listeners[i].revents)
			admit(listeners[i].fd);
	return true;
}

static int confine_process(pid_t daemon)
{
	struct confinement limits = { .uid = geteuid() ? geteuid() : plan.uid, .reach = CONFINE_REACH_NONE };
	int error = confine_early(false);
	if (!error && plan.seccomp)
		error = filter_prepare();
	if (!error)
		error = confine(&limits);
	if (!error)
		error = child_follow(daemon); /* a change of user has undone it */
	if (!error && plan.seccomp)
		error = filter_load(limits.reach);
	if (error)
		hr_log(HR_LOG_ERROR, "metrics: the process cannot become user %u: %s", (unsigned)limits.uid, strerror(-error));
	return error;
}

int metrics_process_run(void)
{
	pid_t daemon = getppid();
	prctl(PR_SET_NAME, "headrace-metric");
	if (recv(METRICS_CONTROL, &plan, sizeof plan, 0) != (ssize_t)sizeof plan || plan.listeners > METRICS_LISTENERS_MAX)
		return EXIT_FAILURE;
	plan.driver[sizeof plan.driver - 1] = 0;
	if (confine_process(daemon))
		return EXIT_FAILURE;
	signal(SIGPIPE, SIG_IGN);
	for (struct visitor *at = visitors; at < visitors + VISITORS_MAX; at++)
		at->fd = -1;
	while (turn())
		;
	return EXIT_SUCCESS;
}
