/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireup: the messages that set one connection up over one stream socket between two processes. Each side sends three
 * messages. Each message has a header and a bounded length:
 *
 *	hello   the sender's uid, its card if the receiver may not have it, the uid of the peer that the sender expects,
 *	        the transports with which the sender could reach that peer, and the note of the transport that has one
 *	half    the sender's half of the connection, for the best transport that is in both hellos
 *	ready   the sender has joined the receiver's half
 *
 * The side that dialled sends its hello first. The side that accepted answers once it knows which of its connections
 * the hello is for. Both sides may dial at the same time. Then the stream that the side with the smaller uid opened is
 * used. If that side has already sent its hello on its own stream, it answers a hello on the other stream by
 *
 *	yield   use the stream that the sender opened
 *
 * and the side with the larger uid closes its own stream when a hello arrives on the other. A read takes exactly one
 * message and no byte after it: after "ready" the stream belongs to the transport. This file transfers the messages;
 * connect.c handles them. No function blocks. One thread at a time.
 */
#ifndef HR_WIREUP_H
#define HR_WIREUP_H

#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stdint.h>

#define HR_UID_BYTES 16

enum { /* in the header, the same from both sides */
	HR_WIRE_MAGIC = 0x57445248, /* "HRDW" */
	HR_WIRE_VERSION = 9,
};

enum hr_wire_kind { HR_WIRE_HELLO = 1, HR_WIRE_HALF = 2, HR_WIRE_READY = 3, HR_WIRE_YIELD = 4 };

/* All integers are little-endian. Written by the sender; the receiver checks it before it reads the body. */
struct hr_wire_header {
	uint32_t magic;   /* HR_WIRE_MAGIC */
	uint16_t version; /* HR_WIRE_VERSION */
	uint8_t kind;     /* enum hr_wire_kind */
	uint8_t n_fds;    /* number of descriptors that come with the first byte of this message */
	uint32_t len;     /* bytes of the body, which follows */
	/* A half contains addresses, keys and sizes: without a check sum, most wrong bits would not be detected. The
	 * header has its own sum, so that the receiver does not wait for the bytes of a wrong length. */
	uint32_t body_check;   /* CRC-32 of the body */
	uint32_t header_check; /* CRC-32 of the fields above */
};
_Static_assert(sizeof(struct hr_wire_header) == 20, "wire format");

/* In hr_wire_hello.transports: the sender has keys, and encrypts everything after the set-up. */
#define HR_WIRE_ENCRYPTS (1u << 31)

struct hr_wire_hello {
	uint8_t sender[HR_UID_BYTES];   /* uid of the channel that sends the hello */
	uint8_t receiver[HR_UID_BYTES]; /* uid of the expected receiver, a secret from its card */
	uint32_t transports;            /* set of HR_TRANSPORT_* the sender could use for this connection */
	uint32_t card_len;              /* bytes of the sender's card, which follows; 0 if the receiver has the card:
					 * in an answer, and on a stream from hr_connect_attr_t.fd */
	uint8_t note[HR_NOTE_BYTES];    /* of verbs: struct ib_note (ib/ib_adapters.h); 0 without verbs */
};
_Static_assert(sizeof(struct hr_wire_hello) == 48, "wire format");

#define HR_WIRE_HELLO_MAX (sizeof(struct hr_wire_hello) + HR_CARD_MAX)
#define HR_WIRE_BODY_MAX HR_WIRE_HELLO_MAX
#define HR_WIRE_OUT_MAX (3 * sizeof(struct hr_wire_header) + HR_WIRE_HELLO_MAX + HR_HALF_BLOB_MAX)
_Static_assert(HR_HALF_BLOB_MAX <= HR_WIRE_BODY_MAX, "a half fits into a message");

/* One side's end of the stream during set-up. fd is -1 if there is no stream. */
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

/* Returns the correct value of header_check. */
uint32_t hr_wire_header_check(const struct hr_wire_header *header);

/* Initializes the wireup, which then owns fd. fd must be non-blocking; -1: no stream yet. */
void hr_wireup_init(struct hr_wireup *wireup, int fd, bool is_unix);

/* Closes the stream, and every descriptor that was not sent or not taken with hr_wireup_take_fds. */
void hr_wireup_close(struct hr_wireup *wireup);

/* Moves the stream and its queued messages from one wireup to another, which must have no stream. */
void hr_wireup_move(struct hr_wireup *to, struct hr_wireup *from);

/* Queues a message. The wireup then owns the descriptors. At most one message of a wireup may have descriptors. */
void hr_wireup_queue(struct hr_wireup *wireup, enum hr_wire_kind kind, const void *body, size_t len, const int *fds,
		     int n_fds);

/* Sends the queued messages. Returns 0 if everything was sent, 1 if the socket has no room for the rest, or a negated
 * errno value. */
int hr_wireup_flush(struct hr_wireup *wireup);

/* Reads at most one message. Returns 1 if a message is complete, 0 if not yet. -ECONNRESET: the stream ended. -EPROTO:
 * an invalid message (*reason says why). Other negated errno values: from system calls. */
int hr_wireup_receive(struct hr_wireup *wireup, struct hr_wire_message *message, const char **reason);

/* Passes the descriptors that came with the last received message to the caller, which then owns them. Returns their
 * number. */
int hr_wireup_take_fds(struct hr_wireup *wireup, int fds[HR_HALF_FDS_MAX]);

#endif
