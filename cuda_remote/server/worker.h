/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker: the process that serves one client's CUDA calls with a libcuda.so.1 of its host. The daemon starts the process
 * before a client comes and calls worker_prepare in it. When a client has come through the door (rc_door_next), the daemon
 * passes the client (rc_door_peer_t) to worker_serve, which returns when the client has ended. Then the process exits.
 *
 * One thread of the worker serves one thread of the client. The first peer's connection lives as long as the client; every
 * further connection arrives over the control socket.
 */
#ifndef RC_CUDA_SERVER_WORKER_H
#define RC_CUDA_SERVER_WORKER_H

#include "cuda_remote/door/door.h"

#include <stdint.h>
#include <sys/types.h>

/* What a worker tells about its session, in memory that it shares with the daemon. Each written by one atomic store or
 * addition. */
struct worker_usage {
	uint64_t calls;  /* served */
	uint64_t memory; /* bytes of device memory that cuMemAlloc and its kin have given and that are not freed */
};

/* Counts there from here on. Before worker_prepare. */
void worker_count_in(struct worker_usage *usage);

/*
 * Loads the driver (a path or a name for dlopen, e.g. "libcuda.so.1") and initialises it and the primary contexts of its
 * devices: everything a local program pays for at its start. Once in a process, before it has a second thread.
 * gpu: the index of the only GPU that the worker may open, or RC_SERVER_ALL_GPUS. The index counts as for a worker that was
 * prepared for all GPUs. The other GPUs are hidden from the driver by CUDA_VISIBLE_DEVICES, set before cuInit.
 * *gpus: the number of GPUs that the worker shows to its client, 1 or more; 1 if gpu is an index.
 * -ENOENT: the driver cannot be loaded, or is no CUDA 13 driver; -ENODEV: it has no device, or none with this index; -EIO:
 * cuInit or a context failed. Logged.
 */
int worker_prepare(const char *driver, uint32_t gpu, uint32_t *gpus);

/*
 * Welcomes the first peer (rc_door_peer_welcome with a channel of its own) and serves it and the peers that follow until
 * the client has ended. Blocks. peer: as rc_door_next gave it, with fd valid in this process and owned by the worker from
 * here on. peer->gpu is the session's grant: RC_SERVER_ALL_GPUS, or the index of the only GPU that the client may use. A
 * worker that was prepared for all GPUs releases the others first; a worker that was prepared for another GPU refuses.
 * The client sees the granted GPU as number 0 of one.
 * control: SOCK_SEQPACKET socket from the daemon; each message is one rc_door_peer_t (purpose RC_DOOR_JOIN), read with
 * rc_door_peer_receive. The worker does not close it; end of file there is no reason to stop serving.
 * The process's stdout and stderr become the worker's own: what device code or the driver prints there goes to the client's
 * stdout and stderr. The worker's log stays where it went before.
 * 0: the client ended; a negated errno: the client could not be served, or the connection broke. Logged.
 */
int worker_serve(const rc_door_peer_t *peer, int control);

#endif
