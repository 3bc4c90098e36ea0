/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes the input as a card. It is refused, or the decoded identity encodes to a card that decodes to the same one. */
#include "rdma_channel/card.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Writes the right check sum into an input that is long enough to have one, as hardly any input has it. */
static void mend_check_sum(hr_card_t *card)
{
	if (card->len < sizeof(struct hr_card_wire))
		return;
	uint32_t sum = htole32(hr_card_check_sum(card));
	memcpy(card->data + offsetof(struct hr_card_wire, check), &sum, sizeof sum);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	hr_card_t card = { 0 }, again = { 0 };
	struct hr_identity identity, same;
	if (size > HR_CARD_MAX)
		return 0;
	card.len = (uint32_t)size;
	memcpy(card.data, data, size);
	mend_check_sum(&card);
	if (hr_card_decode(&card, &identity))
		return 0;
	hr_card_encode(&identity, &again);
	if (hr_card_decode(&again, &same) || memcmp(&identity, &same, sizeof same))
		abort();
	return 0;
}
