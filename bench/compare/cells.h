/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One contender of the comparison: two processes (ranks) that measure cells on command. A contender supplies only the
 * functions that send and receive a message. The loops, the pinning, the clock and the flag are the same code, compiled
 * into each contender.
 *
 * The driver (compare.py) makes a directory. For a contender NAME it contains the named pipes NAME.0 and NAME.1, from
 * which the two ranks read the same commands, and the named pipe NAME.out, to which rank 0 writes one JSON object for
 * each command. One file "flags" is for all contenders: both ranks map it for the ping-pong with flags. Between
 * commands both ranks sleep in read(2). So the processes of all contenders can exist at the same time, and can be
 * measured in turn within milliseconds.
 *
 * A command is a line "TEST SIZE TURNS WINDOW TOUCH". TEST is lat (TURNS round trips of one message; as osu_latency) or
 * bw (TURNS windows of WINDOW messages one way, each window answered by 8 bytes; as osu_bw and osu_mbw_mr). TOUCH is 1
 * if the receiver reads all received bytes. The answer is {"us": U, "flag_before": F, "flag_after": G}: the one-way
 * time of a message, and the flag's one-way time before and after the test, in microseconds. An empty line or the end
 * of the pipe ends the contender.
 */
#ifndef COMPARE_CELLS_H
#define COMPARE_CELLS_H

#include <stddef.h>

struct contender {
	void *context;
	/* Called before a test: where its messages will be received. May be NULL. */
	void (*prepare)(void *context, void *bytes, size_t len);
	/* Both block. Either rank may call either function. */
	void (*send)(void *context, const void *bytes, size_t len);
	void (*receive)(void *context, void *bytes, size_t len);
	/* Send and receive a window of messages, all in flight at the same time if the contender can do that. Message i
	 * is received at bytes + i * stride. arrived is called for each message in order, unless it is NULL. */
	void (*send_window)(void *context, const void *bytes, size_t len, unsigned count);
	void (*receive_window)(void *context, char *bytes, size_t len, size_t stride, unsigned count,
			       void (*arrived)(const void *bytes, size_t len));
};

/* Pins this rank to the rank-th core that it may use. Call it before the contender opens anything. */
void cells_pin(int rank);

/* Runs commands until the last one. A failure ends the process with a message. */
void cells_serve(const struct contender *contender, int rank, const char *folder, const char *name);

#endif
