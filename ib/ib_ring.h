/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of chunks for one direction of a pipe over verbs: its memory layout, and the bookkeeping of sender and
 * receiver. This file does not use verbs, so that the protocol can be tested on plain memory.
 *
 * Source: Liu et al., IPDPS 2004, section 4.3 ("piggybacking pointer updates"), with the flags of Liu et al., "High
 * Performance RDMA-Based MPI Implementation over InfiniBand", ICS 2003, section 4 (head and tail flag, bottom fill).
 *
 * The ring is in the receiver's registered memory: n_chunks chunks of chunk_bytes. The sender has a staging area of the
 * same geometry. It builds chunk number i of the stream in slot i mod n_chunks of the staging area and writes it to the
 * same offset of the ring by one RDMA write:
 *
 *	slot:  [ not written | front | payload | padding to 8 | end ]
 *
 * Bottom fill: the written bytes end at the end of the slot, however few they are. So the end word is at the same
 * address in each lap, and only end words are ever written there. The receiver polls this one word. It is 0 at first
 * and later the sequence number of the previous lap, never the number that the receiver waits for. So old payload
 * cannot be mistaken for a flag, and no memory has to be cleared.
 *
 * Order that this protocol needs: the bytes of one RDMA write become visible in address order, the last byte last. The
 * InfiniBand specification does not guarantee it, but all adapters without relaxed ordering keep it; so the ring is
 * registered without IBV_ACCESS_RELAXED_ORDERING. It must hold for a whole message, not only for a packet, as a chunk
 * is larger than a path MTU; RC delivers the packets of a message in order. So if the sequence number at the end has
 * arrived, size (which is before it), payload and front have arrived too. A word need not be written at once: the bytes
 * of the sequence number also arrive in address order, and the number is as expected only when all bytes that differ
 * have arrived. The front's flag guards against an adapter that does not keep this order: then the front is stale, and
 * the chunk counts as not yet arrived. No order is needed between chunks, so they may use different queue pairs.
 *
 * Credits: at most n_chunks chunks of the sender may be unconsumed. The receiver reports the number of consumed chunks
 * (the tail) in the front of every chunk that it sends itself; and by a control write if the sender may be running out
 * of room (ib_receiver_owes). The control write goes to a separate word and needs no credit, so it cannot deadlock. The
 * count only grows, so the larger of the two tails is right, in whatever order they arrive. A tail in a chunk is not
 * sent again by a control write. So a sender without room looks for tails in all chunks that have arrived, even if its
 * user has not got them yet. A slot of the staging area is free when the tail has passed its chunk: the receiver has
 * received the whole chunk, so the adapter could read the slot again only for a retransmission, which the other adapter
 * drops.
 *
 * Counts are modulo 2^32. n_chunks is a power of two, so that the slots continue in order when a count wraps. One
 * thread at a time for each side.
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
	IB_TAIL_WRITTEN_EVERY = 1 << 30, /* chunks; half of the 2^31 up to which an old count is recognized as old */
	IB_ANNOUNCED_BYTES_MAX = 1 << 26,
};

/* ---- structures in memory that the peer's adapter writes; all little-endian ---- */

/* Before the payload. Written by the sender; the receiver reads it after the end flag has arrived. */
struct ib_chunk_front {
	uint32_t seq;  /* chunk number + 1: the front flag */
	uint32_t tail; /* number of chunks of the other direction that the sender has consumed */
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
	IB_CHUNK_ANNOUNCEMENT = 1, /* zerocopy only: address of the next bytes of the stream, for RDMA reads */
};
enum { IB_CHUNK_KIND_SHIFT = 24 };

/* The payload of an announcement. Written by the sender, read by the receiver. The sender keeps the memory readable
 * until the receiver acknowledges the announcement (struct ib_control). */
struct ib_announcement {
	uint64_t address;
	uint32_t rkey;
	uint32_t reserved; /* 0 */
	uint64_t len;      /* bytes, 1 to IB_ANNOUNCED_BYTES_MAX */
};
_Static_assert(sizeof(struct ib_announcement) == 24, "wire format");
_Static_assert(sizeof(struct ib_announcement) <= IB_CHUNK_BYTES_MIN - 16, "fits the smallest chunk");

/* ---- the geometry of a ring, chosen by its receiver ---- */

struct ib_geometry {
	uint32_t chunk_bytes; /* multiple of IB_CHUNK_ALIGN */
	uint32_t n_chunks;    /* power of two */
};

/* Returns the geometry for a ring of about ring_bytes in chunks of about chunk_bytes. Clamps both to valid values. */
struct ib_geometry ib_geometry_fit(uint64_t ring_bytes, uint64_t chunk_bytes);
/* Returns whether a geometry from a peer is valid. */
bool ib_geometry_valid(const struct ib_geometry *geometry);
/* Returns the size of the ring, bytes. */
size_t ib_geometry_bytes(const struct ib_geometry *geometry);
/* Returns the maximum payload of one chunk, bytes. */
uint32_t ib_geometry_payload(const struct ib_geometry *geometry);

