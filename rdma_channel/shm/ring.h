/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One direction of a shared-memory pipe: a ring of 64-byte lines that holds records. A record starts at the start of a
 * line with an 8-byte header word. The payload follows in the same line, so a small message is one line, and one
 * transfer between the two processors brings it to the receiver. A record never wraps: the sender splits the bytes at
 * the end of the ring. Records start at every second line only, at even positions: processors prefetch lines in pairs,
 * and so the receiver that looks at the next record does not take away lines of the record that the sender writes. If a
 * record has an odd number of lines, the line behind it stays unused. A line of the models in test/model is such a pair.
 *
 *	word:    low half: payload bytes (1..SHM_RECORD_MAX) in bits 0 to 15, offset of the payload from the start of the
 *	         record in units of 8 bytes (1..8) in bits 16 to 19, unused pairs of lines behind the record in bits 20 to
 *	         24, SHM_BACK, SHM_MARK, SHM_ECHO, SHM_OFFER, SHM_RESTART;
 *	         high half: the record's position
 *	payload: directly after the word, or later in that line, or at the start of the next line (shm_payload_offset)
 *
 * A record with SHM_OFFER or SHM_RESTART carries no bytes of the pipe. The payload of an offer says where they lie in the
 * sender's memory; a restart says that the sender goes on with bytes that it has sent before (single.h).
 *
 * Positions count lines, modulo 2^32, and start at SHM_FIRST_POSITION: so even a connection with little traffic passes
 * the overflow to zero, not only a connection that has moved 256 GB. The ring's size is a power of two. The line of a
 * position is the position modulo this size.
 *
 * Back:  If a record has SHM_BACK, the next record is at the next position whose line is the first of the ring: the lines
 *        between are left out. So two processes that exchange single messages use the first lines of the ring again
 *        and again. Such lines pass from processor to processor in half the time of lines that were last used long ago.
 *        The sender goes back if the receiver has taken all earlier records, which the sender knows from the echo, and if
 *        the record is short and the caller puts nothing more now. Until the receiver has taken that record, only the lines
 *        before it are free: SHM_BACK_LINES at least.
 * Echo:  The sender inverts SHM_MARK in one record after another, but at most once until the receiver has answered: each
 *        record of the other direction has in SHM_ECHO the mark of the last record that its sender has taken. The first
 *        record with the new echo says that the lines up to the end of the first record with the new mark are free.
 *
 * Slots: In a stream of short messages the sender leaves lines unused behind each record, so that the next one starts at the
 *        place of a slot of SHM_SLOT lines (shm_slot_start). The places are irregular. Processors prefetch the next lines
 *        of regular patterns: the receiver's processor would take lines away that the sender is about to write. As the
 *        next places are known, the sender fetches lines for writing early, and the receiver fetches lines if it finds
 *        record after record without waiting. The header word says how many lines are unused, so the sender may place the
 *        next record as it likes. It uses slots while less than SHM_SHORT_LINES / 4 lines are in use, or a quarter of a shorter
 *        ring.
 * Turn:  In a ring of more than SHM_SHORT_LINES lines, a stream of short messages uses only so many: if the next slot lies behind
 *        them, its record has SHM_BACK, and the lines that are left out count as in use until the receiver has passed them. More
 *        lines and pages would take longer to bring into the caches, and have no advantage for short records. The sender
 *        does so only if half of SHM_SHORT_LINES then is free.
 *
 * put:   The word at which the next record will start is clean: zero, or the header word of an earlier record. So the
 *        receiver never takes a payload for a header word. The sender notes which lines may not be clean
 *        (shm_sender.unclean): those in which it has put payload; and every line when half of all positions have been
 *        passed, so that no header word is as old as the position that the receiver expects. It writes the payload,
 *        zeroes the word at which the next record will start if it may not be clean, and stores the header word
 *        (release). After a record of one line that is alone in the ring, it then zeroes the word one pair of lines
 *        further. This brings a line that was last in the receiver's cache into the sender's cache before a record
 *        needs it, and the header does not wait for it. After longer records, or in a stream, this takes longer than
 *        it saves. Two pairs of lines always stay free for these words.
 * get:   The receiver loads the word at its position (acquire). If it is zero or has another position, there is no
 *        record. When the receiver has copied a whole record out, it goes on to the next. After each eighth of the ring,
 *        or SHM_REPORT_MOST lines, it stores its position in tail (release).
 * Room:  The sender keeps the last tail that it loaded or learnt from an echo, and loads it again (acquire) only if the
 *        room up to that tail is too small. The tail is a separate word here; over verbs it travels with data of the other
 *        direction.
 *        Storing the word costs the receiver little, as it does not wait for the store, and a sender that only puts
 *        and never gets still sees it.
 */
