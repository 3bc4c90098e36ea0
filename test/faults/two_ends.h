/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both ends of one pipe in one process and one thread, over a relay, so that each step is the test's: nothing is left to
 * the scheduler. Each end puts the bytes of a stream that the other checks.
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
	int put_error, get_error; /* 0: none yet */
};

struct two_ends {
	struct one_end ends[2];
	struct relay relay;
	uint64_t amount; /* bytes each puts */
	bool to_the_end; /* run until both have failed: what is in shared memory may all arrive over a line that is cut */
	int errors_logged;
	bool stuck;
	int fds_before;
};

/* The kinds of line. */
struct line {
	const char *name;
	uint32_t transport;
	bool over_unix;
};
extern const struct line lines[];
extern const int n_lines;

/*
 * Opens both channels, each with the plan given for it (NULL: none), and connects them over a relay without a fault.
 * 0, or what hr_channel_init or hr_channel_connect of either returned; ends_close is due in any case.
 */
int ends_open(struct two_ends *two, const struct line *line, const struct fault_plan *const plans[2]);
/* Moves everything until each end has put and got its amount or has failed; sets stuck if nothing moves any more. */
void ends_run(struct two_ends *two);
/* Calls an end that has failed again: the same errors. */
void ends_check_repeated(struct two_ends *two);
/* Finalizes both and checks that every descriptor is closed. */
void ends_close(struct two_ends *two);

#endif
