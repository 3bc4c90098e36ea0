/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations on the memory of this process by messages: the target's side. Everything that a message says is checked here; the
 * origin has reported wrong arguments of the program before, except addresses in dynamic windows, which only the target knows. */
#include "adi/window/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SINK_PIECES 8
#define SEND_LEAST 512 /* as in remote.c: least average bytes of pieces that are sent as a vector */
#define SPARES 16
#define TYPE_MAX (1u << 28) /* bytes of a datatype from the wire */

/* A payload on its way to a place that it cannot be received into directly. */
struct landing {
	struct landing *next;
	struct adi_win_origin *origin;
	const struct adi_peer *peer;
	struct adi_type *type; /* of the target's data; holds a reference; NULL: one run */
	struct adi_op *op;
	unsigned packet;       /* WINDOW_* */
	struct window_access header;
	size_t room;
	_Alignas(16) char data[];
};

static struct landing *spare;
static int spares;

static struct landing *landing_new(struct adi_win_origin *origin, const ch3_incoming_t *incoming, unsigned packet,
				   const struct window_access *header)
{
	size_t bytes = (size_t)incoming->payload_len, room = bytes > WINDOW_PIECE ? bytes : WINDOW_PIECE;
	struct landing *landing = room == WINDOW_PIECE ? spare : NULL;
	if (landing) {
		spare = landing->next;
		spares--;
	} else {
		landing = malloc(sizeof *landing + room);
	}
	if (!landing) {
		hr_log(HR_LOG_ERROR, "adi: no memory for %zu bytes of an operation of a window", room);
		return NULL;
	}
	*landing = (struct landing){ .origin = origin, .peer = ch3_vc_user(incoming->vc), .packet = packet, .header = *header,
				     .room = room };
	if (header->count > 0) {
		landing->type = origin->type;
		adi_object_retain(&landing->type->object);
	}
	origin->pending++;
	return landing;
}

static void landing_end(struct landing *landing)
{
	struct adi_win_origin *origin = landing->origin;
	if (landing->type)
		adi_type_release(landing->type);
	if (landing->room == WINDOW_PIECE && spares < SPARES) {
		landing->next = spare;
		spare = landing;
		spares++;
	} else {
		free(landing);
	}
	if (--origin->pending == 0)
		window_origin_idle(origin);
}

/* ---- checks ---- */

static int violation(const ch3_incoming_t *incoming, const char *what)
{
	const struct adi_peer *peer = ch3_vc_user(incoming->vc);
	hr_log(HR_LOG_ERROR, "adi: protocol violation: rank %d sent an operation of a window with an invalid %s", peer->rank, what);
	return -EPROTO;
}

/* Reads the header and finds the window. Returns NULL if they are invalid. */
static struct adi_win_origin *header_read(const ch3_incoming_t *incoming, struct window_access *header)
{
	if (incoming->header_len != sizeof *header) {
		violation(incoming, "length");
		return NULL;
	}
	memcpy(header, incoming->header, sizeof *header);
	struct adi_win *win = window_of_packet(incoming, header->slot, header->origin);
	return win ? &win->origin[header->origin] : NULL;
}

/* Stores in *first and *bytes the memory that the operation touches, as offset from header->offset. False: invalid. */
static bool span_of(const struct adi_type *type, const struct window_access *header, MPI_Count *first, MPI_Count *bytes)
{
	*first = 0;
	*bytes = (MPI_Count)header->bytes;
	if (header->count == 0)
		return header->bytes > 0 && header->bytes <= INT64_MAX;
	MPI_Count extent, data, ignored;
	if (!type || header->count > INT64_MAX || __builtin_mul_overflow((MPI_Count)header->count, type->extent, &extent) ||
	    __builtin_mul_overflow((MPI_Count)header->count, type->size, &data) || header->bytes == 0 ||
	    (uint64_t)data < header->bytes || __builtin_add_overflow(extent, type->true_extent, &ignored))
		return false;
	*bytes = adi_type_span(type, (MPI_Count)header->count, first);
	return *bytes >= 0;
}

