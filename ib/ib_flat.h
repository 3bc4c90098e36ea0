/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of the basic design (paper, section 4.2): a flat buffer of bytes, with head and tail as words of their
 * own of which either end has a copy. No verbs here, so that it can be tested on plain memory.
 *
 * It is the ring of ib_ring.h with chunks of one byte: both ends count bytes instead of chunks, modulo 2^32, and
 * credit, room and tail are its. Byte number i of the stream lies at i mod n_chunks of the staging area and of the
 * ring. What has arrived is what the head says, which the sender writes after the bytes; so bytes and head must
 * arrive in order.
 */
#ifndef IB_FLAT_H
#define IB_FLAT_H

#include "ib/ib_ring.h"

/* The flat ring in the memory of a ring of chunks: its largest power of two. */
struct ib_geometry ib_flat_geometry(const struct ib_geometry *chunks);

/*
 * Copies up to left bytes from the place into the staging area, as many as there is room for. Returns how many; the
 * spans to write to the ring are in spans[0] and, where the end of the ring lies between, spans[1] (else len 0).
 */
uint32_t ib_flat_fill(struct ib_sender *sender, struct hr_iov_place *place, size_t left, struct ib_span spans[2]);

/* Copies up to left bytes that have arrived to the place. head: what the sender last told. Returns how many, or -EPROTO
 * for a head that cannot be. */
int64_t ib_flat_take(struct ib_receiver *receiver, uint32_t head, struct hr_iov_place *place, size_t left);

#endif
