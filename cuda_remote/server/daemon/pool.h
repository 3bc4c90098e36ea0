/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The daemon's worker processes. Each is started before a client needs it and initialises CUDA at once. A new client
 * gets a worker that is ready, and another is started in its place. Each worker belongs to a line. The first line's
 * workers show every GPU. For each GPU there is another line, whose workers show only that GPU. The first line always
 * keeps workers ready. A GPU's line starts one when a client asks for that GPU, and keeps one ready until no client has
 * asked for five minutes. The daemon itself never loads a driver. These functions are for one thread.
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
	struct child_plan worker; /* member gpu is not used */
	uint32_t ready;           /* workers to keep ready for clients of all GPUs */
	uint32_t max_clients;
	struct gpu_settings gpus;
	uint32_t idle_s;          /* as in struct daemon_options */
	sigset_t signals;         /* mask of a worker */
};

int pool_open(const struct pool_plan *plan, struct pool **pool);

/* Ends every worker: SIGTERM, a second's grace, SIGKILL; reaps them. NULL is allowed. */
void pool_close(struct pool *pool);

/* Changes the members of the plan that follow its first. Sessions keep the quota that they have. */
void pool_replan(struct pool *pool, const struct pool_plan *plan);

/* Ends the sessions that have made no call for the plan's time. Returns the ms until its next call; -1: no need. */
int pool_end_idle(struct pool *pool);

/* The exclusive GPU that keeps this client out; -1: none. */
int pool_gpu_in_use(const struct pool *pool, const rc_door_peer_t *peer);

/* Ends the workers that have no client, and starts no others. */
void pool_stop_starting(struct pool *pool);

/* The clients that wait for a worker: forgets all; adds one. */
void pool_forget_waiting(struct pool *pool);
void pool_add_waiting(struct pool *pool, const rc_door_peer_t *peer);

/* Starts workers where fewer than planned are ready or starting. Returns the ms until its next call; -1: no need. */
int pool_refill(struct pool *pool);

/* Fills set with the descriptors to poll for workers' reports. Returns their number, at most max. */
size_t pool_poll_set(const struct pool *pool, struct pollfd *set, size_t max);
void pool_listen(struct pool *pool);

/* Reaps workers that ended (after SIGCHLD). */
void pool_reap(struct pool *pool);

/*
 * Gives a new client to a worker that is ready. Closes the peer's descriptor on success. -EAGAIN: no worker is ready
 * yet; -EBUSY: max_clients are being served; -EIO: workers cannot be started.
 */
int pool_admit(struct pool *pool, const rc_door_peer_t *peer);

/* Gives a client's further connection to its worker. -ESRCH: this user has no such session. Other errors: the worker is
 * ending or does not read. */
int pool_join(struct pool *pool, const rc_door_peer_t *peer);

struct pool_counts {
	uint32_t gpus;     /* of this host; 0: not known yet */
	uint32_t starting, ready, serving; /* ready: for clients of all GPUs */
	uint32_t failures; /* in the line of all GPUs: workers that could not start, since the last that could */
};
void pool_count(const struct pool *pool, struct pool_counts *counts);

/* Sets the members of *counters that are about sessions, workers and GPUs; leaves the others. */
void pool_tally(struct pool *pool, struct rc_counters *counters);

/* Adds the sessions that count against this owner. */
void pool_count_sessions(const struct pool *pool, const struct session_owner *owner, struct session_limits *counts);

/* The sessions that this peer may see: root and the daemon's user see all, other users their own. A peer that
 * authenticated by key sees the sessions by key. */
void pool_report(const struct pool *pool, const rc_door_peer_t *peer, rc_door_report_t *report);

#endif
