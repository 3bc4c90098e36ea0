/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CH3's wire format. A message is: struct ch3_packet; struct ch3_packet_more if the flags say so; header_len bytes of
 * the type's header; the payload, unless it is sent by rendezvous. There is no padding. Integers are little-endian. The
 * common message has 8 bytes of overhead, so that a call with a few arguments fits into one cache line of a
 * shared-memory ring or into one inline work request.
 *
 * A rendezvous consists of three messages:
 * 	sender    type T, CH3_PACKET_WAITS, the type's header, announced payload_len, sender_id      (request to send)
 * 	receiver  CH3_PACKET_CLEAR, requested payload_len (<= announced), both ids                   (clear to send)
 * 	sender    CH3_PACKET_DATA, payload_len as requested, receiver_id, the payload
 * The third message is omitted if nothing is requested: the payload is empty, or the receiver drops it.
 *
 * If both sides have HEADRACE_RENDEZVOUS=write and the transport has remote writes, a rendezvous of a long payload is:
 * 	sender    as above, with CH3_PACKET_WRITES: the sender can write into the receiver's memory
 * 	receiver  CH3_PACKET_CLEAR with 1 to CH3_PLACES_MAX struct ch3_place as header: the memory to write to
 * 	sender    writes the payload there; when the write is complete: CH3_PACKET_DONE, payload_len as requested,
 * 	          receiver_id. If the sender cannot write after all: CH3_PACKET_DATA as above
 */
#ifndef HR_CH3_PACKET_H
#define HR_CH3_PACKET_H

#include "rdma_channel/remote_access.h"

#include <assert.h>
#include <stdint.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire format is written for little-endian machines"
#endif

/* CH3's packet types. Types from CH3_TYPE_FIRST on belong to the layer above. Type 0 is invalid. */
enum {
	CH3_PACKET_CLEAR = 1, /* with MORE */
	CH3_PACKET_DATA = 2,  /* with MORE */
	CH3_PACKET_DONE = 3,  /* with MORE */
};

/* Flags of a packet. */
enum {
	CH3_PACKET_MORE = 1u << 0,  /* a struct ch3_packet_more follows */
	CH3_PACKET_WRITES = 1u << 2, /* with WAITS: the sender can write the payload into the receiver's memory */
	CH3_PACKET_WAITS = 1u << 1, /* rendezvous: the payload is sent after the receiver's CLEAR; with MORE */
};

struct ch3_packet {
	uint8_t type;         /* sender: type of the message; receiver: selects the handler */
	uint8_t flags;        /* sender: set of CH3_PACKET_MORE, CH3_PACKET_WAITS, CH3_PACKET_WRITES */
	uint8_t header_len;   /* sender: bytes of the type's header, <= CH3_HEADER_MAX; of CH3's own types, CLEAR's places */
	uint8_t sequence;     /* sender: number of earlier packets in this pipe, modulo 256; receiver: checks for gaps */
	uint32_t payload_len; /* sender: bytes of payload that follow; 0 with MORE */
};
static_assert(sizeof(struct ch3_packet) == 8, "wire format");

struct ch3_packet_more {
	uint64_t payload_len; /* sender: bytes of payload that follow or are announced; CLEAR, receiver: bytes requested */
	uint32_t sender_id;   /* sender: id of an announced payload; receiver: returns it in CLEAR; else 0 */
	uint32_t receiver_id; /* receiver: id of the receive, in CLEAR; sender: returns it in DATA; else 0 */
};
static_assert(sizeof(struct ch3_packet_more) == 16, "wire format");

/* One buffer of the receiver; the payload fills the buffers in order. Written by the receiver, read by the sender. */
struct ch3_place {
	struct hr_token token;
	uint64_t len; /* > 0; the sum is the CLEAR's payload_len */
};
static_assert(sizeof(struct ch3_place) == 24, "wire format");

enum { CH3_PLACES_MAX = 5 };

#endif
