/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What CH3 puts on the wire. Every message starts with one struct ch3_packet; where its flags say so, a struct
 * ch3_packet_more follows; then header_len bytes of the type's own header; then, unless it waits at the sender, the
 * payload. Nothing is padded. Numbers are little-endian. The everyday message has 8 bytes of this: a call with a few
 * arguments is to fit into one cache line of a shared-memory ring, or into one inline work request.
 *
 * A rendezvous is three messages:
 *	sender    type T, CH3_PACKET_WAITS, the type's header, payload_len announced, sender_id      (request to send)
 *	receiver  CH3_PACKET_CLEAR, payload_len wanted (<= announced), both ids                      (clear to send)
 *	sender    CH3_PACKET_DATA, payload_len as wanted, receiver_id, the payload
 * The third is left out where nothing is wanted: an empty payload, or one that the receiver drops.
 *
 * With HEADRACE_RENDEZVOUS=write on both sides, over a transport that can write into the peer's memory, a long one is:
 *	sender    as above, with CH3_PACKET_WRITES: it can
 *	receiver  CH3_PACKET_CLEAR, whose header is the places to write to: struct ch3_place, 1 to CH3_PLACES_MAX of them
 *	sender    writes the payload there, and when it is complete CH3_PACKET_DONE, payload_len as wanted, receiver_id;
 *	          or CH3_PACKET_DATA as above, if it cannot after all
 */
#ifndef HR_CH3_PACKET_H
#define HR_CH3_PACKET_H

#include "rdma_channel/remote_write.h"

#include <assert.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is written for little-endian machines"
#endif

/* CH3's own packet types; the others, from CH3_TYPE_FIRST on, belong to the layer above. 0 is no type. */
enum {
	CH3_PACKET_CLEAR = 1, /* with MORE */
	CH3_PACKET_DATA = 2,  /* with MORE */
	CH3_PACKET_DONE = 3,  /* with MORE */
};

/* Flags of a packet. */
enum {
	CH3_PACKET_MORE = 1u << 0,  /* a struct ch3_packet_more follows */
	CH3_PACKET_WRITES = 1u << 2, /* with WAITS: the sender can write the payload into the receiver's memory */
	CH3_PACKET_WAITS = 1u << 1, /* the payload waits at the sender for the receiver's CLEAR; with MORE */
};

struct ch3_packet {
	uint8_t type;         /* sender: what this is; receiver: chooses the handler */
	uint8_t flags;        /* sender: set of CH3_PACKET_MORE, CH3_PACKET_WAITS, CH3_PACKET_WRITES */
	uint8_t header_len;   /* sender: bytes of the type's header, <= CH3_HEADER_MAX; of CH3's own types, CLEAR's places */
	uint8_t sequence;     /* sender: packets put into this pipe before, modulo 256; receiver: none may be missing */
	uint32_t payload_len; /* sender: bytes of payload that follow; 0 with MORE */
};
static_assert(sizeof(struct ch3_packet) == 8, "wire format");

struct ch3_packet_more {
	uint64_t payload_len; /* sender: bytes of payload that follow or wait; in CLEAR, receiver: bytes wanted */
	uint32_t sender_id;   /* sender: its name for a payload that waits; receiver: returns it in CLEAR; else 0 */
	uint32_t receiver_id; /* receiver: its name for the place, in CLEAR; sender: returns it in DATA; else 0 */
};
static_assert(sizeof(struct ch3_packet_more) == 16, "wire format");

/* Memory of the receiver, in the order in which the payload goes there. Receiver: both; sender: writes that much. */
struct ch3_place {
	struct hr_token token;
	uint64_t len; /* > 0; the sum is the CLEAR's payload_len */
};
static_assert(sizeof(struct ch3_place) == 24, "wire format");

enum { CH3_PLACES_MAX = 5 };

#endif
