/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: parses packets in the inbox, calls handlers, reads payloads into their sinks. */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Room of a get for which shared memory does not copy from process to process, bytes. */
#define SHORT_GET 2048u

static int bad_packet(const ch3_vc_t *vc, const struct ch3_packet *packet, const char *why)
{
	hr_log(HR_LOG_ERROR,
	       "ch3: packet from %s: %s (type %u, flags %#x, header %u, payload %" PRIu32 ", sequence %u for %u)",
	       hr_conn_peer(vc->conn), why, packet->type, packet->flags, packet->header_len, packet->payload_len,
	       packet->sequence, (unsigned)(uint8_t)vc->receive.sequence);
	return -EPROTO;
}

static int packet_check(const ch3_vc_t *vc, const struct ch3_packet *packet)
{
	if (packet->sequence != (uint8_t)vc->receive.sequence)
		return bad_packet(vc, packet, "out of sequence");
	if (packet->flags & CH3_PACKET_MORE && packet->payload_len)
		return bad_packet(vc, packet, "malformed");
	if (packet->type == CH3_PACKET_CLEAR && packet->header_len <= CH3_PLACES_MAX * sizeof(struct ch3_place) &&
	    packet->header_len % sizeof(struct ch3_place) == 0)
		return packet->flags != CH3_PACKET_MORE ? bad_packet(vc, packet, "malformed") : 0;
	if (packet->type == CH3_PACKET_CLEAR || packet->type == CH3_PACKET_DATA || packet->type == CH3_PACKET_DONE)
		return packet->flags != CH3_PACKET_MORE || packet->header_len ? bad_packet(vc, packet, "malformed") : 0;
	if (packet->type >= CH3_TYPES || !vc->engine->handler[packet->type].fn)
		return bad_packet(vc, packet, "of an unknown type");
	if (packet->header_len > CH3_HEADER_MAX)
		return bad_packet(vc, packet, "too long a header");
	unsigned kind = packet->flags & CH3_PACKET_WAITS ? packet->flags & ~(unsigned)CH3_PACKET_WRITES : packet->flags;
	if (kind && kind != CH3_PACKET_MORE && kind != (CH3_PACKET_MORE | CH3_PACKET_WAITS))
		return bad_packet(vc, packet, "malformed");
	return 0;
}

static int more_check(const ch3_vc_t *vc, const struct ch3_packet *packet, const struct ch3_packet_more *more)
{
	if (packet->type >= CH3_TYPE_FIRST &&
	    (more->receiver_id || !(packet->flags & CH3_PACKET_WAITS) != !more->sender_id))
		return bad_packet(vc, packet, "malformed");
	return 0;
}

static void payload_start(struct ch3_receive *receive, uint64_t payload_len)
{
	receive->in_payload = true;
	receive->payload.left = payload_len;
	receive->payload.moved = 0;
	receive->ahead = payload_len > CH3_INBOX ? CH3_INBOX_BEHIND : CH3_INBOX;
}

void ch3_payload_begin(struct ch3_receive *receive, const struct ch3_payload *payload)
{
	receive->payload = *payload;
	if (payload->cursor.piece == payload->sink.iov)
		receive->payload.cursor.piece = receive->payload.sink.iov;
	payload_start(receive, payload->left);
}

static void payload_end(ch3_vc_t *vc)
{
	struct ch3_payload *payload = &vc->receive.payload;
	ch3_done_fn done = payload->done;
	vc->receive.in_payload = false;
	payload->unpack = NULL;
	if (payload->rndv) {
		ch3_rndv_free(payload->rndv);
		payload->rndv = NULL;
	}
	if (done) {
		payload->done = NULL;
		vc->engine->ran++;
		done(payload->context, 0, payload->moved);
	}
}

static inline void source_skip(struct ch3_source *source, size_t bytes)
{
	source->at += bytes;
	source->left -= bytes;
}

/* Takes a whole payload. Returns the number of bytes stored. */
static inline size_t sink_take(const ch3_sink_t *sink, const struct ch3_source *source, size_t len)
{
	if (!sink->unpack)
		return ch3_scatter(sink->iov, sink->n, source->at, len, source->conn);
	size_t some = len < sink->room ? len : sink->room;
	if (some > 0)
		sink->unpack(sink->context, source->at, some);
	return some;
}

