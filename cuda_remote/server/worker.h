/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The worker: the process that serves one client's CUDA calls on a libcuda.so.1 of its host. The daemon forks it ahead of need
 * and calls worker_prepare in it; when a client came through the door (rc_door_next) its guest goes to worker_serve,
 * which returns when the client is gone; then the process exits.
 *
 * One thread of the worker serves one thread of the client. The first guest's connection lives as long as the client; every
 * further one arrives over the control socket.
 */
#ifndef RC_CUDA_SERVER_WORKER_H
#define RC_CUDA_SERVER_WORKER_H

#include "cuda_remote/door/door.h"

#include <stdint.h>
#include <sys/types.h>

/*
 * Loads the driver (a path or a name for dlopen, e.g. "libcuda.so.1") and initialises it and the primary contexts of its
 * devices: everything a local program pays for at its start. Once in a process. *gpus: the number of its devices, 1 or more.
 * -ENOENT: it cannot be loaded, or is no CUDA 13 driver; -ENODEV: it has no device; -EIO: cuInit or a context
 * failed. Logged.
 */
int worker_prepare(const char *driver, uint32_t *gpus);

/*
 * Welcomes the first guest (rc_door_peer_welcome with a channel of its own) and serves it and the guests that follow until the
 * client is gone. Blocks. guest: as rc_door_next gave it, fd valid in this process and owned by the worker from here on.
 * control: SOCK_SEQPACKET socket from the daemon; each message is one guest (purpose RC_DOOR_JOIN), read with
 * rc_door_peer_receive. The worker does not close it; end of file there is no reason to stop serving.
 * The process's stdout becomes the worker's own: what is printed there (device printf) goes to the client.
 * 0: the client ended; a negated errno: it could not be served, or the connection broke. Logged.
 */
int worker_serve(const rc_door_peer_t *guest, int control);

#endif
