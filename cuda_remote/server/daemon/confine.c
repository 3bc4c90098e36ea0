/* SPDX-License-Identifier: BSD-3-Clause */
/* Drops what a worker does not need: privileges, capabilities, resources. */
#define _GNU_SOURCE /* setresuid, getgrouplist */
#include "cuda_remote/server/daemon/confine.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DESCRIPTORS 8192 /* of a worker: some for each thread of its client, and the driver's */
#define THREADS 16384    /* of the worker's user, all processes together */

/* ---- resources ---- */

/* Lowers a resource limit, soft and hard. */
static void limit_to(__rlimit_resource_t resource, rlim_t most)
{
	struct rlimit limit;
	if (getrlimit(resource, &limit))
		return;
	if (limit.rlim_max > most)
		limit.rlim_max = most;
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(resource, &limit);
}

static void limit_resources(void)
{
	limit_to(RLIMIT_CORE, 0);
	limit_to(RLIMIT_NOFILE, DESCRIPTORS);
	limit_to(RLIMIT_NPROC, THREADS);
	/* InfiniBand locks memory. Root needs no limit to do so, but the users of its workers do. */
	struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };
	if (geteuid() || setrlimit(RLIMIT_MEMLOCK, &all))
		limit_to(RLIMIT_MEMLOCK, RLIM_INFINITY);
}

/* ---- user and capabilities ---- */

/* Changes the real, effective and saved user and the groups, for good. The driver is loaded; nothing needs root now. */
static int become(uid_t uid)
{
	const struct passwd *user = getpwuid(uid);
	gid_t group = user ? user->pw_gid : (gid_t)uid;
	if (user ? initgroups(user->pw_name, group) : setgroups(0, NULL))
		return -errno;
	if (setresgid(group, group, group) || setresuid(uid, uid, uid))
		return -errno;
	return getuid() == uid && geteuid() == uid ? 0 : -EPERM;
}

/* Drops the capabilities that an exec could give back. Without CAP_SETPCAP this fails; then no_new_privs, which
 * drop_privileges sets, has the same effect. */
static void drop_bounding_set(void)
{
	for (unsigned long capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
		(void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* Capabilities of a root worker. Its client is root and has capabilities, so reading the client's memory needs this. */
#define ROOT_KEEPS CAP_TO_MASK(CAP_SYS_PTRACE)
/* Capabilities of a worker that is to become another user. */
#define CHANGE_NEEDS (CAP_TO_MASK(CAP_SETUID) | CAP_TO_MASK(CAP_SETGID) | CAP_TO_MASK(CAP_SETPCAP))

/* Drops all capabilities of this thread but those in keep. */
static int drop_capabilities(uint32_t keep)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3];
	if (syscall(SYS_capget, &header, sets))
		return -errno;
	uint32_t kept = sets[0].permitted & keep;
	memset(sets, 0, sizeof sets);
	sets[0].permitted = sets[0].effective = kept;
	return syscall(SYS_capset, &header, sets) ? -errno : 0;
}

static int drop_privileges(const struct confinement *limits)
{
	int error = 0;
	drop_bounding_set();
	if (geteuid() == 0 && limits->uid)
		error = become(limits->uid);
	if (!error)
		error = drop_capabilities(limits->uid == 0 ? ROOT_KEEPS : 0);
	if (!error && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		error = -errno;
	return error;
}

/* ---- the whole ---- */

int confine_early(bool root_only)
{
	limit_resources();
	return drop_capabilities(root_only ? ROOT_KEEPS : ROOT_KEEPS | CHANGE_NEEDS);
}

void confine_prepare(uid_t uid)
{
	gid_t groups[1];
	int n = 1;
	if (geteuid())
		return; /* it stays the user that it is */
	const struct passwd *user = getpwuid(uid);
	if (user)
		(void)getgrouplist(user->pw_name, user->pw_gid, groups, &n);
}

int confine(const struct confinement *limits)
{
	int error = drop_privileges(limits);
	if (!error && prctl(PR_SET_DUMPABLE, limits->readable || CONFINE_SANITIZED ? 1 : 0, 0, 0, 0))
		error = -errno;
	if (error)
		return error;
	/* The Yama module, if active, protects processes of one user from each other. If it is not, this call fails. */
	if (limits->readable && limits->reach > 0)
		(void)prctl(PR_SET_PTRACER, limits->reach, 0, 0, 0);
	return 0;
}
