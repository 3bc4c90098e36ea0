/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a daemon has counted since its start. It travels in struct door_report and to the process that answers the
 * monitoring system. What a worker has counted (calls, launches, bytes, used memory, connections) is the worker's word.
 */
#ifndef RC_DOOR_COUNTERS_H
#define RC_DOOR_COUNTERS_H

#include <stdint.h>

#define RC_COUNTERS_GPUS 64

/* Why a client did not get a session, or a connection of one. */
enum rc_refused {
	RC_REFUSED_VERSION,    /* another protocol version or build */
	RC_REFUSED_DENIED,     /* wrong key, no key, another user */
	RC_REFUSED_ENCRYPTION, /* one side demands encryption and the other's build has none */
	RC_REFUSED_MALFORMED,  /* a message breaks the protocol */
	RC_REFUSED_DROPPED,    /* hung up, took too long, or had to make place for others, in the handshake */
	RC_REFUSED_NO_GPU,     /* no GPU of that index */
	RC_REFUSED_NO_SESSION, /* a further connection, of no session */
	RC_REFUSED_LIMIT,      /* a limit of sessions */
	RC_REFUSED_EXCLUSIVE,  /* another session has an exclusive GPU */
	RC_REFUSED_NO_WORKER,  /* no worker in time, or too many clients wait for one, or none starts */
	RC_REFUSED_ENDING,     /* the daemon drains or ends */
	RC_REFUSED_FAILED,     /* the daemon failed */
	RC_REFUSED_KINDS
};

/* How a worker ended. */
enum rc_exit {
	RC_EXIT_CLIENT, /* its client had ended */
	RC_EXIT_ERROR,  /* its connection broke, or the client broke the protocol */
	RC_EXIT_SIGNAL, /* killed by a signal: a crash */
	RC_EXIT_FILTER, /* killed for a system call that no worker makes */
	RC_EXIT_START,  /* could not start */
	RC_EXIT_UNUSED, /* ended before a client came */
	RC_EXIT_DAEMON, /* the daemon ended it: idle session, or a ready worker that is not wanted any more */
	RC_EXIT_KINDS
};

struct rc_gpu_counters {
	uint64_t sessions;  /* that may use this GPU, now */
	uint64_t used;      /* bytes of its memory that they have allocated */
	uint64_t granted;   /* bytes charged to their quotas: allocated, or set aside for what a client allocates next */
	uint64_t quota;     /* of each new session; 0: none */
	uint64_t exclusive; /* 1: at most one session */
};

struct rc_counters {
	uint64_t uptime_us;
	uint64_t sessions, sessions_total;       /* now; since the start */
	uint64_t workers_ready;
	uint64_t handshakes_total;               /* connections that the daemon has accepted */
	uint64_t connections, connections_total; /* of sessions: now; since the start */
	uint64_t calls_total, kernel_launches_total, graph_launches_total;
	uint64_t to_devices_total, from_devices_total; /* bytes copied */
	uint64_t refused_total[RC_REFUSED_KINDS];
	uint64_t exits_total[RC_EXIT_KINDS];
	uint64_t gpus;                           /* elements of gpu that count, at most RC_COUNTERS_GPUS */
	struct rc_gpu_counters gpu[RC_COUNTERS_GPUS];
};

_Static_assert(sizeof(struct rc_counters) == 8 * (13 + 12 + 7 + 5 * RC_COUNTERS_GPUS), "wire");

/* One word, for a label. */
const char *rc_refused_name(enum rc_refused reason);
const char *rc_exit_name(enum rc_exit cause);

#endif
