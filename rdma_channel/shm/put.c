/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport's put: divides the caller's vector into records of the ring (ring.h) and offers (offer.c). */
#include "config.h"

#include "rdma_channel/shm/conn.h"

#include "rdma_channel/base/log.h"

#include <errno.h>

/* Pieces shorter than SHORT_BEHIND are put into the ring behind an open offer, in all up to one BEHIND_PART-th of the ring:
 * if the offers are taken back, these bytes need room a second time. */
#define SHORT_BEHIND 4096u
#define BEHIND_PART 8u

#define RECORD_LEAST 8192u /* minimum record size when a longer put is split, bytes */
#define RECORD_LEAST_NEAR 4096u /* the same if the processors are near: then both copies cost the same */
#define RECORD_MOST 16384u /* maximum, but a rest of less than RECORD_REST bytes gets no record of its own */
#define RECORD_REST 2048u
#define LONG_PIECE 4096u /* a piece of at least this size begins a record; bytes */
_Static_assert(SHM_FRONT_MAX + RECORD_MOST + RECORD_REST <= SHM_RECORD_MAX, "a record's length");

/* ---- records ---- */

/* Copies length bytes from the vector into the record's payload. */
static void fill_record(uint8_t *payload, uint32_t length, struct hr_iov_place *place, bool streaming)
{
	for (uint32_t done = 0; done < length;) {
		uint8_t *from;
		size_t count = hr_iov_piece(place, &from);
		if (count > length - done)
			count = length - done;
		if (streaming)
			shm_copy_streaming(payload + done, from, count);
		else
			shm_copy(payload + done, from, count);
		hr_iov_advance(place, count);
		done += (uint32_t)count;
	}
	if (streaming)
		shm_copy_done();
}

int shm_find_room(struct shm_conn *conn, uint32_t wanted)
{
	struct shm_sender *out = &conn->out;
	shm_sender_hear(out, &conn->in);
	uint32_t needed = shm_record_lines(shm_payload_offset(0, wanted), wanted) + SHM_SPARE;
	if (shm_sender_free(out) < needed && !shm_sender_refresh(out)) {
		hr_log(HR_LOG_ERROR, "shm: peer %s: protocol violation: it returned more ring space than it had", conn->env->peer);
		return -EPROTO;
	}
	uint32_t lines = shm_sender_usable(out);
	conn->wants_room = lines == 0;
	return (int)lines;
}

/* Puts one record of at most `wanted` bytes of the `left` bytes of the put, the first `front` of them before the first full line.
 * Returns its payload bytes, 0 if there is no room, or -EPROTO. */
static int put_record(struct shm_conn *conn, struct hr_iov_place *place, uint32_t front, uint32_t wanted, size_t left)
{
	struct shm_sender *out = &conn->out;
	int lines = shm_find_room(conn, wanted);
	if (lines <= 0)
		return lines;
	uint32_t length = shm_payload_of((uint32_t)lines);
	if (length >= wanted)
		length = wanted;
	else if (length > front + SHM_LINE) /* the next record continues at a line of the sender's memory */
		length -= (length - front) % SHM_LINE;
	uint8_t *record = (uint8_t *)shm_sender_word(out, out->head);
	uint32_t offset = shm_payload_offset(front < length ? front : 0, length);
	fill_record(record + offset, length, place, shm_streams_record(conn, length, shm_record_lines(offset, length)));
	shm_sender_publish(out, &conn->in, offset, length, length == left ? SHM_BACK : 0);
	return (int)length;
}

/* Returns about how many bytes of a long piece the next record takes. If the receiver waits for them, a quarter of what is left, so
 * that the receiver copies this record out while the next is copied in. In a stream earlier records do that. */
static size_t record_part(const struct shm_conn *conn, size_t left)
{
	if (conn->ring_in_use)
		return RECORD_MOST;
	size_t least = shm_is_near(conn) ? RECORD_LEAST_NEAR : RECORD_LEAST, part = left / 4 & ~(least - 1);
	return part < least ? least : part > RECORD_MOST ? RECORD_MOST : part;
}

