/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ch3 asks of a connection (upper.h): its end at once, and waiting for it alone. All ends are in this process. The
 * linker holds a peer's copy into our memory open, and tells when a channel looks at its events.
 */
#include "config.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/upper.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#define PIECE (1u << 20)
#define SHORT_MS 100

static const uint32_t transports[] = { HR_TRANSPORT_SHM, HR_TRANSPORT_TCP };

/* ---- a copy that takes its time ---- */

static bool holds_copies;
static int reads, writes, looks;
static void *held_at; /* the memory whose first copy this is about */
static sem_t may_push, writing, may_write;
static int watched = -1;        /* an epoll set: */
static struct epoll_event seen; /* the last event that was taken from it */
static bool endless;            /* which comes again and again */

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);
int __real_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms);

/* The receiver's first copy of the piece: lets the sender take a unit, and goes on when that is being written. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags)
{
	if (holds_copies && here->iov_base == held_at && reads++ == 0) {
		sem_post(&may_push);
		sem_wait(&writing);
	}
	return __real_process_vm_readv(pid, here, n, there, m, flags);
}

/* The sender's first write: held until the test lets it go. */
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags)
{
	if (holds_copies && writes++ == 0) {
		sem_post(&writing);
		sem_wait(&may_write);
	}
	return __real_process_vm_writev(pid, here, n, there, m, flags);
}

/* Whoever waits for the copy to end looks at its events meanwhile: then it may end. */
int __wrap_epoll_wait(int epoll, struct epoll_event *events, int n, int timeout_ms)
{
	if (holds_copies && ++looks == 3)
		sem_post(&may_write);
	bool is_watched = epoll == watched;
	int taken = __real_epoll_wait(epoll, events, n, is_watched && endless ? 0 : timeout_ms);
	if (taken > 0 && is_watched)
		seen = events[0];
	if (taken || !is_watched || !endless)
		return taken;
	events[0] = seen;
	return 1;
}

/* ---- the ends ---- */

struct end {
	hr_channel_t *channel;
	hr_card_t card;
	hr_conn_t *conn; /* to the first end; of that one: to the second */
};
static struct end end[3];
static hr_conn_t *to_third;

static void open_end(int i, uint32_t transport, uint32_t timeout_ms)
{
	hr_channel_attr_t attr = HR_CHANNEL_ATTR_INIT;
	attr.transports = transport;
	attr.timeout_ms = timeout_ms;
	ck_assert_int_eq(hr_channel_init(&attr, &end[i].channel, &end[i].card), 0);
}

static hr_conn_t *join(int i)
{
	hr_conn_t *conn;
	ck_assert_int_eq(hr_channel_connect(end[0].channel, &end[i].card, NULL, &conn), 0);
	ck_assert_int_eq(hr_channel_connect(end[i].channel, &end[0].card, NULL, &end[i].conn), 0);
	while (hr_conn_state(conn) != 1 || hr_conn_state(end[i].conn) != 1) {
		ck_assert_int_ge(hr_conn_state(conn), 0);
		ck_assert_int_ge(hr_conn_state(end[i].conn), 0);
	}
	return conn;
}

static void open_two(uint32_t transport, uint32_t timeout_ms)
{
	for (int i = 0; i < 2; i++)
		open_end(i, transport, timeout_ms);
	end[0].conn = join(1);
}

static void close_ends(void)
{
	for (int i = 0; i < 3; i++)
		hr_channel_finalize(end[i].channel);
	memset(end, 0, sizeof end);
}

static int put(hr_conn_t *conn, const void *bytes, size_t n)
{
	struct iovec iov = { (void *)bytes, n };
	size_t accepted;
	int error = hr_channel_put(conn, &iov, 1, &accepted);
	return error ? error : (int)accepted;
}

static int get(hr_conn_t *conn, void *bytes, size_t n)
{
	struct iovec iov = { bytes, n };
	size_t delivered;
	int error = hr_channel_get(conn, &iov, 1, &delivered);
	return error ? error : (int)delivered;
}

/* ---- ending at once ---- */

