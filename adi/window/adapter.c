/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets by the adapter, without the target's help: keys, the operations, and the wait for them. */
#include "adi/window/internal.h"

#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

HR_SETTING(adapter_setting, "HEADRACE_WINDOW_ADAPTER", "1", 0, 1,
	   "mpi: 1: the adapter executes MPI_Put and MPI_Get by RDMA, without the target; 0: messages");

/* A put in progress. */
struct putting {
	struct putting *next; /* in the list of spare ones */
	struct adi_win *win;
	int rank;
	void *memory;
	struct adi_request *request;
};

static struct putting *spare;
static bool enabled; /* HEADRACE_WINDOW_ADAPTER */
static bool ended;   /* the windows are gone: the engine only drops what is left */

/* ---- keys ---- */

bool window_adapter_ready(struct adi_win *win, int rank)
{
	struct adi_win_target *to = &win->target[rank];
	if (ADI_LIKELY(to->key_state != KEY_UNKNOWN))
		return to->key_state == KEY_HELD;
	/* Memory is attached to a dynamic window without telling anybody, so no key could be trusted. */
	bool possible = enabled && win->flavor != MPI_WIN_FLAVOR_DYNAMIC && ch3_access_can(to->peer->vc);
	/* If this fails, the operation that follows reports the error. */
	if (possible && !window_send_control(win, rank, WINDOW_ASK, 0))
		to->key_state = KEY_ASKED;
	return false;
}

int window_on_ask(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_control control;
	struct adi_win *win = window_control_read(incoming, &control);
	if (!win)
		return -EPROTO;
	struct adi_win_origin *origin = &win->origin[control.sender];
	if (origin->shared)
		return window_violation(incoming, "a second request for the key");
	struct window_key key = { .slot = win->target[control.sender].slot, .sender = (uint32_t)win->comm->rank };
	bool possible = enabled && win->flavor != MPI_WIN_FLAVOR_DYNAMIC && win->size > 0;
	key.held = possible && !ch3_share(incoming->vc, win->base, (size_t)win->size, &origin->shared, &key.key);
	/* If this fails, the connection has failed, and the origin knows. */
	ch3_send(incoming->vc, WINDOW_KEY, &key, sizeof key, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return 0;
}

int window_on_key(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_key key;
	if (incoming->header_len != sizeof key || incoming->payload_len != 0)
		return window_violation(incoming, "a key with an invalid length");
	memcpy(&key, incoming->header, sizeof key);
	struct adi_win *win = window_of_packet(incoming, key.slot, key.sender);
	if (!win)
		return -EPROTO;
	struct adi_win_target *to = &win->target[key.sender];
	if (to->key_state != KEY_ASKED || key.held > 1)
		return window_violation(incoming, "an invalid key");
	to->key_state = key.held ? KEY_HELD : KEY_REFUSED;
	to->key = key.key;
	return 0;
}

void window_keys_wait(struct adi_win *win)
{
	for (int i = 0; i < win->comm->size; i++)
		while (win->target[i].key_state == KEY_ASKED && !win->target[i].peer->error)
			adi_progress();
}

/* ---- operations ---- */

static void access_ended(struct adi_win *win, int rank, int error)
{
	struct adi_win_target *to = &win->target[rank];
	to->accesses--;
	if (error && !to->failed)
		to->failed = error;
}

static void putting_free(struct putting *putting)
{
	free(putting->memory);
	putting->next = spare;
	spare = putting;
}

static void on_put(void *context, int error, size_t bytes)
{
	(void)bytes;
	struct putting *putting = context;
	struct adi_request *request = putting->request;
	if (ended) {
		free(putting->memory);
		free(putting);
		return;
	}
	access_ended(putting->win, putting->rank, error);
	putting_free(putting);
	if (request)
		adi_request_complete(request, adi_class(error));
}

bool window_adapter_put(struct adi_win *win, int rank, uint64_t offset, const struct iovec *data, void *memory,
			struct adi_request *request)
{
	struct adi_win_target *to = &win->target[rank];
	struct putting *putting = spare;
	if (putting)
		spare = putting->next;
	else
		putting = malloc(sizeof *putting);
	if (!putting)
		return false;
	*putting = (struct putting){ NULL, win, rank, memory, request };
	if (ch3_write(to->peer->vc, &to->key, offset, data->iov_base, data->iov_len, on_put, putting)) {
		putting->memory = NULL;
		putting_free(putting);
		return false;
	}
	to->accesses++;
	return true;
}

static void on_get(void *context, int error, size_t bytes)
{
	struct window_fetch *fetch = context;
	if (ended)
		return;
	access_ended(fetch->win, fetch->rank, error);
	window_fetch_arrived(fetch, error, bytes);
}

bool window_adapter_get(struct adi_win *win, int rank, uint64_t offset, struct window_fetch *fetch)
{
	struct adi_win_target *to = &win->target[rank];
	if (ch3_read(to->peer->vc, &to->key, offset, fetch->result, fetch->bytes, on_get, fetch))
		return false;
	to->accesses++;
	return true;
}

int window_adapter_wait(struct adi_win *win, int rank)
{
	struct adi_win_target *to = &win->target[rank];
	while (to->accesses > 0)
		adi_progress();
	if (!to->failed)
		return MPI_SUCCESS;
	int error = to->failed;
	to->failed = 0;
	return window_peer_error(win, rank, error);
}

/* ---- start and end ---- */

void window_adapter_start(void)
{
	uint64_t wish = 0;
	hr_setting_u64(&adapter_setting, &wish);
	enabled = wish == 1;
	ended = false;
}

void window_adapter_end(void)
{
	ended = true;
	while (spare) {
		struct putting *putting = spare;
		spare = putting->next;
		free(putting);
	}
}
