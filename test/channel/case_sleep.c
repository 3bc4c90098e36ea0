/* SPDX-License-Identifier: BSD-3-Clause */
/* A side that sleeps is woken by what it sleeps for; none of these may hang. */
#include "config.h"

#include "test/channel/pair.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Sleeps as a program does that waits for other descriptors too; a wake-up that is lost hangs here. */
static void sleep_by_poll(struct side *side, int want_put)
{
	int ready = hr_channel_arm(side->channel, want_put);
	CHECK(ready >= 0);
	if (ready)
		return;
	struct pollfd entry = { .fd = hr_channel_fd(side->channel), .events = POLLIN };
	int n;
	do
		n = poll(&entry, 1, -1);
	while (n < 0 && errno == EINTR);
	CHECK_IS(n, 1);
}

static void sleep_by_wait(struct side *side, int want_put)
{
	CHECK_IS(hr_channel_wait(side->channel, want_put, -1), 1);
}

typedef void (*sleep_fn)(struct side *side, int want_put);

static void get_asleep(struct side *side, void *bytes, size_t n, sleep_fn sleep)
{
	for (size_t done = 0; done < n;) {
		struct iovec iov = { (char *)bytes + done, n - done };
		size_t delivered;
		CHECK_IS(hr_channel_get(side->conn, &iov, 1, &delivered), 0);
		done += delivered;
		if (!delivered)
			sleep(side, 0);
	}
}

static void put_asleep(struct side *side, const void *bytes, size_t n, sleep_fn sleep)
{
	for (size_t done = 0; done < n;) {
		struct iovec iov = { (char *)bytes + done, n - done };
		size_t accepted;
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
		done += accepted;
		if (!accepted)
			sleep(side, 1);
	}
}

/* Sleep and put meet in every order: pauses from none to longer than it takes to fall asleep. */
static void pause_somewhat(uint64_t *random)
{
	uint64_t kind = rng(random) % 16;
	if (kind == 0) {
		struct timespec pause = { 0, (long)(rng(random) % 200000) };
		nanosleep(&pause, NULL);
		return;
	}
	for (uint64_t spin = rng(random) % (kind < 8 ? 50 : 4000); spin; spin--)
		__asm__ volatile("" ::: "memory");
}

static void ping_pong_asleep(struct side *side, sleep_fn sleep)
{
	uint64_t random = (uint64_t)side->index + 1;
	for (uint64_t i = 0; i < 20000 / side->scale; i++) {
		uint64_t value = i;
		if (side->index == 0)
			put_asleep(side, &value, sizeof value, sleep);
		value = ~0ull;
		get_asleep(side, &value, sizeof value, sleep);
		CHECK_IS(value, i);
		pause_somewhat(&random);
		if (side->index == 1)
			put_asleep(side, &value, sizeof value, sleep);
	}
}

static void receivers_asleep_in_wait(struct side *side)
{
	ping_pong_asleep(side, sleep_by_wait);
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	CHECK(stats.sleeps > 0);
}

static void receivers_asleep_in_poll(struct side *side)
{
	ping_pong_asleep(side, sleep_by_poll);
}

/* The sender puts until the pipe has no room, and sleeps for it; only then the receiver begins. Returns the number of bytes. */
static uint64_t fill_asleep(struct side *side, sleep_fn sleep)
{
	uint8_t bytes[4000];
	uint64_t done = 0, total;
	size_t accepted = sizeof bytes;
	while (side->index == 0 && accepted == sizeof bytes) {
		struct iovec iov = { bytes, sizeof bytes };
		pattern_fill(4, done, bytes, sizeof bytes);
		CHECK_IS(hr_channel_put(side->conn, &iov, 1, &accepted), 0);
		done += sizeof bytes;
	}
	if (side->index == 0) {
		side_send(side, &done, sizeof done);
		put_asleep(side, bytes + accepted, sizeof bytes - accepted, sleep);
		return done;
	}
	side_receive(side, &total, sizeof total);
	usleep(2000); /* makes it likely that the sender sleeps already; either order passes */
	for (; done < total; done += sizeof bytes) {
		get_asleep(side, bytes, sizeof bytes, sleep);
		pattern_check(4, done, bytes, sizeof bytes);
	}
	return done;
}

