/* SPDX-License-Identifier: BSD-3-Clause */
/* Active target synchronisation: fence; post, start, complete, wait. */
#include "adi/bindings/functions.h"
#include "adi/collective/schedule.h"
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <string.h>

static int sync_error(const struct adi_win *win, const char *what)
{
	return adi_error(MPI_ERR_RMA_SYNC, "%s (window \"%s\")", what, win->name);
}

/* A rank that waits in a shared segment does not handle messages at first. So the segment is only for windows whose operations
 * are not messages. */
static int barrier(const struct adi_win *win)
{
	return win->direct ? mpi_barrier(win->comm) : adi_barrier(win->comm);
}

int mpi_win_fence(int assert, struct adi_win *win)
{
	const int valid = MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE | MPI_MODE_NOSUCCEED;
	if (assert & ~valid)
		return adi_error(MPI_ERR_ASSERT,
				 "assert is %d; valid: MPI_MODE_NOSTORE, _NOPUT, _NOPRECEDE, _NOSUCCEED and combinations", assert);
	if ((win->epoch != ADI_EPOCH_NONE && win->epoch != ADI_EPOCH_FENCE) || win->posted)
		return sync_error(win, "an epoch of another kind is open");
	if (win->fence_used && assert & MPI_MODE_NOPRECEDE)
		return sync_error(win, "MPI_MODE_NOPRECEDE, but operations precede");
	int class = win->fence_used ? window_flush(win, -1) : MPI_SUCCESS;
	atomic_thread_fence(memory_order_seq_cst);
	int error = barrier(win);
	atomic_thread_fence(memory_order_seq_cst);
	win->epoch = assert & MPI_MODE_NOSUCCEED ? ADI_EPOCH_NONE : ADI_EPOCH_FENCE;
	win->fence_used = false;
	return class ? class : error;
}

/* The rank in the window of a process of a group; -1: no member, with the error. */
static int rank_of(const struct adi_win *win, const struct adi_group *group, int i)
{
	int rank = adi_group_rank(win->comm->local, adi_group_world(group, i));
	if (rank != MPI_UNDEFINED)
		return rank;
	adi_error(MPI_ERR_GROUP, "rank %d of the group is no process of window \"%s\"", i, win->name);
	return -1;
}

static int group_check(const struct adi_win *win, const struct adi_group *group)
{
	for (int i = 0; i < group->size; i++)
		if (rank_of(win, group, i) < 0)
			return MPI_ERR_GROUP;
	return MPI_SUCCESS;
}

/* MPI_MODE_NOCHECK changes nothing: a post is one small message. */
int mpi_win_post(struct adi_group *group, int assert, struct adi_win *win)
{
	if (assert & ~(MPI_MODE_NOCHECK | MPI_MODE_NOSTORE | MPI_MODE_NOPUT))
		return adi_error(MPI_ERR_ASSERT, "assert is %d; valid: MPI_MODE_NOCHECK, _NOSTORE, _NOPUT and combinations",
				 assert);
	if (win->posted)
		return sync_error(win, "an exposure epoch is open already");
	int class = group_check(win, group);
	if (class)
		return class;
	win->posted = true;
	win->completes = group->size;
	for (int i = 0; i < group->size; i++)
		win->origin[rank_of(win, group, i)].exposed = true;
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < group->size; i++) {
		int rank = rank_of(win, group, i), error = MPI_SUCCESS;
		if (rank == win->comm->rank)
			win->target[rank].posts++;
		else
			error = window_send_control(win, rank, WINDOW_POST, 0);
		class = class ? class : error;
	}
	return class;
}

int window_on_post(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	win->target[control.sender].posts++;
	return 0;
}

int mpi_win_start(struct adi_group *group, int assert, struct adi_win *win)
{
	if (assert & ~MPI_MODE_NOCHECK)
		return adi_error(MPI_ERR_ASSERT, "assert is %d; valid: 0 or MPI_MODE_NOCHECK", assert);
	if (win->epoch != ADI_EPOCH_NONE && (win->epoch != ADI_EPOCH_FENCE || win->fence_used))
		return sync_error(win, "an access epoch is open");
	int class = group_check(win, group);
	for (int i = 0; !class && i < group->size; i++) {
		int rank = rank_of(win, group, i);
		struct adi_win_target *target = &win->target[rank];
		while (!class && target->posts == 0) {
			class = window_member_check(win, rank);
			if (!class)
				adi_progress();
		}
		if (!class) {
			target->posts--;
			target->started = true;
		}
	}
	if (class)
		return class;
	adi_object_retain(&group->object);
	win->started = group;
	win->epoch = ADI_EPOCH_START;
	return MPI_SUCCESS;
}

int mpi_win_complete(struct adi_win *win)
{
	if (win->epoch != ADI_EPOCH_START)
		return sync_error(win, "MPI_Win_start was not called");
	int class = MPI_SUCCESS;
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < win->started->size; i++) {
		int rank = rank_of(win, win->started, i), error = window_adapter_wait(win, rank);
		win->target[rank].started = false;
		win->target[rank].dirty = false;
		if (rank == win->comm->rank)
			win->completes--;
		else if (!error)
			error = window_send_control(win, rank, WINDOW_COMPLETE, 0);
		class = class ? class : error;
	}
	int error = window_flush_local(win, -1);
	adi_group_release(win->started);
	win->started = NULL;
	win->epoch = ADI_EPOCH_NONE;
	return class ? class : error;
}

int window_on_complete(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	struct adi_win_origin *origin = &win->origin[control.sender];
	origin->completes++;
	if (origin->pending == 0)
		window_origin_idle(origin);
	return 0;
}

/* Ends the exposure epoch, whose operations are complete. */
static void exposure_end(struct adi_win *win)
{
	atomic_thread_fence(memory_order_seq_cst);
	win->posted = false;
	for (int i = 0; i < win->comm->size; i++)
		win->origin[i].exposed = false;
}

/* The error of a process of the exposure epoch that has died, or MPI_SUCCESS. One that has closed normally has completed before. */
static int exposure_broken(struct adi_win *win)
{
	for (int i = 0; i < win->comm->size; i++) {
		int error = win->target[i].peer->error;
		if (win->origin[i].exposed && error && error != -ESHUTDOWN)
			return window_peer_error(win, i, error);
	}
	return MPI_SUCCESS;
}

int mpi_win_wait(struct adi_win *win)
{
	if (!win->posted)
		return sync_error(win, "MPI_Win_post was not called");
	while (win->completes > 0) {
		int class = exposure_broken(win);
		if (class)
			return class;
		adi_progress();
	}
	exposure_end(win);
	return MPI_SUCCESS;
}

int mpi_win_test(struct adi_win *win, int *flag)
{
	if (!win->posted)
		return sync_error(win, "MPI_Win_post was not called");
	if (win->completes > 0)
		adi_poll();
	*flag = win->completes == 0;
	if (!*flag)
		return exposure_broken(win);
	exposure_end(win);
	return MPI_SUCCESS;
}