/* Calls the handler of an eager message, for the buffers. */
static inline int message_open(ch3_vc_t *vc, const struct ch3_front *front, ch3_sink_t *sink)
{
	ch3_t *engine = vc->engine;
	ch3_incoming_t incoming = { vc, front->header, front->header_len, front->payload_len, NULL };
	sink->n = 0;
	sink->done = NULL;
	sink->context = NULL;
	sink->defer = false;
	sink->unpack = NULL;
	engine->ran++;
	int error = engine->handler[front->type].fn(engine->handler[front->type].context, &incoming, sink);
	if (error)
		return error;
	return sink->n < 0 || sink->n > CH3_SINK_IOV || sink->defer ? -EINVAL : 0;
}

/* Makes the buffers of payload->sink the target of the payload. */
static void payload_aim(struct ch3_payload *payload, uint64_t payload_len)
{
	ch3_sink_t *sink = &payload->sink;
	payload->unpack = sink->unpack;
	payload->room = sink->room;
	payload->cursor = (struct ch3_cursor){ sink->iov, sink->unpack ? 0 : sink->n };
	ch3_cursor_trim(&payload->cursor, payload_len);
	payload->done = sink->done;
	payload->context = sink->context;
}

/* Handles the front of an eager message: calls the handler, then copies the payload if all of it has arrived. */
static int message_start(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_source *source)
{
	struct ch3_receive *receive = &vc->receive;
	ch3_sink_t *sink = &receive->payload.sink;
	int error = message_open(vc, front, sink);
	if (error)
		return error;
	if (front->payload_len <= source->left) {
		size_t moved = sink_take(sink, source, front->payload_len);
		source_skip(source, front->payload_len);
		receive->ahead = CH3_INBOX;
		if (sink->done) {
			vc->engine->ran++;
			sink->done(sink->context, 0, moved);
		}
		return 0;
	}
	payload_aim(&receive->payload, front->payload_len);
	payload_start(receive, front->payload_len);
	return 0;
}

int ch3_front_handle(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_payload *payload)
{
	if (front->type == CH3_PACKET_CLEAR)
		return ch3_rndv_cleared(vc, front);
	if (front->flags & CH3_PACKET_WAITS)
		return ch3_rndv_announced(vc, front);
	int error = front->type == CH3_PACKET_DATA ? ch3_rndv_data(vc, front, payload) : message_open(vc, front, &payload->sink);
	if (error)
		return error;
	if (front->type != CH3_PACKET_DATA)
		payload_aim(payload, front->payload_len);
	payload->left = front->payload_len;
	return 0;
}

static int front_start(ch3_vc_t *vc, const struct ch3_front *front, struct ch3_source *source)
{
	int error;
	if (front->type == CH3_PACKET_CLEAR)
		return ch3_rndv_cleared(vc, front);
	if (front->type == CH3_PACKET_DONE)
		return ch3_write_done(vc, front);
	if (front->type == CH3_PACKET_DATA) {
		error = ch3_rndv_data(vc, front, &vc->receive.payload);
		if (!error)
			payload_start(&vc->receive, front->payload_len);
		return error;
	}
	return front->flags & CH3_PACKET_WAITS ? ch3_rndv_announced(vc, front) : message_start(vc, front, source);
}

/* Copies payload bytes into the sink. Bytes beyond the sink's size are dropped. */
static void payload_take(struct ch3_payload *payload, struct ch3_source *source)
{
	size_t some = source->left < payload->left ? source->left : (size_t)payload->left;
	if (payload->unpack) {
		size_t wanted = some < payload->room ? some : (size_t)payload->room;
		if (wanted > 0)
			payload->unpack(payload->context, source->at, wanted);
		payload->room -= wanted;
		payload->moved += wanted;
	} else {
		payload->moved += ch3_cursor_fill(&payload->cursor, source->at, some, source->conn);
	}
	payload->left -= some;
	source_skip(source, some);
}