/* The sender finds no room and sleeps for it; the receiver takes little by little, and sleeps when it is ahead. */
static void stream_asleep(struct side *side, sleep_fn sleep)
{
	uint64_t shared = 77, own = 5, done = fill_asleep(side, sleep), total = done + 24u * 1024 * 1024 / side->scale;
	uint8_t bytes[30000];
	while (done < total) {
		size_t n = rng_between(&shared, 1, sizeof bytes);
		if (side->index == 0) {
			pattern_fill(4, done, bytes, n);
			put_asleep(side, bytes, n, sleep);
		} else {
			if (rng(&own) % 64 == 0)
				usleep(300);
			get_asleep(side, bytes, n, sleep);
			pattern_check(4, done, bytes, n);
		}
		done += n;
	}
}

static void sender_asleep_in_wait(struct side *side)
{
	stream_asleep(side, sleep_by_wait);
}

static void sender_asleep_in_poll(struct side *side)
{
	stream_asleep(side, sleep_by_poll);
}

/* One process sleeps on a channel; the other puts long after. */
static void long_sleep(struct side *side)
{
	for (uint64_t i = 0; i < 10; i++) {
		uint64_t value = i;
		if (side->index == 0) {
			usleep(20000);
			put_all(side, &value, sizeof value);
			get_asleep(side, &value, sizeof value, sleep_by_wait);
			CHECK_IS(value, ~i);
		} else {
			get_asleep(side, &value, sizeof value, i % 2 ? sleep_by_poll : sleep_by_wait);
			CHECK_IS(value, i);
			value = ~i;
			put_all(side, &value, sizeof value);
		}
	}
}

/* Each process on a processor of its own, where there are two: only then do their stores and loads overlap. */
static void stay_apart(const struct side *side)
{
	cpu_set_t allowed, one;
	CPU_ZERO(&one);
	CHECK_IS(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	int wanted = side->index;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0)
			continue;
		CPU_SET(cpu, &one);
		CHECK_IS(sched_setaffinity(0, sizeof one, &one), 0);
		return;
	}
}

/* 1 falls asleep as fast as it can; 0 never sleeps, and puts at the very moment, to within nanoseconds. A put that
 * looks for the sleeper too early, while the sleeper looks for the data too early, hangs. */
static void put_meets_falling_asleep(struct side *side)
{
	uint64_t random = 9;
	stay_apart(side);
	for (uint64_t i = 0; i < 60000 / side->scale; i++) {
		uint64_t value = i;
		if (side->index == 1) {
			get_asleep(side, &value, sizeof value, sleep_by_poll);
			CHECK_IS(value, i);
			put_all(side, &value, sizeof value);
			continue;
		}
		for (uint64_t spin = rng(&random) % 4096; spin; spin--)
			__asm__ volatile("" ::: "memory");
		put_all(side, &value, sizeof value);
		for (size_t done = 0, moved; done < sizeof value; done += moved) {
			struct iovec iov = { (char *)&value + done, sizeof value - done };
			CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), 0);
		}
	}
}

/* A get between two sleeps may take the wake-up of the first away unseen; the second must be armed anew all the same. */
static void polling_between_two_sleeps(struct side *side)
{
	for (uint64_t i = 0; i < 4; i++) {
		uint64_t value = i;
		struct iovec iov = { &value, sizeof value };
		if (side->index == 0) {
			side_meet(side);
			put_all(side, &value, sizeof value);
			side_meet(side);
			usleep(30000); /* it sleeps by then */
			put_all(side, &value, sizeof value);
			side_meet(side);
			continue;
		}
		while (hr_channel_arm(side->channel, 0))
			CHECK(!hr_channel_ready(side->channel, 0));
		side_meet(side);
		get_all(side, &value, sizeof value);
		side_meet(side);
		for (int polls = 0; polls < 4000; polls++) {
			size_t delivered;
			CHECK_IS(hr_channel_get(side->conn, &iov, 1, &delivered), 0);
			if (delivered) { /* on a busy machine; it may be a part */
				get_all(side, (char *)&value + delivered, sizeof value - delivered);
				goto got;
			}
			if (polls % 500 == 0)
				usleep(1000);
		}
		CHECK_IS(hr_channel_wait(side->channel, 0, 20000), 1);
		get_all(side, &value, sizeof value);
got:
		CHECK_IS(value, i);
		side_meet(side);
	}
}

