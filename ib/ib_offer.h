/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The sending end of zero-copy: which bytes of the stream have been sent, and which of those put may report as
 * accepted. No verbs here, so that it can be tested on plain memory.
 *
 * The stream is a sequence of chunks with copied bytes and of announcements of memory that the receiver reads. Copied
 * bytes are the caller's again at once, announced ones when the receiver has acknowledged them. As put reports only a
 * prefix of what it was given, whatever follows an announcement has to wait for its acknowledgement too; it is sent all
 * the same, so that the receiver always knows what comes next. The caller offers it again until it is accepted, and the
 * part that was sent is then skipped.
 */
#ifndef IB_OFFER_H
#define IB_OFFER_H

#include <stdbool.h>
#include <stdint.h>

enum { IB_OFFERS_MAX = 32 }; /* announcements without an acknowledgement; part of the protocol; a power of two */

struct ib_offer {
	uint64_t start; /* place in the stream of its first byte */
	uint64_t len;
	void *memory;   /* what keeps it readable; the caller's */
};

struct ib_offers {
	struct ib_offer offer[IB_OFFERS_MAX];
	uint32_t first, end; /* numbers of the first one without acknowledgement and of the next one; modulo 2^32 */
	uint64_t sent;       /* bytes of the stream copied or announced */
	uint64_t accepted;   /* bytes that put has reported */
};

/* May one more be made? */
bool ib_offers_room(const struct ib_offers *offers);
/* The next len bytes of the stream have been announced. */
void ib_offers_announced(struct ib_offers *offers, uint64_t len, void *memory);
/* The next len bytes have been copied. */
void ib_offers_copied(struct ib_offers *offers, uint64_t len);
/* Takes the count of acknowledged announcements that the peer told. *news: how many are new in it, to be
 * popped one by one. -EPROTO: more than were made. */
int ib_offers_acknowledge(struct ib_offers *offers, uint32_t count, uint32_t *news);
/* The oldest one is done; what was it? */
struct ib_offer ib_offers_pop(struct ib_offers *offers);
/* Bytes that are the caller's again and that put has not reported yet. */
uint64_t ib_offers_acceptable(const struct ib_offers *offers);

#endif
