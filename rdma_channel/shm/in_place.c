/* SPDX-License-Identifier: BSD-3-Clause */
/* Records in place (upper.h): ch3 builds a message in the ring that the peer receives from, and reads one in this side's ring. */
#include "config.h"

#include "rdma_channel/shm/conn.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/peer_copy.h"

#define PREFETCH_BYTES 1024u /* of a record in place, as many lines as a processor fetches at a time */
#define FURTHER_MOST 20u     /* after a record of more lines, none is prefetched (hr_conn_watch) */

/* ---- sending ---- */

/* Returns whether put fails, or bytes that put has not accepted must go before a record in place. */
static inline bool is_put_only(const struct shm_conn *conn)
{
	/* Without branches, as this is tested for each short message. */
	uint64_t errors = (unsigned)conn->put_error | (unsigned)conn->ended;
	return errors | (conn->sent ^ conn->accepted) | conn->by_ring | conn->restart;
}

/* Returns the memory for the `len` bytes of payload of the next record, and its offset in the record. NULL: the ring has no room,
 * or no record may be put now. */
static inline __attribute__((always_inline)) uint8_t *
place_record(struct shm_conn *conn, size_t front, size_t len, uint32_t *offset)
{
	struct shm_sender *out = &conn->out;
	if (is_put_only(conn))
		return NULL;
	shm_sender_hear(out, &conn->in);
	*offset = shm_payload_offset((uint32_t)front, (uint32_t)len);
	uint32_t lines = shm_record_lines(*offset, (uint32_t)len);
	if (shm_sender_free(out) < lines + SHM_SPARE && !shm_sender_refresh(out))
		return NULL;
	if (shm_sender_usable(out) < lines)
		return NULL;
	return (uint8_t *)shm_sender_word(out, out->head) + *offset;
}

static inline void note_reserved(struct shm_conn *conn, uint32_t offset, uint32_t len)
{
	conn->reserved = offset;
	conn->reserved_bytes = len;
	conn->fill_way = FILL_NOT_CHOSEN;
}

void *shm_reserve(void *data, size_t front, size_t len)
{
	struct shm_conn *conn = data;
	uint32_t offset;
	uint8_t *at = place_record(conn, front, len, &offset);
	if (at)
		note_reserved(conn, offset, (uint32_t)len);
	return at;
}

void shm_fill(void *data, void *to, const void *from, size_t len)
{
	struct shm_conn *conn = data;
	/* The record decides, not the piece. */
	if (conn->fill_way == FILL_NOT_CHOSEN) {
		uint32_t bytes = conn->reserved_bytes;
		bool streaming = shm_streams_record(conn, bytes, shm_record_lines(conn->reserved, bytes));
		conn->fill_way = streaming ? FILL_STREAMING : FILL_ORDINARY;
	}
	if (conn->fill_way == FILL_ORDINARY) {
		shm_copy(to, from, len);
		return;
	}
	shm_copy_streaming(to, from, len);
	shm_copy_done();
}

/* Publishes a record whose payload is in place. */
static inline __attribute__((always_inline)) void commit(struct shm_conn *conn, uint32_t offset, uint32_t len, uint32_t lines)
{
	shm_sender_publish_lines(&conn->out, &conn->in, offset, len, lines, SHM_BACK);
	conn->put_was_short = false;
	conn->was_answered = false;
	shm_wake_if_armed(conn, &conn->out.control->get_armed);
	shm_present_if_streaming(conn);
}

void shm_commit(void *data, size_t len)
{
	struct shm_conn *conn = data;
	commit(conn, conn->reserved, (uint32_t)len, shm_record_lines(conn->reserved, (uint32_t)len));
}

/* Does what shm_post does, for a record of one line: the compiler then knows the number of lines and the offset. */
static inline __attribute__((always_inline)) bool
post_line(struct shm_conn *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	struct shm_sender *out = &conn->out;
	if (__builtin_expect(is_put_only(conn), 0))
		return false;
	shm_sender_hear(out, &conn->in);
	/* A record of one line always fits before the end of the ring. */
	if (shm_sender_free(out) < 1 + SHM_SPARE && (!shm_sender_refresh(out) || shm_sender_free(out) < 1 + SHM_SPARE))
		return false;
	uint8_t *at = (uint8_t *)shm_sender_word(out, out->head) + 8;
	hr_copy(at, front, front_len);
	hr_copy(at + front_len, payload, len);
	commit(conn, 8, (uint32_t)(front_len + len), 1);
	return true;
}