#ifndef HR_SHM_RING_H
#define HR_SHM_RING_H

#include "rdma_channel/iov.h"
#include "rdma_channel/shm/copy.h"
#include "rdma_channel/upper.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHM_LINE 64u
#define SHM_PAIR 2u  /* lines: records start at a multiple of it */
#define SHM_SPARE 4u /* lines that stay free after the last record; the word of the first is clean */
#define SHM_OFFER (1u << 31)
#define SHM_RESTART (1u << 30)
#define SHM_KINDS (SHM_OFFER | SHM_RESTART)
#define SHM_BACK (1u << 29)
#define SHM_MARK (1u << 28)
#define SHM_ECHO (1u << 27)
#define SHM_FLAGS (SHM_KINDS | SHM_BACK | SHM_MARK | SHM_ECHO)
#define SHM_BACK_MOST 80u /* lines of a record with SHM_BACK: longer ones gain nothing */
#define SHM_BACK_LINES 32u /* so many lines lie before a record with SHM_BACK at least: room for the next ones */
#define SHM_RECORD_MAX 32768u /* payload bytes: a piece of this size is copied out while the next is copied in */
#define SHM_GAP_SHIFT 20u   /* of the bits of the gap, in pairs */
#define SHM_GAP_MOST 31u
#define SHM_SLOT 16u        /* lines: each slot has one place at which a record of a stream may start */
#define SHM_SLOT_MOST 8u    /* lines of a record that gets a slot; one of more than SHM_PAIR lines gets two slots */
#define SHM_SLOTS_LEAST (2 * SHM_SLOT) /* lines: if a quarter of the ring has less, no slots are used */
#define SHM_SPREAD_ROOM (SHM_SLOT_MOST + 3 * SHM_SLOT + SHM_SPARE) /* free lines with which a record may get a slot */
#define SHM_SHORT_LINES 16384u /* lines that a stream of short records uses */
#define SHM_WRITE_AHEAD 8u  /* the sender fetches the lines of the record so far behind the present one */
#define SHM_READ_AHEAD 4u   /* slots: so far behind the present record the receiver fetches lines */
#define SHM_FOUND_LEAST 2u  /* it does so if it has found this number of records in a row at the first look */
#define SHM_REPORT_MOST 2048u /* lines: the receiver stores its tail at least so often; the sender measures with it (near.h) */
#define SHM_ALIGNED_MIN 192u
#define SHM_FRONT_MAX 56u
#define SHM_FIRST_POSITION (0u - 4096u)
#define SHM_INLINE_MAX (SHM_LINE - 8u)

/* Where the receiver wants a part of the offered bytes (single.h). */
struct shm_grant {
	uint64_t address; /* in the receiver's memory */
	uint64_t offset;  /* of the part in the offered bytes */
	uint64_t length, unit; /* bytes of the part, bytes of one unit */
	uint64_t number;  /* of the offer */
};

