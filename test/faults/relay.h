/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A relay between two streams: a test calls it to pass the bytes on, and it can inject a fault at a certain byte. The
 * messages of set-up go through it, and over tcp the data too. It also passes descriptors on. One thread; never blocks.
 */
#ifndef HR_FAULT_RELAY_H
#define HR_FAULT_RELAY_H

#include <stdbool.h>
#include <stdint.h>

enum relay_fault {
	RELAY_SOUND,
	RELAY_CUT,        /* both streams end when `at` bytes have passed in this direction */
	RELAY_FLIP,       /* one bit of byte number `at` is flipped */
	RELAY_DROP_FDS,   /* the descriptors in this direction do not arrive */
	RELAY_EXTRA_FD,   /* with byte number `at` one descriptor more arrives than was sent */
};

struct relay {
	int fds[2];       /* the relay's ends of the streams to end 0 and end 1 */
	uint64_t passed[2]; /* number of bytes that came from each end */
	bool ended[2];
	enum relay_fault fault;
	int direction;    /* the fault is in the bytes from this end */
	uint64_t at;      /* number of the byte */
	unsigned bit;     /* RELAY_FLIP: number of the bit */
};

/* Makes the two streams, Unix or TCP on loopback; theirs[i] is for end i. Aborts the test if that fails. */
void relay_open(struct relay *relay, bool over_unix, int theirs[2]);
/* Passes on the bytes that have arrived. Returns whether there were any. */
bool relay_move(struct relay *relay);
void relay_close(struct relay *relay);

#endif
