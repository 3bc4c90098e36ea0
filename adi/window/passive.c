/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Passive target synchronisation: locks and flushes. In a direct window the lock of each process is a word in the segment.
 * Otherwise each process manages the lock of its memory: it grants requests in the order of arrival. A lock that a dead process
 * holds stays taken, and those that would have to wait for it get an error. MPI_Win_lock_all gets
 * the lock of a target when it is used first, so that it needs no connection to targets that are not used; the locks of a
 * direct window, whose memory the program may access without calling MPI, it gets at once.
 */
#include "adi/bindings/functions.h"
#include "adi/core/entry.h"
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

#define CALLS_PER_POLL 64
#define SPINS 100 /* looks at a lock in shared memory before this process gives the processor away */

/* ---- the manager of this process's lock ---- */

static bool lock_free_for(const struct adi_win *win, int type)
{
	return !win->locked_exclusive && (type == MPI_LOCK_SHARED || win->locked_shared == 0);
}

static void lock_grant(struct adi_win_origin *origin, int type)
{
	struct adi_win *win = origin->win;
	origin->lock = type;
	if (type == MPI_LOCK_EXCLUSIVE)
		win->locked_exclusive = true;
	else
		win->locked_shared++;
	if (origin->rank == win->comm->rank)
		win->target[origin->rank].granted = true;
	else
		window_send_control(win, origin->rank, WINDOW_GRANT, 0);
}

/* Whether a process that has died holds a lock that excludes one of this type. */
static bool lock_lost_for(const struct adi_win *win, int type)
{
	for (int i = 0; win->dead_holders > 0 && i < win->comm->size; i++)
		if (win->origin[i].dead && (type == MPI_LOCK_EXCLUSIVE || win->origin[i].lock == MPI_LOCK_EXCLUSIVE))
			return true;
	return false;
}

static void lock_refuse(struct adi_win_origin *origin)
{
	struct adi_win *win = origin->win;
	struct adi_win_target *self = &win->target[win->comm->rank];
	if (origin->rank == win->comm->rank) {
		self->granted = true;
		self->refused = MPI_ERR_PROC_FAILED;
	} else {
		window_send_control(win, origin->rank, WINDOW_GRANT, MPI_ERR_PROC_FAILED);
	}
}

static void lock_request(struct adi_win_origin *origin, int type)
{
	struct adi_win *win = origin->win;
	if (!win->waiting && lock_free_for(win, type)) {
		lock_grant(origin, type);
		return;
	}
	if (lock_lost_for(win, type)) {
		lock_refuse(origin);
		return;
	}
	origin->wants = type;
	origin->next = NULL;
	*win->waiting_end = origin;
	win->waiting_end = &origin->next;
}

static void lock_serve(struct adi_win *win)
{
	while (win->waiting) {
		struct adi_win_origin *origin = win->waiting;
		bool available = lock_free_for(win, origin->wants);
		if (!available && !lock_lost_for(win, origin->wants))
			return;
		win->waiting = origin->next;
		if (!win->waiting)
			win->waiting_end = &win->waiting;
		int type = origin->wants;
		origin->wants = 0;
		if (available)
			lock_grant(origin, type);
		else
			lock_refuse(origin);
	}
}

static void lock_release(struct adi_win_origin *origin)
{
	struct adi_win *win = origin->win;
	if (origin->lock == MPI_LOCK_EXCLUSIVE)
		win->locked_exclusive = false;
	else if (origin->lock == MPI_LOCK_SHARED)
		win->locked_shared--;
	origin->lock = 0;
	lock_serve(win);
}

void window_origin_died(struct adi_win *win, int rank)
{
	struct adi_win_origin *origin = &win->origin[rank];
	for (struct adi_win_origin **link = &win->waiting; *link; link = &(*link)->next)
		if (*link == origin) {
			*link = origin->next;
			if (!*link)
				win->waiting_end = link;
			break;
		}
	origin->wants = 0;
	if (origin->lock && !origin->dead) {
		origin->dead = true;
		win->dead_holders++;
	}
	lock_serve(win);
}

