/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the memory of other processes by messages: the origin's side. Puts and gets try the adapter first. */
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE_LEAST 512 /* minimum mean size, bytes, of pieces that are sent as a vector; smaller ones are packed */

static const struct adi_request_class request_class;
static struct window_fetch *spare;

/* Creates the request of MPI_Rput and the like, if there is one. */
static int request_new(const struct window_access_args *args, struct adi_request **request)
{
	*request = NULL;
	if (!args->request)
		return MPI_SUCCESS;
	*request = adi_request_new(&request_class, NULL, NULL);
	if (!*request)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a request");
	*args->request = adi_request_handle(*request);
	return MPI_SUCCESS;
}

/* After a failure: the program gets the error instead of the request. */
static void request_undo(const struct window_access_args *args, struct adi_request *request)
{
	if (!request)
		return;
	request->complete = true;
	adi_request_free(request);
	*args->request = MPI_REQUEST_NULL;
}

/* ---- the data to send ---- */

struct data {
	struct iovec iov[CH3_IOV_MAX];
	int n;
	void *memory; /* owned; NULL: the data are in the program's buffer */
};

static int data_pack(struct adi_stream *stream, struct data *data)
{
	data->memory = malloc(stream->bytes);
	if (!data->memory)
		return adi_error(MPI_ERR_NO_MEM, "no memory to pack %zu bytes", stream->bytes);
	adi_stream_seek(stream, 0);
	adi_stream_pack(stream, data->memory, stream->bytes);
	data->iov[0] = (struct iovec){ data->memory, stream->bytes };
	data->n = 1;
	return MPI_SUCCESS;
}

