/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A double of the channel within one process, for tests of the layers above: the five functions of headrace/channel.h
 * over byte queues in memory, and remote_access.h. It injects faults, and it checks its caller: the test aborts if a
 * short put is not continued with the same bytes at the same address, as hr_channel_put requires, or if hidden memory
 * is written.
 */
#ifndef TEST_CH3_MEMORY_CHANNEL_H
#define TEST_CH3_MEMORY_CHANNEL_H

#include "headrace/channel.h"

#include <stdbool.h>

/* Faults of all connections from now on. All zero: no faults. */
struct memory_faults {
	size_t put_max;     /* maximum number of bytes that a put accepts; 0: no limit */
	size_t get_max;     /* maximum number of bytes that a get delivers; 0: no limit */
	unsigned put_every; /* of this many puts only one accepts bytes; 0: all do */
	size_t capacity;    /* maximum number of bytes in flight per direction; 0: 64 KB */
	bool accept_late;   /* puts transfer bytes, but accept those from a long piece on only when the peer has got them, as zero copy does */
	bool ahead;         /* hr_conn_ahead shows all bytes in the pipe */
	bool no_remote;     /* no remote writes */
	int expose_fails;   /* counted down by each hr_remote_expose; the call that reaches 0 fails; 0: none fails */
	int write_fails;    /* the same for hr_remote_write */
	int write_polls;    /* number of tests until a write is complete */
};
extern struct memory_faults memory_faults;

/* Adds bytes to those that the connection will get, as if its peer had put them. */
void memory_conn_inject(hr_conn_t *conn, const void *bytes, size_t len);
/* The same, as a record of its own. */
void memory_conn_inject_record(hr_conn_t *conn, const void *bytes, size_t len);
/* From now on both sides' puts fail with error, and their gets after the bytes in flight. */
void memory_conn_break(hr_conn_t *conn, int error);
/* Adds an incoming peer. As with the real channel, one wait reports it. If the caller then waits again without a call
 * of hr_channel_incoming, and there is no other event, the wait would never end: the test aborts. */
void memory_channel_visit(hr_channel_t *channel, const hr_card_t *card);
/* Called once by a wait that is about to report an incoming peer. */
extern void (*memory_visited)(void);
/* Number of calls of put and commit. */
extern unsigned memory_attempts;
/* Number of open connections. */
extern int memory_connections;
/* Bytes of remote writes, over all connections. */
extern uint64_t memory_remote_bytes;
/* Returns the number of puts that accepted bytes. */
uint64_t memory_conn_puts(const hr_conn_t *conn);

#endif