/* The receiver takes the sender's wake-up while the sender sleeps. The sender must sleep on. */
static void taken_wake_up_wakes_nobody(struct side *side)
{
	uint64_t value = 7;
	if (strcmp(hr_conn_transport(side->conn), "shm"))
		return; /* the others have events of their own */
	if (side->index == 1)
		while (hr_channel_arm(side->channel, 0))
			CHECK(!hr_channel_ready(side->channel, 0));
	side_meet(side);
	if (side->index == 0) {
		put_all(side, &value, sizeof value);
		while (hr_channel_arm(side->channel, 0))
			CHECK(!hr_channel_ready(side->channel, 0));
	}
	side_meet(side);
	if (side->index == 1) {
		CHECK_IS(hr_channel_wait(side->channel, 0, 20000), 1);
		get_all(side, &value, sizeof value);
		(void)hr_channel_arm(side->channel, 0); /* handles the events that are left */
	}
	side_meet(side);
	struct pollfd fd = { .fd = hr_channel_fd(side->channel), .events = POLLIN };
	if (side->index == 0)
		CHECK_IS(poll(&fd, 1, 0), 0);
	side_meet(side);
}

/* A connection that fell asleep with nothing wanted for puts is armed for room when a later put finds none. */
static void full_after_falling_asleep(struct side *side)
{
	static uint8_t bytes[10000]; /* a longer piece may wait for the receiver instead of for room */
	struct iovec iov = { bytes, sizeof bytes };
	for (int round = 0; round < 3; round++) {
		uint64_t put = 0, got = 0;
		size_t moved = 1;
		if (side->index == 1) {
			side_receive(side, &put, sizeof put);
			usleep(30000); /* it sleeps by then */
			while (got < put) {
				CHECK_IS(hr_channel_get(side->conn, &iov, 1, &moved), 0);
				got += moved;
			}
			side_meet(side);
			continue;
		}
		while (hr_channel_arm(side->channel, 0))
			CHECK(!hr_channel_ready(side->channel, 0));
		while (moved) {
			CHECK_IS(hr_channel_put(side->conn, &iov, 1, &moved), 0);
			put += moved;
		}
		side_send(side, &put, sizeof put);
		CHECK_IS(hr_channel_wait(side->channel, 1, 20000), 1);
		side_meet(side);
	}
}

static uint64_t looks_of(struct side *side)
{
	hr_conn_stats_t stats = { .size = sizeof stats };
	CHECK_IS(hr_conn_stats(side->conn, &stats), 0);
	return stats.looks;
}

/* The answers come long after the longest spin: soon only a wait now and then is spun through. */
static void long_waits_are_not_spun(struct side *side)
{
	if (getenv("HR_FAULTS")) /* waits that end, and then nothing is had, are short ones */
		return;
	setenv("HEADRACE_SPIN_US", "300", 1);
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	int spun = 0;
	for (uint64_t i = 0; i < 40; i++) {
		uint64_t value = i;
		if (side->index == 1) {
			get_all(side, &value, sizeof value);
			usleep(3000);
			put_all(side, &value, sizeof value);
			continue;
		}
		put_all(side, &value, sizeof value);
		uint64_t before = looks_of(side);
		get_all(side, &value, sizeof value);
		spun += i >= 8 && looks_of(side) - before > 32;
	}
	CHECK(spun <= 8);
}

/* More than a spin of 50 us looks at a connection, and less than one of ten seconds, though it gives the processor away
 * between looks and others keep it for milliseconds. */
#define LOOKS_OF_A_SLICE 8000
#define LONG_SPIN_US "10000000"
#define LONGER_MS 30000

/* 0 spins for long on its first connection. A peer that comes meanwhile, and bytes on a connection that is asleep, are
 * seen after a slice of that. */
