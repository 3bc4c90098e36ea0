/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looking ahead: while a long payload is being received, reads the fronts of the messages behind it (hr_conn_ahead) and
 * adds the buffers of these messages to the vector of the next get. Over verbs the adapter then reads several payloads at
 * a time.
 *
 * Such a message is a segment: the bytes of its front, which get delivers once more and which are dropped, then its
 * payload. The fronts are handled in the order of the pipe, and done is called in the same order, when a segment has been
 * received. Only messages that may be handled while an earlier payload is incomplete become segments: ch3's CLEAR and DATA,
 * and the types of ch3_register_ahead.
 */
#include "ch3/internal.h"

#include <stdlib.h>

/* Maximum number of segments, and of the buffers of all payloads in one get. */
#define SEGMENTS 16
#define PIECES (2 * CH3_IOV_MAX)
static_assert(CH3_AHEAD_IOV == PIECES + SEGMENTS + 1, "a get with all segments and the inbox");

struct segment {
	uint32_t front;        /* bytes before the payload that were handled already */
	int error;             /* the front was invalid, or its handler failed: the connection fails when it is reached */
	struct ch3_payload payload;
};

struct ch3_ahead {
	struct segment segment[SEGMENTS];
	unsigned first, n;     /* segment[first..first+n-1], modulo SEGMENTS */
	uint32_t front_taken;  /* bytes of the first segment's front that were received */
	bool last;             /* nothing may follow the last segment: its payload is not received into buffers alone */
	uint8_t dropped[CH3_FRONT_MAX]; /* target of fronts */
};

static struct segment *segment_at(struct ch3_ahead *ahead, unsigned i)
{
	return &ahead->segment[(ahead->first + i) % SEGMENTS];
}

/* Returns whether the payload goes into buffers alone, so that it is known where the next message begins. */
static bool goes_into_buffers(const struct ch3_payload *payload)
{
	return !payload->unpack && payload->left == ch3_cursor_bytes(&payload->cursor);
}

static bool may_go_ahead(const ch3_vc_t *vc, unsigned type)
{
	return type == CH3_PACKET_CLEAR || type == CH3_PACKET_DATA || (type < CH3_TYPES && vc->engine->handler[type].ahead);
}

/* Asks the layer above, if it wants to be asked. */
static bool is_allowed(ch3_vc_t *vc, const struct ch3_front *front)
{
	ch3_incoming_t incoming = { vc, front->header, front->header_len, front->payload_len, NULL };
	if (front->type >= CH3_TYPES || !vc->engine->handler[front->type].may_ahead)
		return true;
	return !(front->flags & CH3_PACKET_WAITS) &&
	       vc->engine->handler[front->type].may_ahead(vc->engine->handler[front->type].context, &incoming);
}

/* Handles the front at bytes as the next segment. Returns false if it has not arrived completely or may not be handled yet. */
static bool segment_add(ch3_vc_t *vc, const uint8_t *bytes, size_t len)
{
	struct ch3_ahead *ahead = vc->receive.segments;
	struct ch3_front front;
	struct ch3_source source = { bytes, len, NULL };
	if (len < sizeof(struct ch3_packet) || !may_go_ahead(vc, ((const struct ch3_packet *)(const void *)bytes)->type))
		return false;
	int taken = ch3_front_take(vc, &source, &front);
	if (taken == 0)
		return false;
	if (taken > 0 && !is_allowed(vc, &front)) {
		vc->receive.sequence--; /* the front will be taken again */
		return false;
	}
	struct segment *segment = segment_at(ahead, ahead->n++);
	segment->front = (uint32_t)(len - source.left);
	segment->payload = (struct ch3_payload){ .left = 0 };
	segment->error = taken < 0 ? taken : ch3_front_handle(vc, &front, &segment->payload);
	ahead->last = segment->error || !goes_into_buffers(&segment->payload);
	return true;
}