bool window_attached(const struct adi_win *win, const char *address, MPI_Aint bytes)
{
	int low = 0, high = win->regions; /* the last region that does not begin behind the address is at high - 1 */
	while (low < high) {
		int middle = (low + high) / 2;
		if ((uintptr_t)win->region[middle].base <= (uintptr_t)address)
			low = middle + 1;
		else
			high = middle;
	}
	if (high == 0)
		return false;
	/* Regions that follow each other directly count as one. */
	const struct adi_win_region *region = &win->region[high - 1], *last = &win->region[win->regions - 1];
	while (region < last && region->base + region->size == region[1].base && region->base + region->size < address + bytes)
		region++;
	uintptr_t end = (uintptr_t)region->base + (uintptr_t)region->size, at = (uintptr_t)address;
	return at <= end && (uintptr_t)bytes <= end - at;
}

/* Finds the memory of an operation. *class: MPI_SUCCESS, or the error that the origin gets. Returns 0 or -EPROTO. */
static int place_find(const ch3_incoming_t *incoming, const struct adi_win_origin *origin, const struct window_access *header,
		      struct window_place *place, int *class)
{
	const struct adi_win *win = origin->win;
	MPI_Count first, bytes;
	if (!span_of(origin->type, header, &first, &bytes))
		return violation(incoming, "count or datatype");
	uint64_t begin = header->offset + (uint64_t)first;
	*place = (struct window_place){ .count = (MPI_Count)header->count, .type = header->count ? origin->type : NULL };
	if (win->flavor == MPI_WIN_FLAVOR_DYNAMIC) {
		place->at = (char *)(uintptr_t)header->offset;
		*class = window_attached(win, (char *)(uintptr_t)begin, bytes) ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
		return 0;
	}
	place->at = (char *)win->base + header->offset;
	*class = MPI_SUCCESS;
	if (begin > (uint64_t)win->size || (uint64_t)bytes > (uint64_t)win->size - begin)
		return violation(incoming, "displacement");
	return 0;
}

static void failed(struct adi_win_origin *origin, int class)
{
	if (!origin->class)
		origin->class = class;
}

/* ---- put ---- */

static void on_put_in_place(void *context, int error, size_t bytes)
{
	(void)bytes;
	struct adi_win_origin *origin = context;
	if (error)
		failed(origin, adi_class(error));
	if (--origin->pending == 0)
		window_origin_idle(origin);
}

static void on_put_landed(void *context, int error, size_t bytes)
{
	struct landing *landing = context;
	struct adi_stream stream;
	const struct window_access *header = &landing->header;
	int class = adi_class(error);
	if (!class)
		class = adi_stream_start(&stream, (char *)landing->origin->win->base + header->offset, (MPI_Count)header->count,
					 landing->type);
	if (!class)
		adi_stream_unpack(&stream, landing->data, bytes);
	else
		failed(landing->origin, class);
	landing_end(landing);
}

/* Describes the place of a put as a sink. Returns an error class; *whole: the sink has room for all. */
static int put_sink(const struct window_place *place, size_t bytes, ch3_sink_t *sink, bool *whole)
{
	*whole = true;
	if (!place->type) {
		sink->iov[0] = (struct iovec){ place->at, bytes };
		sink->n = 1;
		return MPI_SUCCESS;
	}
	struct adi_stream stream;
	size_t some = 0;
	int class = adi_stream_start(&stream, place->at, place->count, place->type);
	if (!class)
		sink->n = adi_stream_pieces(&stream, sink->iov, SINK_PIECES, bytes, &some);
	*whole = some == bytes;
	return class;
}

int window_on_put(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	struct window_access header;
	struct window_place place;
	int class;
	bool whole;
	struct adi_win_origin *origin = header_read(incoming, &header);
	if (!origin)
		return -EPROTO;
	if (incoming->payload_len != header.bytes)
		return violation(incoming, "payload");
	int error = place_find(incoming, origin, &header, &place, &class);
	if (error)
		return error;
	if (!class)
		class = put_sink(&place, header.bytes, sink, &whole);
	if (class) {
		failed(origin, class);
		sink->n = 0;
	} else if (!whole) {
		struct landing *landing = landing_new(origin, incoming, WINDOW_PUT, &header);
		if (!landing)
			return -ENOMEM;
		sink->iov[0] = (struct iovec){ landing->data, header.bytes };
		sink->n = 1;
		sink->done = on_put_landed;
		sink->context = landing;
		return 0;
	}
	origin->pending++;
	sink->done = on_put_in_place;
	sink->context = origin;
	return 0;
}

