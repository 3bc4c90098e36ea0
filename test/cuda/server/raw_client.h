/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test client that sends arbitrary packets to a real worker, also packets that Headrace's libcuda.so.1 never sends.
 * Each connection is one raw_t with an engine of its own. The caller numbers the calls. Only these functions make
 * progress.
 */
#ifndef TEST_SERVER_RAW_CLIENT_H
#define TEST_SERVER_RAW_CLIENT_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/door/door.h"
#include "cuda_remote/wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A check that prints where it failed, and the last reply and the state of a connection. */
#define RAW_CHECK(raw, condition)                                                                              \
	do {                                                                                                   \
		if (!(condition)) {                                                                            \
			fprintf(stderr, "%s:%d: not so: %s; result %d, connection %d\n", __FILE__, __LINE__, #condition, \
				(int)(raw).reply.result, (raw).failed);                                        \
			exit(1);                                                                               \
		}                                                                                              \
	} while (0)

/* The handle that the raw client gives to device 0's primary context. */
#define RAW_PRIMARY rc_handle_make(RC_KIND_CONTEXT, 1000, 1)

typedef struct raw {
	ch3_t *engine;
	ch3_vc_t *vc;
	int failed;                          /* the connection's error; 0: it lives */
	uint8_t token[RC_DOOR_TOKEN_BYTES];  /* of the session */
	bool deaf;                           /* makes no progress after a send: replies stay unread */
	unsigned replies, hosts, chunks;     /* arrived with all their bytes */
	uint64_t copy[1024];                 /* of the first chunks: which copy they are of */
	uint64_t freed;                      /* of the last CREDIT */
	struct rc_wire_reply reply;          /* the last one */
	uint8_t results[65536];              /* of it: the first bytes */
	size_t results_len;
	struct rc_wire_host host;            /* the last host function */
	char text[2][4096];                  /* what arrived for stdout and stderr, NUL-terminated */
} raw_t;

/* Opens a session (join NULL), or another connection of the session of join, at HEADRACE_SERVER with this GPU (index or
 * RC_SERVER_ALL_GPUS). Negated errno. */
int raw_connect(raw_t *raw, const raw_t *join, uint32_t gpu);
/* Closes the connection without sending another byte. */
void raw_close(raw_t *raw);

/* Sends a call as it is: flags from the table. Arguments: fixed (in the header), then more (payload). Negated errno. */
int raw_send(raw_t *raw, uint64_t number, enum rc_call function, uint32_t context, const void *fixed, size_t fixed_len,
	     const void *more, size_t more_len);
/* The same with a head of the caller's making. */
int raw_send_head(raw_t *raw, const struct rc_wire_call *head, const void *fixed, size_t fixed_len, const void *more,
		  size_t more_len);
/* Sends one packet of any type. */
int raw_packet(raw_t *raw, unsigned type, const void *header, size_t header_len, const void *bytes, size_t len);

/* Sends a call that waits and reads its reply: the CUresult. -1: the connection failed, or nothing came in 30 s. */
int raw_call(raw_t *raw, uint64_t number, enum rc_call function, uint32_t context, const void *fixed, size_t fixed_len,
	     const void *more, size_t more_len);
/* Makes progress until replies have come to this count. False: the connection failed, or 30 s passed. */
bool raw_await(raw_t *raw, unsigned replies);
/* Makes progress until the connection fails. False: it lived for ms. */
bool raw_await_end(raw_t *raw, unsigned ms);
/* Waits up to ms milliseconds for packets, and makes progress with them. */
void raw_poll(raw_t *raw, int ms);

/* Sends hello, as raw_send and raw_call. */
int raw_send_hello(raw_t *raw, uint64_t number);
int raw_call_hello(raw_t *raw, uint64_t number);
/* hello: the primary context's index of device i, 0 if there is none. devices may be NULL. Takes call number. */
uint32_t raw_hello(raw_t *raw, uint64_t number, uint32_t device, uint32_t *devices);

/* Loads an image as a module. Its wire result; *module: its handle, *kernel: that of its first kernel. -1: no answer. */
int raw_load(raw_t *raw, uint64_t number, uint32_t context, const void *image, size_t size, uint64_t *module, uint64_t *kernel);

#endif
