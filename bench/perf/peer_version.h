/* SPDX-License-Identifier: BSD-3-Clause */
/* The versions of copies between two servers that headrace-perf peer compares. */
#ifndef PERF_PEER_VERSION_H
#define PERF_PEER_VERSION_H

#include <stdbool.h>

#define PEER_VERSIONS_MAX 32
#define PEER_VERSIONS_ALL "client,1,2a,2b,3a,3b,4a,4b,hybrid"
#define PEER_VERSIONS_WANTED "client, hybrid, 1, 2a, 2b, 3a, 3b, 4a, 4b, and 3a:NxBYTES, 3b:NxBYTES"

/* A value of HEADRACE_PEER, with those of HEADRACE_PEER_BUFFERS and HEADRACE_PEER_CHUNK, or "". */
struct peer_version {
	char name[8], buffers[4], chunk[8];
};

struct peer_versions {
	struct peer_version version[PEER_VERSIONS_MAX];
	unsigned n;
};

/* A list, or "sweep": version 3b with many numbers and sizes of buffers. False: not one. */
bool peer_versions_parse(struct peer_versions *versions, const char *text);

#endif
