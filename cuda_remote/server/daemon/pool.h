/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's worker processes. Each is forked ahead of need and initialises CUDA at once; when a client comes it
 * is served by one that stands ready, and another is forked in its place. The daemon itself never loads a driver.
 * One thread.
 */
#ifndef RC_DAEMON_POOL_H
#define RC_DAEMON_POOL_H

#include "cuda_remote/door/door.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;

struct pool_plan {
	const char *driver;   /* for worker_prepare */
	uint32_t ready;       /* workers to keep standing ready */
	uint32_t max_clients;
	uid_t other_uid;      /* as root: the user of workers whose client's is not known */
	sigset_t signals;     /* mask of a worker */
	/* Called in a fresh worker: closes what the daemon has open beside the pool's own. */
	void (*leave)(void *context);
	void *context;
};

int pool_open(const struct pool_plan *plan, struct pool **pool);

/* Ends every worker: SIGTERM, a second's grace, SIGKILL; reaps them. NULL is allowed. */
void pool_close(struct pool *pool);

/* Forks workers where fewer than planned stand ready or are starting. ms until it wants to be called again, -1: not. */
int pool_refill(struct pool *pool);

/* Descriptors to poll for workers' first words; then pool_listen reads them. Returns how many, at most max. */
size_t pool_poll_set(const struct pool *pool, struct pollfd *set, size_t max);
void pool_listen(struct pool *pool);

/* Reaps workers that ended (after SIGCHLD). */
void pool_reap(struct pool *pool);

/*
 * Gives a new client to a worker that stands ready; the guest's descriptor is closed here on success. -EAGAIN: none is
 * ready yet; -EBUSY: max_clients are being served; -EIO: workers cannot be started.
 */
int pool_admit(struct pool *pool, const rc_door_peer_t *guest);

/* Gives a client's further connection to its worker. -ESRCH: no such session of this user; else its worker
 * is ending or does not read. */
int pool_join(struct pool *pool, const rc_door_peer_t *guest);

struct pool_counts {
	uint32_t gpus;     /* of this host; 0: not known yet */
	uint32_t starting, ready, serving;
	uint32_t failures; /* workers that could not start, since the last that could */
};
void pool_count(const struct pool *pool, struct pool_counts *counts);

#endif