/* Copies bytes that the peer may change at any time. The compiler must not read them again instead of the copy. */
static inline void copy_once(void *to, const void *from, size_t len)
{
	hr_copy(to, from, len);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/* Copies a front, then checks the copy: the peer may change the bytes of a record in place at any time. Returns 1, 0 if
 * the front is not complete yet, or a negated errno value. */
static int front_take(ch3_vc_t *vc, struct ch3_source *source, struct ch3_front *front)
{
	const uint8_t *at = source->at;
	struct ch3_packet packet;
	if (source->left < sizeof packet)
		return 0;
	copy_once(&packet, at, sizeof packet);
	int error = packet_check(vc, &packet);
	if (error)
		return error;
	struct ch3_packet_more more = { packet.payload_len, 0, 0 };
	size_t fixed = sizeof packet + (packet.flags & CH3_PACKET_MORE ? sizeof more : 0);
	if (source->left < fixed + packet.header_len)
		return 0;
	if (packet.flags & CH3_PACKET_MORE) {
		copy_once(&more, at + sizeof packet, sizeof more);
		error = more_check(vc, &packet, &more);
		if (error)
			return error;
	}
	front->type = packet.type;
	front->flags = packet.flags;
	front->header_len = packet.header_len;
	front->payload_len = more.payload_len;
	front->sender_id = more.sender_id;
	front->receiver_id = more.receiver_id;
	copy_once(front->header, at + fixed, packet.header_len);
	source_skip(source, fixed + packet.header_len);
	vc->receive.sequence++;
	return 1;
}

int ch3_front_take(ch3_vc_t *vc, struct ch3_source *source, struct ch3_front *front)
{
	return front_take(vc, source, front);
}

/* Parses the source until it is empty or ends with an incomplete front. */
static int process(ch3_vc_t *vc, struct ch3_source *source)
{
	struct ch3_receive *receive = &vc->receive;
	for (;;) {
		if (receive->in_payload) {
			payload_take(&receive->payload, source);
			if (receive->payload.left > 0)
				return 0;
			payload_end(vc);
		}
		struct ch3_front front;
		int taken = front_take(vc, source, &front);
		if (taken <= 0)
			return taken;
		int error = front_start(vc, &front, source);
		if (error)
			return error;
	}
}

static int inbox_process(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	struct ch3_source source = { receive->inbox + receive->begin, receive->end - receive->begin, NULL };
	int error = process(vc, &source);
	receive->begin = receive->end - (uint32_t)source.left;
	return error;
}

/* Handles the record that arrived in place, if it is one message whose type has a function for short messages. Returns 1, 0
 * if it must be parsed, or a negated errno value. Nothing that was read of it is used again after 0. */
static int record_short(void *context, const uint8_t *bytes, size_t len)
{
	ch3_vc_t *vc = context;
	struct ch3_packet packet;
	uint8_t header[CH3_HEADER_MAX];
	if (len < sizeof packet)
		return 0;
	copy_once(&packet, bytes, sizeof packet);
	if (packet.type >= CH3_TYPES || packet.flags || packet.header_len > sizeof header ||
	    packet.sequence != (uint8_t)vc->receive.sequence || sizeof packet + packet.header_len + (uint64_t)packet.payload_len != len)
		return 0;
	ch3_t *engine = vc->engine;
	if (!engine->handler[packet.type].short_fn)
		return 0;
	copy_once(header, bytes + sizeof packet, packet.header_len);
	vc->receive.sequence++;
	int handled = engine->handler[packet.type].short_fn(engine->handler[packet.type].context, vc, header, packet.header_len,
							    bytes + sizeof packet + packet.header_len, packet.payload_len);
	if (handled <= 0) {
		vc->receive.sequence--;
		return handled;
	}
	engine->ran++;
	return 1;
}

void ch3_copy_short(ch3_vc_t *vc, void *to, const void *payload, size_t n)
{
	if (n < HR_DRAIN_MIN)
		hr_copy(to, payload, n);
	else
		hr_conn_drain(vc->conn, to, payload, n);
}

int ch3_receive_short(ch3_vc_t *vc, unsigned most)
{
	return hr_conn_take(vc->conn, record_short, vc, most);
}

/* Parses the record that arrived in place. Returns 1, a negated errno value, or 0 if its last bytes are the beginning of
 * a front, which has to be completed in the inbox. */
static __attribute__((noinline)) int record_process(ch3_vc_t *vc, const uint8_t *bytes, size_t len)
{
	struct ch3_source source = { bytes, len, vc->conn };
	int error = process(vc, &source);
	if (error)
		return error;
	if (source.left < len)
		hr_conn_consume(vc->conn, len - source.left);
	return source.left == 0;
}

/* Moves the unconsumed bytes to the start of the inbox. They are less than one front. */
static void inbox_compact(struct ch3_receive *receive)
{
	receive->end -= receive->begin;
	if (receive->end > 0)
		memmove(receive->inbox, receive->inbox + receive->begin, receive->end);
	receive->begin = 0;
}

/* Returns how many bytes a get may receive into the inbox, behind `direct` bytes of the payload and of messages ahead. */
static size_t inbox_room(const ch3_vc_t *vc, size_t direct)
{
	const struct ch3_receive *receive = &vc->receive;
	if (!ch3_ahead_goes_on(vc))
		return 0;
	size_t room = receive->ahead > receive->end ? receive->ahead - receive->end : 0;
	if (receive->in_payload && receive->payload.left > direct + receive->ahead)
		room = CH3_INBOX - receive->end; /* the payload is much longer than the sink: drop the rest quickly */
	/* If the payload's sender offers it for single copy, a short get makes the transport send it in records instead,
	 * which can be unpacked in place. */
	if (receive->payload.unpack && room > SHORT_GET && hr_conn_in_place(vc->conn))
		room = SHORT_GET;
	return room;
}

/* Records that the payload and the messages ahead have received up to *bytes bytes, and completes those that are there.
 * *bytes is the rest. */
static int buffers_filled(ch3_vc_t *vc, size_t *bytes)
{
	struct ch3_receive *receive = &vc->receive;
	for (;;) {
		if (receive->in_payload) {
			struct ch3_payload *payload = &receive->payload;
			size_t room = ch3_cursor_bytes(&payload->cursor), some = *bytes < room ? *bytes : room;
			ch3_cursor_advance(&payload->cursor, some);
			payload->moved += some;
			payload->left -= some;
			*bytes -= some;
			if (payload->left > 0 || !ch3_ahead_pending(vc))
				return 0;
			payload_end(vc);
		} else if (!ch3_ahead_pending(vc)) {
			return 0;
		}
		int begun = ch3_ahead_next(vc, bytes);
		if (begun <= 0)
			return begun;
	}
}

/* Calls hr_channel_get once, into the buffers of the payload and of messages ahead and into the inbox, and parses what
 * arrived in the inbox. */
static __attribute__((noinline)) int receive_by_get(ch3_vc_t *vc, bool *more)
{
	struct ch3_receive *receive = &vc->receive;
	struct iovec iov[CH3_AHEAD_IOV];
	if (receive->begin > 0)
		inbox_compact(receive);
	ch3_ahead_look(vc);
	int n = ch3_ahead_vector(vc, iov);
	size_t direct = ch3_cursor_bytes(&(struct ch3_cursor){ iov, n }), room = inbox_room(vc, direct);
	iov[n++] = (struct iovec){ receive->inbox + receive->end, room };

	size_t delivered = 0;
	vc->engine->cost += CH3_COST_GET;
	int error = hr_channel_get(vc->conn, iov, n, &delivered);
	if (error)
		return error;
	*more = delivered == direct + room;
	if (delivered == 0)
		return 0;
	vc->engine->moved++;
	error = buffers_filled(vc, &delivered);
	if (error)
		return error;
	receive->end += (uint32_t)delivered;
	return inbox_process(vc);
}

int ch3_receive_some(ch3_vc_t *vc, bool *more)
{
	struct ch3_receive *receive = &vc->receive;
	if ((!receive->in_payload || receive->payload.unpack) && receive->begin == receive->end && !ch3_ahead_pending(vc)) {
		const uint8_t *bytes;
		size_t len;
		enum hr_arrival arrival = hr_conn_peek(vc->conn, &bytes, &len);
		/* Handle only one record per poll: looking for the next one takes a cache miss, and would delay the
		 * caller's answer to this record. */
		*more = false;
		if (arrival != HR_CALL_GET && !vc->watch)
			vc->watch = hr_conn_watch(vc->conn);
		if (arrival == HR_NOT_ARRIVED)
			return 0;
		int processed = 0;
		if (arrival == HR_ARRIVED && !receive->in_payload)
			processed = record_short(vc, bytes, len);
		if (processed > 0) {
			hr_conn_consume(vc->conn, len);
			*more = vc->send_error;
			return 0;
		}
		if (arrival == HR_ARRIVED && processed == 0)
			processed = record_process(vc, bytes, len);
		if (processed < 0)
			return processed;
		if (processed > 0) {
			vc->engine->moved += receive->in_payload;
			*more = vc->send_error || receive->in_payload;
			return 0;
		}
	}
	return receive_by_get(vc, more);
}
