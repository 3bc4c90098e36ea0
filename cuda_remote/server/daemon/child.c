/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* setresuid */
#include "cuda_remote/server/daemon/child.h"

#include "cuda_remote/server/worker.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int child_follow(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

/* For good: real, effective and saved user and the groups. The driver is loaded by now, so nothing needs root any
 * more. */
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

static int become_guest(const struct child_plan *plan, const rc_door_peer_t *guest, pid_t daemon)
{
	if (geteuid())
		return 0;
	uid_t uid = guest->uid == (uid_t)-1 ? plan->other_uid : guest->uid;
	int error = uid ? become(uid) : 0;
	if (!error)
		error = child_follow(daemon);
	if (error) {
		hr_log(HR_LOG_ERROR, "worker cannot become user %u: %s", (unsigned)uid, strerror(-error));
		rc_door_peer_refuse(guest, RC_DOOR_FAILED, "the server cannot start a worker for this user");
	}
	return error;
}

int child_run(const struct child_plan *plan)
{
	pid_t daemon = getppid();
	struct child_report report;
	rc_door_peer_t guest;
	if (worker_prepare(plan->driver, RC_SERVER_ALL_GPUS, &report.gpus))
		return EXIT_FAILURE;
	if (send(plan->control, &report, sizeof report, MSG_NOSIGNAL) != (ssize_t)sizeof report)
		return EXIT_FAILURE;
	int status = rc_door_peer_receive(plan->control, &guest);
	if (status <= 0)
		return status ? EXIT_FAILURE : EXIT_SUCCESS;
	if (become_guest(plan, &guest, daemon))
		return EXIT_FAILURE;
	return worker_serve(&guest, plan->control) ? EXIT_FAILURE : EXIT_SUCCESS;
}