/* Copies len bytes from (gather) or into (scatter) the vector, and moves `place` on. The vector has at least len
 * bytes. */
void ib_gather(struct hr_iov_place *place, uint8_t *to, size_t len);
void ib_scatter(struct hr_iov_place *place, const uint8_t *from, size_t len);

/* ---- sender ---- */

struct ib_sender {
	struct ib_geometry geometry; /* of the peer's ring */
	uint8_t *staging;            /* ib_geometry_bytes */
	uint32_t head;               /* number of chunks built */
	uint32_t tail;               /* number of chunks that the peer has consumed, as last reported */
};

/* The bytes of a chunk: offset and length are the same in staging area and ring. */
struct ib_span {
	uint32_t offset, len;
};

void ib_sender_init(struct ib_sender *sender, const struct ib_geometry *geometry, uint8_t *staging);
/* Returns the number of chunks that may be built now. */
uint32_t ib_sender_room(const struct ib_sender *sender);
/* Builds the next chunk from up to left > 0 bytes at `place`. There must be room. tail: number of chunks of the other
 * direction that this side has consumed. Returns the size of the payload. *span: the bytes to write to the ring. */
uint32_t ib_sender_build(struct ib_sender *sender, struct hr_iov_place *place, size_t left, uint32_t tail,
			 struct ib_span *span);
/* Builds the next chunk as an announcement. There must be room. The fields of *announcement are in host byte order. */
void ib_sender_announce(struct ib_sender *sender, const struct ib_announcement *announcement, uint32_t tail,
			struct ib_span *span);
/* Returns the span of a chunk that has been built and that the peer has not consumed. */
struct ib_span ib_sender_span(const struct ib_sender *sender, uint32_t chunk);
/* Handles a tail from the peer. -EPROTO: the tail is beyond the head. */
int ib_sender_credit(struct ib_sender *sender, uint32_t tail);

/* ---- receiver ---- */

struct ib_receiver {
	struct ib_geometry geometry;
	const uint8_t *ring;
	uint32_t next;         /* number of chunks consumed: the tail */
	uint32_t used;         /* payload bytes of the next chunk that were taken already */
	uint32_t tail_told;    /* the tail that was last sent to the peer */
	uint32_t tail_written; /* the tail that was last sent by a control write */
	uint32_t peeked;       /* the tails of all chunks before this number have been taken; next..next+n_chunks */
};

/* The memory of the ring must be zero. */
void ib_receiver_init(struct ib_receiver *receiver, const struct ib_geometry *geometry, const uint8_t *ring);
/* Returns whether the next chunk has arrived. An invalid chunk counts as arrived. */
bool ib_receiver_ready(const struct ib_receiver *receiver);
/* Return whether the next chunk has arrived and is of that kind. Call one of them once and act on the result: a second
 * call may find a chunk that arrived after the first. */
bool ib_receiver_is_announcement(const struct ib_receiver *receiver);
bool ib_receiver_is_data(const struct ib_receiver *receiver);
/* Returns whether the next chunk has arrived, has data, and holds at most `most` bytes that were not taken. */
bool ib_receiver_is_short(const struct ib_receiver *receiver, uint32_t most);
/* Returns whether an announcement is among the chunks that have arrived, up to the first chunk that has not. */
bool ib_receiver_holds_announcement(const struct ib_receiver *receiver);
/*
 * Copies bytes of the next chunk to `place`, at most left > 0. Returns their number; 0 if the chunk has not arrived;
 * -EPROTO if its size is invalid or it is an announcement. Sets *tail to the chunk's tail, once for each chunk: if an
 * old tail were returned again after the counts have moved on by 2^31, it would look new.
 */
int ib_receiver_take(struct ib_receiver *receiver, struct hr_iov_place *place, size_t left, uint32_t *tail);
/* Takes the next chunk, which must be an announcement that has arrived. *announcement is in host byte order and its
 * fields are unchecked. *tail: as for ib_receiver_take. */
void ib_receiver_take_announcement(struct ib_receiver *receiver, struct ib_announcement *announcement,
				   uint32_t *tail);
/* Takes the tail of the first chunk that has arrived, is not consumed, and whose tail was not taken before. Returns
 * false if there is no such chunk. For a sender without room: the user may not call get for a long time, and each tail
 * is sent only once. Call it until it returns false; otherwise a tail left over may later be old enough to look new. */
bool ib_receiver_peek(struct ib_receiver *receiver, uint32_t *tail);
/* Returns whether the tail must be sent by a control write: if half of the ring has been consumed since a tail was last
 * sent, as the peer may have no credit left and this side no chunk to send; and every IB_TAIL_WRITTEN_EVERY chunks, so
 * that the tail in the peer's control block never becomes so old that it looks new. */
bool ib_receiver_owes(const struct ib_receiver *receiver);

#endif
