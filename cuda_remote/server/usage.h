/* SPDX-License-Identifier: BSD-3-Clause */
/* What usage.c, usage_objects.c and usage_pools.c share: the table of the session's allocations. */
#ifndef CUDA_REMOTE_SERVER_USAGE_H
#define CUDA_REMOTE_SERVER_USAGE_H

#include "cuda_remote/server/internal.h"

struct allocation;

/* A charge of the session's quota for memory that is about to be allocated. */
struct server_charge {
	struct allocation *before; /* what it replaces; NULL: nothing */
	uint64_t bytes, more;      /* more: charged in addition to before */
	uint32_t gpu;              /* the server's index */
	bool outlasts;             /* it does not end with the current context */
};

/*
 * Charges the current context's GPU for bytes that replace those counted at the address (0: none). False: the quota does
 * not permit it, and everything is as before. Otherwise the caller asks the driver, and then calls server_usage_charged
 * with the address at which the bytes count from now on (0: the driver refused). An address may be that of an object
 * instead of memory.
 */
bool server_usage_charge(struct server_charge *charge, uint64_t address, uint64_t bytes);
void server_usage_charged(const struct server_charge *charge, uint64_t address);

/* Before the driver frees what counts at the address (NULL: nothing), and after it; returns result. */
struct allocation *server_usage_take(uint64_t address);
CUresult server_usage_settle(struct allocation *allocation, CUresult result);

/* Replaces the driver's functions for arrays and limits by counting ones. By server_usage_watch. */
void server_usage_watch_objects(void);

/* The same for pools. */
void server_usage_watch_pools(void);

#endif