/* ---- get ---- */

static void reply_failure(const struct adi_peer *peer, uint64_t id, uint64_t at, uint64_t lost, int class)
{
	struct window_reply reply = { .id = id, .at = at, .class = (uint32_t)class, .lost = lost };
	/* If this fails, the connection has failed, and the origin knows. */
	ch3_send(peer->vc, WINDOW_REPLY, &reply, sizeof reply, NULL, 0, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
}

static int get_reply(struct adi_win_origin *origin, struct adi_peer *peer, const struct window_access *header,
		     const struct window_place *place)
{
	struct window_reply reply = { .id = header->id };
	struct iovec iov[CH3_IOV_MAX] = { { place->at, header->bytes } };
	int n = 1;
	void *memory = NULL;
	if (place->type) {
		struct adi_stream stream;
		size_t some = 0;
		int class = adi_stream_start(&stream, place->at, place->count, place->type);
		if (class)
			return class;
		n = adi_stream_pieces(&stream, iov, CH3_IOV_MAX, header->bytes, &some);
		if (some != header->bytes || some / (size_t)n < SEND_LEAST) {
			memory = malloc(header->bytes);
			if (!memory)
				return MPI_ERR_NO_MEM;
			adi_stream_seek(&stream, 0);
			adi_stream_pack(&stream, memory, header->bytes);
			iov[0] = (struct iovec){ memory, header->bytes };
			n = 1;
		}
	}
	/* The send counts as pending: until it is complete the memory must not change, so the epoch must not end. */
	window_send(peer, WINDOW_REPLY, &reply, sizeof reply, iov, n, 0, memory, &origin->pending, origin, NULL);
	return MPI_SUCCESS;
}

int window_on_get(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	(void)sink;
	struct window_access header;
	struct window_place place;
	int class;
	struct adi_win_origin *origin = header_read(incoming, &header);
	if (!origin)
		return -EPROTO;
	if (incoming->payload_len != 0)
		return violation(incoming, "payload");
	int error = place_find(incoming, origin, &header, &place, &class);
	if (error)
		return error;
	struct adi_peer *peer = ch3_vc_user(incoming->vc);
	if (!class)
		class = get_reply(origin, peer, &header, &place);
	if (class)
		reply_failure(peer, header.id, 0, header.bytes, class);
	return 0;
}

/* ---- accumulate, fetch, compare and swap ---- */

/* An accumulate whose place is not valid: its data were dropped. */
static void on_accumulate_dropped(void *context, int error, size_t bytes)
{
	(void)bytes;
	struct landing *landing = context;
	const struct window_access *header = &landing->header;
	if (!error && landing->packet == WINDOW_ACCUMULATE)
		failed(landing->origin, MPI_ERR_RMA_RANGE);
	else if (!error)
		reply_failure(landing->peer, header->id, header->at,
			      landing->packet == WINDOW_SWAP ? header->bytes : header->piece, MPI_ERR_RMA_RANGE);
	landing_end(landing);
}

static int accumulate(struct landing *landing, char *old)
{
	const struct window_access *header = &landing->header;
	struct window_place place = { (char *)landing->origin->win->base + header->offset, landing->type,
				      (MPI_Count)header->count };
	switch (landing->packet) {
	case WINDOW_SWAP:
		window_swap((enum adi_basic)header->basic, place.at, landing->data, landing->data + header->bytes, old, false);
		return MPI_SUCCESS;
	case WINDOW_FETCH:
		return window_fetch_apply(landing->op, (enum adi_basic)header->basic, &place, header->at, landing->data,
					  header->piece, old, false);
	default:
		return window_apply(landing->op, (enum adi_basic)header->basic, &place, header->at, landing->data, header->piece,
				    false);
	}
}

static void on_accumulate_landed(void *context, int error, size_t unused)
{
	(void)unused;
	static _Alignas(16) char old[WINDOW_PIECE];
	struct landing *landing = context;
	const struct window_access *header = &landing->header;
	size_t bytes = landing->packet == WINDOW_SWAP ? header->bytes : header->piece;
	int class = error ? adi_class(error) : accumulate(landing, old);
	struct window_reply reply = { .id = header->id, .at = header->at };
	struct iovec iov = { old, bytes };
	if (!error && class && landing->packet != WINDOW_ACCUMULATE)
		reply_failure(landing->peer, header->id, header->at, bytes, class);
	else if (class)
		failed(landing->origin, class);
	else if (landing->packet != WINDOW_ACCUMULATE)
		ch3_send(landing->peer->vc, WINDOW_REPLY, &reply, sizeof reply, &iov, 1, CH3_SEND_EAGER | CH3_SEND_COPY, NULL);
	landing_end(landing);
}

static bool is_op(const struct adi_op *op, MPI_Op handle)
{
	return op->object.constant == (uintptr_t)handle;
}

/* Checks the description of the elements. NULL: it is valid. */
static const char *elements_fault(const struct adi_win_origin *origin, const ch3_incoming_t *incoming, unsigned packet,
				  const struct window_access *header, struct adi_op **op)
{
	size_t size = window_basic_size((enum adi_basic)header->basic);
	enum adi_basic basic = (enum adi_basic)header->basic;
	if (size == 0 || (header->count && (!origin->type || origin->type->basic != basic)))
		return "datatype";
	if (packet == WINDOW_SWAP)
		return header->count || header->bytes != size || header->piece != 2 * size || incoming->payload_len != 2 * size ?
			       "payload" : NULL;
	if (header->op == 0 || header->op >= ADI_CONSTANTS || adi_op_take((MPI_Op)(uintptr_t)header->op, "op", op))
		return "operation";
	bool no_op = is_op(*op, MPI_NO_OP);
	if ((no_op && packet != WINDOW_FETCH) || !adi_op_defined(*op, basic))
		return "operation";
	if (header->piece == 0 || header->piece > WINDOW_PIECE || incoming->payload_len != (no_op ? 0 : header->piece) ||
	    header->piece % size || header->at % size || header->bytes % size || header->at > header->bytes ||
	    header->piece > header->bytes - header->at)
		return "payload";
	return NULL;
}

int window_on_accumulate(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	unsigned packet = (unsigned)(uintptr_t)context;
	struct window_access header;
	struct window_place place;
	struct adi_op *op = NULL;
	int class;
	struct adi_win_origin *origin = header_read(incoming, &header);
	if (!origin)
		return -EPROTO;
	const char *fault = incoming->rndv ? "payload" : elements_fault(origin, incoming, packet, &header, &op);
	if (fault)
		return violation(incoming, fault);
	int error = place_find(incoming, origin, &header, &place, &class);
	if (error)
		return error;
	struct landing *landing = landing_new(origin, incoming, packet, &header);
	if (!landing)
		return -ENOMEM;
	landing->op = op;
	sink->iov[0] = (struct iovec){ landing->data, incoming->payload_len };
	sink->n = incoming->payload_len > 0;
	sink->done = class ? on_accumulate_dropped : on_accumulate_landed;
	sink->context = landing;
	return 0;
}

/* ---- types ---- */

static void on_type_landed(void *context, int error, size_t bytes)
{
	struct landing *landing = context;
	struct adi_win_origin *origin = landing->origin;
	struct adi_type *type;
	/* If the bytes are no type, the next operation finds none. */
	if (origin->type)
		adi_type_release(origin->type);
	origin->type = NULL;
	if (!error && !adi_type_from_wire(landing->data, bytes, &type))
		origin->type = type;
	landing_end(landing);
}

int window_on_type(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	(void)context;
	struct window_control control;
	struct window_access header = { .count = 0 };
	if (incoming->header_len != sizeof control || incoming->payload_len > TYPE_MAX || incoming->rndv)
		return violation(incoming, "datatype");
	memcpy(&control, incoming->header, sizeof control);
	struct adi_win *win = window_of_packet(incoming, control.slot, control.sender);
	if (!win)
		return -EPROTO;
	struct landing *landing = landing_new(&win->origin[control.sender], incoming, WINDOW_TYPE, &header);
	if (!landing)
		return -ENOMEM;
	sink->iov[0] = (struct iovec){ landing->data, incoming->payload_len };
	sink->n = incoming->payload_len > 0;
	sink->done = on_type_landed;
	sink->context = landing;
	return 0;
}

void window_target_end(void)
{
	while (spare) {
		struct landing *landing = spare;
		spare = landing->next;
		free(landing);
	}
	spares = 0;
}