/* one: as one run of bytes. */
static int data_of(const void *buf, MPI_Count count, struct adi_type *type, bool one, struct data *data)
{
	data->memory = NULL;
	if (type->contiguous) {
		data->iov[0] = (struct iovec){ (char *)buf + type->true_lb, (size_t)(count * type->size) };
		data->n = 1;
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	int class = adi_stream_start(&stream, buf, count, type);
	if (class)
		return class;
	if (!one) {
		size_t some = 0;
		data->n = adi_stream_pieces(&stream, data->iov, CH3_IOV_MAX, stream.bytes, &some);
		if (some == stream.bytes && some / (size_t)data->n >= PIECE_LEAST)
			return MPI_SUCCESS;
	}
	return data_pack(&stream, data);
}

/* ---- the target's type ---- */

static int type_send(struct adi_win *win, int rank, struct adi_type *type)
{
	struct adi_win_target *to = &win->target[rank];
	size_t bytes = adi_type_wire(type, NULL, 0);
	void *wire = bytes ? malloc(bytes) : NULL;
	if (!wire)
		return adi_error(MPI_ERR_NO_MEM, "no memory for a datatype of %zu bytes", bytes);
	adi_type_wire(type, wire, bytes);
	struct window_control control = { to->slot, (uint32_t)win->comm->rank, 0, 0 };
	struct iovec iov = { wire, bytes };
	int error = ch3_send(to->peer->vc, WINDOW_TYPE, &control, sizeof control, &iov, 1, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	free(wire);
	if (error)
		return window_peer_error(win, rank, error);
	if (to->type)
		adi_type_release(to->type);
	adi_object_retain(&type->object);
	to->type = type;
	return MPI_SUCCESS;
}

/* Fills the header's description of the target's data, and sends the type before if the target needs it. */
static int header_start(struct adi_win *win, const struct window_access_args *args, uint64_t bytes, struct window_access *header)
{
	struct adi_win_target *to = &win->target[args->rank];
	*header = (struct window_access){ .slot = to->slot, .origin = (uint32_t)win->comm->rank, .bytes = bytes };
	if (args->type->contiguous) {
		header->offset = (uint64_t)(args->offset + args->type->true_lb);
		return MPI_SUCCESS;
	}
	header->offset = (uint64_t)args->offset;
	header->count = (uint64_t)args->count;
	return to->type == args->type ? MPI_SUCCESS : type_send(win, args->rank, args->type);
}

int window_remote_put(struct adi_win *win, const struct window_access_args *args)
{
	struct adi_win_target *to = &win->target[args->rank];
	struct window_access header;
	struct data data;
	struct adi_request *request;
	bool adapter = window_adapter_ready(win, args->rank) && args->type->contiguous;
	int class = header_start(win, args, (uint64_t)(args->origin_count * args->origin_type->size), &header);
	if (!class)
		class = data_of(args->origin, args->origin_count, args->origin_type, adapter, &data);
	if (class)
		return class;
	class = request_new(args, &request);
	if (class) {
		free(data.memory);
		return class;
	}
	if (adapter && window_adapter_put(win, args->rank, header.offset, data.iov, data.memory, request))
		return MPI_SUCCESS;
	to->dirty = true;
	class = window_send(to->peer, WINDOW_PUT, &header, sizeof header, data.iov, data.n, 0, data.memory, &to->sending, NULL,
			    request);
	if (class)
		request_undo(args, request);
	return class;
}

/* ---- operations that get data back ---- */

static struct window_fetch *fetch_new(struct adi_win *win, const struct window_access_args *args, uint64_t bytes)
{
	struct window_fetch *fetch = spare;
	if (fetch)
		spare = *(struct window_fetch **)(void *)fetch;
	else
		fetch = malloc(sizeof *fetch);
	if (!fetch)
		return NULL;
	*fetch = (struct window_fetch){ .win = win, .rank = args->rank, .bytes = bytes, .left = bytes };
	if (args->result_type->contiguous) {
		fetch->result = (char *)args->result + args->result_type->true_lb;
	} else {
		fetch->result = fetch->memory = malloc(bytes);
		fetch->buf = args->result;
		fetch->count = args->result_count;
		fetch->type = args->result_type;
		adi_object_retain(&fetch->type->object);
	}
	bool ok = fetch->result && !window_fetch_add(fetch);
	if (ok)
		return fetch;
	free(fetch->memory);
	if (fetch->type)
		adi_type_release(fetch->type);
	free(fetch);
	return NULL;
}

static void fetch_free(struct window_fetch *fetch)
{
	window_fetch_remove(fetch);
	free(fetch->memory);
	if (fetch->type)
		adi_type_release(fetch->type);
	*(struct window_fetch **)(void *)fetch = spare;
	spare = fetch;
}

/* All data have arrived, or the operation has failed. */
static void fetch_end(struct window_fetch *fetch)
{
	struct adi_win_target *to = &fetch->win->target[fetch->rank];
	struct adi_request *request = fetch->request;
	int class = fetch->class;
	struct adi_stream stream;
	if (!class && fetch->memory) {
		class = adi_stream_start(&stream, fetch->buf, fetch->count, fetch->type);
		if (!class)
			adi_stream_unpack(&stream, fetch->memory, fetch->bytes);
	}
	to->replies--;
	if (class && !to->class)
		to->class = class;
	fetch_free(fetch);
	if (request)
		adi_request_complete(request, class);
}

static int fetch_start(struct adi_win *win, const struct window_access_args *args, uint64_t bytes, struct window_fetch **fetch)
{
	struct adi_request *request;
	int class = request_new(args, &request);
	if (class)
		return class;
	*fetch = fetch_new(win, args, bytes);
	if (!*fetch) {
		request_undo(args, request);
		return adi_error(MPI_ERR_NO_MEM, "no memory for an operation that gets %llu bytes", (unsigned long long)bytes);
	}
	(*fetch)->request = request;
	win->target[args->rank].replies++;
	return MPI_SUCCESS;
}

/* An operation could not be sent. Returns class. */
static int fetch_undo(const struct window_access_args *args, struct window_fetch *fetch, int class)
{
	fetch->win->target[fetch->rank].replies--;
	request_undo(args, fetch->request);
	fetch_free(fetch);
	return class;
}

int window_remote_get(struct adi_win *win, const struct window_access_args *args)
{
	struct adi_win_target *to = &win->target[args->rank];
	struct window_access header;
	struct window_fetch *fetch;
	uint64_t bytes = (uint64_t)(args->count * args->type->size);
	bool adapter = window_adapter_ready(win, args->rank) && args->type->contiguous;
	int class = header_start(win, args, bytes, &header);
	if (!class)
		class = fetch_start(win, args, bytes, &fetch);
	if (class)
		return class;
	if (adapter && window_adapter_get(win, args->rank, header.offset, fetch))
		return MPI_SUCCESS;
	header.id = fetch->id;
	int error = ch3_send(to->peer->vc, WINDOW_GET, &header, sizeof header, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return error ? fetch_undo(args, fetch, window_peer_error(win, args->rank, error)) : MPI_SUCCESS;
}

/* Sends an accumulate in pieces. After a failure of the first piece nothing was sent; a later piece fails only if the connection
 * has failed. memory: see window_send. */
static int pieces_send(struct adi_win *win, const struct window_access_args *args, unsigned type, struct window_access *header,
		       const char *data, void *memory, struct adi_request *request)
{
	struct adi_win_target *to = &win->target[args->rank];
	size_t size = window_basic_size(args->basic), most = WINDOW_PIECE / size * size;
	int class = MPI_SUCCESS;
	for (header->at = 0; !class && header->at < header->bytes; header->at += header->piece) {
		uint64_t left = header->bytes - header->at;
		bool last = left <= most;
		header->piece = (uint32_t)(last ? left : most);
		struct iovec iov = { (char *)data + header->at, header->piece };
		class = window_send(to->peer, type, header, sizeof *header, &iov, data != NULL, CH3_SEND_EAGER,
				    last ? memory : NULL, &to->sending, NULL, last ? request : NULL);
		if (class && !last)
			free(memory);
	}
	return class;
}

int window_remote_accumulate(struct adi_win *win, const struct window_access_args *args)
{
	struct window_access header;
	struct data data = { .n = 0 };
	struct window_fetch *fetch = NULL;
	struct adi_request *request = NULL;
	uint64_t bytes = (uint64_t)(args->count * args->type->size);
	int class = header_start(win, args, bytes, &header);
	if (!class && args->sends)
		class = data_of(args->origin, args->origin_count, args->origin_type, true, &data);
	if (class)
		return class;
	class = args->fetches ? fetch_start(win, args, bytes, &fetch) : request_new(args, &request);
	if (class) {
		free(data.memory);
		return class;
	}
	/* The reply completes an operation that fetches; it needs no flush. */
	win->target[args->rank].dirty |= !fetch;
	header.id = fetch ? fetch->id : 0;
	header.op = (uint16_t)args->op->object.constant;
	header.basic = (uint16_t)args->basic;
	class = pieces_send(win, args, fetch ? WINDOW_FETCH : WINDOW_ACCUMULATE, &header, data.n ? data.iov[0].iov_base : NULL,
			    data.memory, request);
	if (class && fetch)
		return fetch_undo(args, fetch, class);
	if (class)
		request_undo(args, request);
	return class;
}

int window_remote_swap(struct adi_win *win, const struct window_access_args *args, const void *compare)
{
	struct adi_win_target *to = &win->target[args->rank];
	struct window_access header;
	struct window_fetch *fetch;
	size_t size = (size_t)args->type->size;
	int class = header_start(win, args, size, &header);
	if (!class)
		class = fetch_start(win, args, size, &fetch);
	if (class)
		return class;
	header.id = fetch->id;
	header.basic = (uint16_t)args->basic;
	header.piece = (uint32_t)(2 * size);
	struct iovec iov[2] = { { (void *)args->origin, size }, { (void *)compare, size } };
	int error = ch3_send(to->peer->vc, WINDOW_SWAP, &header, sizeof header, iov, 2, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	return error ? fetch_undo(args, fetch, window_peer_error(win, args->rank, error)) : MPI_SUCCESS;
}

/* ---- replies ---- */

void window_fetch_arrived(void *context, int error, size_t bytes)
{
	struct window_fetch *fetch = context;
	if (error) {
		fetch->class = adi_class(error); /* the death of the peer ends the operation */
		return;
	}
	fetch->left -= bytes;
	if (fetch->left == 0)
		fetch_end(fetch);
}

static bool reply_valid(const struct window_reply *reply, const struct window_fetch *fetch, uint64_t payload)
{
	uint64_t bytes = reply->class ? reply->lost : payload;
	return bytes > 0 && bytes <= fetch->left && reply->at <= fetch->bytes && bytes <= fetch->bytes - reply->at &&
	       (!reply->class || (payload == 0 && adi_class_name((int)reply->class)));
}

int window_on_reply(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	struct window_reply reply;
	struct window_fetch *fetch = NULL;
	if (incoming->header_len == sizeof reply) {
		memcpy(&reply, incoming->header, sizeof reply);
		fetch = window_fetch_find(reply.id);
	}
	bool valid = fetch && fetch->win->target[fetch->rank].peer == peer && reply_valid(&reply, fetch, incoming->payload_len);
	if (!valid) {
		hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent an invalid reply to an operation of a window",
		       peer->rank);
		return -EPROTO;
	}
	if (reply.class) {
		fetch->class = (int)reply.class;
		fetch->left -= reply.lost;
		if (fetch->left == 0)
			fetch_end(fetch);
		return 0;
	}
	sink->iov[0] = (struct iovec){ fetch->result + reply.at, incoming->payload_len };
	sink->n = 1;
	sink->done = window_fetch_arrived;
	sink->context = fetch;
	return 0;
}

/* ---- end ---- */

struct lost {
	struct adi_win *win;
	int rank, class;
};

static void fetch_lost(struct window_fetch *fetch, void *argument)
{
	const struct lost *lost = argument;
	if (fetch->win != lost->win || fetch->rank != lost->rank)
		return;
	fetch->class = lost->class;
	fetch_end(fetch);
}

void window_fetches_lost(struct adi_win *win, int rank, int class)
{
	struct lost lost = { win, rank, class };
	window_fetch_each(fetch_lost, &lost);
}

static void fetch_drop(struct window_fetch *fetch, void *argument)
{
	(void)argument;
	fetch_free(fetch);
}

void window_remote_end(void)
{
	window_fetch_each(fetch_drop, NULL);
	while (spare) {
		struct window_fetch *fetch = spare;
		spare = *(struct window_fetch **)(void *)fetch;
		free(fetch);
	}
}
