/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives every connection of the conformance suite keys (linked with --wrap=hr_channel_connect), so that all cases run
 * over encrypted records. The keys are the same everywhere: that is enough to test, and nothing else. */
#include "headrace/channel.h"

#include <stddef.h>

int __real_hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr,
			      hr_conn_t **conn);
int __wrap_hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr,
			      hr_conn_t **conn);

int __wrap_hr_channel_connect(hr_channel_t *channel, const hr_card_t *card, const hr_connect_attr_t *attr,
			      hr_conn_t **conn)
{
	static const hr_cipher_keys_t keys = { "one key for both", "one key for both" };
	hr_connect_attr_t with_keys = HR_CONNECT_ATTR_INIT;
	if (attr)
		with_keys = *attr;
	with_keys.cipher = &keys;
	return __real_hr_channel_connect(channel, card, &with_keys, conn);
}