START_TEST(the_peer_of_an_aborted_connection_hears_of_it)
{
	char byte = 'x';
	int got;
	open_two(transports[_i], 0);
	ck_assert_int_eq(put(end[0].conn, "abc", 3), 3);
	hr_conn_abort(end[0].conn, -EBADMSG);
	/* What was accepted has reached it, and comes first. */
	for (int i = 0; i < 3; i++) {
		while ((got = get(end[1].conn, &byte, 1)) == 0)
			continue;
		ck_assert_int_eq(got, 1);
		ck_assert_int_eq(byte, "abc"[i]);
	}
	while ((got = get(end[1].conn, &byte, 1)) == 0)
		ck_assert_int_ge(hr_channel_wait(end[1].channel, 0, -1), 0);
	ck_assert_int_eq(got, -ECONNRESET);
	close_ends();
}
END_TEST

START_TEST(an_aborted_connection_fails_and_is_silent)
{
	char byte;
	open_two(transports[_i], 0);
	ck_assert_int_eq(put(end[1].conn, "abc", 3), 3);
	hr_conn_abort(end[0].conn, -EBADMSG);
	ck_assert_ptr_null(hr_channel_ready(end[0].channel, 1));
	ck_assert_int_eq(hr_channel_arm(end[0].channel, 1), 0);
	ck_assert_int_eq(hr_channel_wait(end[0].channel, 1, 0), 0);
	ck_assert_int_eq(put(end[0].conn, "x", 1), -EBADMSG);
	ck_assert_int_eq(get(end[0].conn, &byte, 1), -EBADMSG);
	ck_assert_int_eq(hr_conn_state(end[0].conn), -EBADMSG);
	ck_assert_int_eq(hr_channel_arm(end[0].channel, 1), 0);
	ck_assert_str_ne(hr_conn_peer(end[0].conn), "");
	/* There is nothing left to wait for when it is closed; and it may be aborted before it is up, or twice. */
	hr_conn_abort(end[0].conn, -EBADMSG);
	hr_conn_close(end[0].conn);
	ck_assert_int_eq(hr_channel_connect(end[0].channel, &end[1].card, NULL, &end[0].conn), 0);
	hr_conn_abort(end[0].conn, -ENOMEM);
	ck_assert_int_eq(hr_conn_state(end[0].conn), -ENOMEM);
	ck_assert_int_eq(hr_channel_arm(end[0].channel, 1), 0);
	close_ends();
}
END_TEST

/* A connection that has put something is looked after while its channel sleeps. */
START_TEST(an_aborted_connection_is_not_looked_after)
{
	open_two(transports[_i], SHORT_MS);
	ck_assert_int_eq(put(end[0].conn, "abc", 3), 3);
	hr_channel_arm(end[0].channel, 0);
	hr_conn_abort(end[0].conn, -EBADMSG);
	for (uint64_t until = hr_now_ns() + 2 * SHORT_MS * HR_NS_PER_MS; hr_now_ns() < until;)
		ck_assert_int_eq(hr_channel_wait(end[0].channel, 0, SHORT_MS / 10), 0);
	close_ends();
}
END_TEST

static uint8_t *from, *to;

static void *push(void *unused)
{
	sem_wait(&may_push);
	put(end[1].conn, from, PIECE);
	return unused;
}

/* The peer is in the middle of a copy into memory that get was offered. */
START_TEST(aborting_waits_for_the_peers_copy)
{
	pthread_t sender;
	from = malloc(PIECE);
	held_at = to = calloc(1, PIECE);
	memset(from, 0x77, PIECE);
	sem_init(&may_push, 0, 0);
	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	unsetenv("HEADRACE_SHM_ZERO_COPY");
	open_two(HR_TRANSPORT_SHM, 0);
	ck_assert_int_eq(put(end[1].conn, from, PIECE), 0); /* it is offered */
	holds_copies = true;
	ck_assert_int_eq(pthread_create(&sender, NULL, push, NULL), 0);
	ck_assert_int_lt(get(end[0].conn, to, PIECE), PIECE);
	looks = 0;
	hr_conn_abort(end[0].conn, -EBADMSG);
	memset(to, 0x11, PIECE);
	sem_post(&may_write); /* for a sender that nobody has waited for */
	pthread_join(sender, NULL);
	size_t same = 0;
	while (same < PIECE && to[same] == 0x11)
		same++;
	ck_assert_msg(same == PIECE, "byte %zu was written after the end", same);
	ck_assert_int_eq(writes, 1);
	holds_copies = false;
	close_ends();
	free(from);
	free(to);
}
END_TEST

/* ---- waiting for one ---- */

