/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring of the basic design (paper, section 4.2): a flat buffer of bytes. Head and tail are separate words, and each
 * side has a copy of them. This file does not use verbs, so that it can be tested on plain memory.
 *
 * It is the ring of ib_ring.h with chunks of one byte: both sides count bytes instead of chunks, modulo 2^32, and use
 * ib_ring.h's functions for credit, room and tail. Byte number i of the stream lies at offset i mod n_chunks of the
 * staging area and of the ring. The head says which bytes have arrived. The sender writes it after the bytes, so bytes
 * and head must arrive in order.
 */
#ifndef IB_FLAT_H
#define IB_FLAT_H

#include "ib/ib_ring.h"

/* Returns the geometry of the flat ring in the memory of a ring of chunks: the largest power of two that fits. */
struct ib_geometry ib_flat_geometry(const struct ib_geometry *chunks);

/*
 * Copies up to left bytes from `place` into the staging area, as many as there is room for. Returns their number. The
 * spans to write to the ring are spans[0] and spans[1]; spans[1].len is 0 unless the bytes pass the end of the ring.
 */
uint32_t ib_flat_fill(struct ib_sender *sender, struct hr_iov_place *place, size_t left, struct ib_span spans[2]);

/* Copies up to left bytes that have arrived to `place`. head: the head that the sender wrote last. Returns their
 * number, or -EPROTO if the head is invalid. */
int64_t ib_flat_take(struct ib_receiver *receiver, uint32_t head, struct hr_iov_place *place, size_t left);

#endif