static void a_long_spin_looks_at_others(struct side *side)
{
	if (side->index == 0)
		setenv("HEADRACE_SPIN_US", LONG_SPIN_US, 1);
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	hr_channel_t *second;
	hr_conn_t *other;
	hr_card_t card;
	uint64_t value = 1;
	if (side->index == 1) {
		CHECK_IS(hr_channel_init(&attr, &second, &card), 0);
		get_all(side, &value, sizeof value);
		CHECK_IS(hr_channel_connect(second, &side->peer, NULL, &other), 0);
		struct side visitor = *side;
		visitor.channel = second;
		for (int i = 0; i < 20; i++, usleep(1000))
			CHECK_IS(hr_conn_state(other), 0); /* its hello leaves */
		side_meet(side);
		side_wait_up(&visitor, other);
		side_meet(side);
		side_meet(side); /* the host's end is asleep */
		struct iovec iov = { &value, sizeof value };
		size_t moved;
		CHECK_IS(hr_channel_put(other, &iov, 1, &moved), 0);
		CHECK_IS(moved, sizeof value);
		side_meet(side);
		side_meet(side);
		hr_channel_finalize(second);
		return;
	}
	put_all(side, &value, sizeof value); /* it has been at work, so that spinning on it pays */
	side_meet(side);
	uint64_t before = looks_of(side);
	while (!hr_channel_incoming(side->channel, &card))
		CHECK_IS(hr_channel_wait(side->channel, 0, LONGER_MS), 1);
	CHECK(looks_of(side) - before < LOOKS_OF_A_SLICE);
	CHECK_IS(hr_channel_connect(side->channel, &card, NULL, &other), 0);
	side_wait_up(side, other);
	side_meet(side);
	int armed;
	while ((armed = hr_channel_arm(side->channel, 0)) != 0) { /* until both are asleep */
		CHECK_IS(armed, 1);
		hr_conn_t *ready = hr_channel_ready(side->channel, 0);
		struct iovec iov = { &value, sizeof value };
		size_t moved = 0;
		if (ready)
			CHECK_IS(hr_channel_get(ready, &iov, 1, &moved), 0);
		CHECK_IS(moved, 0);
	}
	put_all(side, &value, sizeof value);
	side_meet(side);
	side_meet(side); /* the visitor has put */
	before = looks_of(side);
	CHECK_IS(hr_channel_wait(side->channel, 0, LONGER_MS), 1);
	CHECK(looks_of(side) - before < LOOKS_OF_A_SLICE);
	struct side host = *side;
	host.conn = other;
	get_all(&host, &value, sizeof value);
	side_meet(side);
}

/* Nothing happens: the wait ends by itself, says so, and has slept. */
static void wait_ends_by_itself(struct side *side)
{
	/* What set-up left behind may wake once. */
	hr_channel_wait(side->channel, 0, 20);
	hr_channel_wait(side->channel, 0, 20);
	side_meet(side);
	CHECK_IS(hr_channel_wait(side->channel, 0, 50), 0);
	CHECK_IS(hr_channel_wait(side->channel, 0, 0), 0);
	CHECK_IS(hr_channel_arm(side->channel, 1), 0);
	side_meet(side);
}

/* Data that is there already is not slept on. */
static void arm_sees_data(struct side *side)
{
	uint64_t value = 42;
	if (side->index == 0)
		put_all(side, &value, sizeof value);
	side_meet(side);
	if (side->index == 1) {
		for (int i = 0; i < 1000 && !hr_channel_arm(side->channel, 0); i++)
			usleep(1000); /* it may still be on its way */
		CHECK_IS(hr_channel_arm(side->channel, 0), 1);
		CHECK_IS(hr_channel_wait(side->channel, 0, -1), 1);
		get_all(side, &value, sizeof value);
		CHECK_IS(value, 42);
	}
	side_meet(side);
}

