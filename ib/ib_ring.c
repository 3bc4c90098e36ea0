/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of chunks with flags, for the designs piggyback, pipeline and zerocopy. */
#include "ib/ib_ring.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { SIZE_MASK = (1 << IB_CHUNK_KIND_SHIFT) - 1 };

/* A chunk that has arrived. */
struct arrival {
	const struct ib_chunk_front *front;
	uint32_t size;
	enum ib_chunk_kind kind;
};

static uint64_t clamp(uint64_t value, uint64_t low, uint64_t high)
{
	return value < low ? low : value > high ? high : value;
}

struct ib_geometry ib_geometry_fit(uint64_t ring_bytes, uint64_t chunk_bytes)
{
	struct ib_geometry geometry;
	ring_bytes = clamp(ring_bytes, IB_CHUNKS_MIN * IB_CHUNK_BYTES_MIN, IB_RING_BYTES_MAX);
	chunk_bytes = chunk_bytes < ring_bytes / IB_CHUNKS_USUAL ? chunk_bytes : ring_bytes / IB_CHUNKS_USUAL;
	chunk_bytes = clamp(chunk_bytes, IB_CHUNK_BYTES_MIN, IB_CHUNK_BYTES_MAX);
	geometry.chunk_bytes = (uint32_t)(chunk_bytes & ~(uint64_t)(IB_CHUNK_ALIGN - 1));
	geometry.n_chunks = IB_CHUNKS_MIN;
	while (geometry.n_chunks < IB_CHUNKS_MAX && geometry.n_chunks * 2 <= ring_bytes / geometry.chunk_bytes)
		geometry.n_chunks *= 2;
	return geometry;
}

bool ib_geometry_valid(const struct ib_geometry *geometry)
{
	return geometry->chunk_bytes >= IB_CHUNK_BYTES_MIN && geometry->chunk_bytes <= IB_CHUNK_BYTES_MAX &&
	       geometry->chunk_bytes % IB_CHUNK_ALIGN == 0 && geometry->n_chunks >= IB_CHUNKS_MIN &&
	       geometry->n_chunks <= IB_CHUNKS_MAX && (geometry->n_chunks & (geometry->n_chunks - 1)) == 0 &&
	       (uint64_t)geometry->chunk_bytes * geometry->n_chunks <= IB_RING_BYTES_MAX;
}

size_t ib_geometry_bytes(const struct ib_geometry *geometry)
{
	return (size_t)geometry->chunk_bytes * geometry->n_chunks;
}

uint32_t ib_geometry_payload(const struct ib_geometry *geometry)
{
	return geometry->chunk_bytes - (uint32_t)(sizeof(struct ib_chunk_front) + sizeof(struct ib_chunk_end));
}

/* Returns the offset of the end of a chunk's slot. */
static uint32_t slot_end(const struct ib_geometry *geometry, uint32_t chunk)
{
	return geometry->chunk_bytes * ((chunk & (geometry->n_chunks - 1)) + 1);
}

/* Returns the number of bytes from the front to the end of the slot, for a payload of size bytes. */
static uint32_t span_len(uint32_t size)
{
	return (uint32_t)sizeof(struct ib_chunk_front) + ((size + 7) & ~7u) + (uint32_t)sizeof(struct ib_chunk_end);
}

void ib_gather(struct hr_iov_place *place, uint8_t *to, size_t len)
{
	while (len > 0) {
		uint8_t *from = NULL;
		size_t piece = hr_iov_piece(place, &from);
		piece = piece < len ? piece : len;
		memcpy(to, from, piece);
		hr_iov_advance(place, piece);
		to += piece;
		len -= piece;
	}
}

void ib_scatter(struct hr_iov_place *place, const uint8_t *from, size_t len)
{
	while (len > 0) {
		uint8_t *to = NULL;
		size_t piece = hr_iov_piece(place, &to);
		piece = piece < len ? piece : len;
		memcpy(to, from, piece);
		hr_iov_advance(place, piece);
		from += piece;
		len -= piece;
	}
}

/* ---- the sending end ---- */

void ib_sender_init(struct ib_sender *sender, const struct ib_geometry *geometry, uint8_t *staging)
{
	*sender = (struct ib_sender){ .geometry = *geometry, .staging = staging };
}