void window_origin_idle(struct adi_win_origin *origin)
{
	struct adi_win *win = origin->win;
	if (origin->release) {
		origin->release = false;
		lock_release(origin);
	}
	win->completes -= origin->completes;
	origin->completes = 0;
	for (; origin->flushes > 0; origin->flushes--) {
		window_send_control(win, origin->rank, WINDOW_ACK, (uint32_t)origin->class);
		origin->class = MPI_SUCCESS;
	}
}

/* ---- messages ---- */

struct adi_win *window_control_read(const ch3_incoming_t *incoming, struct window_control *control)
{
	if (incoming->header_len == sizeof *control && incoming->payload_len == 0) {
		memcpy(control, incoming->header, sizeof *control);
		return window_of_packet(incoming, control->slot, control->sender);
	}
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent a message of a window with an invalid length", peer->rank);
	return NULL;
}

int window_violation(const ch3_incoming_t *incoming, const char *what)
{
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent %s to a window", peer->rank, what);
	return -EPROTO;
}

int window_on_lock(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	struct adi_win_origin *origin = &win->origin[control.sender];
	if (origin->lock || origin->wants || (control.value != MPI_LOCK_EXCLUSIVE && control.value != MPI_LOCK_SHARED))
		return window_violation(incoming, "an invalid lock request");
	lock_request(origin, (int)control.value);
	return 0;
}

int window_on_grant(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	if (control.value && !adi_class_name((int)control.value))
		return window_violation(incoming, "an invalid answer to a lock request");
	win->target[control.sender].granted = true;
	win->target[control.sender].refused = (int)control.value;
	return 0;
}

int window_on_flush(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	struct adi_win_origin *origin = &win->origin[control.sender];
	if (control.value > 1 || (control.value == 1 && (!origin->lock || origin->release)))
		return window_violation(incoming, "an invalid flush");
	origin->flushes++;
	origin->release |= control.value == 1;
	if (origin->pending == 0)
		window_origin_idle(origin);
	return 0;
}

int window_on_ack(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	struct adi_win_target *target = &win->target[control.sender];
	if (target->acks == 0 || (control.value && !adi_class_name((int)control.value)))
		return window_violation(incoming, "an invalid answer to a flush");
	target->acks--;
	if (!target->class)
		target->class = (int)control.value;
	return 0;
}

/* ---- locks of targets ---- */

/* The byte that says that a process has, or is getting, a shared lock of a target. */
static char *held_by(const struct adi_win *win, int origin, int target)
{
	return &win->held[(size_t)origin * window_row(win->comm->size) + (size_t)target];
}

/* The error class if the target, or a process that holds its lock, has died. */
static int holders_check(struct adi_win *win, int rank)
{
	int held = atomic_load_explicit(&win->control[rank].lock, memory_order_relaxed);
	int class = window_member_check(win, rank);
	if (!class && held < 0)
		return window_member_check(win, -1 - held);
	for (int i = 0; !class && held > 0 && i < win->comm->size; i++)
		if (__atomic_load_n(held_by(win, i, rank), __ATOMIC_RELAXED))
			class = window_member_check(win, i);
	return class;
}

static int lock_try(struct adi_win *win, int rank, int type)
{
	atomic_int *lock = &win->control[rank].lock;
	int64_t since = 0;
	for (int spins = 0;; spins++) {
		int held = atomic_load_explicit(lock, memory_order_relaxed);
		int wanted = type == MPI_LOCK_EXCLUSIVE ? -1 - win->comm->rank : held + 1;
		bool available = type == MPI_LOCK_EXCLUSIVE ? held == 0 : held >= 0;
		/* Orders the holder's accesses after it; pairs with the release in unlock_direct. */
		if (available &&
		    atomic_compare_exchange_weak_explicit(lock, &held, wanted, memory_order_acquire, memory_order_relaxed))
			return MPI_SUCCESS;
		if (!adi_job.oversubscribed && spins < SPINS)
			continue;
		since = since ? since : adi_now_ms();
		int class = adi_now_ms() - since >= WINDOW_DOUBT_MS ? holders_check(win, rank) : MPI_SUCCESS;
		if (class)
			return class;
		adi_poll();
		adi_yield();
		sched_yield();
	}
}

