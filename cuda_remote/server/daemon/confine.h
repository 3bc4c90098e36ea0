/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker may do once it has a client: the rights of that client's user, no capability, no new privileges,
 * limited resources. It is for good. Its system calls: filter.h.
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
	uid_t uid;     /* to become; as root: root with CAP_SYS_PTRACE as its only capability */
	bool readable; /* stays "dumpable": processes of the same user may read its memory */
	pid_t reach;   /* the process whose memory it may read and write as far as the kernel lets it, or as above */
};

/*
 * At the start of the process, while it has one thread: no core file; of root's capabilities those that confine needs
 * to become another user. (Capabilities are each thread's own: a thread that the driver starts keeps what it began
 * with, until a change of user takes it from all of them.) root_only: no other user will come; -EPERM and the like.
 */
int confine_early(bool root_only);

/* For all threads of the process. Negated errno. */
int confine(const struct confinement *limits);

#endif
