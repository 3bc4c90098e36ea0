/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions of the process, one for each server; and what all functions of the client return. Functions return CUresult; outputs
 * come last and are set only on success.
 */
#ifndef RC_CLIENT_SESSION_H
#define RC_CLIENT_SESSION_H

#include "cuda_remote/client/done.h"
#include "cuda_remote/door/server_name.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rc_early_table;
struct rc_link;

/* Of a hook check_*: the call is answered with success, and nothing is sent. */
#define RC_ANSWERED ((CUresult)-1)

/* Every call returns this once the worker is gone. Only a new process gets a new session. */
#define RC_LOST CUDA_ERROR_DEVICE_UNAVAILABLE

struct rc_device {
	struct rc_wire_device wire;
	/* Limits that a launch is checked against. */
	uint32_t max_grid[3], max_block[3], max_threads, max_shared, max_shared_optin;
	struct rc_session *session;
	int ordinal;  /* the server's number of the device; the program's number is the index in rc_process.device */
	int position; /* in CUDA_VISIBLE_DEVICES */
	uint64_t primary; /* handle of its primary context */
	/* Of the primary context. The mutex of context.c guards them. */
	unsigned retained, flags;
};

struct rc_session {
	uint64_t numbered __attribute__((aligned(64))); /* calls numbered so far; atomic */
	uint64_t arrived __attribute__((aligned(64)));  /* messages of the data connection that are received or answered; atomic */
	bool lost;                                      /* a connection broke; atomic */
	bool sick;                /* a call returned an error that stays with its context; atomic */
	bool shared;              /* another process may use device memory of the session; atomic */
	bool several;             /* calls were made in more than one context; atomic */
	uint32_t only;            /* index of the first context that a call was made in; atomic */
	uint64_t settled;         /* while there is one context: the work of all calls up to this number is complete; atomic */
	uint64_t heard;           /* a call that waits and is no query has told the program of all failures of calls up to this
				   * number, but for those of work that was not complete; what complete work of these calls has
				   * printed is out; atomic */
	bool left;                /* a context has ended; atomic */
	struct rc_held held;
	struct rc_track other;    /* of the calls that give a stream work and cannot hold it */
	uint64_t asked;           /* event up to which the program asked for a time last; atomic */
	uint64_t earlies;         /* early copies that are kept; atomic, as the next */
	uint64_t early_stream;    /* their only stream (rc_track_stream), or RC_TRACK_SEVERAL */
	struct rc_early_table *early; /* under the lock of early.c; NULL: there were none */
	unsigned index;           /* of the session in the process, of the server in the list */
	int driver_version;
	uint32_t gpu;             /* the only GPU of the server that the list names, or RC_SERVER_ALL_GPUS */
	uint64_t staging, staged; /* bytes of asynchronous copies to the host: allowed, in progress (atomic) */
	uint64_t ending, ended;   /* copies to the device whose last bytes the data connection's thread has begun, and ended, to
				   * send; atomic */
	uint64_t pinned;          /* bytes of pinned memory that the worker maps, if it is on this host */
	uint64_t primary;         /* handle of the primary context of the server's device 0 */
	struct rc_link *first;    /* the first connection; host functions use it */
	struct rc_link *idle;     /* connections that ended threads have left; this and their number are under a lock of link.c */
	unsigned idles;           /* how many */
	struct rc_link *data;     /* the data connection (data/), or NULL; atomic */
	bool data_tried;          /* to open it; under the lock of data/connection.c */
	struct rc_wire_fetch fetch[4]; /* of the data connection's thread: what the worker has asked for */
	unsigned fetches;
	uint8_t *gathered;        /* RC_CHUNK_MAX bytes for scattered sources, or NULL; of that thread too */
	uint16_t *call_number;    /* NULL, or of each call of this build the server's number; 0: the server does not have it */
	bool local;               /* the server is reached over a Unix socket, so it is on this host */
	bool encrypted;           /* TCP connections of the server's worker for this process are to be encrypted */
	bool memory_opened;       /* rc_session_memory was called; under the lock of pinned.c, as the next */
	int memory;               /* socket over which memory is passed to the worker; -1: there is none */
	/* Of the thread that leads on the first connection (hostfn.c). */
	struct rc_host_request {
		struct rc_wire_host wire;
		uint8_t *bytes; /* that the worker sent with it, or NULL; allocated */
	} request[16];
	int requests;
	unsigned serving;         /* threads of hostfn.c; under the lock of hostfn.c, as the next */
	bool led;                 /* one of them leads */
};

struct rc_process {
	unsigned sessions;
	struct rc_session session[RC_SERVER_MAX];
	int devices;
	struct rc_device *device; /* of all sessions, in the order of the list */
	int driver_version;       /* the oldest */
};

/* CUDA_SUCCESS after cuInit; in a child of fork, and before, CUDA_ERROR_NOT_INITIALIZED. */
CUresult rc_process_get(struct rc_process **process);
/* This thread enters (true) or leaves (false) a host function of the program, in which CUDA forbids calls:
 * rc_callback_check returns CUDA_ERROR_NOT_PERMITTED there. */
void rc_callback_enter(bool inside);
CUresult rc_callback_check(void);
/* The device with this number in the program; CUDA_ERROR_INVALID_DEVICE if there is none. */
CUresult rc_device_get(CUdevice device, struct rc_device **found);
/* An attribute as the server described it; 0 if the server did not know it, or if a client cannot use the ability. */
int rc_device_attribute(const struct rc_device *device, CUdevice_attribute attribute);
/* Opens another connection to this session's worker. */
CUresult rc_session_join(struct rc_session *session, struct rc_link **link);
/* Opens the socket over which pinned memory is passed to this session's worker, unless it is open. Negated errno: the worker
 * is on another host, or the server refuses; then another call does not try again. */
int rc_session_memory(struct rc_session *session);
/* Opens a connection with the purpose RC_DOOR_HANDLE, for the caller. Negated errno: the server refuses, or the connection
 * would be encrypted. */
int rc_session_handle(const struct rc_session *session, int *fd);

#endif
