/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Early copies: small copies to the device that come with their bytes although their stream may be held. The worker holds the
 * bytes in pinned memory, which the device reads when the stream has come to the copy. Until then the client may change them.
 *
 * Copies of one stream share a slot (slots.c). The slot's event is recorded behind the last of these copies. If a slot is full,
 * or its stream has ended, the slot is used again as soon as the event is complete. All functions run in calls that hold the
 * call order, so no lock guards the state here.
 */
#include "cuda_remote/server/internal.h"

#include <stdlib.h>
#include <string.h>

/* Number of streams that have a slot with room for more copies. */
#define OPEN 16
/* A copy of at most this many bytes shares a slot of the smallest size. */
#define SHORT 256u
/* Closed places that are looked at for a slot that the device has left. */
#define LOOKS 8
#define ALIGN 64u

struct place {
	struct place *next;
	struct server_slot *slot;
	size_t used;     /* bytes */
	uint64_t round;  /* how often the slot was used again */
	bool stray;      /* the driver has refused the event: the device may use the slot for ever */
	uint64_t asked;  /* number of the last copy_early_done that asked the driver for the slot's event */
	bool left;       /* the device had left the slot then */
	uint64_t stream; /* the client's handle */
	uint32_t context;
	uint64_t thread; /* serial of the thread of a per-thread default stream; else 0 */
};

/* What is known of copy n, counted by the client: held[n % RC_EARLY_COPIES]. */
static struct held {
	uint64_t copy;
	struct place *place;
	uint64_t round;
	uint8_t *at;
	uint64_t bytes;
} held[RC_EARLY_COPIES];

static struct place *open[OPEN];
static unsigned newest; /* the last one that was opened */
static struct {
	struct place *first, **end;
} closed[2] = { { NULL, &closed[0].first }, { NULL, &closed[1].first } }; /* small slots, others; the oldest first */

static unsigned kind_of(const struct server_slot *slot)
{
	return slot->size > SERVER_OWN_SLOT;
}

static void put_last(struct place *place)
{
	unsigned kind = kind_of(place->slot);
	place->next = NULL;
	*closed[kind].end = place;
	closed[kind].end = &place->next;
}

static struct place *take_first(unsigned kind)
{
	struct place *place = closed[kind].first;
	if (place && !(closed[kind].first = place->next))
		closed[kind].end = &closed[kind].first;
	return place;
}

static void close_place(unsigned i)
{
	struct place *place = open[i];
	open[i] = NULL;
	if (place && !place->stray)
		put_last(place);
}

void server_early_close(void)
{
	for (unsigned i = 0; i < OPEN; i++)
		close_place(i);
}

/* A closed place with a slot that the device no longer reads, or NULL. A slot that the device may still read moves to the end of
 * the list, so that a stream that is held for long does not keep the slots of other streams from being used again. */
static struct place *reuse(unsigned kind)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		struct place *place = take_first(kind);
		if (!place)
			return NULL;
		if (server_slot_is_free(place->slot)) {
			place->round++;
			place->used = 0;
			return place;
		}
		put_last(place);
	}
	return NULL;
}

/* A slot that the device has left, or a new one. */
static CUresult get_place(uint64_t bytes, struct place **got)
{
	unsigned kind = bytes > SHORT;
	struct place *place = reuse(kind);
	if (place) {
		*got = place;
		return CUDA_SUCCESS;
	}
	place = calloc(1, sizeof *place);
	CUresult result = place ? server_slot_get(kind ? RC_INLINE_COPY : SERVER_OWN_SLOT, &place->slot) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result == CUDA_SUCCESS)
		*got = place;
	else
		free(place);
	return result;
}

