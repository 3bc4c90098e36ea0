/* SPDX-License-Identifier: BSD-3-Clause */
/* Receiving: parses packets in the inbox, calls handlers, reads payloads into their sinks. */
#include "ch3/internal.h"

#include "rdma_channel/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static int bad_packet(const ch3_vc_t *vc, const struct ch3_packet *packet, const char *why)
{
	hr_log(HR_LOG_ERROR,
	       "ch3: packet from %s: %s (type %u, flags %#x, header %u, payload %" PRIu32 ", sequence %u for %u)",
	       hr_conn_peer(vc->conn), why, packet->type, packet->flags, packet->header_len, packet->payload_len,
	       packet->sequence, vc->receive.sequence);
	return -EPROTO;
}

static int packet_check(const ch3_vc_t *vc, const struct ch3_packet *packet)
{
	if (packet->sequence != vc->receive.sequence)
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
	receive->left = payload_len;
	receive->moved = 0;
	receive->ahead = payload_len > CH3_INBOX ? CH3_INBOX_BEHIND : CH3_INBOX;
}

static void payload_end(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	ch3_done_fn done = receive->done;
	receive->in_payload = false;
	if (receive->rndv) {
		ch3_rndv_free(receive->rndv);
		receive->rndv = NULL;
	}
	if (done) {
		receive->done = NULL;
		vc->engine->ran++;
		done(receive->context, 0, receive->moved);
	}
}

/* A message of the layer above whose payload follows at once. */
static int message_start(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_t *engine = vc->engine;
	struct ch3_receive *receive = &vc->receive;
	ch3_incoming_t incoming = { vc, front->header, front->header_len, front->payload_len, NULL };
	ch3_sink_t *sink = &receive->sink;
	sink->n = 0;
	sink->done = NULL;
	sink->context = NULL;
	sink->defer = false;
	engine->ran++;
	int error = engine->handler[front->type].fn(engine->handler[front->type].context, &incoming, sink);
	if (error)
		return error;
	if (sink->n < 0 || sink->n > CH3_SINK_IOV || sink->defer)
		return -EINVAL;
	if (front->payload_len <= receive->end - receive->begin) {
		size_t moved = ch3_scatter(sink->iov, sink->n, receive->inbox + receive->begin, front->payload_len);
		receive->begin += (uint32_t)front->payload_len;
		receive->ahead = CH3_INBOX;
		if (sink->done) {
			engine->ran++;
			sink->done(sink->context, 0, moved);
		}
		return 0;
	}
	receive->cursor = (struct ch3_cursor){ sink->iov, sink->n };
	ch3_cursor_trim(&receive->cursor, front->payload_len);
	receive->done = sink->done;
	receive->context = sink->context;
	payload_start(receive, front->payload_len);
	return 0;
}

static int front_start(ch3_vc_t *vc, const struct ch3_front *front)
{
	int error;
	if (front->type == CH3_PACKET_CLEAR)
		return ch3_rndv_cleared(vc, front);
	if (front->type == CH3_PACKET_DONE)
		return ch3_write_done(vc, front);
	if (front->type == CH3_PACKET_DATA) {
		error = ch3_rndv_data(vc, front);
		if (!error)
			payload_start(&vc->receive, front->payload_len);
		return error;
	}
	return front->flags & CH3_PACKET_WAITS ? ch3_rndv_announced(vc, front) : message_start(vc, front);
}

/* Payload bytes that came along in the inbox: into the sink, the rest dropped. */
static void payload_from_inbox(struct ch3_receive *receive)
{
	size_t some = receive->end - receive->begin;
	if (some > receive->left)
		some = (size_t)receive->left;
	receive->moved += ch3_cursor_fill(&receive->cursor, receive->inbox + receive->begin, some);
	receive->begin += (uint32_t)some;
	receive->left -= some;
}

/* Takes a front out of the inbox. 1: done; 0: it is not all there yet. */
static int front_take(ch3_vc_t *vc, struct ch3_front *front)
{
	struct ch3_receive *receive = &vc->receive;
	const uint8_t *at = receive->inbox + receive->begin;
	size_t have = receive->end - receive->begin;
	struct ch3_packet packet;
	if (have < sizeof packet)
		return 0;
	memcpy(&packet, at, sizeof packet);
	int error = packet_check(vc, &packet);
	if (error)
		return error;
	struct ch3_packet_more more = { packet.payload_len, 0, 0 };
	size_t fixed = sizeof packet + (packet.flags & CH3_PACKET_MORE ? sizeof more : 0);
	if (have < fixed + packet.header_len)
		return 0;
	if (packet.flags & CH3_PACKET_MORE) {
		memcpy(&more, at + sizeof packet, sizeof more);
		error = more_check(vc, &packet, &more);
		if (error)
			return error;
	}
	*front = (struct ch3_front){ packet.type, packet.flags, packet.header_len, at + fixed,
				     more.payload_len, more.sender_id, more.receiver_id };
	receive->begin += (uint32_t)(fixed + packet.header_len);
	receive->sequence++;
	return 1;
}

/* Everything the inbox holds, up to a front that is not complete or a payload that is not. */
static int inbox_process(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	for (;;) {
		if (receive->in_payload) {
			payload_from_inbox(receive);
			if (receive->left > 0)
				return 0;
			payload_end(vc);
		}
		struct ch3_front front;
		int taken = front_take(vc, &front);
		if (taken <= 0)
			return taken;
		int error = front_start(vc, &front);
		if (error)
			return error;
	}
}

/* Makes room behind what is left in the inbox, which is less than one front. */
static void inbox_compact(struct ch3_receive *receive)
{
	receive->end -= receive->begin;
	if (receive->end > 0)
		memmove(receive->inbox, receive->inbox + receive->begin, receive->end);
	receive->begin = 0;
}

int ch3_receive_some(ch3_vc_t *vc, bool *more)
{
	struct ch3_receive *receive = &vc->receive;
	struct iovec iov[CH3_IOV_MAX + 1];
	int n = 0;
	size_t direct = 0;
	if (receive->begin > 0)
		inbox_compact(receive);
	if (receive->in_payload)
		for (; n < receive->cursor.n; n++) {
			iov[n] = receive->cursor.piece[n];
			direct += iov[n].iov_len;
		}
	size_t room = receive->ahead > receive->end ? receive->ahead - receive->end : 0;
	if (receive->in_payload && receive->left - direct > receive->ahead)
		room = CH3_INBOX - receive->end; /* a long tail to drop */
	iov[n++] = (struct iovec){ receive->inbox + receive->end, room };

	size_t delivered = 0;
	int error = hr_channel_get(vc->conn, iov, n, &delivered);
	if (error)
		return error;
	*more = delivered == direct + room;
	if (delivered == 0)
		return 0;
	if (direct > 0) {
		size_t into_sink = delivered < direct ? delivered : direct;
		ch3_cursor_advance(&receive->cursor, into_sink);
		receive->moved += into_sink;
		receive->left -= into_sink;
		delivered -= into_sink;
	}
	receive->end += (uint32_t)delivered;
	return inbox_process(vc);
}