/* A put was short because the connection was not up, and it is a get that finds it up: there is room now. */
static void early_put_may_go_on(struct side *side)
{
	uint64_t value = 42;
	hr_channel_attr_t attr = side_attr(side);
	side_open(side, &attr);
	if (side->index == 1)
		side_meet(side);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	if (side->index == 0) {
		struct iovec out = { &value, sizeof value };
		char byte;
		struct iovec in = { &byte, 1 };
		size_t n;
		CHECK_IS(hr_channel_put(side->conn, &out, 1, &n), 0);
		CHECK_IS(n, 0);
		side_meet(side);
		do
			CHECK_IS(hr_channel_get(side->conn, &in, 1, &n), 0);
		while (!strcmp(hr_conn_transport(side->conn), "none"));
		CHECK_IS(hr_channel_arm(side->channel, 0) & ~1, 0); /* room is not asked for */
		CHECK_IS(hr_channel_arm(side->channel, 1), 1);
		put_all(side, &value, sizeof value);
	} else {
		get_all(side, &value, sizeof value);
		CHECK_IS(value, 42);
	}
	side_meet(side);
}

/* A set-up that nobody answers ends by itself, asleep, whatever a connection that was closed before still had to wait for. */
static void nobody_answers_a_sleeper(struct side *side)
{
	hr_channel_attr_t attr = side_attr(side);
	attr.timeout_ms = 1000;
	side_open(side, &attr);
	CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
	side_wait_up(side, side->conn);
	uint64_t value = 1;
	put_all(side, &value, sizeof value);
	get_all(side, &value, sizeof value);
	CHECK(hr_channel_wait(side->channel, 0, 1) >= 0); /* falls asleep, and the kernel has still to be asked */
	side_meet(side);
	hr_conn_close(side->conn);
	side_meet(side);
	if (side->index == 0) {
		int state;
		CHECK_IS(hr_channel_connect(side->channel, &side->peer, NULL, &side->conn), 0);
		while ((state = hr_conn_state(side->conn)) == 0)
			CHECK_IS(hr_channel_wait(side->channel, 0, 10000), 1);
		CHECK_IS(state, -ETIMEDOUT);
	}
	side_meet(side);
}

const struct test_case sleep_cases[] = {
	{ "receivers-asleep-in-wait", receivers_asleep_in_wait, PAIR_NO_SPIN },
	{ "receivers-asleep-in-poll", receivers_asleep_in_poll, 0 },
	{ "receivers-asleep-full-fence", receivers_asleep_in_poll, PAIR_FULL_FENCE },
	{ "sender-asleep-in-wait", sender_asleep_in_wait, PAIR_NO_SPIN },
	{ "sender-asleep-in-poll", sender_asleep_in_poll, PAIR_SMALL_RING },
	{ "sender-asleep-full-fence", sender_asleep_in_poll, PAIR_SMALL_RING | PAIR_FULL_FENCE },
	{ "put-meets-falling-asleep", put_meets_falling_asleep, 0 },
	{ "put-meets-falling-asleep-full-fence", put_meets_falling_asleep, PAIR_FULL_FENCE },
	{ "put-meets-falling-asleep-often", put_meets_falling_asleep, PAIR_0_SLEEPS | PAIR_1_SLEEPS },
	{ "put-meets-falling-asleep-often-of-one", put_meets_falling_asleep, PAIR_1_SLEEPS },
	{ "put-often-asleep-meets-falling-asleep", put_meets_falling_asleep, PAIR_0_SLEEPS },
	{ "long-sleep", long_sleep, 0 },
	{ "full-after-falling-asleep", full_after_falling_asleep, PAIR_NO_SPIN },
	{ "polling-between-two-sleeps", polling_between_two_sleeps, 0 },
	{ "taken-wake-up-wakes-nobody", taken_wake_up_wakes_nobody, PAIR_UNDISTURBED },
	{ "long-waits-are-not-spun", long_waits_are_not_spun, PAIR_OWN_SETUP | PAIR_UNDISTURBED },
	{ "a-long-spin-looks-at-others", a_long_spin_looks_at_others, PAIR_OWN_SETUP | PAIR_UNDISTURBED },
	{ "wait-ends-by-itself", wait_ends_by_itself, 0 },
	{ "arm-sees-data", arm_sees_data, 0 },
	{ "early-put-may-go-on", early_put_may_go_on, PAIR_OWN_SETUP },
	{ "nobody-answers-a-sleeper", nobody_answers_a_sleeper, PAIR_OWN_SETUP },
	{ 0 },
};