uint32_t ib_sender_room(const struct ib_sender *sender)
{
	return sender->geometry.n_chunks - (sender->head - sender->tail);
}

/* Writes the flags of the next chunk, around size payload bytes. Returns the address for the payload. */
static uint8_t *open_chunk(struct ib_sender *sender, enum ib_chunk_kind kind, uint32_t size, uint32_t tail,
			   struct ib_span *span)
{
	uint32_t seq = htole32(sender->head + 1);
	span->len = span_len(size);
	span->offset = slot_end(&sender->geometry, sender->head) - span->len;

	struct ib_chunk_front front = { .seq = seq, .tail = htole32(tail) };
	struct ib_chunk_end end = { .size = htole32(size | (uint32_t)kind << IB_CHUNK_KIND_SHIFT), .seq = seq };
	uint8_t *at = sender->staging + span->offset;
	memcpy(at, &front, sizeof front);
	memcpy(at + span->len - sizeof end, &end, sizeof end);
	sender->head++;
	return at + sizeof front;
}

uint32_t ib_sender_build(struct ib_sender *sender, struct hr_iov_place *place, size_t left, uint32_t tail,
			 struct ib_span *span)
{
	uint32_t capacity = ib_geometry_payload(&sender->geometry);
	uint32_t size = left < capacity ? (uint32_t)left : capacity;
	ib_gather(place, open_chunk(sender, IB_CHUNK_DATA, size, tail, span), size);
	return size;
}

void ib_sender_announce(struct ib_sender *sender, const struct ib_announcement *announcement, uint32_t tail,
			struct ib_span *span)
{
	struct ib_announcement wire = { htole64(announcement->address), htole32(announcement->rkey), 0,
					htole64(announcement->len) };
	memcpy(open_chunk(sender, IB_CHUNK_ANNOUNCEMENT, sizeof wire, tail, span), &wire, sizeof wire);
}

struct ib_span ib_sender_span(const struct ib_sender *sender, uint32_t chunk)
{
	uint32_t top = slot_end(&sender->geometry, chunk);
	struct ib_chunk_end end;
	memcpy(&end, sender->staging + top - sizeof end, sizeof end);
	uint32_t len = span_len(le32toh(end.size) & SIZE_MASK);
	return (struct ib_span){ top - len, len };
}

int ib_sender_credit(struct ib_sender *sender, uint32_t tail)
{
	/* An older tail may arrive later, as tails travel in two ways, and a half-written tail looks older: ignore
	 * it. */
	if ((int32_t)(tail - sender->tail) <= 0)
		return 0;
	if ((int32_t)(sender->head - tail) < 0)
		return -EPROTO;
	sender->tail = tail;
	return 0;
}

/* ---- the receiving end ---- */

void ib_receiver_init(struct ib_receiver *receiver, const struct ib_geometry *geometry, const uint8_t *ring)
{
	*receiver = (struct ib_receiver){ .geometry = *geometry, .ring = ring };
}

/* Looks for a chunk, one of the n_chunks from receiver->next on. Returns 1 if it has arrived completely, 0 if not yet,
 * -EPROTO if its size or kind is invalid. */
static int arrived(const struct ib_receiver *receiver, uint32_t chunk, struct arrival *arrival)
{
	uint32_t seq = htole32(chunk + 1);
	const uint8_t *top = receiver->ring + slot_end(&receiver->geometry, chunk);
	const struct ib_chunk_end *end = (const void *)(top - sizeof *end);
	/* Acquire: size, payload and front are read after this flag. The peer's adapter writes them before it (see
	 * ib_ring.h). */
	if (__atomic_load_n(&end->seq, __ATOMIC_ACQUIRE) != seq)
		return 0;
	/* Relaxed: ordered by the flag. Loaded only once, as the peer could change the word after the checks. */
	uint32_t word = le32toh(__atomic_load_n(&end->size, __ATOMIC_RELAXED));
	arrival->size = word & SIZE_MASK;
	arrival->kind = (enum ib_chunk_kind)(word >> IB_CHUNK_KIND_SHIFT);
	if (arrival->size == 0 || arrival->size > ib_geometry_payload(&receiver->geometry) ||
	    arrival->kind > IB_CHUNK_ANNOUNCEMENT ||
	    (arrival->kind == IB_CHUNK_ANNOUNCEMENT && arrival->size != sizeof(struct ib_announcement)))
		return -EPROTO;
	arrival->front = (const void *)(top - span_len(arrival->size));
	/* Acquire, as above. This check matters only if the adapter writes out of order. */
	return __atomic_load_n(&arrival->front->seq, __ATOMIC_ACQUIRE) == seq;
}

