/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A receiver that ends a connection while its peer writes into the receiver's memory by single copy: the end waits for
 * that write, and afterwards the memory is the receiver's again; a get that offers other memory meanwhile is refused,
 * one that offers the same in other pieces is not.
 * The linker holds the peer's system call open.
 */
#include "config.h"

#include "test/channel/shm_ends.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* More than 4 MB: of less, a receiver that has offered memory itself leaves nothing to the sender. */
#define PIECE (8u << 20)

static struct shm_ends ends;
static uint8_t *from, *to;
static sem_t may_push, writing, may_write;
static int reads, writes;

ssize_t __real_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __real_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags);
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags);

/* The receiver's first copy of the piece: lets the sender take a unit, and goes on when that is being written. */
ssize_t __wrap_process_vm_readv(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				unsigned long m, unsigned long flags)
{
	if (here->iov_base == to && reads++ == 0) {
		sem_post(&may_push);
		sem_wait(&writing);
	}
	return __real_process_vm_readv(pid, here, n, there, m, flags);
}

/* The sender's first write: held until the test lets it go. */
ssize_t __wrap_process_vm_writev(pid_t pid, const struct iovec *here, unsigned long n, const struct iovec *there,
				 unsigned long m, unsigned long flags)
{
	if (writes++ == 0) {
		sem_post(&writing);
		sem_wait(&may_write);
	}
	return __real_process_vm_writev(pid, here, n, there, m, flags);
}

static void *push(void *unused)
{
	struct iovec iov = { from, PIECE };
	size_t accepted;
	sem_wait(&may_push);
	hr_transport_shm.put(ends.end[0].conn, &iov, 1, &accepted);
	return unused;
}

/* Comes to where the sender is writing; returns how much of the piece has been delivered. */
static size_t get_until_written(pthread_t *sender)
{
	struct iovec out = { from, PIECE }, in = { to, PIECE };
	size_t accepted, delivered;
	ck_assert_int_eq(hr_transport_shm.put(ends.end[0].conn, &out, 1, &accepted), 0);
	ck_assert_uint_eq(accepted, 0); /* it is offered */
	ck_assert_int_eq(pthread_create(sender, NULL, push, NULL), 0);
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, &in, 1, &delivered), 0);
	ck_assert_uint_lt(delivered, PIECE);
	ck_assert_mem_eq(from, to, delivered);
	return delivered;
}

START_TEST(the_end_waits_for_the_senders_write)
{
	struct iovec out = { from, PIECE };
	size_t accepted;
	pthread_t sender;
	get_until_written(&sender);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 0);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 0);
	sem_post(&may_write);
	pthread_join(sender, NULL);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 1);
	memset(to, 0x11, PIECE);
	int before = writes;
	hr_transport_shm.put(ends.end[0].conn, &out, 1, &accepted);
	ck_assert_int_eq(writes, before);
	size_t same = 0;
	while (same < PIECE && to[same] == 0x11)
		same++;
	ck_assert_msg(same == PIECE, "byte %zu was written after the end", same);
}
END_TEST

/* Other memory, less of the same, or the same behind other memory. */
START_TEST(a_get_that_does_not_go_on_is_refused)
{
	pthread_t sender;
	size_t delivered = get_until_written(&sender), moved = 77;
	uint8_t *other = malloc(PIECE), *rest = to + delivered;
	memset(other, 0x55, PIECE);
	struct iovec wrong[][2] = {
		{ { other, PIECE }, { other, 0 } },
		{ { rest, PIECE - delivered - 1 }, { other, 0 } },
		{ { other, 8 }, { rest, PIECE - delivered } },
	};
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, wrong[_i], 2, &moved), -EINVAL);
	/* It stays so, whatever is offered then. */
	struct iovec right = { rest, PIECE - delivered };
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, &right, 1, &moved), -EINVAL);
	size_t same = 0;
	while (same < PIECE && other[same] == 0x55)
		same++;
	ck_assert_uint_eq(same, PIECE);
	/* And the end waits for the write as ever. */
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 0);
	sem_post(&may_write);
	pthread_join(sender, NULL);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 1);
	ck_assert_int_eq(writes, 1);
	free(other);
}
END_TEST

/* Gets the rest of the piece, in pieces cut at another place each time. */
static size_t get_cut(size_t done, size_t turn)
{
	size_t left = PIECE - done, cut = left < 1000 ? left : 1 + turn * 37 % 1000, delivered = 0;
	struct iovec iov[3] = { { to + done, cut }, { from, 0 }, { to + done + cut, left - cut } };
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, iov, 3, &delivered), 0);
	return delivered;
}