/* Returns the payload bytes for the next record: at most the bytes before the first piece to be offered. A long piece begins a
 * record and ends one, but *front bytes of short pieces may lie before it, such as the header of a message: so the long piece
 * begins at a line. */
static uint32_t record_wanted(const struct shm_conn *conn, struct hr_iov_place place, size_t offered, size_t left, uint32_t *front)
{
	size_t part = record_part(conn, left), wanted = 0, piece;
	uint8_t *from;
	*front = 0;
	if (conn->by_ring)
		return (uint32_t)(conn->by_ring < part ? conn->by_ring : part);
	while (wanted < part && (piece = hr_iov_piece(&place, &from)) > 0 && piece < offered) {
		if (piece >= LONG_PIECE) {
			if (wanted > SHM_FRONT_MAX)
				break;
			*front = (uint32_t)wanted;
			return (uint32_t)(wanted + (piece < part + RECORD_REST ? piece : part));
		}
		wanted += piece;
		hr_iov_advance(&place, piece);
	}
	return (uint32_t)(wanted < part ? wanted : part);
}

/* Returns whether to put these bytes into the ring behind an open offer. */
static bool fits_behind(const struct shm_conn *conn, uint32_t wanted)
{
	size_t most = (size_t)(conn->out.mask + 1) * SHM_LINE / BEHIND_PART;
	uint64_t behind = conn->sent - shm_pusher_start(&conn->pusher) - shm_pusher_bytes(&conn->pusher);
	return wanted > 0 && !conn->by_ring && behind + wanted <= most;
}

/* ---- put ---- */

/* Puts the next offer or record. Returns the bytes sent, 0 if none can be sent for now, or -EPROTO. */
static ssize_t send_next(struct shm_conn *conn, struct hr_iov_place *place, size_t left)
{
	uint8_t *from;
	size_t piece = hr_iov_piece(place, &from), offered = shm_offered_from(conn);
	bool open = shm_pusher_open(&conn->pusher);
	int put;
	if (shm_offers(conn, piece, offered)) {
		put = shm_put_offer(conn, from, piece);
		if (put <= 0)
			return put;
		hr_iov_advance(place, piece);
		return (ssize_t)piece;
	}
	/* Behind an open offer only short pieces: a longer one is not divided, and waits. */
	uint32_t front, wanted = record_wanted(conn, *place, open ? SHORT_BEHIND : offered, left, &front);
	if (open && !fits_behind(conn, wanted))
		return 0;
	put = put_record(conn, place, front, wanted < left ? wanted : (uint32_t)left, left);
	if (put <= 0)
		return put;
	conn->by_ring -= conn->by_ring ? (uint32_t)put : 0;
	return put;
}

/* Sends the bytes of the vector that were not sent yet, as far as possible. place: its start; moved on. 0, or -EPROTO. */
static int send_more(struct shm_conn *conn, struct hr_iov_place *place, size_t total)
{
	uint64_t end = conn->accepted + total;
	uint32_t head = conn->out.head;
	ssize_t count = 1;
	conn->wants_room = false;
	if (conn->sent >= end)
		return 0;
	shm_sender_hear(&conn->out, &conn->in);
	conn->ring_in_use = conn->out.tail != conn->out.head;
	hr_iov_advance(place, (size_t)(conn->sent - conn->accepted));
	if (conn->restart)
		count = shm_put_restart(conn);
	while (count > 0 && conn->sent < end) {
		count = send_next(conn, place, (size_t)(end - conn->sent));
		conn->sent += count > 0 ? (size_t)count : 0;
	}
	if (conn->out.head != head) {
		shm_wake_if_armed(conn, &conn->out.control->get_armed);
		shm_present_if_streaming(conn);
	}
	return count < 0 ? (int)count : 0;
}

/* Returns how many bytes put may accept: those before the first open offer. */
static uint64_t acceptable(const struct shm_conn *conn)
{
	return (shm_pusher_open(&conn->pusher) ? shm_pusher_start(&conn->pusher) : conn->sent) - conn->accepted;
}

