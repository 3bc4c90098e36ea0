/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes at the two ends of one pipe, for tests. A case is one function that both processes run; it asks
 * side->index which of the two it is. A process that fails a CHECK prints the place and exits.
 */
#ifndef HR_TEST_PAIR_H
#define HR_TEST_PAIR_H

#include "headrace/channel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct side {
	int index; /* 0 or 1 */
	uint32_t transport;
	const char *transport_name;
	unsigned scale; /* amounts are divided by it, on slow machines */
	int sync;       /* stream to the other process, for what is not to go through the pipe */
	int given[2];   /* a connected pair made before the fork; this side's is given[index]; -1 once passed on */
	hr_channel_t *channel;
	hr_card_t own, peer;
	hr_conn_t *conn;
};

enum {
	PAIR_OWN_SETUP = 1u << 0,  /* the case opens and connects by itself */
	PAIR_SMALL_RING = 1u << 1, /* so that little data wraps around often */
	PAIR_NO_SPIN = 1u << 2,    /* hr_channel_wait sleeps at once */
	PAIR_0_DIES = 1u << 3,     /* process 0 ends by SIGKILL, not by returning */
	PAIR_GIVEN_UNIX = 1u << 4, /* given is a Unix socket pair */
	PAIR_GIVEN_TCP = 1u << 5,  /* given is a TCP connection */
	PAIR_0_MAY_DIE = 1u << 7,  /* or by returning */
	PAIR_UNDISTURBED = 1u << 8, /* counts looks and waits: not through the fault channel, which makes more of them */
	PAIR_FULL_FENCE = 1u << 6, /* as where the kernel has no membarrier */
};

struct test_case {
	const char *name;
	void (*run)(struct side *side);
	unsigned flags;
};

/* The cases, by file; a null name ends each list. */
extern const struct test_case data_cases[], long_cases[], sleep_cases[], end_cases[], setup_cases[], demand_cases[];

/* Runs one case in two fresh processes; true if both did as they should. */
bool pair_run(const struct test_case *test, uint32_t transport, const char *name, unsigned scale);
/* All of them, at full scale, each with a line that says PASS or FAIL; the exit status for main. */
int pair_run_all(const struct test_case *tests, size_t count, uint32_t transport, const char *name);

#define PAIR_TIMEOUT_MS 10000 /* of the channels */
#define PAIR_LIMIT_S 300     /* a case that runs longer hangs */

void check_failed(const char *file, int line, const char *what, long long value) __attribute__((noreturn));
#define CHECK(condition)                                                     \
	do {                                                                 \
		if (!(condition))                                            \
			check_failed(__FILE__, __LINE__, #condition, 0);     \
	} while (0)
/* An expression that must have this value; the message tells what it was. */
#define CHECK_IS(expression, expected)                                       \
	do {                                                                 \
		long long value_ = (expression);                             \
		if (value_ != (long long)(expected))                         \
			check_failed(__FILE__, __LINE__, #expression " is " #expected, value_); \
	} while (0)

/* Opening, as the default set-up does it. */
void side_open(struct side *side, const hr_channel_attr_t *attr);
hr_channel_attr_t side_attr(const struct side *side);
void side_swap_cards(struct side *side);
/* Until both sides can put. */
void side_wait_up(struct side *side, hr_conn_t *conn);
/* Meets the other process here. */
void side_meet(struct side *side);
void side_send(struct side *side, const void *bytes, size_t n);
void side_receive(struct side *side, void *bytes, size_t n);

/* All of it, sleeping where there is no room or nothing. */
void put_all(struct side *side, const void *bytes, size_t n);
void get_all(struct side *side, void *bytes, size_t n);
void put_all_iov(struct side *side, struct iovec *iov, int n);
void get_all_iov(struct side *side, struct iovec *iov, int n);
/* Gets until an error comes, checking content from offset on as pattern_check does; returns the error. */
int get_until_error(struct side *side, uint64_t seed, uint64_t *offset);

/* The bytes of an endless stream, each a function of seed and its offset. */
void pattern_fill(uint64_t seed, uint64_t offset, void *bytes, size_t n);
void pattern_check(uint64_t seed, uint64_t offset, const void *bytes, size_t n);

/* Numbers that only look random. */
uint64_t rng(uint64_t *state);
size_t rng_between(uint64_t *state, size_t low, size_t high);

/* Open descriptors of this process; entries of a folder. */
int count_entries(const char *folder);
/* A connected pair of TCP sockets on loopback. */
void tcp_pair(int fds[2]);

#endif
