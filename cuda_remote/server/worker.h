/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker: the process that serves one client's CUDA calls with a libcuda.so.1 of its host. The daemon starts the process
 * before a client connects and calls worker_prepare in it. When a client's handshake is done (rc_door_next), the daemon
 * passes the client (rc_door_peer_t) to worker_serve, which returns when the client has ended. Then the process exits.
 *
 * One thread of the worker serves one thread of the client. The first peer's connection lives as long as the client; every
 * further connection arrives over the control socket.
 */
#ifndef RC_CUDA_SERVER_WORKER_H
#define RC_CUDA_SERVER_WORKER_H

#include "cuda_remote/door/door.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define WORKER_GPUS_MAX 64

/* What a worker reports about its session, in memory that it shares with the daemon. Each member is changed by atomic
 * stores or additions only. */
struct worker_usage {
	uint64_t calls;  /* begun */
	uint64_t ended;  /* of these, calls that ended while they held the call order */
	uint64_t ended_outside; /* the others that have ended */
	uint64_t memory; /* bytes of device memory that count against the quota: allocations, arrays, and what contexts keep for
			  * malloc and printf of kernels */
	uint64_t kernel_launches, graph_launches;
	uint64_t to_devices, from_devices; /* bytes copied between host and devices; graphs' own copies do not count */
	uint64_t connections; /* after the first: begun */
	uint64_t connections_ended;
	/* Bytes on each GPU, by the server's index: allocated; charged, which includes what the client may allocate without a
	 * question to the worker. */
	uint64_t gpu_used[WORKER_GPUS_MAX];
	uint64_t gpu_charged[WORKER_GPUS_MAX];
};

/* The bytes of device memory that the session may have on each GPU, by the server's index; 0: no quota. Before
 * worker_prepare. */
void worker_limit_memory(const uint64_t *bytes, uint32_t count);

/* Returns whether a list is one of IP addresses and auto, as for HEADRACE_LINK_ADDRESS. */
bool server_link_addresses_valid(const char *list);

/* Counts there from here on. Before worker_prepare. */
void worker_count_in(struct worker_usage *usage);

/*
 * Loads the driver (a path or a name for dlopen, e.g. "libcuda.so.1") and initialises it and the primary contexts of its
 * devices, so that a client does not wait for this. Once in a process, before it has a second thread.
 * gpu: the index of the only GPU that the worker may open, or RC_SERVER_ALL_GPUS. The index counts as for a worker that was
 * prepared for all GPUs. The other GPUs are hidden from the driver by CUDA_VISIBLE_DEVICES, set before cuInit.
 * *gpus: the number of GPUs that the worker shows to its client, 1 or more; 1 if gpu is an index.
 * -ENOENT: the driver cannot be loaded, or is older than CUDA 12.4; -ENODEV: it has no device, or none with this index;
 * -EIO: cuInit or a context failed. Logged.
 */
int worker_prepare(const char *driver, uint32_t gpu, uint32_t *gpus);

/*
 * Answers the first peer's handshake (rc_door_peer_welcome with a channel of its own) and serves this peer and those
 * that follow until the client has ended. Blocks. peer: as rc_door_next gave it, with fd valid in this process and
 * owned by the worker from the call on. peer->gpu is the session's grant: RC_SERVER_ALL_GPUS, or the index of the only
 * GPU that the client may use. A worker that was prepared for all GPUs releases the others first. A worker that was
 * prepared for another GPU refuses. The client sees the granted GPU as its only one, with number 0. control:
 * SOCK_SEQPACKET socket from the daemon; each message is one rc_door_peer_t (purpose RC_DOOR_JOIN), read with
 * rc_door_peer_receive. The worker does not close this socket, and serves on after an end of file on it. The worker
 * redirects the process's stdout and stderr: what device code or the driver prints there goes to the client's stdout
 * and stderr. The worker's log stays where it went before.
 * 0: the client ended; a negated errno: the client could not be served, or the connection broke. Logged.
 */
int worker_serve(const rc_door_peer_t *peer, int control);

#endif
