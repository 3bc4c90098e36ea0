/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy over shared memory: that it is used, that what it delivers is exact whatever the peer does meanwhile, and
 * that everything goes through the ring where the system forbids it.
 */
#include "config.h"

#include "test/channel/pair.h"
#include "test/channel/shm_kit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024u * 1024u)

static uint8_t *allocate(size_t n)
{
	uint8_t *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	return bytes;
}

static hr_conn_stats_t stats_of(const struct side *side)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	return stats;
}

/* 0 puts, 1 gets; the same size on both sides. */
static void transfer(struct side *side, uint64_t seed, uint8_t *bytes, size_t n)
{
	if (side->index == 0) {
		pattern_fill(seed, 0, bytes, n);
		put_all(side, bytes, n);
		memset(bytes, 0xee, n);
	} else {
		memset(bytes, 0xdd, n);
		get_all(side, bytes, n);
		pattern_check(seed, 0, bytes, n);
	}
}

static void long_pieces_are_copied_once(struct side *side)
{
	uint8_t *bytes = allocate(4 * MIB);
	transfer(side, 1, bytes, MIB);
	transfer(side, 2, bytes, 4 * MIB - 7);
	hr_conn_stats_t stats = stats_of(side);
	if (side->index == 0) {
		CHECK_IS(stats.zero_copy_puts, 2);
		CHECK_IS(stats.zero_copy_bytes, 5 * MIB - 7);
	}
	transfer(side, 3, bytes, 1000); /* and a short one is not */
	CHECK_IS(stats_of(side).zero_copy_puts, stats.zero_copy_puts);
}

/* Odd addresses and lengths, pieces long and short in one vector. */
static void pieces_of_all_lengths(struct side *side)
{
	enum { PIECES = 6 };
	static const size_t most = 300000;
	uint8_t *bytes = allocate(PIECES * most);
	uint64_t shared = 9, offset = 0;
	for (int round = 0; round < 150; round++) {
		struct iovec iov[PIECES];
		size_t at = 0;
		for (int i = 0; i < PIECES; i++) {
			size_t n = rng_between(&shared, 0, rng(&shared) % 3 ? 200 : most - 64);
			at += rng_between(&shared, 0, 63);
			iov[i] = (struct iovec){ bytes + at, n };
			at += n;
		}
		for (int i = 0; i < PIECES; i++) {
			if (side->index == 0)
				pattern_fill(4, offset, iov[i].iov_base, iov[i].iov_len);
			else
				memset(iov[i].iov_base, 0xdd, iov[i].iov_len);
			offset += iov[i].iov_len;
		}
		struct iovec kept[PIECES];
		memcpy(kept, iov, sizeof iov);
		if (side->index == 0)
			put_all_iov(side, iov, PIECES);
		else
			get_all_iov(side, iov, PIECES);
		uint64_t from = offset;
		for (int i = PIECES - 1; i >= 0 && side->index == 1; i--) {
			from -= kept[i].iov_len;
			pattern_check(4, from, kept[i].iov_base, kept[i].iov_len);
		}
	}
	CHECK(side->index == 1 || stats_of(side).zero_copy_puts > 100);
}

/* A long piece that is read in short ones comes through the ring; the next is copied once again. */
static void short_gets_of_a_long_piece(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	if (side->index == 0) {
		transfer(side, 5, bytes, MIB);
		CHECK(stats_of(side).zero_copy_bytes < MIB / 2);
	} else {
		uint64_t random = 3;
		for (size_t done = 0, n; done < MIB; done += n) {
			n = rng_between(&random, 1, 900);
			n = n < MIB - done ? n : MIB - done;
			get_all(side, bytes, n);
			pattern_check(5, done, bytes, n);
		}
	}
	transfer(side, 6, bytes, MIB);
	CHECK(side->index == 1 || stats_of(side).zero_copy_bytes >= MIB);
}

/* The sender closes with a piece offered, and its caller takes the memory back: none of what is there then arrives. */
static void close_with_an_offer_open(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	uint64_t offset = 0;
	if (side->index == 0) {
		pattern_fill(7, 0, bytes, MIB);
		struct iovec iov = { bytes, MIB };
		size_t accepted = 1;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
		CHECK_IS(accepted, 0);
		hr_conn_close(side->conn);
		memset(bytes, 0xee, MIB);
		side_meet(side);
		side_meet(side); /* the other one has looked, while this process lives */
		return;
	}
	side_meet(side);
	CHECK_IS(get_until_error(side, 7, &offset), -ESHUTDOWN);
	CHECK_IS(offset, 0);
	side_meet(side);
}

