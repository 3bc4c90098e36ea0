/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of chunks that carries one direction of a pipe over verbs: its layout in memory and the bookkeeping at both
 * of its ends. No verbs here, so that the protocol can be tested on plain memory.
 *
 * After Liu et al., IPDPS 2004, section 4.3 ("piggybacking pointer updates"), with the flags of Liu et al., "High
 * Performance RDMA-Based MPI Implementation over InfiniBand", ICS 2003, section 4 (head and tail flag, bottom fill).
 *
 * The ring lies in the receiver's registered memory: n_chunks chunks of chunk_bytes. The sender has a staging area of
 * the same shape; chunk number i of the stream is built at slot i mod n_chunks of it and goes to the same offset of the
 * ring with one RDMA write:
 *
 *	slot:  [ not written | front | payload | padding to 8 | end ]
 *
 * Bottom fill: what is written ends where the slot ends, however short it is. So the end word has one place in each
 * slot, and only end words are ever written there. The receiver polls that one place. It holds 0 at first and the
 * sequence number of the lap before after that, never one that it waits for: old payload cannot be mistaken for a flag,
 * and nothing has to be cleared.
 *
 * What is relied upon: the bytes of one RDMA write become visible in address order, the last byte last. The InfiniBand
 * specification does not promise it, all adapters without relaxed ordering keep it, and memory for the ring is
 * therefore registered without IBV_ACCESS_RELAXED_ORDERING. It must hold for the whole message, not per packet: a chunk
 * is larger than a path MTU, and RC delivers a message's packets in order. When the sequence number at the end is
 * there, size (which lies before it), payload and front are. Not relied upon: that a word is written at once. The
 * sequence number's bytes arrive in address order too, and it is as expected only when all of those that differ have
 * arrived. The front's flag guards that assumption: if an adapter breaks it the front is stale, and the chunk is taken
 * as not yet arrived. No order is needed between chunks, so they may travel on different queue pairs.
 *
 * Credits: the sender may have n_chunks chunks under way. The receiver tells how many it has consumed (the tail) in the
 * front of every chunk it sends itself, and by a write of its own when the sender must be running short
 * (ib_receiver_owes). That write goes to a word of its own, needs no credit, and so cannot deadlock. Counts only grow,
 * so the larger of the two is right, and it does not matter which comes first. A tail that rides in a chunk counts as
 * told, so a sender without room looks for one in the chunks that have arrived, whether or not its user has got them. A
 * slot of the staging area is free when the tail has passed its chunk: the receiver had all of it, so the adapter needs
 * it at most for a retransmission that the other one drops.
 *
 * Counts are modulo 2^32, and n_chunks is a power of two so that slots go on in order when they wrap. One thread at a
 * time for each end.
 */
#ifndef IB_RING_H
#define IB_RING_H

#include "rdma_channel/iov.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IB_CHUNK_BYTES_MIN = 256,
	IB_CHUNK_BYTES_MAX = 1 << 20,
	IB_CHUNK_ALIGN = 64,
	IB_CHUNKS_MIN = 2,
	IB_CHUNKS_USUAL = 16, /* at least this many, unless chunks would become too small */
	IB_CHUNKS_MAX = 1 << 16,
	IB_RING_BYTES_MAX = 1 << 30,
	IB_TAIL_WRITTEN_EVERY = 1 << 30, /* chunks; half of what a count may be behind and still be known as older */
	IB_ANNOUNCED_BYTES_MAX = 1 << 26,
};

/* ---- in memory that the peer's adapter writes; all little-endian ---- */

/* Before the payload. Written by the sender, read by the receiver once the end is there. */
struct ib_chunk_front {
	uint32_t seq;  /* chunk number + 1: the front flag */
	uint32_t tail; /* chunks of the other direction that the writer has consumed */
};
_Static_assert(sizeof(struct ib_chunk_front) == 8, "wire format");

/* The last bytes of a slot. Written by the sender, polled by the receiver. */
struct ib_chunk_end {
	uint32_t size; /* bits 0 to 23: payload bytes, 1 to the slot's capacity; from 24: enum ib_chunk_kind */
	uint32_t seq;  /* chunk number + 1: the end flag; last in memory */
};
_Static_assert(sizeof(struct ib_chunk_end) == 8, "wire format");

enum ib_chunk_kind {
	IB_CHUNK_DATA = 0,         /* bytes of the stream */
	IB_CHUNK_ANNOUNCEMENT = 1, /* zerocopy only: where the stream's next bytes can be read */
};
enum { IB_CHUNK_KIND_SHIFT = 24 };

/* The payload of an announcement. Written by the sender, who keeps the memory readable until the receiver acknowledges
 * (struct ib_control); read by the receiver. */
struct ib_announcement {
	uint64_t address;
	uint32_t rkey;
	uint32_t reserved; /* 0 */
	uint64_t len;      /* bytes, 1 to IB_ANNOUNCED_BYTES_MAX */
};
_Static_assert(sizeof(struct ib_announcement) == 24, "wire format");
_Static_assert(sizeof(struct ib_announcement) <= IB_CHUNK_BYTES_MIN - 16, "fits the smallest chunk");

