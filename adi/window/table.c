/* SPDX-License-Identifier: BSD-3-Clause */
/* The windows of this process by slot, which messages name, and the operations that wait for data by id. */
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <stdlib.h>

static struct adi_win **slots;
static uint32_t n_slots;

static struct fetch_entry {
	struct window_fetch *fetch;
	uint32_t generation; /* so that a second reply to an operation that has ended is recognised */
	uint32_t next_free;
} *fetches;
static uint32_t n_fetches, first_free = UINT32_MAX;

int window_slot_add(struct adi_win *win)
{
	uint32_t i = 0;
	while (i < n_slots && slots[i])
		i++;
	if (i == n_slots) {
		uint32_t n = n_slots ? 2 * n_slots : 16;
		struct adi_win **more = realloc(slots, n * sizeof *more);
		if (!more)
			return adi_error(MPI_ERR_NO_MEM, "no memory for window %u", i);
		for (uint32_t j = n_slots; j < n; j++)
			more[j] = NULL;
		slots = more;
		n_slots = n;
	}
	slots[i] = win;
	win->slot = i;
	return MPI_SUCCESS;
}

void window_slot_remove(struct adi_win *win)
{
	if (win->slot < n_slots && slots[win->slot] == win)
		slots[win->slot] = NULL;
}

struct adi_win *window_of_packet(const ch3_incoming_t *incoming, uint32_t slot, uint32_t sender)
{
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct adi_win *win = slot < n_slots ? slots[slot] : NULL;
	if (win && sender < (uint32_t)win->comm->size && win->target[sender].peer == peer)
		return win;
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent a message for window %u as its rank %u", peer->rank, slot,
	       sender);
	return NULL;
}

int window_fetch_add(struct window_fetch *fetch)
{
	if (first_free == UINT32_MAX) {
		uint32_t n = n_fetches ? 2 * n_fetches : 64;
		struct fetch_entry *more = realloc(fetches, n * sizeof *more);
		if (!more)
			return adi_error(MPI_ERR_NO_MEM, "no memory for operation %u that waits for data", n_fetches);
		fetches = more;
		for (uint32_t i = n; i-- > n_fetches;) {
			fetches[i] = (struct fetch_entry){ NULL, 0, first_free };
			first_free = i;
		}
		n_fetches = n;
	}
	uint32_t i = first_free;
	first_free = fetches[i].next_free;
	fetches[i].fetch = fetch;
	fetch->id = (uint64_t)++fetches[i].generation << 32 | i;
	return MPI_SUCCESS;
}

struct window_fetch *window_fetch_find(uint64_t id)
{
	uint32_t i = (uint32_t)id;
	return i < n_fetches && fetches[i].fetch && fetches[i].fetch->id == id ? fetches[i].fetch : NULL;
}

void window_fetch_remove(struct window_fetch *fetch)
{
	uint32_t i = (uint32_t)fetch->id;
	fetches[i].fetch = NULL;
	fetches[i].next_free = first_free;
	first_free = i;
}

void window_fetch_each(void (*function)(struct window_fetch *fetch, void *argument), void *argument)
{
	for (uint32_t i = 0; i < n_fetches; i++)
		if (fetches[i].fetch)
			function(fetches[i].fetch, argument);
}

void adi_windows_end(void)
{
	window_destroy_all();
	window_sends_end();
	window_remote_end();
	window_adapter_end();
	window_target_end();
	free(slots);
	slots = NULL;
	n_slots = 0;
	free(fetches);
	fetches = NULL;
	n_fetches = 0;
	first_free = UINT32_MAX;
}