static int lock_direct(struct adi_win *win, int rank, int type)
{
	/* Relaxed: whoever reads it after this process has died reads a value that nobody changes any more. */
	char *shared = held_by(win, win->comm->rank, rank);
	__atomic_store_n(shared, type == MPI_LOCK_SHARED, __ATOMIC_RELAXED);
	int class = lock_try(win, rank, type);
	if (class)
		__atomic_store_n(shared, 0, __ATOMIC_RELAXED);
	return class;
}

static void unlock_direct(struct adi_win *win, int rank, int type)
{
	atomic_int *lock = &win->control[rank].lock;
	if (type == MPI_LOCK_EXCLUSIVE)
		atomic_store_explicit(lock, 0, memory_order_release);
	else
		atomic_fetch_sub_explicit(lock, 1, memory_order_release);
	__atomic_store_n(held_by(win, win->comm->rank, rank), 0, __ATOMIC_RELAXED);
}

static int lock_get(struct adi_win *win, int rank, int type)
{
	struct adi_win_target *target = &win->target[rank];
	int class = MPI_SUCCESS;
	if (win->direct) {
		class = lock_direct(win, rank, type);
	} else {
		target->granted = false;
		target->refused = MPI_SUCCESS;
		if (rank == win->comm->rank)
			lock_request(&win->origin[rank], type);
		else
			class = window_send_control(win, rank, WINDOW_LOCK, (uint32_t)type);
		while (!class && !target->granted) {
			if (target->peer->error)
				class = window_peer_error(win, rank, target->peer->error);
			else
				adi_progress();
		}
		if (!class && target->refused)
			class = adi_error(target->refused, "a process that has died holds the lock of rank %d of window \"%s\"",
					  rank, win->name);
	}
	if (!class) {
		target->lock = LOCK_HELD;
		target->lock_type = type;
	}
	return class;
}

/* Starts to give up the lock of a target. window_flush waits for the end. */
static int unlock_start(struct adi_win *win, int rank)
{
	struct adi_win_target *target = &win->target[rank];
	bool held = target->lock == LOCK_HELD;
	target->lock = LOCK_NONE;
	if (!held)
		return MPI_SUCCESS;
	if (win->direct) {
		unlock_direct(win, rank, target->lock_type);
		return MPI_SUCCESS;
	}
	if (rank == win->comm->rank) {
		lock_release(&win->origin[rank]);
		return MPI_SUCCESS;
	}
	/* The adapter's operations must not run on without the lock. */
	int class = window_adapter_wait(win, rank);
	if (!class)
		class = window_send_control(win, rank, WINDOW_FLUSH, 1);
	if (class)
		return class;
	target->acks++;
	target->dirty = false;
	return MPI_SUCCESS;
}

/* ---- flush ---- */

static int flush_start(struct adi_win *win, int rank)
{
	struct adi_win_target *target = &win->target[rank];
	if (!target->dirty)
		return MPI_SUCCESS;
	target->dirty = false;
	int class = window_send_control(win, rank, WINDOW_FLUSH, 0);
	if (!class)
		target->acks++;
	return class;
}

static int target_wait(struct adi_win *win, int rank, bool remote)
{
	struct adi_win_target *target = &win->target[rank];
	while (target->sending > 0 || target->replies > 0 || (remote && target->acks > 0)) {
		if (target->peer->error) {
			target->acks = 0;
			return window_peer_error(win, rank, target->peer->error);
		}
		adi_progress();
	}
	int class = window_adapter_wait(win, rank);
	if (class)
		return class;
	class = target->class;
	if (!class || !remote)
		return MPI_SUCCESS;
	target->class = MPI_SUCCESS;
	return adi_error(class, "an operation failed at rank %d of window \"%s\": %s", rank, win->name,
			 class == MPI_ERR_RMA_RANGE ? "no attached memory at this address" : adi_class_text(class));
}

