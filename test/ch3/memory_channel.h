/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A channel within one process, for tests of what stands on it: the five functions of headrace/channel.h over byte
 * queues in memory, and faults on command. It checks its caller: a put that was short must be continued with the same
 * bytes at the same place, as hr_channel_put asks; otherwise the test aborts. And writing into the peer's memory
 * (rdma_channel/remote_write.h), where it aborts when memory is written that had been hidden.
 */
#ifndef TEST_CH3_MEMORY_CHANNEL_H
#define TEST_CH3_MEMORY_CHANNEL_H

#include "headrace/channel.h"

#include <stdbool.h>

/* For every connection from now on; the zero values are those of a healthy channel. */
struct memory_faults {
	size_t put_max;     /* bytes a put takes at most; 0: no limit */
	size_t get_max;     /* bytes a get delivers at most; 0: no limit */
	unsigned put_every; /* only every so many puts take anything; 0: all do */
	size_t capacity;    /* bytes in flight per direction; 0: 64 KB */
	bool no_remote;     /* it cannot write into the peer's memory */
	int expose_fails;   /* that exposing, counted down from this, fails; 0: none does */
	int write_fails;    /* that starting of a write does */
	int write_polls;    /* tests until a write is done */
};
extern struct memory_faults memory_faults;

/* Puts bytes into what the connection will read, as if its peer had sent them. */
void memory_conn_inject(hr_conn_t *conn, const void *bytes, size_t len);
/* Both sides' puts fail with error from now on, their gets after what is in flight. */
void memory_conn_break(hr_conn_t *conn, int error);
/* A peer comes to the channel by itself. As with the real one, one wait tells of it; a wait that finds nothing else
 * while nobody has asked who it is would sleep for ever, and aborts. */
void memory_channel_visit(hr_channel_t *channel, const hr_card_t *card);
/* Called, once, by a wait that is about to tell of such a peer. */
extern void (*memory_visited)(void);
/* Calls of put, whatever they took. */
extern unsigned memory_attempts;
/* Connections that are open. */
extern int memory_connections;
/* Bytes written into the peer's memory, all connections together. */
extern uint64_t memory_remote_bytes;
/* Puts that took something. */
uint64_t memory_conn_puts(const hr_conn_t *conn);

#endif
