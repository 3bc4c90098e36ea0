/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines in one process, connected over the memory channel, with a packet type whose handler records messages. */
#ifndef TEST_CH3_PAIR_H
#define TEST_CH3_PAIR_H

#include "ch3/ch3.h"

enum { PAIR_TYPE = CH3_TYPE_FIRST, PAIR_TYPE_OTHER, PAIR_TYPE_SHORT, PAIR_TYPE_NONE };

#define PAIR_LOG 4096

/* One message as the handler saw it, and how it ended. */
struct pair_message {
	unsigned type;
	uint32_t header;      /* first four bytes of the header */
	size_t header_len;
	uint64_t payload_len;
	bool waited;          /* it came by rendezvous */
	bool in_place;        /* the function for short messages took it */
	int done;             /* how often its done function ran */
	int error;            /* arguments of that function */
	size_t bytes;
	size_t unpacked;      /* bytes that came through unpack */
	int connections;      /* number of open connections when it ran */
	ch3_rndv_t *rndv;     /* of a deferred message */
};

/* One side. */
struct pair_end {
	ch3_t *engine;
	ch3_vc_t *vc;
	struct pair_message message[PAIR_LOG];
	int messages, dones, failures, failure;
	/* Actions of the handler. */
	char *buffer;         /* for payloads */
	size_t room;
	size_t stride;        /* the payload of message i goes to buffer + i * stride */
	bool defer, split;    /* split: receive into eight pieces */
	bool unpack;          /* receive part by part, into buffer too */
	int refuse;           /* error that the handler returns; 0: none */
	int declines;         /* what the function for short messages returns if it takes none: 0 or an error; 1: it takes them */
	uint32_t done_order[PAIR_LOG]; /* header of each message whose done ran */
};

extern struct pair_end pair_a, pair_b;

void pair_open(void);
void pair_close(void);
/*
 * Opens both ends over pipes without faults. *source: a buffer to send, filled with seed 1. *target: a buffer of zeros
 * for b to receive into.
 */
void pair_set_up(size_t bytes, char **source, char **target);
/* Closes both ends and frees both buffers. */
void pair_tear_down(char *source, char *target);
/* Polls both engines until neither makes progress. */
void pair_settle(void);
/* Sends header (four bytes) and payload from a to b, and returns the request. */
ch3_request_t *pair_send(uint32_t header, const void *payload, size_t len, unsigned flags);
/* The same for a payload that is packed part by part. */
ch3_request_t *pair_send_pack(uint32_t header, const void *payload, size_t len, unsigned flags);
/* Accepts a deferred message into b's buffer. */
void pair_accept(int message);
/* Fill with, and check, bytes that depend on their offset and on seed. */
void pair_fill(void *bytes, size_t len, uint32_t seed);
bool pair_filled(const void *bytes, size_t len, uint32_t seed);

#endif
