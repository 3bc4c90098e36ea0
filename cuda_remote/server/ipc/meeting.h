/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a worker gives objects of its driver to another session's worker. A handle that a client sees names the exporting
 * worker's socket and a secret. The importing worker connects to that socket and shows the secret; the exporting worker
 * answers with the driver's own handle, and with a descriptor if there is one. Each checks that the other process has its own
 * user, and the exporting one that both sessions are of one user, or came with the key. So the driver never sees a handle that
 * a client made up.
 */
#ifndef RC_SERVER_MEETING_H
#define RC_SERVER_MEETING_H

#include "cuda_remote/server/internal.h"

/* A MEMORY or an EVENT of the software GPU has a file, which handle_files.h finds. An ALLOCATION or a POOL has a file of any
 * driver's. A POINTER has none. */
enum meeting_kind { MEETING_MEMORY = 1, MEETING_EVENT, MEETING_ALLOCATION, MEETING_POOL, MEETING_POINTER };

/* Gives the driver's handle (CU_IPC_HANDLE_SIZE bytes) a handle for clients: the same one each time. CUDA_ERROR_OUT_OF_MEMORY,
 * CUDA_ERROR_OPERATING_SYSTEM. Any thread, as below. */
CUresult meeting_export(enum meeting_kind kind, const void *native, struct rc_wire_shared *handle);
/* The same for an object that the driver exports as a file, which this function owns from then on, also if it fails. native: of
 * the caller's choice, different for each object. The file stays open until meeting_end. */
CUresult meeting_export_file(enum meeting_kind kind, const void *native, int file, struct rc_wire_shared *handle);
/* The object ends; if it was exported, its handle ends too. */
void meeting_end(enum meeting_kind kind, const void *native);
/*
 * The same for an object of meeting_export_file that is charged with bytes of memory of that GPU. True: a client holds the
 * object's handle, so the file stays open and the handle valid until no client holds it, and then the charge is released here.
 */
bool meeting_end_held(enum meeting_kind kind, const void *native, uint32_t gpu, uint64_t bytes);

/* Serves a connection with the purpose RC_DOOR_HANDLE, and closes it: its client holds an ALLOCATION's handle until the
 * connection ends. */
void meeting_hold(const rc_door_peer_t *peer);
/* True if a client holds a handle. Any thread, without a lock. */
bool meeting_is_held(void);
/* Waits until no client holds a handle. */
void meeting_wait(void);

/*
 * Exchanges a client's handle for the driver's, and offers its file to the driver for the calling thread's next call.
 * meeting_done ends that. CUDA_ERROR_INVALID_HANDLE: it is no handle of this kind, its worker has ended, or belongs to
 * somebody else; then meeting_done must not be called.
 */
struct meeting_found {
	uint8_t native[CU_IPC_HANDLE_SIZE];
	int file; /* or -1 */
};
CUresult meeting_import(enum meeting_kind kind, const struct rc_wire_shared *handle, struct meeting_found *found);
void meeting_done(struct meeting_found *found);

#endif
