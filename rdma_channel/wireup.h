/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireup: sets one connection up over one stream socket between two processes. Three messages each way, each with a
 * header of its own and a bounded length:
 *
 * 	hello   who I am (where you may not know it yet: my card), whom I expect, which transports I could reach you with
 * 	half    my half of the connection, for the best transport that is in both hellos
 * 	ready   I have joined your half
 *
 * The side that connected says hello first; the side that accepted answers when it knows which connection of its own is
 * meant. Either side may connect, so two streams can meet: the one that the side with the smaller uid opened is used.
 * That side, when it has said hello on its own, answers a hello on the other one by
 *
 * 	yield   use the stream that comes from me
 *
 * and the other side, when a hello reaches it, drops its own. Reads take exactly one message, never what follows it:
 * behind "ready" the stream is the transport's. This file moves messages; what they mean is connect.c's. Nothing
 * blocks. One thread at a time.
 */
#ifndef HR_WIREUP_H
#define HR_WIREUP_H

#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define HR_UID_BYTES 16

enum { /* of the header, by both sides */
	HR_WIRE_MAGIC = 0x57445248, /* "HRDW" */
	HR_WIRE_VERSION = 3,
};

enum hr_wire_kind { HR_WIRE_HELLO = 1, HR_WIRE_HALF = 2, HR_WIRE_READY = 3, HR_WIRE_YIELD = 4 };

/* All integers little-endian. Written by the sender, checked by the receiver before anything else is read. */
struct hr_wire_header {
	uint32_t magic;   /* HR_WIRE_MAGIC */
	uint16_t version; /* HR_WIRE_VERSION */
	uint8_t kind;     /* enum hr_wire_kind */
	uint8_t n_fds;    /* descriptors that come with the first byte of this message */
	uint32_t len;     /* bytes that follow */
	/* What a half says is used as an address, a key or a size, and a bit of it that was wrong would mostly not be
	 * noticed by itself. The header has a sum of its own, so that a wrong length is not waited for. */
	uint32_t body_check;   /* CRC-32 of the bytes that follow */
	uint32_t header_check; /* CRC-32 of the fields above */
};
_Static_assert(sizeof(struct hr_wire_header) == 20, "wire format");

/* Of the transports in a hello: the sender has keys, and encrypts what follows the set-up. */
#define HR_WIRE_ENCRYPTS (1u << 31)

struct hr_wire_hello {
	uint8_t sender[HR_UID_BYTES];   /* uid of the channel that says hello */
	uint8_t receiver[HR_UID_BYTES]; /* uid of the channel it means: the secret from its card */
	uint32_t transports;            /* set of HR_TRANSPORT_* the sender could use for this connection */
	uint32_t card_len;              /* bytes of the sender's card, which follow; 0 where the receiver has it: in
					 * answers, and over streams handed in */
};
_Static_assert(sizeof(struct hr_wire_hello) == 40, "wire format");

#define HR_WIRE_HELLO_MAX (sizeof(struct hr_wire_hello) + HR_CARD_MAX)
#define HR_WIRE_BODY_MAX HR_WIRE_HELLO_MAX
#define HR_WIRE_OUT_MAX (3 * sizeof(struct hr_wire_header) + HR_WIRE_HELLO_MAX + HR_HALF_BLOB_MAX)
_Static_assert(HR_HALF_BLOB_MAX <= HR_WIRE_BODY_MAX, "a half fits into a message");

/* One side's end of the stream during set-up. fd is -1 when there is none. */
struct hr_wireup {
	int fd;
	bool is_unix; /* the stream carries descriptors */
	struct {
		size_t have;
		_Alignas(8) uint8_t bytes[sizeof(struct hr_wire_header) + HR_WIRE_BODY_MAX];
		int n_fds;
		int fds[HR_HALF_FDS_MAX];
	} in;
	struct {
		size_t len, sent;
		uint8_t bytes[HR_WIRE_OUT_MAX];
		size_t fds_at; /* the descriptors go with the byte at this offset */
		int n_fds;
		int fds[HR_HALF_FDS_MAX];
	} out;
};

/* One message; the body points into the wireup and is valid until the next receive. */
struct hr_wire_message {
	enum hr_wire_kind kind;
	const void *body;
	size_t len;
};

/* What header_check ought to be. */
uint32_t hr_wire_header_check(const struct hr_wire_header *header);

/* Takes over fd, which must be non-blocking. -1: no stream yet. */
void hr_wireup_init(struct hr_wireup *wireup, int fd, bool is_unix);

/* Closes the stream and every descriptor that was neither sent nor taken. */
void hr_wireup_close(struct hr_wireup *wireup);

/* Moves the stream and what is queued on it from one wireup to another, which must have none. */
void hr_wireup_move(struct hr_wireup *to, struct hr_wireup *from);

/* Queues a message; its descriptors (one message of a wireup may have some) become the wireup's. */
void hr_wireup_queue(struct hr_wireup *wireup, enum hr_wire_kind kind, const void *body, size_t len, const int *fds,
		     int n_fds);

/* Sends what is queued. 0: all of it; 1: the rest when the socket has room; or a negated errno. */
int hr_wireup_flush(struct hr_wireup *wireup);

/* Reads at most one message. 1: there it is; 0: not all of it yet; -ECONNRESET: the stream ended; -EPROTO: not a
 * message of ours (*reason says how); or a system error. */
int hr_wireup_receive(struct hr_wireup *wireup, struct hr_wire_message *message, const char **reason);

/* Gives the descriptors that came with the message just received to the caller; returns how many. */
int hr_wireup_take_fds(struct hr_wireup *wireup, int fds[HR_HALF_FDS_MAX]);

#endif
