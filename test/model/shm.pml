/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of the shared-memory ring (rdma_channel/shm/ring.h, put.c, get.c, sleep.c) and of going to sleep beside it (barrier.h,
 * transport.h, events.c), for spin. One direction: a process that puts and one that gets; the other direction is the
 * same again and shares nothing with it but the stream that wakes, where a wake-up too many does no harm. A line here is a
 * pair of lines in C (SHM_PAIR): header words are stored and looked for only in the first line of a pair. Lines that stay
 * unused between two records are in back.pml.
 *
 * What spin proves by visiting every state: records arrive complete, once and in order; no line is overwritten before
 * the receiver has read it; neither side sleeps with work to do and nobody to wake it. The putter goes on for ever or
 * stops at any point; positions are kept modulo a small number, so they wrap. A
 * state from which nothing moves although the putter has not stopped, or not all that it put was got, is an "invalid
 * end state" of spin's.
 *
 * Memory is x86-TSO (Owens, Sarkar, Sewell 2009): a store goes into the processor's own FIFO buffer and reaches memory
 * at any later time; loads come from memory; a fence and a locked instruction wait until the buffer is empty. Neither
 * side loads what it stored itself (but by locked instructions), so that forwarding from the buffer does not occur.
 * Non-temporal stores have a buffer of their own that keeps no order with the other one until an sfence.
 *
 * Each M_... is a mutation: something is left out that is there for a reason. check.sh demands that spin finds it.
 */

#ifndef LINES
#define LINES 4 /* of the ring; a power of two */
#endif
#ifndef POSITIONS
#define POSITIONS 8 /* positions are modulo this, as in C modulo 2^32; a multiple of LINES */
#endif
#define EIGHTH 0 /* lines consumed that need not be told: mask / 8, SHM_REPORT_MOST at most */

#define MINUS(a, b) (((a) + POSITIONS - (b)) % POSITIONS)

/* Words. */
#define NOTHING 0
#define GARBAGE 255 /* payload where a header is looked for: whatever the bytes are, reading them so is an error */
#define HEADER(position, lines) (2 + 2 * (position) + (lines) - 1)
/* Whether a word is the header of the record at this position, and not that of an earlier record. */
#ifdef M_NO_POSITION
#define HEADS(word, position) ((word) != NOTHING)
#else
#define HEADS(word, position) ((word) != NOTHING && ((word) - 2) / 2 == (position))
#endif

/* ---- memory ---- */

byte word[LINES];    /* the first word of each line */
byte payload[LINES]; /* the position of the record whose payload is in the line, standing for its bytes */
byte tail;
bit get_armed, put_armed;
byte unread[LINES]; /* not in C: the line holds part of a record that is published and not read yet */

/* A store on its way to memory. */
mtype = { WORD, PAYLOAD, TAIL, GET_ARMED, PUT_ARMED };
chan put_buffer = [4] of { mtype, byte, byte };
chan get_buffer = [2] of { mtype, byte, byte };
chan streaming_buffer = [1] of { byte, byte }; /* line, position of the record */

/* A wake-up in the stream; a second one adds nothing (hr_stream_wake). */
bit wake_putter, wake_getter;

byte head, seen;   /* shm_sender: where the next record starts; the last tail seen */
bit holds_payload[LINES]; /* shm_sender: the first word of the line is payload */
byte at, reported; /* shm_receiver: where the next record starts; the tail last told */
bool stopped;      /* the putter will put nothing more */
#define ALL_GOT (stopped && at == head)

inline not_read(line)
{
	assert(!unread[line]); /* no overwrite of unread lines */
}

inline apply(kind, where, value)
{
	if
	:: kind == WORD ->
		not_read(where);
		word[where] = value;
		if
		:: value != NOTHING ->
			unread[where] = 1;
			if
			:: value % 2 == 1 -> unread[where + 1] = 1 /* a record of two lines */
			:: else
			fi
		:: else
		fi
	:: kind == PAYLOAD -> not_read(where); payload[where] = value
	:: kind == TAIL -> tail = value
	:: kind == GET_ARMED -> get_armed = value
	:: kind == PUT_ARMED -> put_armed = value
	fi
}

