/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the verbs transport does beyond what the conformance suite asks of every transport: it is preferred over TCP,
 * and a network that goes dead while the stream of the set-up lives on is noticed. For the virtual machine of run.sh
 * only: takes its RDMA device's link down.
 */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static void preferred_over_tcp(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.transports = HR_TRANSPORT_VERBS | HR_TRANSPORT_TCP;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn); /* checks the transport's name */
	side_meet(side);
}

static void set_link(const char *state)
{
	char command[64];
	snprintf(command, sizeof command, "ip link set d0 %s", state);
	CHECK_IS(system(command), 0);
}

static void check_is_loss(int error)
{
	if (error != -ECONNRESET && error != -ETIMEDOUT && error != -ENETDOWN)
		check_failed(__FILE__, __LINE__, "the error is -ECONNRESET, -ETIMEDOUT or -ENETDOWN", error);
}

/* Puts until it fails; returns the error. */
static int put_until_error(struct side *side)
{
	static uint8_t bytes[10000];
	uint64_t offset = 0;
	for (;;) {
		pattern_fill(1, offset, bytes, sizeof bytes);
		struct iovec iov = { bytes, sizeof bytes };
		size_t accepted = 0;
		int error = hr_channel_put(side->conn, &iov, 1, &accepted);
		if (error)
			return error;
		offset += accepted;
		if (!accepted)
			CHECK(hr_channel_wait(side->channel, 1, 1000) >= 0);
	}
}

/* 0 puts without end and takes the link down in the middle of it. */
static void dead_link_under_puts(struct side *side)
{
	uint8_t bytes[5000];
	if (side->index == 0) {
		pattern_fill(1, 0, bytes, sizeof bytes);
		put_all(side, bytes, sizeof bytes);
		side_meet(side);
		set_link("down");
		check_is_loss(put_until_error(side));
		side_meet(side);
		set_link("up");
	} else {
		get_all(side, bytes, sizeof bytes);
		pattern_check(1, 0, bytes, sizeof bytes);
		side_meet(side);
		/* Nothing need arrive here that tells: this side has nothing under way. It is 0 that gives up. */
		side_meet(side);
	}
}

/* 0 sleeps with one message under way that cannot get through. */
static void dead_link_under_a_sleeper(struct side *side)
{
	if (side->index == 0) {
		uint8_t bytes[100] = { 0 };
		uint64_t offset = 0;
		side_meet(side);
		set_link("down");
		put_all(side, bytes, sizeof bytes);
		check_is_loss(get_until_error(side, 1, &offset));
		CHECK_IS(offset, 0);
		side_meet(side);
		set_link("up");
	} else {
		side_meet(side);
		side_meet(side);
	}
}

/* Memory that was sent from before and has been replaced since, at the same address: on an adapter, a registration from
 * before would send what lay there then. Then the same memory again and again, which needs no registration. */
static void replaced_memory_is_sent_as_it_is_now(struct side *side)
{
	enum { LEN = 1 << 20, ROUNDS = 8 };
	uint8_t *bytes = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(bytes != MAP_FAILED);
	for (uint64_t i = 0; i < 2 * ROUNDS; i++) {
		if (side->index == 0) {
			pattern_fill(i, 0, bytes, LEN);
			put_all(side, bytes, LEN);
		} else {
			get_all(side, bytes, LEN);
			pattern_check(i, 0, bytes, LEN);
		}
		side_meet(side);
		if (i % 2 && i < ROUNDS)
			CHECK(madvise(bytes, LEN, MADV_DONTNEED) == 0);
		else if (i < ROUNDS)
			CHECK(mmap(bytes, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
			      bytes);
	}
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	CHECK(stats.registration_misses >= ROUNDS);
	CHECK(stats.registration_hits >= ROUNDS - 2);
	munmap(bytes, LEN);
	side_meet(side);
}

static const struct test_case cases[] = {
	{ "replaced-memory-is-sent-as-it-is-now", replaced_memory_is_sent_as_it_is_now, 0 },
	{ "preferred-over-tcp", preferred_over_tcp, PAIR_OWN_SETUP },
	{ "dead-link-under-puts", dead_link_under_puts, 0 },
	{ "dead-link-under-a-sleeper", dead_link_under_a_sleeper, PAIR_NO_SPIN },
	{ "works-after-the-link-is-back", preferred_over_tcp, PAIR_OWN_SETUP },
};

int main(void)
{
	if (access("/sys/class/infiniband/rxe0", F_OK) || access("/sys/class/net/d0", F_OK)) {
		puts("SKIP: runs in the virtual machine of test/vm/run.sh only");
		return 77;
	}
	return pair_run_all(cases, sizeof cases / sizeof *cases, HR_TRANSPORT_VERBS, "verbs");
}