/* A program may wait for a change of memory by flushes alone, none of which has to wait. Then the messages of others must be
 * handled all the same. In a direct window only messages of other units come, so it looks for them from time to time. */
static void flush_poll(const struct adi_win *win)
{
	static unsigned calls;
	if (!win->direct || ++calls % CALLS_PER_POLL == 0)
		adi_poll();
}

int window_flush(struct adi_win *win, int rank)
{
	atomic_thread_fence(memory_order_seq_cst);
	flush_poll(win);
	if (win->direct)
		return MPI_SUCCESS;
	int first = rank < 0 ? 0 : rank, end = rank < 0 ? win->comm->size : rank + 1, class = MPI_SUCCESS;
	for (int i = first; i < end; i++) {
		int error = flush_start(win, i);
		class = class ? class : error;
	}
	for (int i = first; i < end; i++) {
		int error = target_wait(win, i, true);
		class = class ? class : error;
	}
	return class;
}

int window_flush_local(struct adi_win *win, int rank)
{
	flush_poll(win);
	if (win->direct)
		return MPI_SUCCESS;
	int first = rank < 0 ? 0 : rank, end = rank < 0 ? win->comm->size : rank + 1, class = MPI_SUCCESS;
	for (int i = first; i < end; i++) {
		int error = target_wait(win, i, false);
		class = class ? class : error;
	}
	return class;
}

/* ---- epochs ---- */

static int sync_error(const struct adi_win *win, const char *what)
{
	return adi_error(MPI_ERR_RMA_SYNC, "%s (window \"%s\")", what, win->name);
}

int window_may_access(struct adi_win *win, int rank, bool passive)
{
	struct adi_win_target *target = &win->target[rank];
	switch (win->epoch) {
	case ADI_EPOCH_LOCK:
		return target->lock ? MPI_SUCCESS : sync_error(win, "the target is not locked");
	case ADI_EPOCH_LOCK_ALL:
		if (ADI_LIKELY(target->lock))
			return MPI_SUCCESS;
		if (!win->lock_all_unchecked)
			return lock_get(win, rank, MPI_LOCK_SHARED);
		target->lock = LOCK_UNCHECKED;
		return MPI_SUCCESS;
	case ADI_EPOCH_FENCE:
		win->fence_used = true;
		return passive ? sync_error(win, "an operation with a request needs a lock") : MPI_SUCCESS;
	case ADI_EPOCH_START:
		if (passive)
			return sync_error(win, "an operation with a request needs a lock");
		return target->started ? MPI_SUCCESS : sync_error(win, "the target is not in the group of MPI_Win_start");
	case ADI_EPOCH_NONE:
		break;
	}
	return sync_error(win, "there is no access epoch: no fence, start or lock was called");
}

static int lock_arguments(int assert)
{
	if (assert & ~MPI_MODE_NOCHECK)
		return adi_error(MPI_ERR_ASSERT, "assert is %d; valid: 0 or MPI_MODE_NOCHECK", assert);
	return MPI_SUCCESS;
}

int mpi_win_lock(int lock_type, int rank, int assert, struct adi_win *win)
{
	if (lock_type != MPI_LOCK_EXCLUSIVE && lock_type != MPI_LOCK_SHARED)
		return adi_error(MPI_ERR_LOCKTYPE, "lock_type is %d; valid: MPI_LOCK_EXCLUSIVE, MPI_LOCK_SHARED", lock_type);
	int class = lock_arguments(assert);
	if (!class)
		class = adi_check_rank(win->comm, rank, "rank", true, false);
	if (class || rank == MPI_PROC_NULL)
		return class;
	if (win->epoch != ADI_EPOCH_NONE && win->epoch != ADI_EPOCH_LOCK && (win->epoch != ADI_EPOCH_FENCE || win->fence_used))
		return sync_error(win, "an access epoch of another kind is open");
	if (win->target[rank].lock)
		return sync_error(win, "the target is locked already");
	if (assert & MPI_MODE_NOCHECK)
		win->target[rank].lock = LOCK_UNCHECKED;
	else
		class = lock_get(win, rank, lock_type);
	if (class)
		return class;
	win->epoch = ADI_EPOCH_LOCK;
	win->locks++;
	return MPI_SUCCESS;
}

