/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireup: sets one connection up over one stream socket between two processes. Three messages each way, each with a
 * header of its own and a bounded length:
 *
 *	hello   who I am, whom I expect, which transports I could reach you with
 *	half    my half of the connection, for the best transport that is in both hellos
 *	ready   I have joined your half
 *
 * The side that connected says hello first; the side that accepted answers when it knows which connection of its own is
 * meant. Reads take exactly one message, never what follows it. A state machine that never blocks: hr_wireup_step is
 * called when the socket may have become ready. One thread at a time.
 */
#ifndef HR_WIREUP_H
#define HR_WIREUP_H

#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define HR_UID_BYTES 16

enum { /* of the header, by both sides */
	HR_WIRE_MAGIC = 0x57445248, /* "HRDW" */
	HR_WIRE_VERSION = 1,
};

enum hr_wire_kind { HR_WIRE_HELLO = 1, HR_WIRE_HALF = 2, HR_WIRE_READY = 3 };

/* All integers little-endian. Written by the sender, checked by the receiver before anything else is read. */
struct hr_wire_header {
	uint32_t magic;   /* HR_WIRE_MAGIC */
	uint16_t version; /* HR_WIRE_VERSION */
	uint8_t kind;     /* enum hr_wire_kind */
	uint8_t n_fds;    /* descriptors that come with the first byte of this message */
	uint32_t len;     /* bytes that follow */
};
_Static_assert(sizeof(struct hr_wire_header) == 12, "wire format");

struct hr_wire_hello {
	uint8_t sender[HR_UID_BYTES];   /* uid of the channel that says hello */
	uint8_t receiver[HR_UID_BYTES]; /* uid of the channel it means: the secret from its card */
	uint32_t transports;            /* set of HR_TRANSPORT_* the sender could use for this connection */
};
_Static_assert(sizeof(struct hr_wire_hello) == 36, "wire format");

#endif
