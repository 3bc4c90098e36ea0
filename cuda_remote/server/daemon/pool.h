/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's worker processes. Each starts ahead of need and initialises CUDA at once; a new client gets one that is
 * ready, and another is started in its place. Workers are of lines: one line shows its clients every GPU, and for each
 * GPU there is one that shows no other. The first line always has workers ready; a GPU's line gets one when the first
 * client asks for that GPU, and keeps one ready for some minutes after the last. The daemon itself never loads a driver.
 * One thread.
 */
#ifndef RC_DAEMON_POOL_H
#define RC_DAEMON_POOL_H

#include "cuda_remote/door/door.h"
#include "cuda_remote/server/daemon/child.h"
#include "cuda_remote/server/daemon/limits.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

struct pool;

struct pool_plan {
	struct child_plan worker; /* gpu: not looked at */
	uint32_t ready;           /* workers to keep ready for clients of all GPUs */
	uint32_t max_clients;
	sigset_t signals;         /* mask of a worker */
};

int pool_open(const struct pool_plan *plan, struct pool **pool);

/* Ends every worker: SIGTERM, a second's grace, SIGKILL; reaps them. NULL is allowed. */
void pool_close(struct pool *pool);

/* Starts workers where fewer than planned are ready or starting. ms until it wants to be called again, -1: not. */
int pool_refill(struct pool *pool);

/* Descriptors to poll for workers' first words; then pool_listen reads them. Returns how many, at most max. */
size_t pool_poll_set(const struct pool *pool, struct pollfd *set, size_t max);
void pool_listen(struct pool *pool);

/* Reaps workers that ended (after SIGCHLD). */
void pool_reap(struct pool *pool);

/*
 * Gives a new client to a worker that is ready; the peer's descriptor is closed here on success. -EAGAIN: none is
 * ready yet; -EBUSY: max_clients are being served; -EIO: workers cannot be started.
 */
int pool_admit(struct pool *pool, const rc_door_peer_t *peer);

/* Gives a client's further connection to its worker. -ESRCH: no such session of this user; else its worker
 * is ending or does not read. */
int pool_join(struct pool *pool, const rc_door_peer_t *peer);

struct pool_counts {
	uint32_t gpus;     /* of this host; 0: not known yet */
	uint32_t starting, ready, serving; /* ready: for clients of all GPUs */
	uint32_t failures; /* workers that could not start, since the last that could; for clients of all GPUs */
};
void pool_count(const struct pool *pool, struct pool_counts *counts);

/* Adds the sessions that count against this owner. */
void pool_count_sessions(const struct pool *pool, const struct session_owner *owner, struct session_limits *counts);

/* The sessions that this peer may see: root and the daemon's user see all, other users their own, who came by key those
 * that came by key. */
void pool_report(const struct pool *pool, const rc_door_peer_t *peer, rc_door_report_t *report);

#endif
