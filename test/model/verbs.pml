/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of the ring of chunks over verbs (ib/ib_ring.h, ib_ring.c, ib_conn.c, ib_piggyback.c) and of going to sleep
 * beside it (ib/ib_sleep.c), for spin. Two sides, each with a ring that the other writes into.
 *
 * What spin proves by visiting every state: chunks are taken complete, once and in order; none is overwritten before
 * it was read, neither in the ring nor in the staging area before the adapter has fetched it; a credit is never taken
 * for more than was consumed; a side that puts and does not get still finds room when the other side gets; neither side
 * sleeps with work to do and nobody to wake it. A side goes on for ever or
 * stops after some chunks. Counts are kept
 * modulo COUNTS as in C modulo 2^32, and compared in the same way, so they wrap and old ones come to look new: what
 * holds here holds after 2^32 chunks.
 *
 * The network: requests of one queue pair are carried out in the order in which they were posted, those of two in any
 * order, each at any later time. The adapter fetches a chunk from the staging area when it carries the request out, and
 * writes it in address order: front, then payload and end. A read is carried out in its turn; its result arrives later.
 * Memory is x86-TSO where the order of a process's own stores and loads matters: for the progress that a read of the
 * peer's adapter takes from memory.
 *
 * Settings:
 *	SLEEP		a side with nothing to do sleeps; without, it looks again and again
 *	SLEEPER		only this side sleeps
 *	SIDE_1_PUTS	so many chunks at most, 0 for none
 *	SIDE_0_PUTS	as well; without, side 0 goes on for ever
 *	PUT_ONLY	side 0 never gets
 * Each M_... is a mutation that check.sh demands to be found.
 * COUNTS / 4 is the code's IB_TAIL_WRITTEN_EVERY.
 * Not here: full queue pairs, partly taken chunks, failures.
 */

#ifndef CHUNKS
#define CHUNKS 2
#endif
#ifndef COUNTS
#define COUNTS 16 /* a multiple of CHUNKS, more than four times as many */
#endif
#ifndef QPS
#define QPS 2
#endif
#ifndef DEPTH
#define DEPTH 2 /* requests that may wait in a queue pair */
#endif
#define WAKES 3   /* numbers of requests to be woken are modulo this */

#define SUB(a, b) (((a) + COUNTS - (b)) % COUNTS)
#define LATER(a, b) (SUB(a, b) > 0 && SUB(a, b) < COUNTS / 2) /* (int32_t)(a - b) > 0 */
#define PLUS_1(a) (((a) + 1) % COUNTS)
#define SLOT(side, chunk) ((side) * CHUNKS + (chunk) % CHUNKS)
#define QP(side, i) ((side) * QPS + (i))

/* ---- memory that the peer's adapter writes ---- */

byte front[2 * CHUNKS];      /* ib_chunk_front.seq */
byte rides[2 * CHUNKS];      /* ib_chunk_front.tail */
byte payload[2 * CHUNKS];    /* the number of the chunk + 1, standing for its bytes */
byte last[2 * CHUNKS];        /* ib_chunk_end.seq */
byte control_tail[2];        /* ib_control.tail */
byte wake_bits_of_peer[2], wake_seq_of_peer[2]; /* ib_control.wake */

/* ---- memory of one's own ---- */

byte staged[2 * CHUNKS];     /* number of the chunk + 1 */
byte staged_tail[2 * CHUNKS];
byte head[2], tail[2];       /* ib_sender */
byte next[2], told[2], peeked[2], written[2]; /* ib_receiver */

/* ---- requests on their way ---- */

mtype = { DATA, TAIL, WAKE, PROBE };
chan queue[2 * QPS] = [DEPTH] of { mtype, byte, byte };

#define ROOM(me) (CHUNKS - SUB(head[me], tail[me]))
#define READY_AT(me, chunk) (last[SLOT(me, chunk)] == PLUS_1(chunk) && front[SLOT(me, chunk)] == PLUS_1(chunk))
#ifdef M_FRONT_FLAG_ONLY
#define READY(me) (front[SLOT(me, next[me])] == PLUS_1(next[me]))
#else
#define READY(me) READY_AT(me, next[me])
#endif
#define FINISHED (through[0] && through[1] && next[0] == head[1] && next[1] == head[0])

#define ON_DATA 1 /* IB_WAKE_ON_DATA, IB_WAKE_ON_ROOM */
#define ON_ROOM 2
#define ON_BOTH 3