static uint64_t looks_at(const hr_conn_t *conn)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	ck_assert_int_eq(hr_conn_stats(conn, &stats), 0);
	return stats.looks;
}

START_TEST(a_wait_for_one_sleeps_though_another_has_something)
{
	char byte;
	open_two(transports[_i], 0);
	open_end(2, transports[_i], 0);
	to_third = join(2);
	while (get(end[0].conn, &byte, 1) || get(to_third, &byte, 1))
		continue;
	ck_assert_int_eq(put(end[2].conn, "x", 1), 1);
	ck_assert_int_eq(hr_channel_wait(end[0].channel, 0, -1), 1);
	uint64_t before = looks_at(end[0].conn);
	ck_assert_int_eq(hr_conn_wait(end[0].conn, 0, SHORT_MS), 0);
	ck_assert_uint_le(looks_at(end[0].conn) - before, 8);
	ck_assert_int_eq(put(end[1].conn, "y", 1), 1);
	ck_assert_int_eq(hr_conn_wait(end[0].conn, 0, -1), 1);
	ck_assert_int_eq(get(end[0].conn, &byte, 1), 1);
	ck_assert_int_eq(byte, 'y');
	ck_assert_int_eq(get(to_third, &byte, 1), 1);
	ck_assert_int_eq(byte, 'x');
	close_ends();
}
END_TEST

/* As where a peer sends wake-ups without end and nothing to wake for. */
START_TEST(waits_end_in_time_though_events_do_not)
{
	char byte;
	open_two(transports[_i], 0);
	while (get(end[0].conn, &byte, 1) || hr_channel_wait(end[0].channel, 0, 1))
		continue;
	watched = hr_channel_fd(end[0].channel);
	ck_assert_int_eq(hr_channel_arm(end[0].channel, 0), 0);
	ck_assert_int_eq(put(end[1].conn, "x", 1), 1);
	while (get(end[0].conn, &byte, 1) == 0)
		continue;
	while (!seen.data.ptr) /* the byte may have been there before its event */
		hr_channel_wait(end[0].channel, 0, 1);
	endless = true;
	ck_assert_int_eq(hr_channel_wait(end[0].channel, 0, SHORT_MS), 0);
	ck_assert_int_eq(hr_conn_wait(end[0].conn, 0, SHORT_MS), 0);
	endless = false;
	close_ends();
}
END_TEST

START_TEST(a_wait_for_one_leaves_the_news_of_a_peer_to_others)
{
	char byte;
	hr_card_t card;
	open_two(transports[_i], 0);
	open_end(2, transports[_i], 0);
	ck_assert_int_eq(hr_channel_connect(end[2].channel, &end[0].card, NULL, &end[2].conn), 0);
	ck_assert_int_eq(get(end[0].conn, &byte, 1), 0);
	/* Over tcp its hello comes when it looks again. */
	for (int i = 0; i < 100; i++) {
		ck_assert_int_eq(hr_conn_state(end[2].conn), 0);
		ck_assert_int_ge(hr_conn_wait(end[0].conn, 0, 1), 0);
	}
	ck_assert_int_eq(hr_conn_wait(end[0].conn, 0, 1), 0);
	ck_assert_int_eq(hr_channel_wait(end[0].channel, 0, -1), 1);
	ck_assert_int_eq(hr_channel_incoming(end[0].channel, &card), 1);
	close_ends();
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("a connection alone");
	TCase *tcase = tcase_create("upper");
	tcase_set_timeout(tcase, 300);
	tcase_add_loop_test(tcase, the_peer_of_an_aborted_connection_hears_of_it, 0, 2);
	tcase_add_loop_test(tcase, an_aborted_connection_fails_and_is_silent, 0, 2);
	tcase_add_loop_test(tcase, an_aborted_connection_is_not_looked_after, 0, 2);
	uint8_t a = 1, b = 2;
	struct iovec here = { &a, 1 }, there = { &b, 1 };
	if (__real_process_vm_readv(getpid(), &here, 1, &there, 1, 0) == 1)
		tcase_add_test(tcase, aborting_waits_for_the_peers_copy);
	tcase_add_loop_test(tcase, a_wait_for_one_sleeps_though_another_has_something, 0, 2);
	tcase_add_loop_test(tcase, waits_end_in_time_though_events_do_not, 0, 2);
	tcase_add_loop_test(tcase, a_wait_for_one_leaves_the_news_of_a_peer_to_others, 0, 2);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