/* The control page of the segment. Groups of fields are 128 bytes apart, as processors prefetch lines in pairs. */
struct shm_control {
	_Alignas(128) uint32_t tail;      /* receiver stores, sender loads: every line before this position is free */
	_Alignas(128) uint32_t get_armed; /* receiver sets before it sleeps for data; sender clears and wakes it */
	_Alignas(128) uint32_t put_armed; /* sender sets before it sleeps for room; receiver clears and wakes it */

	/* For single copy (single.h). */
	_Alignas(128) uint32_t pulls;     /* receiver stores, sender loads: it can read the sender's memory */
	uint32_t near;                    /* receiver stores, sender loads: the two processors share a cache (near.h) */
	_Alignas(128) uint32_t taken_up;  /* both change it: number of the last offer that was taken up or never will be */
	uint32_t made;                    /* sender stores it: number of the last offer (near.h) */
	uint32_t revoked;                 /* sender stores, receiver loads: the offered memory may have changed */
	_Alignas(128) uint64_t answer_bytes; /* receiver stores before an early answer: bytes of the offer that it took */
	uint64_t answer;                     /* receiver stores, sender loads: number of the last offer answered << 32,
	                                      * + 1 if the answer is early */
	_Alignas(128) struct shm_grant grant; /* receiver stores before claims */
	_Alignas(128) uint64_t claims;    /* both change it: which side copies which units of the grant */
	_Alignas(128) uint64_t pushed;    /* sender stores, receiver loads: units that the sender has copied */

	/* sender stores, receiver loads: it writes long records past the cache. The receiver only chooses a way to copy. */
	_Alignas(128) uint32_t writes_past;
};
#define SHM_CONTROL_BYTES 4096u
_Static_assert(sizeof(struct shm_control) <= SHM_CONTROL_BYTES, "segment layout");

struct shm_sender {
	struct shm_control *control;
	uint8_t *lines;
	uint32_t mask; /* number of lines - 1 */
	uint32_t spreads_below; /* lines: slots are used while less of the ring is in use */
	uint32_t short_lines; /* lines that a stream of short records uses */
	uint32_t turned; /* position of the first line, when a stream of short records last went there */
	uint32_t head; /* position of the next record */
	uint32_t tail; /* every line before this position is free: from control->tail or from an echo */
	uint32_t loaded; /* control->tail as last loaded */
	uint32_t mark; /* 0 or SHM_MARK: of the last record */
	uint32_t mark_end; /* position after the first record with this mark */
	bool awaits_echo;  /* of this mark */
	uint64_t *unclean; /* one bit for each line: its first word may not be clean. Owned */
};

struct shm_receiver {
	struct shm_control *control;
	uint8_t *lines;
	uint32_t mask;
	struct hr_awaited next; /* header word and position of the current record, or of the next if there is none */
	uint32_t length;   /* payload bytes of the current record; 0: no current record */
	uint32_t record_lines; /* lines of the current or last record */
	uint32_t offset;   /* of its payload from the start of the record, bytes */
	uint32_t kind;     /* of the current record: 0, SHM_OFFER or SHM_RESTART */
	uint32_t flags;    /* low half of the header word of the current or last record */
	uint32_t echo;     /* 0 or SHM_ECHO: for the mark of the last record that was taken */
	uint32_t taken;    /* payload bytes of the current record that were copied out */
	uint32_t found;    /* records in a row that were there at the first look */
	uint32_t reported; /* control->tail as last stored */
};

/*
 * The offset of a payload of length bytes. Long payloads start at a line, as aligned lines are copied faster. Of these,
 * the first `front` bytes (0..SHM_FRONT_MAX) are put before that line: the receiver gets them together with the word.
 */
static inline uint32_t shm_payload_offset(uint32_t front, uint32_t length)
{
	return length - front < SHM_ALIGNED_MIN ? 8 : SHM_LINE - ((front + 7) & ~7u);
}

static inline uint32_t shm_record_lines(uint32_t offset, uint32_t length)
{
	return (offset + length + SHM_LINE - 1) / SHM_LINE;
}

