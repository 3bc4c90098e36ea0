/* SPDX-License-Identifier: BSD-3-Clause */
/* Two engines in one process, connected over the memory channel, with a packet type whose handler records messages. */
#ifndef TEST_CH3_PAIR_H
#define TEST_CH3_PAIR_H

#include "ch3/ch3.h"

#include <check.h>

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
	bool in_turn;         /* nothing of PAIR_TYPE goes ahead */
	int declines;         /* what the function for short messages returns if it takes none: 0 or an error; 1: it takes them */
	uint32_t done_order[PAIR_LOG]; /* header of each message whose done ran */
};

extern struct pair_end pair_a, pair_b;

void pair_open(void);
void pair_close(void);
/* Buffers of a test: a sends from source, which is filled with seed 1; b receives into target, which begins with zeros. */
extern char *source, *target;
/* Makes the buffers, and opens both ends over pipes without faults. */
void pair_set_up(size_t bytes);
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

/* Checks that message i of b has ended once, without an error, and how it came. */
void pair_expect(int i, uint32_t header, size_t len, bool waited);
/* The same for a message of which b has received `stored` bytes only, whichever way it came. */
void pair_expect_cut(int i, uint32_t header, size_t len, size_t stored);
/* Checks that the request is complete, with this error, and frees it. */
void pair_expect_end(ch3_request_t *request, int error);

/* Tests that each begin with setup, which calls pair_set_up, and end with both ends closed and the buffers freed. */
TCase *pair_tests(SFun setup);
/* Runs them. Returns the exit status. */
int pair_run(const char *suite, TCase *tests);

#endif