/* The same of a record of several lines. */
static __attribute__((noinline)) bool
post_lines(struct shm_conn *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	uint32_t offset, bytes = (uint32_t)(front_len + len);
	uint8_t *at = place_record(conn, front_len < SHM_FRONT_MAX ? front_len : SHM_FRONT_MAX, bytes, &offset);
	if (!at)
		return false;
	/* The first line last: the receiver looks at it all the time, and could take it before the header word is stored. */
	size_t before = offset + front_len, first = before < SHM_LINE ? SHM_LINE - before : 0;
	const uint8_t *from = payload;
	if (len > first) {
		if (__builtin_expect(len - first < HR_FILL_MIN, 1)) {
			hr_copy(at + front_len + first, from + first, len - first);
		} else {
			note_reserved(conn, offset, bytes);
			shm_fill(conn, at + front_len + first, from + first, len - first);
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		len = first;
	}
	hr_copy(at, front, front_len);
	hr_copy(at + front_len, from, len);
	commit(conn, offset, bytes, shm_record_lines(offset, bytes));
	return true;
}

/* Does the work of shm_reserve and shm_commit in one call; most short messages are put in this way. It makes as few stores as
 * possible: a store into a line that was last in the receiver's cache waits, and the processor's queue of stores limits how many
 * such stores wait at the same time. */
bool shm_post(void *data, const void *front, size_t front_len, const void *payload, size_t len)
{
	return front_len + len <= SHM_INLINE_MAX ? post_line(data, front, front_len, payload, len) :
						   post_lines(data, front, front_len, payload, len);
}

/* ---- receiving ---- */

/* All lines at once: the caller reads the first ones before it knows where to copy the others. */
static inline void prefetch_record(const uint8_t *bytes, size_t len)
{
	for (size_t i = SHM_LINE - 1; i < len && i < PREFETCH_BYTES; i += SHM_LINE)
		__builtin_prefetch(bytes + i);
}

enum hr_arrival shm_peek(void *data, const uint8_t **bytes, size_t *len)
{
	struct shm_conn *conn = data;
	struct shm_receiver *in = &conn->in;
	if (conn->broken || conn->puller.open || conn->puller.drops)
		return HR_CALL_GET;
	conn->vain_puts = 0;
	int there = shm_receiver_look(in);
	if (there == 0) {
		shm_ask_stream_sometimes(conn);
		return conn->ended || conn->put_error ? HR_CALL_GET : HR_NOT_ARRIVED;
	}
	if (there < 0 || in->kind)
		return HR_CALL_GET;
	*bytes = shm_receiver_payload(in);
	*len = in->length - in->taken;
	prefetch_record(*bytes, *len);
	return HR_ARRIVED;
}

/* Returns the lines of the ring behind that of the next record. */
static inline uint32_t lines_to_end(const struct shm_receiver *in)
{
	return in->mask - (in->next.high & in->mask);
}

/* Counts `count` bytes of the current record as consumed. */
static inline void consume(struct shm_conn *conn, uint32_t count)
{
	struct shm_receiver *in = &conn->in;
	/* If records stream, the sender may be writing the lines behind this record. */
	uint32_t further = conn->was_answered || in->record_lines > FURTHER_MOST ? 0 : in->record_lines - 1;
	conn->was_answered = true;
	if (shm_receiver_take(in, count))
		shm_report_tail(conn);
	in->next.further = further && further > lines_to_end(in) ? lines_to_end(in) : further;
}

void shm_consume(void *data, size_t count)
{
	consume(data, (uint32_t)count);
}

int shm_take(void *data, hr_record_fn fn, void *context, unsigned most, uint64_t *taken)
{
	struct shm_conn *conn = data;
	struct shm_receiver *in = &conn->in;
	if ((in->length && in->taken) || conn->broken || conn->puller.open || conn->puller.drops)
		return 0;
	unsigned count = 0;
	while (count < most && shm_receiver_look(in) > 0 && !in->kind) {
		conn->vain_puts = 0;
		uint32_t length = in->length;
		const uint8_t *bytes = shm_receiver_payload(in);
		prefetch_record(bytes, length);
		int result = fn(context, bytes, length);
		if (result < 0)
			return result;
		if (!result)
			break;
		consume(conn, length);
		*taken += length;
		count++;
	}
	return (int)count;
}

/* The word of a record that is taken only in part stays. While an offer is open, the caller has a payload to get. */
struct hr_awaited *shm_watch(void *data)
{
	struct shm_conn *conn = data;
	return &conn->in.next;
}
