/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a worker process: receives its plan, loads the driver, reports, confines itself, serves its client. */
#include "cuda_remote/server/daemon/child.h"

#include "cuda_remote/server/daemon/confine.h"
#include "cuda_remote/server/daemon/filter.h"
#include "cuda_remote/server/worker.h"
#include "rdma_channel/base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

int child_follow(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return -errno;
	return getppid() == parent ? 0 : -ESRCH;
}

static int prepare(const struct child_plan *plan)
{
	struct child_report report;
	void *usage = mmap(NULL, sizeof(struct worker_usage), PROT_READ | PROT_WRITE, MAP_SHARED, CHILD_USAGE, 0);
	if (usage != MAP_FAILED)
		worker_count_in(usage);
	worker_limit_memory(plan->memory, GPUS_MAX);
	int error = worker_prepare(plan->driver, plan->gpu, &report.gpus);
	if (error)
		return error;
	return send(CHILD_CONTROL, &report, sizeof report, MSG_NOSIGNAL) == (ssize_t)sizeof report ? 0 : -errno;
}

/* Gives the worker the rights of its client's user, for good. */
static int confine_for(const struct child_plan *plan, const rc_door_peer_t *peer, pid_t daemon)
{
	bool known = !peer->by_key && peer->uid != (uid_t)-1;
	struct confinement limits = { .uid = known ? peer->uid : plan->other_uid };
	/* Root of another host is not root here. */
	if (!limits.uid && (!plan->root_workers || peer->by_munge))
		limits.uid = plan->other_uid;
	if (geteuid())
		limits.uid = geteuid();
	/* Single copy needs the client to read the worker's memory. It may if client and daemon have the same user. */
	limits.readable = known && !peer->by_munge && limits.uid == peer->uid && limits.uid == geteuid();
	limits.reach = !known || peer->by_munge ? CONFINE_REACH_NONE : peer->pid ? peer->pid : CONFINE_REACH_ANY;
	int error = confine(&limits);
	if (!error)
		error = child_follow(daemon);
	if (!error && plan->seccomp)
		error = filter_load(limits.reach);
	if (error) {
		hr_log(HR_LOG_ERROR, "worker cannot become user %u: %s", (unsigned)limits.uid, strerror(-error));
		rc_door_peer_refuse(peer, RC_DOOR_FAILED, "the server cannot start a worker for this user");
	}
	return error;
}

int child_run(void)
{
	pid_t daemon = getppid();
	struct child_plan plan;
	rc_door_peer_t peer;
	prctl(PR_SET_NAME, "headrace-worker");
	if (recv(CHILD_CONTROL, &plan, sizeof plan, 0) != (ssize_t)sizeof plan)
		return EXIT_FAILURE;
	plan.driver[sizeof plan.driver - 1] = 0;
	if (confine_early(plan.root_only) || prepare(&plan) || (plan.seccomp && filter_prepare()))
		return EXIT_FAILURE;
	confine_prepare(plan.other_uid);
	int status = rc_door_peer_receive(CHILD_CONTROL, &peer);
	if (status <= 0)
		return status ? EXIT_FAILURE : EXIT_SUCCESS;
	if (confine_for(&plan, &peer, daemon))
		return EXIT_FAILURE;
	return worker_serve(&peer, CHILD_CONTROL) ? EXIT_FAILURE : EXIT_SUCCESS;
}
