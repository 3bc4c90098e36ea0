/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on memory that this process can address: its own, and that of a shared segment. */
#include "adi/window/internal.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define SPINS 1000 /* looks at a lock before this process gives the processor away */

static char *address(const struct adi_win *win, const struct window_access_args *args)
{
	/* In a dynamic window the base is NULL and the offset an address. */
	return (char *)((uintptr_t)win->target[args->rank].base + (uintptr_t)args->offset);
}

/* Most copies are of one element. */
static inline void copy(char *to, const char *from, size_t bytes)
{
	if (bytes == 8)
		memcpy(to, from, 8);
	else if (bytes == 4)
		memcpy(to, from, 4);
	else
		memmove(to, from, bytes);
}

int window_local_put(struct adi_win *win, const struct window_access_args *args)
{
	char *to = address(win, args);
	if (args->origin_type->contiguous && args->type->contiguous) {
		copy(to + args->type->true_lb, (const char *)args->origin + args->origin_type->true_lb,
		     (size_t)(args->origin_count * args->origin_type->size));
		return MPI_SUCCESS;
	}
	return adi_type_copy(args->origin, args->origin_count, args->origin_type, to, args->count, args->type);
}

int window_local_get(struct adi_win *win, const struct window_access_args *args)
{
	char *from = address(win, args);
	if (args->result_type->contiguous && args->type->contiguous) {
		copy((char *)args->result + args->result_type->true_lb, from + args->type->true_lb,
		     (size_t)(args->count * args->type->size));
		return MPI_SUCCESS;
	}
	return adi_type_copy(from, args->count, args->type, args->result, args->result_count, args->result_type);
}

/* Waits until a lock is free, or its holder has died: then it stays taken, because the memory may be half changed. */
static int accumulate_wait(struct adi_win *win, atomic_int *lock)
{
	int64_t since = 0;
	for (int i = 0, holder; (holder = atomic_load_explicit(lock, memory_order_relaxed)) != 0; i++) {
		if (!adi_job.oversubscribed && i < SPINS)
			continue;
		since = since ? since : adi_now_ms();
		if (adi_now_ms() - since >= WINDOW_DOUBT_MS) {
			int class = window_member_check(win, holder - 1);
			if (class)
				return class;
			adi_poll();
		}
		sched_yield();
	}
	return MPI_SUCCESS;
}

static int accumulate_lock(struct adi_win *win, atomic_int *lock)
{
	int free = 0, class = MPI_SUCCESS;
	/* Orders the holder's accesses after the exchange; pairs with the release in accumulate_unlock. */
	while (!class && !atomic_compare_exchange_weak_explicit(lock, &free, win->comm->rank + 1, memory_order_acquire,
							       memory_order_relaxed)) {
		class = accumulate_wait(win, lock);
		free = 0;
	}
	return class;
}

static void accumulate_unlock(atomic_int *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

/* The lock for accumulates into the memory of a process; NULL: none is needed. Handlers of messages and this process's own
 * calls exclude each other by the library's lock. */
static atomic_int *lock_for(const struct adi_win *win, const struct window_access_args *args)
{
	return win->direct && !window_lock_free(args->basic) ? &win->control[args->rank].accumulate : NULL;
}

/* The data of a buffer as a stream: the buffer itself, or *copy, which the caller frees. */
static int stream_of(const void *buf, MPI_Count count, struct adi_type *type, const char **stream, char **copy)
{
	*stream = (const char *)buf + type->true_lb;
	if (type->contiguous)
		return MPI_SUCCESS;
	size_t bytes = (size_t)(count * type->size);
	*stream = *copy = malloc(bytes);
	struct adi_stream from;
	int class = *copy ? adi_stream_start(&from, buf, count, type) :
			    adi_error(MPI_ERR_NO_MEM, "no memory to pack %zu bytes", bytes);
	if (!class)
		adi_stream_pack(&from, *copy, bytes);
	return class;
}

static int accumulate(struct adi_win *win, const struct window_access_args *args, const char *data, char *old)
{
	char *at = address(win, args);
	struct window_place place = { at, args->type, args->count };
	if (args->type->contiguous)
		place = (struct window_place){ at + args->type->true_lb, NULL, 0 };
	atomic_int *lock = lock_for(win, args);
	int class = lock ? accumulate_lock(win, lock) : MPI_SUCCESS;
	if (class)
		return class;
	class = window_fetch_apply(args->op, args->basic, &place, 0, data, (size_t)(args->count * args->type->size), old,
				   win->direct);
	if (lock)
		accumulate_unlock(lock);
	return class;
}

int window_local_accumulate(struct adi_win *win, const struct window_access_args *args)
{
	if (args->type->contiguous && (!args->sends || args->origin_type->contiguous) &&
	    (!args->fetches || args->result_type->contiguous))
		return accumulate(win, args, args->sends ? (const char *)args->origin + args->origin_type->true_lb : NULL,
				  args->fetches ? (char *)args->result + args->result_type->true_lb : NULL);
	const char *data = NULL;
	char *copy = NULL, *old = NULL, *old_copy = NULL;
	size_t bytes = (size_t)(args->count * args->type->size);
	int class = args->sends ? stream_of(args->origin, args->origin_count, args->origin_type, &data, &copy) : MPI_SUCCESS;
	if (!class && args->fetches) {
		old = args->result_type->contiguous ? (char *)args->result + args->result_type->true_lb
						    : (old_copy = malloc(bytes));
		if (!old)
			class = adi_error(MPI_ERR_NO_MEM, "no memory for %zu bytes of old data", bytes);
	}
	if (!class)
		class = accumulate(win, args, data, old);
	struct adi_stream result;
	if (!class && old_copy) {
		class = adi_stream_start(&result, args->result, args->result_count, args->result_type);
		if (!class)
			adi_stream_unpack(&result, old_copy, bytes);
	}
	free(copy);
	free(old_copy);
	return class;
}

int window_local_swap(struct adi_win *win, const struct window_access_args *args, const void *compare)
{
	atomic_int *lock = lock_for(win, args);
	int class = lock ? accumulate_lock(win, lock) : MPI_SUCCESS;
	if (class)
		return class;
	window_swap(args->basic, address(win, args), args->origin, compare, args->result, win->direct);
	if (lock)
		accumulate_unlock(lock);
	return MPI_SUCCESS;
}
