/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One contender of the comparison: two processes that measure cells on command. What differs between contenders is
 * only how a message is sent and received; the loops, the pinning, the clock and the flag are these, compiled into
 * each.
 *
 * The driver (compare.py) makes a folder with, for a contender called NAME: NAME.0 and NAME.1, named pipes from
 * which the two ranks read the same commands, NAME.out, a named pipe to which rank 0 writes one JSON object a
 * command, and for all contenders one file "flags" that both ranks map for the flag ping-pong. Between commands
 * both ranks sleep in read(2), so that all contenders can be alive at once and take turns within milliseconds.
 *
 * A command is a line "TEST SIZE TURNS WINDOW TOUCH": TEST is lat (TURNS round trips of one message; as
 * osu_latency) or bw (TURNS windows of WINDOW messages one way, each window answered by 8 bytes; as osu_bw and
 * osu_mbw_mr); TOUCH is 1 if the receiver reads all that it received. The answer is {"us": U, "flag_before": F,
 * "flag_after": G}: one-way microseconds a message, and the flag's one-way microseconds before and behind it. An
 * empty line or the end of the pipe ends the contender.
 */
#ifndef COMPARE_CELLS_H
#define COMPARE_CELLS_H

#include <stddef.h>

struct contender {
	void *context;
	/* Tells, before a cell, where its messages will go. NULL where nobody needs to know. */
	void (*prepare)(void *context, void *bytes, size_t len);
	/* Blocking; both ranks may call either. */
	void (*send)(void *context, const void *bytes, size_t len);
	void (*receive)(void *context, void *bytes, size_t len);
	/* A window of messages, all of them under way at once where the contender can have that. The receiver's message
	 * i goes to bytes + i * stride; arrived, where it is not NULL, is called for each message in order. */
	void (*send_window)(void *context, const void *bytes, size_t len, unsigned count);
	void (*receive_window)(void *context, char *bytes, size_t len, size_t stride, unsigned count,
			       void (*arrived)(const void *bytes, size_t len));
};

/* Pins this rank to the rank-th core that it may use. Before the contender opens anything. */
void cells_pin(int rank);

/* Serves commands until told to end. Failures end the process with a message. */
void cells_serve(const struct contender *contender, int rank, const char *folder, const char *name);

#endif
