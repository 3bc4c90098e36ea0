/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of a connection in one process, for fault tests. */
#include "config.h"

#include "test/faults/two_ends.h"

#include "rdma_channel/base/log.h"
#include "test/channel/pair.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECE 100        /* bytes put at once */
#define IDLE_ROUNDS 4000 /* in which nothing moved: nothing will */
#define BUSY_ROUNDS 400  /* of them without a pause */

const struct line lines[] = {
	{ "shm", HR_TRANSPORT_SHM, true },
	{ "tcp", HR_TRANSPORT_TCP, false },
	{ "tcp over a Unix socket", HR_TRANSPORT_TCP, true },
};
const int n_lines = sizeof lines / sizeof lines[0];

static struct two_ends *in_use;

/* In place of the library's: the lines are counted. */
bool hr_log_enabled(enum hr_log_level level)
{
	return level == HR_LOG_ERROR;
}

void hr_log(enum hr_log_level level, const char *format, ...)
{
	char line[512];
	va_list arguments;
	if (level != HR_LOG_ERROR)
		return;
	va_start(arguments, format);
	CHECK(vsnprintf(line, sizeof line, format, arguments) > 0);
	va_end(arguments);
	if (in_use)
		in_use->errors_logged++;
}

static int open_end(struct one_end *end, const struct line *line, const struct fault_plan *plan)
{
	static const struct fault_plan none = FAULT_PLAN_NONE;
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = line->transport;
	attr.flags = HR_CHANNEL_NO_LISTEN;
	attr.ring_bytes = 65536;
	attr.timeout_ms = PAIR_TIMEOUT_MS;
	fault_plan = plan ? *plan : none;
	return hr_channel_init(&attr, &end->channel, &end->card);
}

static int connect_end(struct one_end *end, const struct one_end *other, int stream)
{
	hr_connect_attr_t attr = HR_CONNECT_ATTR_INIT;
	attr.fd = stream;
	return hr_channel_connect(end->channel, &other->card, &attr, &end->conn);
}

int ends_open(struct two_ends *two, const struct line *line, const struct fault_plan *const plans[2])
{
	*two = (struct two_ends){ .amount = 250, .fds_before = count_entries("/proc/self/fd") };
	in_use = two;
	int theirs[2], error = 0;
	relay_open(&two->relay, line->over_unix, theirs);
	for (int i = 0; i < 2 && !error; i++)
		error = open_end(&two->ends[i], line, plans ? plans[i] : NULL);
	for (int i = 0; i < 2; i++) {
		if (error) {
			close(theirs[i]);
			continue;
		}
		error = connect_end(&two->ends[i], &two->ends[!i], theirs[i]);
	}
	return error;
}

static bool put_some(struct two_ends *two, int index)
{
	struct one_end *end = &two->ends[index];
	uint8_t bytes[PIECE];
	size_t n = two->amount - end->put < PIECE ? (size_t)(two->amount - end->put) : PIECE, accepted = 12345;
	if (end->put_error || !n)
		return false;
	pattern_fill((uint64_t)index, end->put, bytes, n);
	struct iovec iov[2] = { { bytes, n / 3 }, { bytes + n / 3, n - n / 3 } };
	end->put_error = hr_channel_put(end->conn, iov, 2, &accepted);
	if (end->put_error)
		return true;
	CHECK(accepted <= n);
	end->put += accepted;
	return accepted > 0;
}

/* Asks for more than will come: only so does it learn of the end. */
static bool get_some(struct two_ends *two, int index)
{
	struct one_end *end = &two->ends[index];
	uint8_t bytes[PIECE];
	size_t delivered = 12345;
	if (end->get_error)
		return false;
	struct iovec iov[2] = { { bytes, PIECE / 2 }, { bytes + PIECE / 2, PIECE - PIECE / 2 } };
	end->get_error = hr_channel_get(end->conn, iov, 2, &delivered);
	if (end->get_error)
		return true;
	CHECK(delivered <= PIECE);
	CHECK(end->got + delivered <= two->ends[!index].put);
	pattern_check((uint64_t)!index, end->got, bytes, delivered);
	end->got += delivered;
	return delivered > 0;
}

static bool is_done(const struct two_ends *two)
{
	if (two->to_the_end)
		return two->ends[0].get_error && two->ends[1].get_error;
	for (int i = 0; i < 2; i++)
		if (!two->ends[i].get_error && (hr_conn_state(two->ends[i].conn) != 1 ||
						two->ends[i].put < two->amount || two->ends[i].got < two->amount))
			return false;
	/* Where one has failed the other must come to learn of it. */
	return !two->ends[0].get_error == !two->ends[1].get_error;
}

void ends_run(struct two_ends *two)
{
	for (int idle = 0; !is_done(two); idle++) {
		bool moved = relay_move(&two->relay);
		for (int i = 0; i < 2; i++) {
			moved |= put_some(two, i);
			moved |= get_some(two, i);
		}
		if (moved)
			idle = 0;
		if (idle > BUSY_ROUNDS)
			usleep(200); /* the peer's end is asked for once a tick of the clock */
		if (idle > IDLE_ROUNDS) {
			two->stuck = true;
			return;
		}
	}
}

void ends_check_repeated(struct two_ends *two)
{
	for (int i = 0; i < 2; i++) {
		struct one_end *end = &two->ends[i];
		uint8_t byte = 0;
		struct iovec iov = { &byte, 1 };
		size_t moved;
		for (int again = 0; again < 3 && end->get_error; again++) {
			CHECK_IS(hr_channel_get(end->conn, &iov, 1, &moved), end->get_error);
			CHECK_IS(hr_channel_put(end->conn, &iov, 1, &moved), end->get_error);
			CHECK_IS(hr_conn_state(end->conn), end->get_error);
		}
		if (end->get_error && end->put_error)
			CHECK_IS(end->put_error, end->get_error);
	}
}

void ends_close(struct two_ends *two)
{
	/* Nobody moves the relay while one of them finalizes: it must not wait for that. */
	shutdown(two->relay.fds[0], SHUT_RDWR);
	shutdown(two->relay.fds[1], SHUT_RDWR);
	for (int i = 0; i < 2; i++)
		hr_channel_finalize(two->ends[i].channel);
	relay_close(&two->relay);
	CHECK_IS(count_entries("/proc/self/fd"), two->fds_before);
	in_use = NULL;
}
