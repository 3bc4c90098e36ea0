/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A line between two streams that a test moves by hand, and on which something can go wrong at a certain byte: the
 * messages of set-up go over it, and over tcp the data too. Passes descriptors on. One thread, never blocks.
 */
#ifndef HR_FAULT_RELAY_H
#define HR_FAULT_RELAY_H

#include <stdbool.h>
#include <stdint.h>

enum relay_fault {
	RELAY_SOUND,
	RELAY_CUT,        /* both streams end when so many bytes have passed in this direction */
	RELAY_FLIP,       /* one bit of the byte with that number is wrong */
	RELAY_DROP_FDS,   /* the descriptors in this direction do not arrive */
	RELAY_EXTRA_FD,   /* one more than was sent arrives, with the byte of that number */
};

struct relay {
	int fds[2];       /* ours, of the streams to end 0 and end 1 */
	uint64_t passed[2]; /* bytes that came from that end */
	bool ended[2];
	enum relay_fault fault;
	int direction;    /* of the fault: from that end */
	uint64_t at;      /* byte */
	unsigned bit;
};

/* Makes the two streams, Unix or TCP on loopback; theirs[i] is for end i. Aborts the test if that fails. */
void relay_open(struct relay *relay, bool over_unix, int theirs[2]);
/* Moves what there is; true if that was something. */
bool relay_move(struct relay *relay);
void relay_close(struct relay *relay);

#endif