/* ---- the shape of a ring, chosen by its receiver ---- */

struct ib_geometry {
	uint32_t chunk_bytes; /* multiple of IB_CHUNK_ALIGN */
	uint32_t n_chunks;    /* power of two */
};

/* The shape for ring_bytes of capacity in chunks of about chunk_bytes (0 and absurd values are clamped). */
struct ib_geometry ib_geometry_fit(uint64_t ring_bytes, uint64_t chunk_bytes);
/* May a peer have sent this? */
bool ib_geometry_valid(const struct ib_geometry *geometry);
/* Memory the ring takes. */
size_t ib_geometry_bytes(const struct ib_geometry *geometry);
/* Payload bytes of one chunk. */
uint32_t ib_geometry_payload(const struct ib_geometry *geometry);

/* Copies len bytes, which the vector has, out of or into it, and moves the place on. */
void ib_gather(struct hr_iov_place *place, uint8_t *to, size_t len);
void ib_scatter(struct hr_iov_place *place, const uint8_t *from, size_t len);

/* ---- the sending end ---- */

struct ib_sender {
	struct ib_geometry geometry; /* of the peer's ring */
	uint8_t *staging;            /* ib_geometry_bytes */
	uint32_t head;               /* chunks built */
	uint32_t tail;               /* chunks the peer has consumed, as far as known */
};

/* Where a chunk lies, the same in staging area and ring. */
struct ib_span {
	uint32_t offset, len;
};

void ib_sender_init(struct ib_sender *sender, const struct ib_geometry *geometry, uint8_t *staging);
/* Chunks that may be built now. */
uint32_t ib_sender_room(const struct ib_sender *sender);
/* Builds the next chunk from left > 0 bytes at the place, or as many as it takes; room must be > 0. tail: what
 * this side has consumed of the other direction. Returns the payload's size; *span is what to write. */
uint32_t ib_sender_build(struct ib_sender *sender, struct hr_iov_place *place, size_t left, uint32_t tail,
			 struct ib_span *span);
/* Builds the next chunk as an announcement, given in the host's byte order; room must be > 0. */
void ib_sender_announce(struct ib_sender *sender, const struct ib_announcement *announcement, uint32_t tail,
			struct ib_span *span);
/* Where a chunk lies that has been built and that the peer has not consumed. */
struct ib_span ib_sender_span(const struct ib_sender *sender, uint32_t chunk);
/* Takes a tail that the peer told. -EPROTO: it consumed more than it was sent. */
int ib_sender_credit(struct ib_sender *sender, uint32_t tail);

/* ---- the receiving end ---- */

struct ib_receiver {
	struct ib_geometry geometry;
	const uint8_t *ring;
	uint32_t next;         /* chunks consumed: the tail */
	uint32_t used;         /* payload bytes already taken of the chunk that comes next */
	uint32_t tail_told;    /* the tail the peer was last told */
	uint32_t tail_written; /* the tail the peer was last told by a message of its own */
	uint32_t peeked;       /* up to this chunk, from next to n_chunks further, tails have been heard */
};

/* ring must be zero. */
void ib_receiver_init(struct ib_receiver *receiver, const struct ib_geometry *geometry, const uint8_t *ring);
/* Has the next chunk arrived? -EPROTO counts as arrived. */
bool ib_receiver_ready(const struct ib_receiver *receiver);
/* Has it, and what is it? Look once and act on that: the next look may find a chunk where this one found none. */
bool ib_receiver_is_announcement(const struct ib_receiver *receiver);
bool ib_receiver_is_data(const struct ib_receiver *receiver);
/* Is there one among the chunks that have arrived, up to the first that has not? */
bool ib_receiver_holds_announcement(const struct ib_receiver *receiver);
/*
 * Copies what has arrived of the next chunk to the place; at most left > 0 bytes. 0: nothing has arrived; > 0: the
 * bytes taken, and *tail is set to the tail that came with the chunk if it was not heard before: each is heard once,
 * as one heard again after the counts have gone half around would look new. -EPROTO: a size no sender writes, or an
 * announcement.
 */
int ib_receiver_take(struct ib_receiver *receiver, struct hr_iov_place *place, size_t left, uint32_t *tail);
/* Takes the next chunk, which is an announcement; in the host's byte order, unchecked. *tail as above. */
void ib_receiver_take_announcement(struct ib_receiver *receiver, struct ib_announcement *announcement,
				   uint32_t *tail);
/* Looks, once each, at the tails in chunks that have arrived but are not consumed. True: *tail is one. For a
 * sender without room: the user may not get for a long time, and the tail that it waits for is told only once. It must
 * then hear all that have come, or one of them may be heard when it is old enough to look new. */
bool ib_receiver_peek(struct ib_receiver *receiver, uint32_t *tail);
/* Must the peer be told the tail by a message of its own? When half of the ring is consumed and it knows of none
 * of it: it may have no credit left, and this side perhaps nothing to send. And now and then when tails have only been
 * riding on chunks, so that the one written last never gets so old that it looks new. */
bool ib_receiver_owes(const struct ib_receiver *receiver);

#endif
