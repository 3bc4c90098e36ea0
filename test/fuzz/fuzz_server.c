/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses a list of servers. It is refused, or the printed name of each server parses to the same server again. */
#include "cuda_remote/door/server_name.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[1024], name[RC_SERVER_NAME_MAX + 32];
	rc_server_t servers[8], again;
	size_t n = 0;
	if (size >= sizeof text)
		return 0;
	memcpy(text, data, size);
	text[size] = 0;
	if (rc_server_parse(text, servers, 8, &n))
		return 0;
	for (size_t i = 0; i < n; i++)
		if (rc_server_parse_place(rc_server_name(&servers[i], name, sizeof name), &again) ||
		    strcmp(again.host, servers[i].host) || strcmp(again.path, servers[i].path) ||
		    again.port != servers[i].port)
			abort();
	return 0;
}