#ifdef SLEEPER
#define SLEEPS(side) ((side) == SLEEPER)
#else
#define SLEEPS(side) true
#endif

#ifdef SLEEP
/* ---- sleeping: state ---- */

bool through[2];                   /* this side will put nothing more */
mtype = { AWAKE, PROBING, ARMED }; /* enum ib_sleep_state; REFUSED is for a full queue pair */
mtype state[2] = { AWAKE, AWAKE };
byte wake_bits[2], wake_seq[2], answered[2];
byte posted[2], posted_tail[2]; /* ib_control.progress, in memory */
byte probed[2], probed_tail[2]; /* ib_scratch.probed */
byte probes[2];                 /* under way */
bit notify[2];                  /* ibv_req_notify_cq holds */
bit event[2], woken[2];         /* to be found: in the completion channel; in the stream */
chan stores[2] = [2] of { byte, byte }; /* of the progress, both counts, on the way to memory */
chan replies[2] = [2] of { byte, byte };

/* Processor and adapter of each side: stores reach memory, results of reads arrive. */
proctype arrivals(bit me)
{
	byte value, value_tail;
end_of_arrivals:	do
	:: d_step { stores[me]?value, value_tail ->
		posted[me] = value;
		posted_tail[me] = value_tail;
		value = 0;
		value_tail = 0
	   }
	:: d_step {
		replies[me]?value, value_tail ->
		probed[me] = value;
		probed_tail[me] = value_tail;
		probes[me]--;
		event[me] = event[me] | notify[me];
		notify[me] = 0;
		value = 0;
		value_tail = 0
	   }
	od
}
#endif

/* ---- the adapter: carries out what one queue pair of one side was given ---- */

proctype adapter(bit me; byte i)
{
	mtype kind;
	byte a, b, slot;
end_of_queue:
	do
	:: atomic {
		queue[QP(me, i)]?kind, a, b ->
		if
		:: kind == DATA ->
			assert(staged[SLOT(me, a)] == PLUS_1(a)); /* not replaced before it was fetched */
			b = staged_tail[SLOT(me, a)];
			slot = SLOT(1 - me, a);
			assert(SUB(a, next[1 - me]) < CHUNKS); /* what the slot held has been consumed */
			front[slot] = PLUS_1(a)
		:: kind == TAIL -> control_tail[1 - me] = a
#ifdef SLEEP
		:: kind == WAKE -> wake_bits_of_peer[1 - me] = a; wake_seq_of_peer[1 - me] = b
		:: kind == PROBE -> replies[me]!posted[1 - me], posted_tail[1 - me]
#endif
		fi
	   };
	   if
	   :: kind == DATA ->
		d_step { payload[slot] = PLUS_1(a); rides[slot] = b; last[slot] = PLUS_1(a) }
	   :: else
	   fi;
	   d_step { kind = 0; a = 0; b = 0; slot = 0 }
	od
}

/* ---- telling the peer ---- */

/* ib_sleep_told: after posting. Nobody is told who never sleeps. */
inline told_peer(bits)
{
#ifdef SLEEP
	if
	:: !SLEEPS(1 - me)
	:: else ->
#ifndef M_PROGRESS_AFTER_LOOK
		stores[me]!head[me], told[me];
#ifndef M_NO_FENCE
		empty(stores[me]);
#endif
#endif
		seen = wake_seq_of_peer[me];
		if
		:: seen != answered[me] && (wake_bits_of_peer[me] & bits) ->
			d_step { answered[me] = seen; woken[1 - me] = 1 }
		:: else
		fi;
		seen = 0;
#ifdef M_PROGRESS_AFTER_LOOK
		stores[me]!head[me], told[me];
		empty(stores[me])
#endif
	fi
#else
	skip
#endif
}

/* ib_receiver_owes */
#ifdef M_NO_TAIL_ALONE
#define OWES(me) false
#else
#define OWES(me) (SUB(next[me], told[me]) >= CHUNKS / 2 || SUB(next[me], written[me]) >= COUNTS / 4)
#endif

/* ib_conn_pay_tail */
inline pay_tail()
{
	if
	:: OWES(me) ->
#ifdef M_TAIL_NEEDS_CREDIT
		ROOM(me) > 0;
#endif
		atomic {
			queue[QP(me, 0)]!TAIL, next[me], 0;
			told[me] = next[me];
			written[me] = next[me]
		};
#ifndef M_TAIL_WAKES_NOBODY
		told_peer(ON_ROOM)
#endif
	:: else
	fi
}