/* The putter's processor. */
active proctype put_stores()
{
	mtype kind;
	byte where, value;
end:	do
	:: d_step { put_buffer?kind, where, value -> apply(kind, where, value); kind = 0; where = 0; value = 0 }
	:: d_step { streaming_buffer?where, value -> not_read(where); payload[where] = value; word[where] = GARBAGE;
		    where = 0; value = 0 }
	od
}

active proctype get_stores()
{
	mtype kind;
	byte where, value;
end:	do
	:: d_step { get_buffer?kind, where, value -> apply(kind, where, value); kind = 0; where = 0; value = 0 }
	od
}

#define FENCE(buffer) empty(buffer)

/* hr_barrier_light of who has just published. */
inline light(buffer)
{
#if !defined(BOTH_HEAVY) && !defined(M_NO_FENCE)
	FENCE(buffer)
#else
	skip /* the compiler's order only */
#endif
}

/* hr_barrier_heavy of who goes to sleep: empties its own buffer, and with membarrier the other processor's. */
inline heavy(own, other)
{
	FENCE(own);
#if defined(BOTH_HEAVY) && !defined(M_NO_MEMBARRIER)
	FENCE(other) /* at some moment in the call it is empty, which is when this step is taken */
#endif
}

/* wake_if_armed: a look, and only if that says so the locked exchange. */
inline wake_if_armed(buffer, armed, wake)
{
	light(buffer);
	if
	:: armed ->
		atomic {
			FENCE(buffer) ->
			if
			:: armed -> armed = 0; wake = 1
			:: else
			fi
		}
	:: else
	fi
}

/* ---- the side that puts ---- */

#define FREE (LINES - MINUS(head, seen))
#ifdef M_NO_SPARE_LINE
#define SPARE 1
#else
#define SPARE 2
#endif
#define USABLE (FREE > SPARE -> FREE - SPARE : 0)
#define TO_END (LINES - head % LINES)

/* shm_sender_refresh; a tail that no receiver can have is the error EPROTO. */
inline refresh()
{
	d_step {
		assert(MINUS(tail, seen) <= MINUS(head, seen));
		seen = tail
	}
}

/* record_room, for a record of want lines. */
inline fit(want, lines)
{
	d_step {
		lines = want;
		if
		:: USABLE < lines -> lines = USABLE
		:: else
		fi;
		if
		:: TO_END < lines -> lines = TO_END
		:: else
		fi
	}
}

/* shm_sender_zero */
inline zero(line)
{
	put_buffer!WORD(line, NOTHING);
	holds_payload[line] = 0
}

/* fill_record and shm_sender_publish. A record of two lines stands for one that is written past the cache. */
inline publish(lines)
{
	if
	:: lines == 2 ->
		streaming_buffer!(head + 1) % LINES, head;
#ifndef M_NO_SFENCE
		FENCE(streaming_buffer)
#endif
	:: else -> put_buffer!PAYLOAD(head % LINES, head)
	fi;
#ifndef M_NO_NOTE
	holds_payload[(head + 1) % LINES] = holds_payload[(head + 1) % LINES] | (lines == 2);
#endif
#ifndef M_NO_ZERO
	if /* before the header if the word is payload; otherwise before it, after it, or not at all */
	:: zero((head + lines) % LINES)
	:: !holds_payload[(head + lines) % LINES] -> skip
	fi;
#endif
	atomic {
		put_buffer!WORD(head % LINES, HEADER(head, lines));
		head = (head + lines) % POSITIONS
	};
#ifndef M_NO_ZERO
	if /* after a record of one line; if it is clean, C does not zero it; zeroing it makes no difference */
	:: lines == 1 -> zero((head + 1) % LINES)
	:: skip
	fi
#endif
}