/* Returns the bytes from here to the end of the last segment, and the number of buffers of their payloads. */
static uint64_t extent(ch3_vc_t *vc, int *pieces)
{
	struct ch3_receive *receive = &vc->receive;
	struct ch3_ahead *ahead = receive->segments;
	uint64_t bytes = receive->in_payload ? receive->payload.left : 0;
	*pieces = receive->in_payload ? receive->payload.cursor.n : 0;
	for (unsigned i = 0; i < ahead->n; i++) {
		const struct segment *segment = segment_at(ahead, i);
		bytes += segment->front - (i == 0 ? ahead->front_taken : 0) + segment->payload.left;
		*pieces += segment->payload.cursor.n;
	}
	return bytes;
}

static bool segments_ready(struct ch3_receive *receive)
{
	if (!receive->segments)
		receive->segments = calloc(1, sizeof *receive->segments);
	return receive->segments;
}

void ch3_ahead_look(ch3_vc_t *vc)
{
	struct ch3_receive *receive = &vc->receive;
	uint8_t bytes[CH3_FRONT_MAX] __attribute__((aligned(8)));
	int pieces;
	if (receive->begin < receive->end || (receive->in_payload ? !goes_into_buffers(&receive->payload) : !ch3_ahead_pending(vc)))
		return;
	/* Ask before there is memory for segments: most payloads are followed by nothing that has arrived. */
	if (!receive->segments && !hr_conn_ahead(vc->conn, receive->payload.left, bytes, sizeof bytes))
		return;
	if (!segments_ready(receive))
		return;
	struct ch3_ahead *ahead = receive->segments;
	while (!ahead->last && ahead->n < SEGMENTS) {
		uint64_t skip = extent(vc, &pieces);
		if (pieces > PIECES - CH3_IOV_MAX ||
		    !segment_add(vc, bytes, hr_conn_ahead(vc->conn, skip, bytes, sizeof bytes)))
			return;
	}
}

bool ch3_ahead_pending(const ch3_vc_t *vc)
{
	return vc->receive.segments && vc->receive.segments->n > 0;
}

bool ch3_ahead_goes_on(const ch3_vc_t *vc)
{
	return !vc->receive.segments || !vc->receive.segments->last;
}

int ch3_ahead_vector(const ch3_vc_t *vc, struct iovec iov[CH3_AHEAD_IOV])
{
	const struct ch3_receive *receive = &vc->receive;
	struct ch3_ahead *ahead = receive->segments;
	int n = 0;
	for (int i = 0; receive->in_payload && i < receive->payload.cursor.n; i++)
		iov[n++] = receive->payload.cursor.piece[i];
	for (unsigned k = 0; ahead && k < ahead->n; k++) {
		const struct segment *segment = segment_at(ahead, k);
		iov[n++] = (struct iovec){ ahead->dropped, segment->front - (k == 0 ? ahead->front_taken : 0) };
		if (ahead->last && k == ahead->n - 1)
			break;
		for (int i = 0; i < segment->payload.cursor.n; i++)
			iov[n++] = segment->payload.cursor.piece[i];
	}
	return n;
}

int ch3_ahead_next(ch3_vc_t *vc, size_t *bytes)
{
	struct ch3_receive *receive = &vc->receive;
	struct ch3_ahead *ahead = receive->segments;
	const struct segment *segment = segment_at(ahead, 0);
	size_t left = segment->front - ahead->front_taken, some = *bytes < left ? *bytes : left;
	ahead->front_taken += (uint32_t)some;
	*bytes -= some;
	if (some < left)
		return 0;
	if (segment->error)
		return segment->error;
	ch3_payload_begin(receive, &segment->payload);
	ahead->front_taken = 0;
	ahead->first++;
	ahead->last = --ahead->n > 0 && ahead->last;
	return 1;
}

void ch3_ahead_cancel(ch3_vc_t *vc, int error)
{
	struct ch3_ahead *ahead = vc->receive.segments;
	while (ahead && ahead->n > 0) {
		struct ch3_payload payload = segment_at(ahead, 0)->payload;
		ahead->first++;
		ahead->n--;
		if (payload.rndv)
			ch3_rndv_free(payload.rndv);
		if (payload.done)
			payload.done(payload.context, error, 0);
	}
}