/* ib_sender_credit */
inline credit(value)
{
	if
	:: LATER(value, tail[me]) ->
		assert(SUB(head[me], value) < COUNTS / 2); /* else -EPROTO */
		tail[me] = value
	:: else
	fi
}

/* One more chunk that ib_receiver_peek may look at? */
#define PEEKS(me) (SUB(peeked[me], next[me]) < CHUNKS && READY_AT(me, peeked[me]))

/* ib_conn_take_tail */
inline take_tail()
{
	d_step { credit(control_tail[me]) };
#ifndef M_NO_PEEK
	do
#ifdef M_PEEK_ONLY_WITHOUT_ROOM
	:: d_step { ROOM(me) == 0 && PEEKS(me) ->
#else
	:: d_step { PEEKS(me) ->
#endif
		credit(rides[SLOT(me, peeked[me])]);
		peeked[me] = PLUS_1(peeked[me])
	   }
	:: else -> break
	od
#endif
}

/* ---- put: one chunk, with room ---- */

/* What the peer has posted is not on its way for so long that about COUNTS / 4 chunks go the other way meanwhile: a
 * queue pair that is delayed for 2^30 chunks has failed long before. */
#define RECENT(me, value, most) (SUB(head[me], value) <= (most))
#define CHUNK_NOT_LATE(me, i) \
	(staged[SLOT(1 - me, i)] == last[SLOT(me, i)] || RECENT(me, staged_tail[SLOT(1 - me, i)], COUNTS / 4))
#define TAIL_NOT_LATE(me) (control_tail[me] == written[1 - me] || RECENT(me, control_tail[me], COUNTS / 4 + CHUNKS))
#if CHUNKS == 2
#define NOTHING_LATE(me) (TAIL_NOT_LATE(me) && CHUNK_NOT_LATE(me, 0) && CHUNK_NOT_LATE(me, 1))
#else
#define NOTHING_LATE(me) (TAIL_NOT_LATE(me) && CHUNK_NOT_LATE(me, 0) && CHUNK_NOT_LATE(me, 1) && \
			  CHUNK_NOT_LATE(me, 2) && CHUNK_NOT_LATE(me, 3))
#endif

inline put()
{
	NOTHING_LATE(me);
	/* ib_sender_build and ib_queues_post */
	atomic {
		staged[SLOT(me, head[me])] = PLUS_1(head[me]);
		staged_tail[SLOT(me, head[me])] = next[me];
		queue[QP(me, head[me] % QPS)]!DATA, head[me], 0;
		head[me] = PLUS_1(head[me]);
		told[me] = next[me]
	};
	told_peer(ON_BOTH)
}

/* ---- get: one chunk, which is there ---- */

inline get()
{
#ifdef M_TAIL_BEFORE_COPY
	d_step { next[me] = PLUS_1(next[me]) };
	pay_tail();
	assert(payload[SLOT(me, next[me] + COUNTS - 1)] == next[me]);
#else
	d_step {
		assert(payload[SLOT(me, next[me])] == PLUS_1(next[me])); /* nothing lost, doubled, reordered or torn */
#ifdef M_TAIL_TWICE
		credit(rides[SLOT(me, next[me])]);
#endif
		if
		:: peeked[me] == next[me] ->
			credit(rides[SLOT(me, next[me])]);
			peeked[me] = PLUS_1(peeked[me])
		:: else /* taken by take_tail; it may be very old by now */
		fi;
		next[me] = PLUS_1(next[me])
	};
	pay_tail()
#endif
}

#ifdef SLEEP
/* ---- sleeping ---- */

/* What hr_channel_step does with the events that are there: ib_sleep_event, ib_sleep_woken. */
inline take_events()
{
	d_step {
		event[me] = 0;
		if
		:: woken[me] -> woken[me] = 0; state[me] = AWAKE
		:: else
		fi
	}
}

/* ask. The number is another one each time; that it may not come round to the last one that was answered is true in C
 * for 2^32 requests. */
