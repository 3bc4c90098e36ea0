/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines in one process, connected over the memory channel, and a packet type that records what it gets. */
#ifndef TEST_CH3_PAIR_H
#define TEST_CH3_PAIR_H

#include "ch3/ch3.h"

enum { PAIR_TYPE = CH3_TYPE_FIRST, PAIR_TYPE_OTHER, PAIR_TYPE_NONE };

#define PAIR_LOG 4096

/* One message as the handler saw it, and how it ended. */
struct pair_message {
	unsigned type;
	uint32_t header;      /* first four bytes of the header */
	size_t header_len;
	uint64_t payload_len;
	bool waited;          /* it came by rendezvous */
	int done;             /* how often done ran */
	int error;
	size_t bytes;
	int connections;      /* open when it was done */
	ch3_rndv_t *rndv;     /* deferred */
};

/* One side. */
struct pair_end {
	ch3_t *engine;
	ch3_vc_t *vc;
	struct pair_message message[PAIR_LOG];
	int messages, dones, failures, failure;
	/* What the handler does. */
	char *buffer;         /* payloads go here */
	size_t room;
	bool defer, split;    /* split: into eight pieces */
	int refuse;           /* returned by the handler */
	uint32_t done_order[PAIR_LOG]; /* header of each message whose done ran */
};

extern struct pair_end pair_a, pair_b;

void pair_open(void);
void pair_close(void);
/*
 * Opens over pipes without faults, with so many bytes filled from seed 1 to send, and as many zeros that b receives
 * into.
 */
void pair_set_up(size_t bytes, char **source, char **target);
/* Closes, and frees both. */
void pair_tear_down(char *source, char *target);
/* Polls both until neither has anything left to do. */
void pair_settle(void);
/* Sends header (four bytes) and payload from a to b, and returns the request. */
ch3_request_t *pair_send(uint32_t header, const void *payload, size_t len, unsigned flags);
/* Accepts a deferred message into b's buffer. */
void pair_accept(int message);
/* Fills, and checks, bytes that depend on their place and on seed. */
void pair_fill(void *bytes, size_t len, uint32_t seed);
bool pair_filled(const void *bytes, size_t len, uint32_t seed);

#endif
