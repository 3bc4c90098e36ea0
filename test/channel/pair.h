/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two processes at the two ends of one pipe, for tests. A case is one function that both processes run; side->index
 * says which of the two runs it. If a CHECK fails, the process prints file and line and exits.
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
	unsigned scale; /* divisor of the amounts of data, for slow machines */
	int sync;       /* stream to the other process, beside the pipe */
	int given[2];   /* two connected sockets made before the fork; given[index] is this side's; -1: passed on */
	hr_channel_t *channel;
	hr_card_t own, peer;
	hr_conn_t *conn;
};

enum {
	PAIR_OWN_SETUP = 1u << 0,  /* the case opens and connects by itself */
	PAIR_SMALL_RING = 1u << 1, /* a small ring, so that little data wraps around often */
	PAIR_NO_SPIN = 1u << 2,    /* hr_channel_wait sleeps at once */
	PAIR_0_DIES = 1u << 3,     /* process 0 must end by SIGKILL */
	PAIR_GIVEN_UNIX = 1u << 4, /* given is a Unix socket pair */
	PAIR_GIVEN_TCP = 1u << 5,  /* given is a TCP connection */
	PAIR_0_MAY_DIE = 1u << 7,  /* process 0 may end by SIGKILL or by returning */
	PAIR_UNDISTURBED = 1u << 8, /* counts polls and waits: not for the fault transport, which adds some */
	PAIR_FULL_FENCE = 1u << 6, /* with full fences instead of membarrier(2) */
	PAIR_0_SLEEPS = 1u << 9, /* the channel of process 0 has HR_CHANNEL_SLEEPS */
	PAIR_1_SLEEPS = 1u << 10, /* that of process 1 */
};

struct test_case {
	const char *name;
	void (*run)(struct side *side);
	unsigned flags;
};

/* The cases, by file; a null name ends each list. */
extern const struct test_case data_cases[], long_cases[], several_cases[], sleep_cases[], end_cases[], setup_cases[], demand_cases[];

/* Runs one case in two new processes. Returns whether both ended as expected. */
bool pair_run(const struct test_case *test, uint32_t transport, const char *name, unsigned scale);
/* Runs all cases at full scale, and prints PASS or FAIL for each. Returns the exit status for main. */
int pair_run_all(const struct test_case *tests, size_t count, uint32_t transport, const char *name);

#define PAIR_TIMEOUT_MS 10000 /* timeout_ms of the channels */
#define PAIR_LIMIT_S 300     /* a case that runs longer counts as hanging */

void check_failed(const char *file, int line, const char *what, long long value) __attribute__((noreturn));
#define CHECK(condition)                                                     \
	do {                                                                 \
		if (!(condition))                                            \
			check_failed(__FILE__, __LINE__, #condition, 0);     \
	} while (0)
/* Checks that an expression has this value. The message contains the value that it had. */
#define CHECK_IS(expression, expected)                                       \
	do {                                                                 \
		long long value_ = (expression);                             \
		if (value_ != (long long)(expected))                         \
			check_failed(__FILE__, __LINE__, #expression " is " #expected, value_); \
	} while (0)

/* The steps of the default set-up. */
void side_open(struct side *side, const hr_channel_attr_t *attr);
hr_channel_attr_t side_attr(const struct side *side);
/* Checks that no channel can be opened while the variable of the environment has one of the values. */
void side_refuses(const struct side *side, const char *variable, const char *const *values, size_t n);
void side_swap_cards(struct side *side);
/* Waits until both sides can put. */
void side_wait_up(struct side *side, hr_conn_t *conn);
/* Waits until the other process has called this too. */
void side_meet(struct side *side);
/* Waits until the other process has ended, and checks that nothing has written into these bytes until then. It sends no more on
 * side->sync. */
void side_keeps(struct side *side, uint8_t *bytes, size_t n);
/* Send and receive over side->sync. */
void side_send(struct side *side, const void *bytes, size_t n);
void side_receive(struct side *side, void *bytes, size_t n);

/* Put or get all of the bytes. Sleep if there is no room, or nothing to get. */
void put_all(struct side *side, const void *bytes, size_t n);
void get_all(struct side *side, void *bytes, size_t n);
void put_all_iov(struct side *side, struct iovec *iov, int n);
void get_all_iov(struct side *side, struct iovec *iov, int n);
/* Gets until an error, and checks the bytes from *offset on as pattern_check does. Returns the error. */
int get_until_error(struct side *side, uint64_t seed, uint64_t *offset);

/* Fill with, and check, the bytes of an endless stream; each byte is a function of seed and its offset. */
void pattern_fill(uint64_t seed, uint64_t offset, void *bytes, size_t n);
void pattern_check(uint64_t seed, uint64_t offset, const void *bytes, size_t n);

/* Pseudo-random numbers. */
uint64_t rng(uint64_t *state);
size_t rng_between(uint64_t *state, size_t low, size_t high);

/* Returns the number of entries of a directory, such as /proc/self/fd. */
int count_entries(const char *folder);
/* Makes a connected pair of TCP sockets on loopback. */
void tcp_pair(int fds[2]);

#endif
