/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender of zero copy: counts the bytes that were sent, and those that put may report as accepted. */
#include "ib/ib_offer.h"

#include <errno.h>

static struct ib_offer *offer_of(struct ib_offers *offers, uint32_t number)
{
	return &offers->offer[number % IB_OFFERS_MAX];
}

bool ib_offers_room(const struct ib_offers *offers)
{
	return offers->end - offers->first < offers->most;
}

void ib_offers_announced(struct ib_offers *offers, uint64_t len, void *memory)
{
	*offer_of(offers, offers->end) = (struct ib_offer){ offers->sent, len, memory };
	offers->end++;
	offers->sent += len;
}

void ib_offers_copied(struct ib_offers *offers, uint64_t len)
{
	offers->sent += len;
}

int ib_offers_acknowledge(struct ib_offers *offers, uint32_t count, uint32_t *news)
{
	/* A count that is only half written looks older than it is: then nothing is new. */
	*news = (int32_t)(count - offers->first) > 0 ? count - offers->first : 0;
	return *news > offers->end - offers->first ? -EPROTO : 0;
}

struct ib_offer ib_offers_pop(struct ib_offers *offers)
{
	return *offer_of(offers, offers->first++);
}

uint64_t ib_offers_acceptable(const struct ib_offers *offers)
{
	uint64_t free_up_to = offers->first == offers->end ? offers->sent :
							     offers->offer[offers->first % IB_OFFERS_MAX].start;
	return free_up_to - offers->accepted;
}