bool ib_receiver_ready(const struct ib_receiver *receiver)
{
	struct arrival arrival;
	return arrived(receiver, receiver->next, &arrival) != 0;
}

bool ib_receiver_is_announcement(const struct ib_receiver *receiver)
{
	struct arrival arrival;
	return arrived(receiver, receiver->next, &arrival) > 0 && arrival.kind == IB_CHUNK_ANNOUNCEMENT;
}

bool ib_receiver_is_data(const struct ib_receiver *receiver)
{
	struct arrival arrival;
	int found = arrived(receiver, receiver->next, &arrival);
	/* An invalid chunk counts as data: ib_receiver_take then reports it. */
	return found < 0 || (found > 0 && arrival.kind == IB_CHUNK_DATA);
}

bool ib_receiver_is_short(const struct ib_receiver *receiver, uint32_t most)
{
	struct arrival arrival;
	return arrived(receiver, receiver->next, &arrival) > 0 && arrival.kind == IB_CHUNK_DATA &&
	       arrival.size - receiver->used <= most;
}

bool ib_receiver_holds_announcement(const struct ib_receiver *receiver)
{
	struct arrival arrival;
	for (uint32_t i = 0; i < receiver->geometry.n_chunks; i++) {
		if (arrived(receiver, receiver->next + i, &arrival) <= 0)
			return false;
		if (arrival.kind == IB_CHUNK_ANNOUNCEMENT)
			return true;
	}
	return false;
}

/* Stores the next chunk's tail in *tail, unless ib_receiver_peek has returned it already. */
static void hear_tail(struct ib_receiver *receiver, const struct ib_chunk_front *front, uint32_t *tail)
{
	if (receiver->peeked != receiver->next)
		return;
	*tail = le32toh(front->tail);
	receiver->peeked++;
}

int ib_receiver_take(struct ib_receiver *receiver, struct hr_iov_place *place, size_t left, uint32_t *tail)
{
	struct arrival arrival;
	int found = arrived(receiver, receiver->next, &arrival);
	if (found <= 0)
		return found;
	if (arrival.kind != IB_CHUNK_DATA || arrival.size <= receiver->used)
		return -EPROTO;
	uint32_t rest = arrival.size - receiver->used;
	uint32_t take = left < rest ? (uint32_t)left : rest;
	ib_scatter(place, (const uint8_t *)(arrival.front + 1) + receiver->used, take);
	hear_tail(receiver, arrival.front, tail);
	receiver->used += take;
	if (receiver->used == arrival.size) {
		receiver->used = 0;
		receiver->next++;
	}
	return (int)take;
}

void ib_receiver_take_announcement(struct ib_receiver *receiver, struct ib_announcement *announcement, uint32_t *tail)
{
	/* The chunk was checked before. Do not read its flag and size again, as the peer could have changed them. */
	const uint8_t *top = receiver->ring + slot_end(&receiver->geometry, receiver->next);
	const struct ib_chunk_front *front = (const void *)(top - span_len(sizeof *announcement));
	struct ib_announcement wire;
	memcpy(&wire, front + 1, sizeof wire);
	*announcement = (struct ib_announcement){ le64toh(wire.address), le32toh(wire.rkey), le32toh(wire.reserved),
						  le64toh(wire.len) };
	hear_tail(receiver, front, tail);
	receiver->used = 0;
	receiver->next++;
}

bool ib_receiver_peek(struct ib_receiver *receiver, uint32_t *tail)
{
	struct arrival arrival;
	if (receiver->peeked - receiver->next >= receiver->geometry.n_chunks ||
	    arrived(receiver, receiver->peeked, &arrival) <= 0)
		return false;
	*tail = le32toh(arrival.front->tail);
	receiver->peeked++;
	return true;
}

bool ib_receiver_owes(const struct ib_receiver *receiver)
{
	return receiver->next - receiver->tail_told >= receiver->geometry.n_chunks / 2 ||
	       receiver->next - receiver->tail_written >= IB_TAIL_WRITTEN_EVERY;
}
