/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions for the handshake's messages that both sides use. */
#include "cuda_remote/door/wire.h"

#include <stdio.h>
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
	return purpose == RC_DOOR_NEW || purpose == RC_DOOR_JOIN;
}

void door_text_clean(char *text, size_t size)
{
	text[size - 1] = 0;
	for (char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || (unsigned char)*c >= 127)
			*c = '?';
}

bool door_calls_differ(const struct door_build *client, const struct door_build *server)
{
	return client->calls != server->calls || client->structs != server->structs;
}

bool door_build_differs(const struct door_build *client, const struct door_build *server, char text[RC_DOOR_TEXT_MAX])
{
	char cuda[64] = "", list[RC_DOOR_TEXT_MAX];
	if (client->cuda == server->cuda && client->wire == server->wire)
		return false;
	if (client->cuda != server->cuda)
		snprintf(cuda, sizeof cuda, " CUDA version (server %u.%u, client %u.%u),", server->cuda / 1000 % 1000,
			 server->cuda % 1000 / 10, client->cuda / 1000 % 1000, client->cuda % 1000 / 10);
	int n = snprintf(list, sizeof list, "%s%s", cuda, client->wire != server->wire ? " wire headers," : "");
	snprintf(text, RC_DOOR_TEXT_MAX, "builds differ:%.*s; install the same build of Headrace on both hosts", n - 1, list);
	return true;
}
