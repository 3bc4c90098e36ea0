/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a shared-memory pipe: a ring of 64-byte lines that holds records. A record starts on a line with a
 * header word; payload follows in the same line, so that a small message is one line and reaches the receiver with one
 * transfer between the two processors. A record never wraps: the sender cuts it at the end of the ring.
 *
 *	word 0: payload bytes (1..SHM_RECORD_MAX) in the low half, the record's position in the high half
 *	payload: behind the word, or on the next line where it is SHM_STREAM_MIN bytes or more
 *
 * Positions count lines, modulo 2^32, from SHM_FIRST_POSITION on: they pass zero in every connection of some traffic,
 * and not only after 256 GB. The ring's size is a power of two.
 *
 * On put:  the sender zeroes the word where the next record will start, writes the payload, then stores the word
 *          (release). So behind the last record there is always a zero word, and what an earlier round left in the
 *          line is never taken for a header. One line always stays free for that zero.
 * On get:  the receiver loads the word at its position (acquire); zero: nothing there. When it has taken a whole
 *          record it goes on to the next; after every eighth of the ring it stores its position to tail (release).
 * Room:    the sender keeps the last tail it saw and loads it again (acquire) only when that does not suffice.
 *          A tail of its own suffices, unlike with verbs, where it rides on data the other way: storing it costs the
 *          receiver nothing, as it waits for no answer, and the sender can go on when it puts and never gets.
 */
#ifndef HR_SHM_RING_H
#define HR_SHM_RING_H

#include "rdma_channel/iov.h"
#include "rdma_channel/shm/copy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_LINE 64u
#define SHM_RECORD_MAX 32768u /* payload bytes: a piece of this size is copied out while the next is copied in */
#define SHM_FIRST_POSITION (0u - 4096u)
#define SHM_INLINE_MAX (SHM_LINE - 8u)

/* The shared head of the segment. Each field has its line, and the line that is fetched with it, to itself. */
struct shm_control {
	_Alignas(128) uint32_t tail;      /* receiver stores, sender loads: all before this position is consumed */
	_Alignas(128) uint32_t get_armed; /* receiver sets before it sleeps for data; sender clears and wakes it */
	_Alignas(128) uint32_t put_armed; /* sender sets before it sleeps for room; receiver clears and wakes it */
};
#define SHM_CONTROL_BYTES 4096u
_Static_assert(sizeof(struct shm_control) <= SHM_CONTROL_BYTES, "segment layout");

struct shm_sender {
	struct shm_control *control;
	uint8_t *lines;
	uint32_t mask; /* lines - 1 */
	uint32_t head; /* where the next record starts */
	uint32_t tail; /* the last seen */
};

struct shm_receiver {
	struct shm_control *control;
	uint8_t *lines;
	uint32_t mask;
	uint32_t at;       /* where the record under way, or the next, starts */
	uint32_t length;   /* its payload bytes; 0: none under way */
	uint32_t taken;    /* of them, delivered */
	uint32_t reported; /* the tail last stored */
};

static inline uint32_t shm_payload_offset(uint32_t length)
{
	return length < SHM_STREAM_MIN ? 8 : SHM_LINE;
}

static inline uint32_t shm_record_lines(uint32_t length)
{
	return (shm_payload_offset(length) + length + SHM_LINE - 1) / SHM_LINE;
}

/* The largest payload whose record fits in so many lines. */
static inline uint32_t shm_payload_of(uint32_t lines)
{
	uint32_t with_word = lines * SHM_LINE - 8;
	uint32_t length = with_word < SHM_STREAM_MIN ? with_word : (lines - 1) * SHM_LINE;
	return length < SHM_RECORD_MAX ? length : SHM_RECORD_MAX;
}

/* ---- sender ---- */

static inline uint64_t *shm_sender_word(const struct shm_sender *sender, uint32_t position)
{
	return (uint64_t *)(void *)(sender->lines + (size_t)(position & sender->mask) * SHM_LINE);
}

static inline uint32_t shm_sender_free(const struct shm_sender *sender)
{
	return sender->mask + 1 - (sender->head - sender->tail);
}

/* Loads the tail anew; false if it is where no receiver can be. Acquire: pairs with the release in shm_receiver_report;
 * the receiver's loads of the lines up to it were before, so they may be overwritten. */
static inline bool shm_sender_refresh(struct shm_sender *sender)
{
	uint32_t tail = __atomic_load_n(&sender->control->tail, __ATOMIC_ACQUIRE);
	if (tail - sender->tail > sender->head - sender->tail)
		return false;
	sender->tail = tail;
	return true;
}

/* Publishes the record of length bytes whose payload is in place. */
static inline void shm_sender_publish(struct shm_sender *sender, uint32_t length)
{
	uint32_t next = sender->head + shm_record_lines(length);
	/* Relaxed: the release below orders it for a receiver that goes on from this record to the next word. */
	__atomic_store_n(shm_sender_word(sender, next), 0, __ATOMIC_RELAXED);
	uint64_t word = (uint64_t)sender->head << 32 | length;
	/* Release: payload and the zero above are visible to whoever sees the word; pairs with shm_receiver_look. */
	__atomic_store_n(shm_sender_word(sender, sender->head), word, __ATOMIC_RELEASE);
	sender->head = next;
}

/* ---- receiver ---- */

/* Is there payload to take? 1 yes, 0 no, -1: what is there is no record. */
static inline int shm_receiver_look(struct shm_receiver *receiver)
{
	if (receiver->length)
		return 1;
	uint32_t index = receiver->at & receiver->mask;
	const uint64_t *at = (const uint64_t *)(const void *)(receiver->lines + (size_t)index * SHM_LINE);
	/* Acquire: pairs with the release in shm_sender_publish; the payload is read after it. */
	uint64_t word = __atomic_load_n(at, __ATOMIC_ACQUIRE);
	if (!word)
		return 0;
	uint32_t length = (uint32_t)word;
	if (length - 1 >= SHM_RECORD_MAX || (uint32_t)(word >> 32) != receiver->at ||
	    shm_record_lines(length) > receiver->mask + 1 - index)
		return -1;
	receiver->length = length;
	receiver->taken = 0;
	return 1;
}

/* The payload not yet delivered of the record under way. */
static inline const uint8_t *shm_receiver_payload(const struct shm_receiver *receiver)
{
	const uint8_t *record = receiver->lines + (size_t)(receiver->at & receiver->mask) * SHM_LINE;
	return record + shm_payload_offset(receiver->length) + receiver->taken;
}

/* So many bytes have been copied out; true if the tail is due to be told. */
static inline bool shm_receiver_take(struct shm_receiver *receiver, uint32_t count)
{
	receiver->taken += count;
	if (receiver->taken < receiver->length)
		return false;
	receiver->at += shm_record_lines(receiver->length);
	receiver->length = 0;
	return receiver->at - receiver->reported > receiver->mask / 8;
}

/* Release: the loads of the lines given back were before; pairs with shm_sender_refresh. */
static inline void shm_receiver_report(struct shm_receiver *receiver)
{
	receiver->reported = receiver->at;
	__atomic_store_n(&receiver->control->tail, receiver->at, __ATOMIC_RELEASE);
}

#endif
