/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of one pipe in one process and one thread, over a relay. So the test controls each step, and nothing
 * depends on the scheduler. Each end puts the bytes of a stream, and the other end checks them.
 */
#ifndef HR_FAULT_TWO_ENDS_H
#define HR_FAULT_TWO_ENDS_H

#include "headrace/channel.h"
#include "test/faults/fault_transport.h"
#include "test/faults/relay.h"

#include <stdbool.h>
#include <stdint.h>

struct one_end {
	hr_channel_t *channel;
	hr_conn_t *conn;
	hr_card_t card;
	uint64_t put, got; /* bytes */
	int put_error, get_error; /* the error that put, get returned; 0: none yet */
};

struct two_ends {
	struct one_end ends[2];
	struct relay relay;
	uint64_t amount; /* bytes that each end puts */
	bool to_the_end; /* run until both ends have failed: all bytes in shared memory may arrive after a cut */
	int errors_logged;
	bool stuck;
	int fds_before;
};

/* A kind of connection. */
struct line {
	const char *name;
	uint32_t transport;
	bool over_unix;
};
extern const struct line lines[];
extern const int n_lines;

/*
 * Opens both channels, each with its plan (NULL: none), and connects them over a relay without a fault. Returns 0, or
 * the error of hr_channel_init or hr_channel_connect of either end. Call ends_close in any case.
 */
int ends_open(struct two_ends *two, const struct line *line, const struct fault_plan *const plans[2]);
/* Runs both ends until each has put and got its amount or has failed. Sets stuck if no byte moves any more. */
void ends_run(struct two_ends *two);
/* Calls put and get of a failed end again, and checks that they return the same errors. */
void ends_check_repeated(struct two_ends *two);
/* Finalizes both and checks that every descriptor is closed. */
void ends_close(struct two_ends *two);

#endif
