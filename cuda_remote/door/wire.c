/* SPDX-License-Identifier: BSD-3-Clause */
#include "cuda_remote/door/wire.h"

#include <string.h>

void door_header_set(struct door_header *header, enum door_kind kind, size_t length)
{
	memcpy(header->magic, DOOR_MAGIC, sizeof header->magic);
	header->version = RC_DOOR_VERSION;
	header->kind = (uint16_t)kind;
	header->length = (uint32_t)length;
}

bool door_has_card(uint32_t purpose)
{
	return purpose != RC_DOOR_STATUS && purpose != RC_DOOR_REPORT;
}

void door_text_clean(char *text, size_t size)
{
	text[size - 1] = 0;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
			*c = '?';
}