/* Returns how far the next record starts behind one of `lines` lines. */
static inline uint32_t shm_record_step(uint32_t lines)
{
	return (lines + SHM_PAIR - 1) & ~(SHM_PAIR - 1);
}

/* Returns the largest payload whose record fits in `lines` lines. */
static inline uint32_t shm_payload_of(uint32_t lines)
{
	uint32_t with_word = lines * SHM_LINE - 8;
	uint32_t length = with_word < SHM_ALIGNED_MIN ? with_word : (lines - 1) * SHM_LINE;
	return length < SHM_RECORD_MAX ? length : SHM_RECORD_MAX;
}

/* Returns the lines that a stream of short records uses. */
static inline uint32_t shm_short_lines(uint32_t mask)
{
	return mask + 1 < SHM_SHORT_LINES ? mask + 1 : SHM_SHORT_LINES;
}

/* Returns the position in the slot of this number at which a record of a stream starts. A slot has the same place each time, so
 * that the two processors use few lines. The factor is 2^32 divided by the golden ratio: its multiples are spread evenly. */
static inline uint32_t shm_slot_start(uint32_t slot, uint32_t mask)
{
	uint32_t mixed = (slot & (shm_short_lines(mask) - 1) / SHM_SLOT) * 0x9e3779b1u;
	return slot * SHM_SLOT + SHM_PAIR * (mixed >> 29);
}

/* Returns the slots from one record of `lines` lines to the next. */
static inline uint32_t shm_slots_of(uint32_t lines)
{
	return lines > SHM_PAIR ? 2 : 1;
}

