/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ends of one connection of the shared-memory transport in one process, for tests of its inside. */
#ifndef HR_TEST_SHM_ENDS_H
#define HR_TEST_SHM_ENDS_H

#include "rdma_channel/transport.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shm_end {
	void *conn;
	int stream;
	hr_conn_stats_t stats;
	struct hr_conn_env env;
	struct hr_half half;
};

struct shm_ends {
	void *context;
	struct shm_end end[2];
};

/* Opens the transport, with the settings that the environment has now, and makes both halves. */
void shm_ends_make(struct shm_ends *ends, uint32_t ring_bytes);
/* Joins them. */
void shm_ends_join(struct shm_ends *ends);
/* Also after a failure to join. */
void shm_ends_close(struct shm_ends *ends);

/* Sends so many bytes each way, in pieces, and compares them. */
void shm_ends_transfer(struct shm_ends *ends, size_t bytes);

/* What the kernel says of a mapping of a ring. */
struct shm_mapping {
	uint8_t *start;
	size_t size;
	bool advised;      /* MADV_HUGEPAGE is in force */
	size_t huge_bytes; /* of it, in huge pages of either kind, by this mapping */
};

/* The mappings of rings in this process, in the order of their addresses; returns how many, at most `most`. A ring of
 * which only a part is advised is two mappings. */
int shm_mappings(struct shm_mapping *mappings, int most);

#endif