/* Killed while both copy: what get delivers is exact up to the error. */
static void death_of_a_sender_at_work(struct side *side)
{
	uint8_t *bytes = allocate(4 * MIB);
	if (side->index == 0) {
		pattern_fill(8, 0, bytes, 4 * MIB);
		pid_t parent = getpid();
		if (fork() == 0) { /* kills it some time later, while it puts */
			usleep(30000);
			kill(parent, SIGKILL);
			_exit(0);
		}
		for (;;)
			put_all(side, bytes, 4 * MIB);
	}
	for (;;) {
		memset(bytes, 0xdd, 4 * MIB);
		struct iovec iov = { bytes, 4 * MIB };
		while (iov.iov_len) {
			size_t delivered;
			int error = hr_channel_get(side->conn, &iov, 1, &delivered);
			if (error) {
				CHECK(error == -ECONNRESET || error == -ETIMEDOUT);
				pattern_check(8, 0, bytes, 4 * MIB - iov.iov_len);
				return;
			}
			iov.iov_base = (uint8_t *)iov.iov_base + delivered;
			iov.iov_len -= delivered;
		}
		pattern_check(8, 0, bytes, 4 * MIB);
	}
}

/* A receiver that closes has its memory back: nobody writes there any more. */
static void close_while_the_sender_pushes(struct side *side)
{
	uint8_t *bytes = allocate(4 * MIB);
	hr_channel_attr_t attr = side_attr(side);
	for (int round = 0; round < 25; round++) {
		side_open(side, &attr);
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		side_wait_up(side, side->conn);
		side_meet(side);
		size_t moved, done = 0;
		int error = 0;
		if (side->index == 0) {
			memset(bytes, 0xee, 4 * MIB);
			for (; !error && done < 4 * MIB; done += moved) {
				struct iovec iov = { bytes + done, 4 * MIB - done };
				error = hr_channel_put(side->conn, &iov, 1, &moved);
				moved = error ? 0 : moved;
			}
			CHECK(error == 0 || error == -ESHUTDOWN || error == -ECONNRESET);
		} else {
			memset(bytes, 0, 4 * MIB);
			struct iovec iov = { bytes, 4 * MIB };
			while (!done) {
				CHECK_IS(hr_channel_get(side->conn, &iov, 1, &done), 0);
				if (rng(&(uint64_t){ (uint64_t)round }) & 1)
					break;
			}
			hr_conn_close(side->conn);
			memset(bytes, 0x11, 4 * MIB);
			usleep(2000);
			for (size_t i = 0; i < 4 * MIB; i++)
				CHECK_IS(bytes[i], 0x11);
		}
		side_meet(side);
		hr_channel_finalize(side->channel);
	}
	side->channel = NULL;
}

/* A child that goes on with its parent's connection has its own memory at the same addresses. Made without fork's
 * handlers, which would have closed the connection in it. */
static void put_and_get_by_a_child(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	transfer(side, 10, bytes, MIB);
	fflush(NULL);
	pid_t child = _Fork();
	if (child == 0) {
		transfer(side, 11, bytes, MIB);
		side->index = !side->index;
		transfer(side, 12, bytes, MIB);
		_exit(0);
	}
	memset(bytes, 0x77, MIB);
	int status;
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(status, 0);
	for (size_t i = 0; i < MIB; i++)
		CHECK_IS(bytes[i], 0x77);
}

/* Only the receiver is a child: its parent lives, and has memory at the addresses where the child gets. */
static void get_by_a_child(struct side *side)
{
	uint8_t *bytes = allocate(4 * MIB);
	transfer(side, 10, bytes, 4 * MIB);
	side_meet(side);
	fflush(NULL);
	pid_t child = side->index == 1 ? _Fork() : 0;
	if (child == 0) {
		for (uint64_t seed = 30; seed < 50; seed++)
			transfer(side, seed, bytes, 4 * MIB);
		if (side->index == 1)
			_exit(0);
		return;
	}
	memset(bytes, 0x77, 4 * MIB);
	int status;
	CHECK_IS(waitpid(child, &status, 0), child);
	CHECK_IS(status, 0);
	for (size_t i = 0; i < 4 * MIB; i++)
		CHECK_IS(bytes[i], 0x77);
}

/* Refused from the start, to this process or to the other: nothing is offered. */
static void refused_from_the_start(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	hr_channel_attr_t attr = side_attr(side);
	forbid_copies();
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	transfer(side, 13, bytes, MIB);
	side->index = !side->index;
	transfer(side, 14, bytes, MIB);
	CHECK_IS(stats_of(side).zero_copy_puts, 0);
}

/* Root may read and write any process that its peer names, and a peer of another user may not choose one for it. (Run by
 * another user than root, both are of one user.) */
static void peer_of_another_user(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	hr_channel_attr_t attr = side_attr(side);
	bool root = geteuid() == 0;
	if (root && side->index == 0)
		CHECK_IS(setresuid(65534, 65534, 65534), 0);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	transfer(side, 51, bytes, MIB);
	CHECK_IS(stats_of(side).zero_copy_puts, side->index == 0 && !root);
	side->index = !side->index;
	transfer(side, 52, bytes, MIB);
	CHECK_IS(stats_of(side).zero_copy_puts, !root);
}