/* Accepts `count` bytes, at most total. */
static size_t accept_bytes(struct shm_conn *conn, uint64_t count, size_t total)
{
	count = count < total ? count : total;
	conn->accepted += count;
	return (size_t)count;
}

/* Puts as many bytes as are accepted now. Sets *accepted also if it fails. */
static int put_all(struct shm_conn *conn, struct hr_iov_place *place, size_t total, size_t *accepted)
{
	int error = shm_pusher_open(&conn->pusher) ? shm_drive_offers(conn) : 0;
	uint32_t head = conn->out.head;
	if (!error)
		error = send_more(conn, place, total);
	if (!error && shm_pusher_open(&conn->pusher) && conn->out.head != head)
		error = shm_drive_offers(conn);
	uint64_t more = acceptable(conn);
	*accepted = accept_bytes(conn, more, total);
	if (more > total && !error) {
		hr_log(HR_LOG_ERROR, "shm: hr_channel_put to %s: the call must begin with the bytes that were not accepted: %llu "
		       "more of these have been transferred", conn->env->peer, (unsigned long long)(more - total));
		return -EINVAL;
	}
	return error;
}

/* Returns whether bytes were sent that put has not accepted, or must be sent again. */
static inline bool is_ahead(const struct shm_conn *conn)
{
	return conn->sent != conn->accepted || conn->restart;
}

/* Fast path for a small message: one element that fits in one line. False: not this case, or no free line. */
static inline bool put_line(struct shm_conn *conn, const struct iovec *iov)
{
	struct shm_sender *out = &conn->out;
	size_t n = iov->iov_len;
	shm_sender_hear(out, &conn->in);
	if (n - 1 >= SHM_INLINE_MAX || shm_sender_free(out) < 1 + SHM_SPARE || is_ahead(conn))
		return false;
	shm_copy((uint8_t *)shm_sender_word(out, out->head) + 8, iov->iov_base, n);
	shm_sender_publish(out, &conn->in, 8, (uint32_t)n, SHM_BACK);
	conn->put_was_short = false;
	conn->was_answered = false;
	shm_wake_if_armed(conn, &out->control->get_armed);
	return true;
}

/* A put after the peer has ended. The peer may have answered offers before it ended: the bytes that it copied are accepted
 * first, then put fails. */
static int put_after_end(struct shm_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (shm_pusher_open(&conn->pusher) && shm_collect_answers(conn))
		return conn->ended;
	uint64_t more = acceptable(conn);
	if (!more)
		return conn->ended;
	size_t total = hr_iov_total(iov, n);
	*accepted = accept_bytes(conn, more, total);
	conn->put_was_short = *accepted < total;
	return 0;
}

/* Returns how many messages the first `accepted` bytes of the vector complete: elements that do not fit in one line. */
static unsigned long_pieces(const struct iovec *iov, int n, size_t accepted)
{
	unsigned count = 0;
	for (int i = 0; i < n && iov[i].iov_len <= accepted; i++) {
		accepted -= iov[i].iov_len;
		count += iov[i].iov_len > SHM_INLINE_MAX;
	}
	return count;
}

int shm_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct shm_conn *conn = data;
	if (__builtin_expect(conn->put_error, 0))
		return conn->put_error;
	if (__builtin_expect(conn->ended, 0))
		return put_after_end(conn, iov, n, accepted);
	if (n == 1 && put_line(conn, iov)) {
		*accepted = iov->iov_len;
		return 0;
	}
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	if (conn->was_answered && conn->long_puts) {
		conn->streams = conn->long_puts > 1;
		conn->long_puts = 0;
	}
	int error = put_all(conn, &place, total, accepted);
	if (error) {
		conn->put_error = error;
		return error;
	}
	if (*accepted)
		conn->was_answered = false;
	else
		shm_ask_stream_sometimes(conn);
	conn->put_was_short = *accepted < total;
	conn->long_puts += long_pieces(iov, n, *accepted);
	return 0;
}