inline ask(bits)
{
	atomic {
		wake_bits[me] = bits;
		wake_seq[me] = (wake_seq[me] + 1) % WAKES;
		if
		:: wake_seq[me] == answered[1 - me] -> wake_seq[me] = (wake_seq[me] + 1) % WAKES
		:: else
		fi;
#ifdef M_PROBE_FIRST
		queue[QP(me, 0)]!PROBE, 0, 0;
		probes[me]++;
#endif
		queue[QP(me, 0)]!WAKE, bits, wake_seq[me]
	};
#ifdef M_NO_PROBE
	state[me] = ARMED
#else
#ifdef M_PROBE_ON_ANOTHER_QP
	atomic { queue[QP(me, 1)]!PROBE, 0, 0; probes[me]++; state[me] = PROBING }
#else
#ifdef M_PROBE_FIRST
	state[me] = PROBING
#else
	atomic { queue[QP(me, 0)]!PROBE, 0, 0; probes[me]++; state[me] = PROBING }
#endif
#endif
#endif
}

/* ib_sleep_arm */
inline arm(bits)
{
	pay_tail();
	atomic {
		if
		:: state[me] == AWAKE || (bits & ~wake_bits[me]) -> ask(bits)
		:: else
		fi;
#ifndef M_NOTIFY_AFTER_LOOK
		notify[me] = 1
#endif
	}
}

/* probe_promises, with the bits that were asked for */
#define PROMISES(me, bits) \
	(LATER(probed[me], next[me]) || (((bits) & ON_ROOM) && LATER(probed_tail[me], tail[me])))

/* ib_sleep_pending */
inline pending(bits, yes)
{
	if
	:: READY(me) -> yes = true
	:: atomic { !READY(me) && (bits & ON_ROOM) -> take_tail(); yes = ROOM(me) > 0 }
	:: !READY(me) && !(bits & ON_ROOM)
	fi;
	d_step {
		if
		:: !yes && state[me] == PROBING && probes[me] == 0 -> state[me] = ARMED
		:: else
		fi;
#ifndef M_PROMISE_IGNORED
		if
		:: !yes && state[me] == ARMED && PROMISES(me, bits) -> state[me] = AWAKE; yes = true
		:: else
		fi
#endif
	}
}

/* hr_channel_wait without its spinning */
inline sleep(bits)
{
	take_events();
	arm(bits);
#ifndef M_NO_SECOND_LOOK
	pending(bits, yes);
#endif
#ifdef M_NOTIFY_AFTER_LOOK
	notify[me] = 1;
#endif
	if
	:: yes -> yes = false
	:: atomic { !yes && (event[me] || woken[me]) -> take_events() }
	:: !yes && FINISHED -> break
	fi
}
#endif

/* ---- a process ---- */

#ifdef SIDE_0_PUTS
#define PUTS(me) ((me == 0 && head[0] < SIDE_0_PUTS) || (me == 1 && head[1] < SIDE_1_PUTS))
#else
#define PUTS(me) (me == 0 || head[1] < SIDE_1_PUTS)
#endif

/* Waiting by looking again and again. */
#ifdef PUT_ONLY
#define GETS(me) (me == 1)
#else
#define GETS(me) true
#endif
#ifdef M_NO_PEEK
#define ROOM_NEWS(me) LATER(control_tail[me], tail[me])
#else
#define ROOM_NEWS(me) (LATER(control_tail[me], tail[me]) || PEEKS(me))
#endif

proctype side(bit me)
{
	byte seen; /* of told_peer */
	bool yes;
	do
	:: PUTS(me) ->
		if
		:: ROOM(me) == 0 -> take_tail()
		:: else
		fi;
		if
		:: ROOM(me) > 0 -> put()
		:: else -> /* the put is short */
#ifdef SLEEP
			if
			:: SLEEPS(me) -> sleep(ON_BOTH)
			:: !SLEEPS(me) && (ROOM_NEWS(me) || READY(me))
			fi
#else
			ROOM_NEWS(me) || (GETS(me) && READY(me))
#endif
		fi
	:: GETS(me) && READY(me) -> get()
#if defined(SIDE_0_PUTS) && !defined(SLEEP)
	:: !PUTS(0) && !PUTS(1) && next[1] == head[0] && (next[0] == head[1] || !GETS(0)) -> break
#endif
#ifdef SLEEP
	:: !PUTS(me) ->
		through[me] = true;
		if
		:: READY(me)
		:: !READY(me) && SLEEPS(me) -> sleep(ON_DATA)
		:: !SLEEPS(me) && FINISHED -> break
		fi
#endif
	od
}

init {
	atomic {
		byte i;
		for (i : 0 .. QPS - 1) {
			run adapter(0, i);
			run adapter(1, i)
		}
#ifdef SLEEP
		run arrivals(0);
		run arrivals(1);
#endif
		run side(0);
		run side(1)
	}
}
