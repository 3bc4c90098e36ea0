/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses lists of versions of copies between two servers. */
#include "peer_version.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number and the sizes of buffers that Reano and Silla (2019) searched, less those that make no difference here. */
static bool fill_sweep(struct peer_versions *versions)
{
	static const char *const buffers[] = { "2", "4", "8", "16", "32" };
	static const char *const chunks[] = { "64k", "256k", "512k", "1M", "4M" };
	versions->n = 0;
	for (int i = 0; i < 5; i++)
		for (int j = 0; j < 5; j++) {
			struct peer_version *version = &versions->version[versions->n++];
			*version = (struct peer_version){ .name = "3b" };
			strcpy(version->buffers, buffers[i]);
			strcpy(version->chunk, chunks[j]);
		}
	return true;
}

/* NxBYTES; the library checks the ranges. */
static bool parse_buffers(struct peer_version *version, const char *text)
{
	const char *x = strchr(text, 'x');
	size_t before = x ? (size_t)(x - text) : 0, after = x ? strlen(x + 1) : 0;
	if (!before || before >= sizeof version->buffers || !after || after >= sizeof version->chunk)
		return false;
	if (strspn(text, "0123456789") != before || strspn(x + 1, "0123456789kMG") != after)
		return false;
	memcpy(version->buffers, text, before);
	memcpy(version->chunk, x + 1, after);
	return true;
}

static bool parse_one(struct peer_version *version, char *text)
{
	static const char *const names[] = { "client", "hybrid", "1", "2a", "2b", "3a", "3b", "4a", "4b" };
	char *rest = strchr(text, ':');
	*version = (struct peer_version){ .name = "" };
	if (rest)
		*rest++ = '\0';
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (!strcmp(text, names[i])) {
			strcpy(version->name, names[i]);
			return !rest || (*text == '3' && parse_buffers(version, rest));
		}
	return false;
}

bool peer_versions_parse(struct peer_versions *versions, const char *text)
{
	if (!strcmp(text, "sweep"))
		return fill_sweep(versions);
	char list[512], *rest = list;
	versions->n = 0;
	if (strlen(text) >= sizeof list)
		return false;
	strcpy(list, text);
	for (char *item; (item = strsep(&rest, ","));)
		if (versions->n == PEER_VERSIONS_MAX || !parse_one(&versions->version[versions->n++], item))
			return false;
	return true;
}
