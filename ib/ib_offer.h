/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sender of zero copy: which bytes of the stream have been sent, and which of them put may report as accepted. This
 * file does not use verbs, so that it can be tested on plain memory.
 *
 * The stream is a sequence of chunks with copied bytes and of announcements of memory that the receiver reads. The
 * caller may reuse copied bytes at once, and announced bytes when the receiver has acknowledged them. As put can report
 * only a prefix of its bytes as accepted, bytes after an announcement are accepted only after its acknowledgement. They
 * are sent before that all the same, so that the receiver always knows what comes next. The caller offers them again
 * until they are accepted, and put skips the part that was sent.
 */
#ifndef IB_OFFER_H
#define IB_OFFER_H

#include <stdbool.h>
#include <stdint.h>

enum { IB_OFFERS_MAX = 32 }; /* announcements without an acknowledgement; part of the protocol; a power of two */

struct ib_offer {
	uint64_t start; /* position of its first byte in the stream */
	uint64_t len;
	void *memory;   /* the caller's handle of the registered memory */
};

struct ib_offers {
	struct ib_offer offer[IB_OFFERS_MAX];
	uint32_t most;       /* maximum number of offers without acknowledgement, 1..IB_OFFERS_MAX; set by the owner */
	uint32_t first, end; /* numbers of the first offer without acknowledgement and of the next offer; modulo 2^32 */
	uint64_t sent;       /* bytes of the stream that were copied or announced */
	uint64_t accepted;   /* bytes that put has reported as accepted */
};

/* Returns whether another announcement may be made. */
bool ib_offers_room(const struct ib_offers *offers);
/* Records that the next len bytes of the stream have been announced. */
void ib_offers_announced(struct ib_offers *offers, uint64_t len, void *memory);
/* Records that the next len bytes have been copied. */
void ib_offers_copied(struct ib_offers *offers, uint64_t len);
/* Handles the peer's count of acknowledged announcements. *news: how many of them are new; pop each of them. -EPROTO:
 * the count is higher than the number of announcements. */
int ib_offers_acknowledge(struct ib_offers *offers, uint32_t count, uint32_t *news);
/* Removes the oldest offer and returns it. */
struct ib_offer ib_offers_pop(struct ib_offers *offers);
/* Returns the number of bytes that put may report as accepted and has not reported yet. */
uint64_t ib_offers_acceptable(const struct ib_offers *offers);

#endif
