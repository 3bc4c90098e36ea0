/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Confines a worker once it has a client: the rights of that client's user, no capability, no new privileges, limited
 * resources. This cannot be undone. The worker's system calls: filter.h.
 */
#ifndef RC_DAEMON_CONFINE_H
#define RC_DAEMON_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/* A sanitizer's own work (LeakSanitizer stops the process's threads by ptrace) needs what is denied here. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define CONFINE_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define CONFINE_SANITIZED true
#endif
#endif
#ifndef CONFINE_SANITIZED
#define CONFINE_SANITIZED false
#endif

enum { CONFINE_REACH_NONE = -1, CONFINE_REACH_ANY = 0 };

struct confinement {
	uid_t uid;     /* user to become; 0: stay root, with CAP_SYS_PTRACE as the only capability */
	bool readable; /* the worker stays "dumpable": processes of the same user may read its memory */
	pid_t reach;   /* the process whose memory the worker may read and write if the kernel permits; or as above */
};

/*
 * To be called at the start of the process, while it has one thread. No core file; of root's capabilities only those
 * that confine needs to become another user. (Each thread has its own capabilities. A thread that the driver starts
 * keeps those it began with, until a change of user takes them from all threads.) root_only: all clients are root, so
 * no change of user will be needed. Negated errno.
 */
int confine_early(bool root_only);

/* Before there is a client: has the C library load what it needs to look users and groups up. uid: any user. */
void confine_prepare(uid_t uid);

/* For all threads of the process. Negated errno. */
int confine(const struct confinement *limits);

#endif