/* Brings a line into this processor's cache alone. */
static inline void shm_fetch_to_write(void *line)
{
#if defined(__x86_64__)
	/* Without -mprfchw gcc would prefetch for reading. Processors that lack the instruction ignore it. */
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
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

/* Loads the tail again. Returns false if no correct receiver stores such a tail: it lies behind the last record, or more than a
 * ring before the lines in use. The stored tail may be older than what the echo has said.
 * Acquire: pairs with the release in shm_receiver_report. The receiver has finished its loads of the lines before the
 * tail, so they may be overwritten. */
static inline bool shm_sender_refresh(struct shm_sender *sender)
{
	uint32_t tail = __atomic_load_n(&sender->control->tail, __ATOMIC_ACQUIRE), used = sender->head - sender->tail;
	if (sender->head - tail > used + sender->mask + 1)
		return false;
	sender->loaded = tail;
	if (sender->head - tail >= used)
		return true;
	sender->tail = tail;
	/* If no answer comes for long, an old mark must not look like a position in use when positions come again. */
	if (sender->head - sender->mark_end > sender->head - tail)
		sender->mark_end = tail;
	return true;
}

/* Handles the echo in the last record of the other direction. Its header word was loaded with acquire; pairs with the release in
 * shm_sender_publish of the peer, which had finished its loads of the lines that become free. */
static inline void shm_sender_hear(struct shm_sender *sender, const struct shm_receiver *other)
{
	if (!sender->awaits_echo || !(sender->mark & SHM_MARK) != !(other->flags & SHM_ECHO))
		return;
	sender->awaits_echo = false;
	if (sender->mark_end - sender->tail <= sender->head - sender->tail)
		sender->tail = sender->mark_end;
}

/* Returns whether a record of `lines` lines would be alone in the ring, and is short enough to go back after it. */
static inline bool shm_sender_alone(const struct shm_sender *sender, uint32_t lines)
{
	return sender->tail == sender->head && lines <= SHM_BACK_MOST;
}

/* Returns the number of lines that the next record may take: free lines less the spare ones, and not past the end of
 * the ring. */
static inline uint32_t shm_sender_usable(const struct shm_sender *sender)
{
	uint32_t to_end = sender->mask + 1 - (sender->head & sender->mask), empty = shm_sender_free(sender);
	uint32_t usable = empty > SHM_SPARE ? empty - SHM_SPARE : 0;
	return usable < to_end ? usable : to_end;
}

/* Notes that `lines` lines from this position on hold payload. They do not wrap. */
static inline void shm_sender_note(struct shm_sender *sender, uint32_t position, uint32_t lines)
{
	uint32_t first = position & sender->mask, end = first + lines;
	while (first < end) {
		uint32_t bit = first % 64, count = 64 - bit < end - first ? 64 - bit : end - first;
		sender->unclean[first / 64] |= (~0ull >> (64 - count)) << bit;
		first += count;
	}
}

static inline bool shm_is_unclean(const struct shm_sender *sender, uint32_t position)
{
	uint32_t line = position & sender->mask;
	return sender->unclean[line / 64] >> line % 64 & 1;
}

/* Zeroes the first word of a free line. Relaxed: no receiver reaches this word before a record whose word is stored with
 * release later, or the word is clean already, and it makes no difference to the receiver when it becomes zero. */
static inline void shm_sender_zero(struct shm_sender *sender, uint32_t position)
{
	uint32_t line = position & sender->mask;
	sender->unclean[line / 64] &= ~(1ull << line % 64);
	__atomic_store_n(shm_sender_word(sender, position), 0, __ATOMIC_RELAXED);
}

/* Prepares for streams of short records, when mask and head are set. */
static inline void shm_sender_init_short(struct shm_sender *sender)
{
	sender->short_lines = shm_short_lines(sender->mask);
	uint32_t quarter = sender->short_lines / 4;
	sender->spreads_below = quarter < SHM_SLOTS_LEAST ? 0 : quarter;
	sender->turned = sender->head - sender->short_lines;
}

/* As shm_sender_spreads, if the lines in use are not few. After a turn, the lines that were left out are among them. */
static inline bool shm_sender_spreads_on(struct shm_sender *sender)
{
	if (sender->head - sender->turned < sender->spreads_below && shm_sender_free(sender) >= SHM_SPREAD_ROOM)
		return true;
	return sender->spreads_below && shm_sender_refresh(sender) && sender->head - sender->tail < sender->spreads_below;
}

/* Returns whether the record after one of `lines` lines should start in the next slot. Then there is room for it: the lines in use,
 * the longest such record, the lines up to the place of the slot after the next, and the spare lines are less than a ring. */
static inline __attribute__((always_inline)) bool shm_sender_spreads(struct shm_sender *sender, uint32_t lines)
{
	if (lines > SHM_SLOT_MOST)
		return false;
	if (__builtin_expect(sender->head - sender->tail < sender->spreads_below, 1))
		return true;
	return shm_sender_spreads_on(sender);
}

/* Returns how many lines stay unused before the next slot, if a record of `lines` lines ends at this position. Fetches the lines of
 * a later record. */
static inline __attribute__((always_inline)) uint32_t shm_sender_gap(struct shm_sender *sender, uint32_t end, uint32_t lines)
{
	uint32_t step = shm_slots_of(lines), slot = ((end + SHM_SLOT - 1) / SHM_SLOT + step - 1) & ~(step - 1);
	uint32_t place = shm_slot_start(slot + SHM_WRITE_AHEAD * step, sender->mask) & (sender->short_lines - 1);
	uint8_t *ahead = (uint8_t *)shm_sender_word(sender, place);
	for (uint32_t i = 0; i < lines; i++)
		shm_fetch_to_write(ahead + (size_t)i * SHM_LINE);
	return shm_slot_start(slot, sender->mask) - end;
}

/* Returns the position after a record of `lines` lines at the head and `gap` unused lines behind it. */
static inline uint32_t shm_sender_next(struct shm_sender *sender, uint32_t lines, uint32_t gap, bool back)
{
	uint32_t next = sender->head + shm_record_step(lines) + gap;
	if (back)
		next = (next + sender->mask) & ~sender->mask;
	/* A line that is left out each time keeps its header word for so long that its position comes again. */
	if ((next ^ sender->head) >> 31)
		memset(sender->unclean, 0xff, (sender->mask + 1) / 8);
	return next;
}

/* Returns whether a stream of short records whose next one would be at this position should go to the first line instead. */
static inline bool shm_sender_turns(struct shm_sender *sender, uint32_t next)
{
	if (__builtin_expect((next & sender->mask) < sender->short_lines, 1))
		return false;
	sender->turned = (next + sender->mask) & ~sender->mask;
	return sender->turned - sender->tail <= sender->mask + 1 - sender->short_lines / 2;
}

_Static_assert(SHM_SLOTS_LEAST + SHM_SPREAD_ROOM <= 4 * SHM_SLOTS_LEAST, "room for a gap");
_Static_assert(3 * SHM_SLOT / SHM_PAIR <= SHM_GAP_MOST, "bits for a gap");

/* Publishes the next record. Its payload, of this length, is in the ring at this offset. lines: number of lines of the record; if
 * the compiler knows it, it also knows most of the conditions below. kind: 0, SHM_OFFER or SHM_RESTART, and SHM_BACK if the sender
 * may go back, because the caller puts no other record now. other: the receiver of the other direction. */
static inline __attribute__((always_inline)) void
shm_sender_publish_lines(struct shm_sender *sender, const struct shm_receiver *other, uint32_t offset, uint32_t length,
			 uint32_t lines, uint32_t kind)
{
	uint32_t head = sender->head;
	/* Whether single messages are exchanged. */
	bool alone = kind & SHM_BACK && shm_sender_alone(sender, lines);
	bool back = alone && (head & sender->mask) >= SHM_BACK_LINES;
	uint32_t gap = 0;
	if (kind & SHM_BACK && !alone && shm_sender_spreads(sender, lines)) {
		gap = shm_sender_gap(sender, head + shm_record_step(lines), lines);
		back = shm_sender_turns(sender, head + shm_record_step(lines) + gap);
	}
	uint32_t next = shm_sender_next(sender, lines, gap, back);
	if (shm_is_unclean(sender, next))
		shm_sender_zero(sender, next);
	if (!sender->awaits_echo) {
		sender->awaits_echo = true;
		sender->mark ^= SHM_MARK;
		sender->mark_end = next;
	}
	uint32_t flags = (kind & SHM_KINDS) | (back ? SHM_BACK : 0) | sender->mark | other->echo;
	uint64_t word = (uint64_t)head << 32 | flags | gap / SHM_PAIR << SHM_GAP_SHIFT | offset / 8 << 16 | length;
	/* Release: a receiver that sees the word sees the payload and the clean word after it, and has freed lines of the other
	 * direction only after its own loads from them; pairs with shm_receiver_look and shm_sender_hear. */
	__atomic_store_n(shm_sender_word(sender, head), word, __ATOMIC_RELEASE);
	if (lines > SHM_PAIR)
		shm_sender_note(sender, head + SHM_PAIR, lines - SHM_PAIR);
	sender->head = next;
	/* Also if the word is clean: then the record after the next finds its line in this processor's cache. In a stream the next
	 * records would wait for this line. */
	if (lines == 1 && alone)
		shm_sender_zero(sender, next + SHM_PAIR);
}

static inline __attribute__((always_inline)) void
shm_sender_publish(struct shm_sender *sender, const struct shm_receiver *other, uint32_t offset, uint32_t length, uint32_t kind)
{
	shm_sender_publish_lines(sender, other, offset, length, shm_record_lines(offset, length), kind);
}

/* ---- receiver ---- */

static inline void shm_receiver_go(struct shm_receiver *receiver, uint32_t position)
{
	receiver->next.high = position;
	receiver->next.further = 0;
	receiver->next.word = (const uint64_t *)(const void *)(receiver->lines + (size_t)(position & receiver->mask) * SHM_LINE);
}

/* Returns the unused lines behind the current or last record. */
static inline uint32_t shm_receiver_gap(const struct shm_receiver *receiver)
{
	return (receiver->flags >> SHM_GAP_SHIFT & SHM_GAP_MOST) * SHM_PAIR;
}

/* Fetches the lines of a later record if the sender is ahead: otherwise the sender is about to write these lines. The record may
 * lie elsewhere. */
static inline void shm_receiver_fetch(struct shm_receiver *receiver)
{
	receiver->found = receiver->next.in_vain ? 0 : receiver->found + 1;
	receiver->next.in_vain = false;
	if (receiver->found < SHM_FOUND_LEAST)
		return;
	uint32_t first = shm_slot_start(receiver->next.high / SHM_SLOT + SHM_READ_AHEAD, receiver->mask) &
			 (shm_short_lines(receiver->mask) - 1);
	for (uint32_t i = 0; i < receiver->record_lines && i < SHM_SLOT_MOST && first + i <= receiver->mask; i++)
		__builtin_prefetch(receiver->lines + (size_t)(first + i) * SHM_LINE);
}

/* Looks for a record to copy from. Returns 1 if there is one, 0 if not, -1 if its header word is invalid. */
static inline int shm_receiver_look(struct shm_receiver *receiver)
{
	if (receiver->length)
		return 1;
	/* Acquire: pairs with the release in shm_sender_publish; the payload is read after it. */
	uint64_t word = __atomic_load_n(receiver->next.word, __ATOMIC_ACQUIRE);
	if (!word || (uint32_t)(word >> 32) != receiver->next.high) {
		receiver->next.in_vain = true;
		return 0; /* nothing, or the header word of an earlier record */
	}
	uint32_t index = receiver->next.high & receiver->mask;
	uint32_t length = (uint32_t)word & 0xffff, offset = (uint32_t)word >> 16 & 15;
	uint32_t lines = shm_record_lines(8 * offset, length);
	if (length - 1 >= SHM_RECORD_MAX || offset - 1 >= SHM_LINE / 8 || lines > receiver->mask + 1 - index)
		return -1;
	receiver->length = length;
	receiver->record_lines = lines;
	receiver->offset = 8 * offset;
	receiver->kind = (uint32_t)word & SHM_KINDS;
	receiver->flags = (uint32_t)word;
	receiver->taken = 0;
	if (shm_receiver_gap(receiver))
		shm_receiver_fetch(receiver);
	return 1;
}

/* Returns the first byte of the current record that has not been copied out. */
static inline const uint8_t *shm_receiver_payload(const struct shm_receiver *receiver)
{
	return (const uint8_t *)receiver->next.word + receiver->offset + receiver->taken;
}

/* Counts `count` bytes of the current record as copied out. Returns true if the tail should be stored now. */
static inline bool shm_receiver_take(struct shm_receiver *receiver, uint32_t count)
{
	receiver->taken += count;
	if (receiver->taken < receiver->length)
		return false;
	uint32_t next = receiver->next.high + shm_record_step(receiver->record_lines) + shm_receiver_gap(receiver);
	if (receiver->flags & SHM_BACK)
		next = (next + receiver->mask) & ~receiver->mask;
	shm_receiver_go(receiver, next);
	receiver->length = 0;
	receiver->echo = receiver->flags & SHM_MARK ? SHM_ECHO : 0;
	uint32_t most = receiver->mask / 8 < SHM_REPORT_MOST ? receiver->mask / 8 : SHM_REPORT_MOST;
	return receiver->next.high - receiver->reported > most;
}

/* Stores the tail. Release: the loads from the lines that it frees come before; pairs with shm_sender_refresh. */
static inline void shm_receiver_report(struct shm_receiver *receiver)
{
	receiver->reported = receiver->next.high;
	__atomic_store_n(&receiver->control->tail, receiver->next.high, __ATOMIC_RELEASE);
}

#endif