START_TEST(the_same_memory_may_be_cut_in_other_ways)
{
	pthread_t sender;
	size_t delivered = get_until_written(&sender), turn = 0;
	while (turn < 10) /* the sender is in the middle of its write */
		delivered += get_cut(delivered, turn++);
	ck_assert_uint_lt(delivered, PIECE);
	sem_post(&may_write);
	pthread_join(sender, NULL);
	while (delivered < PIECE)
		delivered += get_cut(delivered, turn++);
	ck_assert_mem_eq(from, to, PIECE);
	ck_assert_int_eq(writes, 1);
}
END_TEST

/* Of pieces that are short, each may be continued elsewhere, so the sender is not let into them. */
START_TEST(short_pieces_are_not_written_though_they_lie_in_a_row)
{
	enum { SHORT = 8192, PIECES = 128 };
	struct iovec out = { from, PIECE }, in[PIECES];
	size_t accepted, delivered;
	for (size_t i = 0; i < PIECES; i++)
		in[i] = (struct iovec){ to + i * SHORT, SHORT };
	reads = 1; /* nobody waits for a write */
	ck_assert_int_eq(hr_transport_shm.put(ends.end[0].conn, &out, 1, &accepted), 0);
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, in, PIECES, &delivered), 0);
	ck_assert_uint_eq(delivered, SHORT);
	ck_assert_int_eq(hr_transport_shm.put(ends.end[0].conn, &out, 1, &accepted), 0);
	ck_assert_int_eq(writes, 0);
	in[0].iov_base = calloc(1, SHORT);
	ck_assert_int_eq(hr_transport_shm.get(ends.end[1].conn, in, 1, &delivered), 0);
	ck_assert_uint_eq(delivered, SHORT);
	ck_assert_mem_eq(in[0].iov_base, from + SHORT, SHORT);
	free(in[0].iov_base);
}
END_TEST

/* A put that fails says nothing of the peer: it may be writing all the same. */
START_TEST(the_end_waits_after_a_put_that_was_refused)
{
	size_t moved;
	pthread_t sender;
	uint8_t *back = calloc(2, PIECE);
	struct iovec offered = { back, PIECE }, taken = { back + PIECE, PIECE }, less = { back, 10 };
	ck_assert_int_eq(hr_transport_shm.put(ends.end[1].conn, &offered, 1, &moved), 0);
	ck_assert_int_eq(hr_transport_shm.get(ends.end[0].conn, &taken, 1, &moved), 0);
	ck_assert_uint_eq(moved, PIECE);
	get_until_written(&sender);
	ck_assert_int_eq(hr_transport_shm.put(ends.end[1].conn, &less, 1, &moved), -EINVAL);
	ck_assert_int_eq(hr_transport_shm.put(ends.end[1].conn, &offered, 1, &moved), -EINVAL);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 0);
	sem_post(&may_write);
	pthread_join(sender, NULL);
	ck_assert_int_eq(hr_transport_shm.conn_shutdown(ends.end[1].conn), 1);
	free(back);
}
END_TEST

static void setup(void)
{
	unsetenv("HEADRACE_SHM_ZERO_COPY");
	sem_init(&may_push, 0, 0);
	sem_init(&writing, 0, 0);
	sem_init(&may_write, 0, 0);
	from = malloc(PIECE);
	to = malloc(PIECE);
	for (size_t i = 0; i < PIECE; i++)
		from[i] = (uint8_t)(i * 7 + i / 251);
	memset(to, 0xdd, PIECE);
	reads = writes = 0;
	shm_ends_make(&ends, 1u << 20);
	shm_ends_join(&ends);
}

static void teardown(void)
{
	shm_ends_close(&ends);
	free(from);
	free(to);
}

int main(void)
{
	uint8_t a = 1, b = 2;
	struct iovec here = { &a, 1 }, there = { &b, 1 };
	if (__real_process_vm_readv(getpid(), &here, 1, &there, 1, 0) != 1) {
		printf("SKIP: no process may read another's memory here (process_vm_readv)\n");
		return 77;
	}
	Suite *suite = suite_create("shutdown of single copy");
	TCase *tcase = tcase_create("steps");
	tcase_set_timeout(tcase, 300);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, the_end_waits_for_the_senders_write);
	tcase_add_test(tcase, the_end_waits_after_a_put_that_was_refused);
	tcase_add_loop_test(tcase, a_get_that_does_not_go_on_is_refused, 0, 3);
	tcase_add_test(tcase, the_same_memory_may_be_cut_in_other_ways);
	tcase_add_test(tcase, short_pieces_are_not_written_though_they_lie_in_a_row);
	suite_add_tcase(suite, tcase);
	SRunner *runner = srunner_create(suite);
	srunner_set_fork_status(runner, CK_NOFORK);
	srunner_run_all(runner, CK_NORMAL);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}