int mpi_win_unlock(int rank, struct adi_win *win)
{
	int class = adi_check_rank(win->comm, rank, "rank", true, false);
	if (class || rank == MPI_PROC_NULL)
		return class;
	if (win->epoch != ADI_EPOCH_LOCK || !win->target[rank].lock)
		return sync_error(win, "the target is not locked by MPI_Win_lock");
	class = unlock_start(win, rank);
	int flushed = window_flush(win, rank);
	if (--win->locks == 0)
		win->epoch = ADI_EPOCH_NONE;
	return class ? class : flushed;
}

int mpi_win_lock_all(int assert, struct adi_win *win)
{
	int class = lock_arguments(assert);
	if (class)
		return class;
	if (win->epoch != ADI_EPOCH_NONE && (win->epoch != ADI_EPOCH_FENCE || win->fence_used))
		return sync_error(win, "an access epoch is open");
	win->lock_all_unchecked = assert & MPI_MODE_NOCHECK;
	int me = win->comm->rank, first = win->direct ? 0 : me, end = win->direct ? win->comm->size : me + 1;
	for (int i = first; !class && i < end; i++) {
		if (win->lock_all_unchecked)
			win->target[i].lock = LOCK_UNCHECKED;
		else
			class = lock_get(win, i, MPI_LOCK_SHARED);
	}
	if (!class) {
		win->epoch = ADI_EPOCH_LOCK_ALL;
		return MPI_SUCCESS;
	}
	for (int i = first; i < end; i++)
		unlock_start(win, i);
	return class;
}

int mpi_win_unlock_all(struct adi_win *win)
{
	if (win->epoch != ADI_EPOCH_LOCK_ALL)
		return sync_error(win, "MPI_Win_lock_all was not called");
	int class = MPI_SUCCESS;
	atomic_thread_fence(memory_order_seq_cst);
	for (int i = 0; i < win->comm->size; i++) {
		int error = unlock_start(win, i);
		class = class ? class : error;
	}
	int flushed = window_flush(win, -1);
	win->epoch = ADI_EPOCH_NONE;
	return class ? class : flushed;
}

/* rank -1: all. */
static int flush_arguments(const struct adi_win *win, int rank)
{
	int class = rank < 0 ? MPI_SUCCESS : adi_check_rank(win->comm, rank, "rank", false, false);
	if (class)
		return class;
	bool open = win->epoch == ADI_EPOCH_LOCK_ALL || (win->epoch == ADI_EPOCH_LOCK && (rank < 0 || win->target[rank].lock));
	return open ? MPI_SUCCESS : sync_error(win, rank < 0 ? "no target is locked" : "the target is not locked");
}

int mpi_win_flush(int rank, struct adi_win *win)
{
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	int class = rank < 0 ? adi_check_rank(win->comm, rank, "rank", false, false) : flush_arguments(win, rank);
	return class ? class : window_flush(win, rank);
}

int mpi_win_flush_all(struct adi_win *win)
{
	int class = flush_arguments(win, -1);
	return class ? class : window_flush(win, -1);
}

int mpi_win_flush_local(int rank, struct adi_win *win)
{
	if (rank == MPI_PROC_NULL)
		return MPI_SUCCESS;
	int class = rank < 0 ? adi_check_rank(win->comm, rank, "rank", false, false) : flush_arguments(win, rank);
	return class ? class : window_flush_local(win, rank);
}

int mpi_win_flush_local_all(struct adi_win *win)
{
	int class = flush_arguments(win, -1);
	return class ? class : window_flush_local(win, -1);
}

int mpi_win_sync(struct adi_win *win)
{
	(void)win;
	atomic_thread_fence(memory_order_seq_cst);
	return MPI_SUCCESS;
}