/* The place for bytes of a copy in the stream. */
static CUresult find_place(const struct server_thread *thread, uint64_t stream, uint64_t bytes, struct place **found)
{
	uint64_t owner = stream == (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD ? thread->serial : 0;
	unsigned unused = OPEN, i = 0;
	for (; i < OPEN; i++) {
		const struct place *place = open[i];
		if (!place)
			unused = i;
		else if (place->stream == stream && place->context == thread->context && place->thread == owner &&
			 kind_of(place->slot) == (bytes > SHORT))
			break;
	}
	if (i < OPEN && open[i]->slot->size - open[i]->used >= bytes) {
		*found = open[i];
		return CUDA_SUCCESS;
	}
	if (i == OPEN)
		i = unused < OPEN ? unused : ++newest % OPEN;
	close_place(i);
	CUresult result = get_place(bytes, found);
	if (result != CUDA_SUCCESS)
		return result;
	open[i] = *found;
	open[i]->stream = stream;
	open[i]->context = thread->context;
	open[i]->thread = owner;
	return CUDA_SUCCESS;
}

/* CUDA lets a copy be in a stream of another context than the current one, but not the recording of an event. */
static CUresult record_in_its_context(const struct server_thread *thread, struct server_slot *slot, CUstream stream)
{
	CUcontext context;
	if (!driver.cuStreamGetCtx || driver.cuStreamGetCtx(stream, &context) != CUDA_SUCCESS || context == thread->current)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = driver.cuCtxSetCurrent(context);
	if (result == CUDA_SUCCESS)
		result = server_slot_record(slot, stream);
	driver.cuCtxSetCurrent(thread->current);
	return result;
}

CUresult serve_copy_up_early(struct server_call *call)
{
	struct rc_wire_copy copy;
	struct place *place;
	uint64_t bytes;
	void *stream;
	if (!server_take_into(call, &copy, sizeof copy) || !copy.copy || !server_box_is_sound(&copy.box, &bytes) ||
	    bytes > RC_INLINE_COPY)
		return CUDA_ERROR_INVALID_VALUE;
	const uint8_t *from = server_take(call, bytes, 1);
	CUresult result = from ? server_object(RC_KIND_STREAM, copy.stream, &stream) : CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = find_place(call->thread, copy.stream, bytes, &place);
	if (result != CUDA_SUCCESS)
		return result;
	uint8_t *at = place->slot->memory + place->used;
	memcpy(at, from, bytes);
	place->used += (bytes + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
	held[copy.copy % RC_EARLY_COPIES] = (struct held){ copy.copy, place, place->round, at, bytes };
	result = server_small_h2d(&copy.box, at, bytes, stream);
	CUresult recorded = server_slot_record(place->slot, stream);
	if (recorded == CUDA_ERROR_INVALID_HANDLE)
		recorded = record_in_its_context(call->thread, place->slot, stream);
	place->stray |= recorded != CUDA_SUCCESS;
	return result == CUDA_SUCCESS ? recorded : result;
}

/* NULL: the slot has been used again, so the copy is complete, or there is no such copy. */
static const struct held *find(uint64_t copy)
{
	const struct held *found = &held[copy % RC_EARLY_COPIES];
	return found->copy == copy && found->place && found->round == found->place->round ? found : NULL;
}

/* The device reads the bytes after a kernel has seen what a later call writes. ThreadSanitizer does not see this order in the
 * software GPU. */
__attribute__((no_sanitize("thread"))) static void replace(volatile uint8_t *to, const uint8_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = from[i];
}

CUresult serve_copy_early_change(struct server_call *call)
{
	struct rc_wire_early_change args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	const struct held *copy = find(args.copy);
	if (!copy)
		return CUDA_SUCCESS;
	const uint8_t *from = server_take(call, copy->bytes, 1);
	if (!from)
		return CUDA_ERROR_INVALID_VALUE;
	replace(copy->at, from, copy->bytes);
	return CUDA_SUCCESS;
}

/* True if the device has read the bytes. Each call asks the driver once for each slot. */
static bool is_done(struct place *place, uint64_t call)
{
	if (place->asked != call) {
		place->asked = call;
		place->left = !place->stray && server_slot_is_free(place->slot);
	}
	return place->left;
}

CUresult serve_copy_early_done(struct server_call *call)
{
	struct rc_wire_early_done args;
	if (!server_take_into(call, &args, sizeof args) || args.count > RC_EARLY_COPIES)
		return CUDA_ERROR_INVALID_VALUE;
	uint8_t *done = server_give(call, (args.count + 7) / 8, 1);
	if (!done)
		return CUDA_ERROR_OUT_OF_MEMORY;
	for (uint64_t i = 0; i < args.count; i++) {
		const struct held *copy = find(args.first + i);
		if (!copy || is_done(copy->place, call->number))
			done[i / 8] |= (uint8_t)(1u << i % 8);
	}
	return CUDA_SUCCESS;
}
