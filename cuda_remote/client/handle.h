/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handles of the program's objects, with the client's data of these objects (handle.c); handles of objects inside of others (alias.c).
 */
#ifndef RC_CLIENT_HANDLE_H
#define RC_CLIENT_HANDLE_H

#include "cuda_remote/api/calls.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

struct rc_session;

/* ---- handle.c ---- */

/* CUDA_SUCCESS if handle is a live object of this kind (or, for a stream, one of CUDA's own values); else
 * CUDA_ERROR_INVALID_HANDLE, for contexts CUDA_ERROR_INVALID_CONTEXT. */
CUresult rc_handle_check(enum rc_kind kind, uint64_t handle);
/* The session of a live handle; NULL: there is no such handle. */
struct rc_session *rc_handle_session(uint64_t handle);
/* Increases when an object ends that a graph can refer to. */
uint64_t rc_handle_ends(void);
/* Makes a handle for a new object. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult rc_handle_new(enum rc_kind kind, struct rc_session *session, uint64_t *handle);
/* Makes n handles with consecutive indexes. */
CUresult rc_handle_row(enum rc_kind kind, struct rc_session *session, uint32_t n, uint64_t *first);
/* Ends a handle. The caller owns what was attached to it. The call that ends the object must have its number. If the object is
 * pinned memory, the worker must have answered that call. */
void rc_handle_delete(uint64_t handle);
/* Ends a handle of pinned memory. The call that ends the object must have its number; the worker need not have answered it. */
void rc_handle_delete_posted(uint64_t pinned);
/* Attaches the client's data to a handle. rc_handle_data returns it; NULL if there is none, or no such object. */
void rc_handle_attach(uint64_t handle, void *data);
void *rc_handle_data(enum rc_kind kind, uint64_t handle);
/* What done.c keeps of an event; 0 in a new handle. NULL: no such event. */
struct rc_recording {
	uint64_t number; /* of the call that has recorded the event last; under the lock of done.c */
	uint64_t mark;   /* that number with bits of done.c; 0 while `stream` changes; atomic */
	uint64_t stream; /* that it named (rc_track_stream); atomic */
	bool in_graph;   /* launches of a graph may record the event too: nothing is known of it; atomic */
	/* Under the lock of done.c. start: the event from which the program has last asked for the time to this one; 0: none.
	 * milliseconds: the time from recording number `first` of that event to recording number `last` of this one; it is not
	 * known if last is 0. */
	uint64_t start, first, last;
	float milliseconds;
};
struct rc_recording *rc_handle_recording(uint64_t event);
/* Calls visit with every live handle of a kind. visit may delete the handle. */
void rc_handle_each(enum rc_kind kind, void (*visit)(uint64_t handle, void *data, void *context), void *context);

/* ---- alias.c ---- */

/* The live handle that rc_alias_add kept for this owner (a handle, or a device's number) and these arguments. */
bool rc_alias_find(enum rc_kind kind, enum rc_call function, uint64_t owner, uint64_t key, const char *text,
		   uint64_t *handle);
CUresult rc_alias_add(enum rc_call function, uint64_t owner, uint64_t key, const char *text, uint64_t handle);
/* True if the handle is an alias: a program must not destroy its object. */
bool rc_alias_is(uint64_t handle);
/* Ends the handles of an owner's aliases. */
void rc_alias_forget(uint64_t owner);

#endif
