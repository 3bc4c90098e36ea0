/* SPDX-License-Identifier: BSD-3-Clause */
/* Both ends of one connection of the shared-memory transport in one process, for tests of the transport's internals. */
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

/* Opens the transport, with the current settings of the environment, and makes both halves. */
void shm_ends_make(struct shm_ends *ends, uint32_t ring_bytes);
/* The same in a transport that is open. */
void shm_ends_make_in(void *context, struct shm_ends *ends, uint32_t ring_bytes);
/* Joins the two halves. */
void shm_ends_join(struct shm_ends *ends);
/* Closes both ends. May also be called after shm_ends_join has failed. */
void shm_ends_close(struct shm_ends *ends);
/* Closes both ends, and leaves the transport open. */
void shm_ends_close_conns(struct shm_ends *ends);

/* Sends `bytes` bytes in each direction, in pieces, and compares them. */
void shm_ends_transfer(struct shm_ends *ends, size_t bytes);

/* A mapping of a ring, from /proc/self/smaps. */
struct shm_mapping {
	uint8_t *start;
	size_t size;
	bool advised;      /* MADV_HUGEPAGE is in force */
	size_t huge_bytes; /* bytes in huge pages of either kind */
};

/* Stores the mappings of rings in this process, ordered by address, at most `most`. Returns their number. If only a
 * part of a ring is advised, the ring is two mappings. */
int shm_mappings(struct shm_mapping *mappings, int most);

#endif