/* Refused to the receiver from some time on: it is offered once, refused, and all the rest goes through the ring. */
static void refused_to_the_receiver_later(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	transfer(side, 15, bytes, MIB);
	side_meet(side);
	if (side->index == 1)
		forbid_copies();
	side_meet(side);
	for (uint64_t seed = 16; seed < 20; seed++)
		transfer(side, seed, bytes, MIB);
	hr_conn_stats_t stats = stats_of(side);
	/* The sender may have pushed a part of the piece, from its end; what counts is the part in front of a hole. */
	CHECK(side->index == 1 || (stats.zero_copy_puts <= 2 && stats.zero_copy_bytes < 2 * MIB));
}

/* Refused to the sender: the receiver copies all of it. */
static void refused_to_the_sender_later(struct side *side)
{
	uint8_t *bytes = allocate(MIB);
	transfer(side, 21, bytes, MIB);
	side_meet(side);
	if (side->index == 0)
		forbid_copies();
	side_meet(side);
	for (uint64_t seed = 22; seed < 30; seed++)
		transfer(side, seed, bytes, MIB);
	CHECK(side->index == 1 || stats_of(side).zero_copy_bytes == 9 * MIB);
}

static int first_cpu(void)
{
	cpu_set_t allowed;
	CHECK_IS(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			return cpu;
	return 0;
}

/* Both on one processor, which is as near as can be: pieces go through the ring, and one now and then is still copied
 * once, to see whether it is so. The first byte of the last one tells that this has been seen. */
static void near_through_the_ring(struct side *side)
{
	enum { PIECE = 65536, BATCH = 64, BATCHES = 2000 };
	cpu_set_t one;
	CPU_ZERO(&one);
	CPU_SET((unsigned)first_cpu(), &one);
	CHECK_IS(sched_setaffinity(0, sizeof one, &one), 0);
	uint8_t *bytes = allocate(PIECE);
	uint64_t before = 0;
	bool seen = false;
	for (unsigned i = 1; !seen; i++) {
		CHECK(i <= BATCH * BATCHES);
		if (side->index == 0 && i % BATCH == 0) {
			uint64_t now = stats_of(side).zero_copy_puts;
			seen = now - before < BATCH / 4;
			before = now;
		}
		bytes[0] = seen;
		if (side->index == 0)
			put_all(side, bytes, PIECE);
		else
			get_all(side, bytes, PIECE);
		seen = bytes[0];
	}
	CHECK(side->index == 1 || before > 0);
}

static const struct test_case cases[] = {
	{ "long-pieces-are-copied-once", long_pieces_are_copied_once, 0 },
	{ "pieces-of-all-lengths", pieces_of_all_lengths, 0 },
	{ "pieces-of-all-lengths-without-spinning", pieces_of_all_lengths, PAIR_NO_SPIN | PAIR_FULL_FENCE },
	{ "short-gets-of-a-long-piece", short_gets_of_a_long_piece, 0 },
	{ "close-with-an-offer-open", close_with_an_offer_open, 0 },
	{ "death-of-a-sender-at-work", death_of_a_sender_at_work, PAIR_0_DIES },
	{ "close-while-the-sender-pushes", close_while_the_sender_pushes, PAIR_OWN_SETUP },
	{ "put-and-get-by-a-child", put_and_get_by_a_child, 0 },
	{ "get-by-a-child", get_by_a_child, 0 },
#ifndef __SANITIZE_THREAD__ /* which takes longer for its bookkeeping than a line for its way */
	{ "near-through-the-ring", near_through_the_ring, 0 },
#endif
	{ "refused-from-the-start", refused_from_the_start, PAIR_OWN_SETUP },
	{ "peer-of-another-user", peer_of_another_user, PAIR_OWN_SETUP },
	{ "refused-to-the-receiver-later", refused_to_the_receiver_later, 0 },
	{ "refused-to-the-sender-later", refused_to_the_sender_later, 0 },
	{ 0 },
};

int main(int argc, char **argv)
{
	unsetenv("HEADRACE_SHM_ZERO_COPY");
	if (!may_read_siblings()) {
		printf("SKIP: no process may read another's memory here (process_vm_readv)\n");
		return 77;
	}
	int failed = 0;
	for (const struct test_case *test = cases; test->name; test++) {
		if (argc > 1 && strcmp(argv[1], test->name))
			continue;
		/* Elsewhere what goes which way must not depend on where the processors happen to be. */
		setenv("HEADRACE_SHM_NEAR", test->run == near_through_the_ring ? "128k" : "0", 1);
		bool passed = pair_run(test, HR_TRANSPORT_SHM, "shm", 1);
		printf("%s: %s\n", passed ? "PASS" : "FAIL", test->name);
		fflush(stdout);
		failed += !passed;
	}
	return failed != 0;
}