/* hr_channel_arm and the sleep of hr_channel_wait, with want_put and the last put short. */
inline sleep_for_room()
{
#ifndef M_EVENTS_AFTER_ARMING
	wake_putter = 0; /* hr_channel_step takes the events that are there */
#endif
	put_buffer!PUT_ARMED(0, 1); /* shm_conn_arm */
	heavy(put_buffer, get_buffer);
#ifndef M_NO_SECOND_LOOK
	refresh(); /* shm_conn_pending */
#endif
#ifdef M_EVENTS_AFTER_ARMING
	wake_putter = 0;
#endif
	if
	:: USABLE > 0 -> skip
	:: else -> wake_putter -> wake_putter = 0 /* epoll_wait, and ask_stream */
	fi
}

active proctype putter()
{
	byte want, lines;
	bit armed;
	do
	:: true -> stopped = true; break
	:: true ->
		/* shm_put of one record */
		if
		:: want = 1
		:: want = 2
		fi;
		if
		:: FREE < want + SPARE -> refresh()
		:: else
		fi;
		fit(want, lines);
		if
		:: lines > 0 ->
#ifdef M_FLAG_BEFORE_DATA
			armed = get_armed;
			publish(lines);
			if
			:: armed -> atomic { FENCE(put_buffer) -> wake_getter = wake_getter | get_armed; get_armed = 0 }
			:: else
			fi
#else
			publish(lines);
			wake_if_armed(put_buffer, get_armed, wake_getter)
#endif
		:: else -> sleep_for_room()
		fi;
		d_step { want = 0; lines = 0; armed = 0 }
	od
}

/* ---- the side that gets ---- */

/* report_tail */
inline report(position)
{
	get_buffer!TAIL(0, position);
#ifndef M_NO_WAKE_FOR_ROOM
	wake_if_armed(get_buffer, put_armed, wake_putter)
#endif
}

/* The payload is copied out; the lines are given back. */
inline take(position, lines)
{
	d_step {
		assert(payload[(position + lines - 1) % LINES] == position); /* not torn, not an earlier record's */
		unread[position % LINES] = 0;
		unread[(position + lines - 1) % LINES] = 0
	}
}

inline sleep_for_data()
{
#ifndef M_EVENTS_AFTER_ARMING
	wake_getter = 0;
#endif
	get_buffer!GET_ARMED(0, 1);
	heavy(get_buffer, put_buffer);
#ifdef M_EVENTS_AFTER_ARMING
	wake_getter = 0;
#endif
	if
#ifndef M_NO_SECOND_LOOK
	:: HEADS(word[at % LINES], at) -> skip
	:: else ->
#else
	:: true ->
#endif
		if
		:: wake_getter -> wake_getter = 0
		:: ALL_GOT -> break /* nothing will come any more, and it may sleep for ever */
		fi
	fi
}

active proctype getter()
{
	byte found, lines;
	do
	:: true ->
		found = word[at % LINES]; /* shm_receiver_look */
		assert(found != GARBAGE);
		if
		:: !HEADS(found, at) -> sleep_for_data()
		:: else ->
			assert((found - 2) / 2 == at); /* not an earlier record's */
			lines = 1 + (found - 2) % 2;
#ifdef M_EARLY_TAIL
			d_step { at = (at + lines) % POSITIONS; reported = at };
			report(at);
			take(MINUS(at, lines), lines)
#else
			take(at, lines);
			at = (at + lines) % POSITIONS;
			if
#ifdef M_LATE_TAIL
			:: MINUS(at, reported) >= LINES ->
#else
			:: MINUS(at, reported) > EIGHTH ->
#endif
				reported = at;
				report(at)
			:: else
			fi
#endif
		fi;
		d_step { found = 0; lines = 0 }
	od
}
