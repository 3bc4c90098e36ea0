/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a shared-memory pipe: a ring of 64-byte lines that holds records. A record starts on a line with a
 * header word; payload follows in the same line, so that a small message is one line and reaches the receiver with one
 * transfer between the two processors. A record never wraps: the sender cuts it at the end of the ring.
 *
 *	word 0: payload bytes (1..SHM_RECORD_MAX) and SHM_OFFER in the low half, the record's position in the high half
 *	payload: behind the word, or on the next line where it is SHM_ALIGNED_MIN bytes or more
 *
 * A record with SHM_OFFER carries no bytes of the pipe but tells where they lie (single.h).
 *
 * Positions count lines, modulo 2^32, from SHM_FIRST_POSITION on: they pass zero in every connection of some traffic,
 * and not only after 256 GB. The ring's size is a power of two.
 *
 * On put:  behind the last record the words of the next two lines are zero, so that what an earlier round left there is
 *          never taken for a header. The sender writes the payload, zeroes the word behind it where it is not yet zero
 *          (a record of more than one line), stores the word (release), and only then zeroes the second word behind:
 *          fetching that line, which the receiver had last, is off the path of a small message. Two lines always stay
 *          free for those zeros.
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
#define SHM_SPARE 2u /* lines behind the last record whose words are zero */
#define SHM_OFFER (1u << 31)
#define SHM_RECORD_MAX 32768u /* payload bytes: a piece of this size is copied out while the next is copied in */
#define SHM_ALIGNED_MIN 192u
#define SHM_FIRST_POSITION (0u - 4096u)
#define SHM_INLINE_MAX (SHM_LINE - 8u)

/* Where the receiver wants a part of what was offered (single.h). */
struct shm_grant {
	uint64_t address; /* in the receiver's memory */
	uint64_t offset;  /* in what was offered */
	uint64_t length, unit;
};

/* The control page of the segment. Each field has its line, and the line that is fetched with it, to itself. */
struct shm_control {
	_Alignas(128) uint32_t tail;      /* receiver stores, sender loads: all before this position is consumed */
	_Alignas(128) uint32_t get_armed; /* receiver sets before it sleeps for data; sender clears and wakes it */
	_Alignas(128) uint32_t put_armed; /* sender sets before it sleeps for room; receiver clears and wakes it */

	/* Single copy: single.h says how these are used. */
	_Alignas(128) uint32_t pulls;     /* receiver stores, sender loads: it can read the sender's memory */
	uint32_t near;                    /* receiver stores, sender loads: the two processors share a cache (near.h) */
	_Alignas(128) uint32_t offered;   /* both change it: the offer under way and whose it is (single.h) */
	uint32_t revoked;                 /* sender stores, receiver loads: what it offered is no longer there */
	_Alignas(128) uint64_t answer_bytes; /* receiver stores before answer: how much of the offer it took */
	uint32_t answer;                     /* receiver stores, sender loads: number of the offer that it is done with */
	_Alignas(128) struct shm_grant grant; /* receiver stores before claims */
	_Alignas(128) uint64_t claims;    /* both change it: which units of the grant are whose */
	_Alignas(128) uint64_t pushed;    /* sender stores, receiver loads: units of its own that are in place */
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
	bool offer;        /* it has SHM_OFFER */
	uint32_t taken;    /* of them, delivered */
	uint32_t reported; /* the tail last stored */
};

static inline uint32_t shm_payload_offset(uint32_t length)
{
	return length < SHM_ALIGNED_MIN ? 8 : SHM_LINE;
}

static inline uint32_t shm_record_lines(uint32_t length)
{
	return (shm_payload_offset(length) + length + SHM_LINE - 1) / SHM_LINE;
}

/* The largest payload whose record fits in so many lines. */
static inline uint32_t shm_payload_of(uint32_t lines)
{
	uint32_t with_word = lines * SHM_LINE - 8;
	uint32_t length = with_word < SHM_ALIGNED_MIN ? with_word : (lines - 1) * SHM_LINE;
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

/* The lines that a record may take: up to the end of the ring, up to the last free but the spare ones. */
static inline uint32_t shm_sender_usable(const struct shm_sender *sender)
{
	uint32_t to_end = sender->mask + 1 - (sender->head & sender->mask), empty = shm_sender_free(sender);
	uint32_t usable = empty > SHM_SPARE ? empty - SHM_SPARE : 0;
	return usable < to_end ? usable : to_end;
}

/* Publishes the record of length bytes whose payload is in place. kind: 0 or SHM_OFFER. */
static inline void shm_sender_publish(struct shm_sender *sender, uint32_t length, uint32_t kind)
{
	uint32_t lines = shm_record_lines(length), next = sender->head + lines;
	/* Relaxed: the release below orders it for a receiver that goes on from this record to the next word. */
	if (lines > 1)
		__atomic_store_n(shm_sender_word(sender, next), 0, __ATOMIC_RELAXED);
	uint64_t word = (uint64_t)sender->head << 32 | kind | length;
	/* Release: payload and the zeros are visible to whoever sees the word; pairs with shm_receiver_look. */
	__atomic_store_n(shm_sender_word(sender, sender->head), word, __ATOMIC_RELEASE);
	sender->head = next;
	/* Relaxed: the next record's release orders it, and before that no receiver gets there. */
	__atomic_store_n(shm_sender_word(sender, next + 1), 0, __ATOMIC_RELAXED);
}

/* ---- receiver ---- */

/* Is there a record to take from? 1 yes, 0 no, -1: what is there is no record. */
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
	uint32_t length = (uint32_t)word & ~SHM_OFFER;
	if (length - 1 >= SHM_RECORD_MAX || (uint32_t)(word >> 32) != receiver->at ||
	    shm_record_lines(length) > receiver->mask + 1 - index)
		return -1;
	receiver->length = length;
	receiver->offer = word & SHM_OFFER;
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
