/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of single copy over shared memory (rdma_channel/shm/single.h, single.c; put.c, offer.c, and get.c call them),
 * for spin: one direction, a process that puts and one that gets, one offer at a time; several.pml has several. `offered`
 * here is the part of `taken_up` that concerns this offer. The ring is a queue here, as shm.pml has it with its room and the
 * receiver's sleep; a receiver with an offer under way does not sleep. The sender's sleep until the answer is here.
 *
 * The sender puts pieces of UNITS units for ever, or closes, or never calls again, at any point between two turns of a
 * put; it takes offers back that were not taken up (which needs a number of vain puts in C: here at any time). The
 * receiver gets them in parts of any length: one unit is too short for a grant, and is pulled by the receiver alone or
 * answered early; more are granted. It closes between any two gets.
 *
 * When a piece is accepted, the user fills its memory with something else at once. What get has delivered is the user's:
 * nobody may write there. A caller goes on with the same memory while KEEP units of its piece are left, and may leave
 * fewer (HR_ZERO_COPY_MIN).
 *
 * What spin proves: what is delivered is right, complete and in order, whatever is accepted has been delivered, nobody
 * writes into memory that is the user's again, no unit is copied twice, and nobody waits for ever: a wait that the C code
 * does by calling again is a step that cannot be taken here until there is a reason to.
 *
 * Memory is x86-TSO, as in shm.pml, with STORES. A system call's stores into the other process go the same way. Offers and
 * grants are numbered modulo NUMBERS.
 *
 * -DSLEEP: the sender sleeps. -DCLOSES: both sides close at any point. -DHALVES: gets of an even number of units only.
 * -DFAILURES: the system refuses a copy, from some moment on. -DDEATHS: a process dies at any point. -DTIMEOUT: the known
 * weakness: the receiver's close waits for the sender's system call only until its time is up.
 *
 * Each M_... is a mutation that check.sh demands to be found.
 */

#ifndef UNITS
#define UNITS 3
#endif
#define KEEP 2
#ifndef NUMBERS
#define NUMBERS 2
#endif
#define RING 1

/* A unit in the sender's or receiver's memory: what it holds. */
#define VALUE(piece, unit) (3 + (piece) * UNITS + (unit))
#define OWN 0      /* the receiver's user has it */
#define EMPTY 1    /* asked for by a get */
#define SCRIBBLE 2 /* the sender's user has it */

byte from[UNITS], to[UNITS];

/* The control page; its words of several fields change in one step each. */
byte offered; /* 2 * number, one more when closed */
byte granted_at, granted_units;
byte claim_generation, claim_back, claim_left;
byte push_generation, push_count;
bit push_failed;
byte answer, answer_units;
bit revoked, put_armed, no_pulls;

/* Stores on their way to memory. */
mtype = { FILL, LEAVE, OFFERED, OFFER, DATA, WRITE, PUSHED, REVOKED, ARMED };
mtype = { GRANT, CLAIMS, ANSWER_UNITS, ANSWER, NO_PULLS };
#ifndef STORES
#define STORES 0 /* late ones of each side; 0: none, they are done at once */
#endif
chan put_buffer = [STORES] of { mtype, byte, byte };
chan get_buffer = [STORES] of { mtype, byte, byte };
chan ring = [RING] of { mtype, byte }; /* OFFER and its number, DATA and a unit */
byte records;                         /* in the ring or on their way */

bit wake_putter;                        /* in the stream, as these */
bit put_closed, get_closed;             /* the stream tells it: goodbye, or death */
bit put_gone, get_gone;                 /* dead */
byte delivered_units;                   /* not in C: what the receiver's user has of the piece offered */

#define FENCE(buffer) empty(buffer)
#define ANSWERED (answer == number)
#ifdef M_LEFT_FROM_GRANT /* the word counts what the receiver took, not what is left */
#define LEFT_OF(units) ((units) - claim_back - claim_left)
#define TAKE_FRONT claim_left++
#define TAKE_ALL claim_left = units - claim_back
#define AT_FIRST(units) 1
#else
#define LEFT_OF(units) claim_left
#define TAKE_FRONT claim_left--
#define TAKE_ALL claim_left = 0
#define AT_FIRST(units) ((units) - 1) /* the first unit is the receiver's from the start */
#endif
#define MAY_PUSH (reachable && LEFT_OF(granted_units) > 0)

active proctype put_stores()
{
	mtype kind;
	byte a, b;
end:	do
	:: d_step {
		put_buffer?kind, a, b ->
		if
		:: kind == FILL -> b = 0; do :: b < UNITS -> from[b] = VALUE(a, b); b++ :: else -> break od
		:: kind == LEAVE -> b = 0; do :: b < a -> from[b] = SCRIBBLE; b++ :: else -> break od
		:: kind == OFFERED -> offered = a
		:: kind == OFFER || kind == DATA -> ring!kind, a
		:: kind == WRITE ->
			assert(to[a] == EMPTY || get_gone); /* never the user's, and never a second time */
			to[a] = (get_gone -> to[a] : b)
		:: kind == PUSHED -> push_generation = a; push_count = b % 128; push_failed = b / 128
		:: kind == REVOKED -> revoked = 1
		:: kind == ARMED -> put_armed = 1
		fi;
		kind = 0; a = 0; b = 0
	}
	od
}

active proctype get_stores()
{
	mtype kind;
	byte a, b;
end:	do
	:: d_step {
		get_buffer?kind, a, b ->
		if
		:: kind == GRANT -> granted_at = a; granted_units = b
		:: kind == CLAIMS -> claim_generation = a; claim_back = 0; claim_left = b
		:: kind == ANSWER_UNITS -> answer_units = a
		:: kind == ANSWER -> answer = a
		:: kind == NO_PULLS -> no_pulls = 1
		fi;
		kind = 0; a = 0; b = 0
	}
	od
}

/* ---- the side that puts ---- */

#ifdef M_NO_GENERATION_IN_CLAIMS
#define SAME_GENERATION true
#else
#define SAME_GENERATION (generation == claim_generation)
#endif

/* claim_back. The comparison is of the whole word, so that the grant read before is the one that it opens. */
inline claim()
{
	atomic { FENCE(put_buffer) -> generation = claim_generation; back = claim_back; left = claim_left };
#ifndef M_PUSHED_STAYS
	if
	:: back == 0 && push_generation == generation -> put_buffer!PUSHED(0, 0)
	:: else
	fi;
#endif
	d_step { at = granted_at; units = granted_units };
	atomic {
		FENCE(put_buffer) ->
		if
		:: back == claim_back && left == claim_left && LEFT_OF(units) > 0 && SAME_GENERATION ->
			claim_back++;
#ifndef M_LEFT_FROM_GRANT
			claim_left--;
#endif
			back++
		:: else -> back = 0 /* looks again */
		fi
	}
}

/* A turn of shm_pusher_work. */
inline work()
{
	claim();
	if
	:: back > 0 ->
		assert(at + units <= UNITS && back <= units); /* else -EPROTO */
		if
		:: true ->
#ifdef M_PUSHED_BEFORE_WRITE
			put_buffer!PUSHED(generation, back);
			put_buffer!WRITE(at + units - back, VALUE(piece, at + units - back))
#else
			put_buffer!WRITE(at + units - back, VALUE(piece, at + units - back));
			put_buffer!PUSHED(generation, back)
#endif
#ifdef FAILURES
		:: true ->
			reachable = 0;
#ifndef M_FAILURE_NOT_TOLD
			put_buffer!PUSHED(generation, back - 1 + 128)
#endif
#endif
		fi
	:: else
	fi;
	d_step { generation = 0; back = 0; left = 0; at = 0; units = 0 }
}

/* hr_channel_arm and the sleep of hr_channel_wait. */
inline sleep()
{
	wake_putter = 0;
	put_buffer!ARMED(0, 0);
	FENCE(put_buffer);
#ifdef BOTH_HEAVY
	FENCE(get_buffer); /* membarrier */
#endif
	if
#ifdef M_NO_SECOND_LOOK
	:: wake_putter -> wake_putter = 0
#else
	:: ANSWERED || MAY_PUSH -> skip
	:: else ->
		if
		:: wake_putter -> wake_putter = 0
		:: get_closed -> skip
		fi
#endif
	fi
}

/* The peer's answer: what it took is accepted, and the user's again. */
inline collect()
{
	d_step { taken = answer_units; answer_units = 0 }; /* it is not read again */
	assert(taken <= UNITS && taken <= delivered_units);
	if
	:: taken < UNITS -> put_buffer!LEAVE(taken, 0)
	:: else /* it is filled with the next piece at once */
	fi
}

proctype putter()
{
	byte number, piece, taken; /* taken: units of the piece that are accepted */
	byte generation, back, left, at, units;
	bit reachable = 1;
	{
		put_buffer!FILL(0, 0);
next:		if
		:: no_pulls -> goto by_ring
		:: else
		fi;
		number = (number + 1) % NUMBERS;
		put_buffer!OFFERED(2 * number, 0);
		atomic { records < RING || get_closed -> if :: get_closed -> goto closing :: else -> records++ fi };
		put_buffer!OFFER(number, 0);
		/* drive_offer, as often as the caller puts */
		do
		:: MAY_PUSH -> work()
		:: ANSWERED -> collect(); break
#ifdef M_TAKE_BACK_BY_STORE
		:: offered == 2 * number -> put_buffer!OFFERED(2 * number + 1, 0); break
#else
		:: atomic { FENCE(put_buffer) && offered == 2 * number -> offered++; break }
#endif
#ifdef SLEEP
		:: sleep()
#endif
		:: goto away
#ifdef CLOSES
		:: goto closing
#endif
		:: get_closed ->
			if
			:: ANSWERED -> collect()
			:: else
			fi;
			goto closing
		od;
by_ring:	do
		:: taken < UNITS ->
			atomic { records < RING || get_closed -> if :: get_closed -> goto closing :: else -> records++ fi };
			put_buffer!DATA(VALUE(piece, taken), 0);
			taken++
		:: else -> break
		od;
		put_buffer!FILL(1 - piece, 0);
		d_step { piece = 1 - piece; taken = 0 };
		goto next
	} unless { put_gone };
	goto ended;

	/* The caller does not put again. */
away:
end_away:
	put_gone;
	goto ended;

	/* shm_conn_shutdown; then the user has its memory. */
closing:
#ifndef M_NO_REVOKE
	put_buffer!REVOKED(0, 0);
#endif
	put_buffer!LEAVE(UNITS, 0);
ended:	FENCE(put_buffer);
	d_step { number = 0; piece = 0; taken = 0; generation = 0; back = 0; left = 0; at = 0; units = 0; put_closed = 1 }
}

/* ---- the side that gets ---- */

#ifdef M_PUSHED_WITHOUT_GENERATION
#define SETTLED (back == 0 || push_count >= back || push_failed)
#else
#define SETTLED (back == 0 || (push_generation == generation && (push_count >= back || push_failed)))
#endif

/* One system call, or none of it. What was the sender's when it was offered is so until it is accepted or revoked. */
inline pull(unit)
{
	if
	:: !put_gone ->
		d_step {
			assert(to[unit] == EMPTY);
			assert(from[unit] == VALUE(piece, unit) || revoked);
			to[unit] = from[unit];
			pulled = 1
		}
#ifdef FAILURES
	:: true -> d_step { reachable = 0; pulled = 0 }
#endif
	:: put_gone -> d_step { reachable = 0; pulled = 0 }
	fi
}

/* What get returns is the user's. */
inline deliver(upto)
{
	d_step {
		value = upto;
		do
		:: done < value ->
			assert(to[done] == VALUE(piece, done));
			to[done] = OWN;
			done++;
			want--
		:: else -> break
		od;
		delivered_units = done;
		value = 0
	}
}

/* The piece is at its end: the next one follows. */
inline finish()
{
	if
	:: done == UNITS -> d_step { done = 0; piece = 1 - piece }
	:: else
	fi
}

inline tell()
{
	if
	:: !reachable -> get_buffer!NO_PULLS(0, 0)
	:: else
	fi;
#ifdef M_ANSWER_FIRST
	get_buffer!ANSWER(number, 0);
	get_buffer!ANSWER_UNITS(done, 0);
#else
	get_buffer!ANSWER_UNITS(done, 0);
	get_buffer!ANSWER(number, 0);
#endif
	d_step { open = 0; number = 0 }
}

/* wake_if_armed */
inline wake()
{
#if !defined(BOTH_HEAVY) && !defined(M_NO_FENCE)
	FENCE(get_buffer);
#endif
	if
	:: put_armed ->
		atomic {
			FENCE(get_buffer) ->
			if
			:: put_armed -> put_armed = 0; wake_putter = 1
			:: else
			fi
		}
	:: else
	fi
}

inline open_grant()
{
	d_step { start = done; units = want; front = 0; first = 1; granted = 1; generation = (generation + 1) % NUMBERS };
#ifdef M_CLAIMS_BEFORE_GRANT
	get_buffer!CLAIMS(generation, AT_FIRST(units));
	get_buffer!GRANT(start, units)
#else
	get_buffer!GRANT(start, units);
#ifdef M_FIRST_UNIT_IS_OPEN
	get_buffer!CLAIMS(generation, units)
#else
	get_buffer!CLAIMS(generation, AT_FIRST(units))
#endif
#endif
}

/* The receiver's units: the first, and from the front until none is left. */
inline pull_front()
{
	if
	:: first ->
		pull(start);
		d_step { front = pulled; first = 0; pulled = 0 }
	:: else
	fi;
	do
	:: atomic {
		FENCE(get_buffer) && LEFT_OF(units) > 0 ->
		assert(claim_generation == generation && claim_back + LEFT_OF(units) <= units);
		if
		:: reachable -> TAKE_FRONT
		:: else -> TAKE_ALL
		fi
	   }
		if
		:: reachable ->
			pull(start + front);
			d_step { front = front + pulled; pulled = 0 }
		:: else
		fi
	:: atomic { FENCE(get_buffer) && LEFT_OF(units) == 0 -> back = claim_back; break }
	od
}

/* take_granted: a get with the grant open */
inline take_granted()
{
#ifdef M_REVOKED_LOOK_FIRST
	was_revoked = revoked;
#endif
	pull_front();
	atomic {
		if
#ifndef M_NOT_SETTLED
		:: !SETTLED -> waits = 1
#endif
		:: else -> waits = 0
		fi
	}
	if
#ifndef M_FAILED_NOT_PULLED
	:: !waits && reachable && back > 0 && push_failed && push_count < back ->
		assert(push_count == back - 1);
		pull(start + units - back)
		/* what was refused stays in front of the units that were pushed */
#endif
	:: else -> pulled = 1
	fi;
#ifndef M_REVOKED_LOOK_FIRST
	was_revoked = revoked;
#endif
	if
	:: was_revoked -> open = 0
	:: !was_revoked && !waits && reachable && pulled && front + back == units -> deliver(start + units)
#ifdef M_NO_KEEP
	:: !was_revoked && !(!waits && reachable && pulled && front + back == units) -> deliver(start + front)
#else
	:: !was_revoked && !(!waits && reachable && pulled && front + back == units) ->
		if
		:: waits && front + KEEP > units -> deliver(start + (units < KEEP -> 0 : units - KEEP))
		:: else -> deliver(start + front)
		fi
#endif
	fi;
	d_step {
		pulled = 0;
		granted = waits;
		if
		:: !waits -> start = 0; units = 0; front = 0; back = 0
		:: else
		fi
	}
}

/* A part too short for a grant. */
inline take_short()
{
#ifdef M_REVOKED_LOOK_FIRST
	was_revoked = revoked;
#endif
	pull(done);
#ifndef M_REVOKED_LOOK_FIRST
	was_revoked = revoked;
#endif
	if
	:: pulled && was_revoked -> open = 0
	:: pulled && !was_revoked -> deliver(done + 1)
	:: else
	fi;
	pulled = 0
}

/* shm_puller_take, and the wake-up behind it */
inline take()
{
	if
	:: granted -> take_granted()
	:: !granted && !reachable -> tell()
	:: !granted && reachable && want == 1 && done + 1 < UNITS -> tell() /* a small get of a long piece */
	:: !granted && reachable && want == 1 -> take_short()
	:: !granted && reachable && want > 1 -> open_grant(); take_granted()
	fi;
	if
	:: open && !granted && (done == UNITS || !reachable) -> tell()
	:: else
	fi;
	if
#ifndef M_NO_WAKE_FOR_ANSWER
	:: !open -> wake(); finish()
#else
	:: !open -> finish()
#endif
	:: else
	fi
}

/* begin_offer */
inline begin()
{
#ifdef M_TAKE_UP_BY_STORE
	open = (offered == 2 * number);
	offered = (open -> 2 * number + 1 : offered);
#else
	atomic {
		FENCE(get_buffer) ->
		open = (offered == 2 * number);
		offered = (open -> 2 * number + 1 : offered)
	}
#endif
#ifndef M_ANSWER_STAYS
	if
	:: !open -> get_buffer!ANSWER(number, 0); number = 0
	:: else
	fi
#endif
}

#ifdef HALVES
#define MAY_ASK (want > 0 && (done + want) % 2 == 0)
#else
#define MAY_ASK (want > 0)
#endif

/* The caller asks for a part of what is left of the piece, or goes on with the rest of the part. */
inline ask()
{
	atomic {
	if
	:: want == 0 ->
		do
		:: done + want < UNITS -> d_step { to[done + want] = EMPTY; want++ }
		:: MAY_ASK -> break
		od
	:: else
	fi
	}
}

inline take_record()
{
	if
	:: atomic { ring?OFFER(number) -> records--; delivered_units = 0 }; begin()
	:: ring?DATA(value) ->
		d_step { records--; to[done] = value };
		deliver(done + 1);
		finish()
	fi
}

proctype getter()
{
	byte number, piece, done; /* done: units of the piece that are delivered */
	byte want;                /* asked for, from done on */
	byte start, units, front, generation, back, value;
	bit open, granted, first, waits, pulled, was_revoked;
	bit reachable = 1;
	{
		ask();
next:		ask();
		if
		:: true
#ifdef CLOSES
		:: goto closing
#endif
		:: want < KEEP -> d_step { to[done] = OWN; want = 0 }; goto next /* the caller leaves the rest */
		fi;
		if
		:: open && !waits -> take()
		:: open && waits ->
			if
			:: SETTLED -> take()
			:: !SETTLED && put_closed -> goto closing /* get fails */
			fi
		:: !open ->
end_idle:		if
			:: nempty(ring) -> take_record()
			:: empty(ring) && put_closed -> goto closing
			fi
		fi;
		goto next
	} unless { get_gone };
	goto ended;

	/* shm_conn_shutdown; then the user has its memory. */
closing:
	atomic { FENCE(get_buffer) -> get_closed = 1 };
#ifndef M_CLOSE_WITHOUT_WITHDRAWING
	if
	:: granted ->
		atomic {
			FENCE(get_buffer);
			if
			:: LEFT_OF(units) > 0 -> TAKE_ALL
			:: else
			fi
		};
		back = claim_back;
		if
		:: SETTLED
#ifndef M_CLOSE_WAITS_FOR_THE_DEAD
		:: put_closed
#endif
#ifdef TIMEOUT
		:: true
#endif
		fi
	:: else
	fi;
#endif
ended:	FENCE(get_buffer);
	d_step {
		get_closed = 1;
		value = 0;
		do
		:: value < UNITS -> to[value] = OWN; value++
		:: else -> break
		od;
		number = 0; piece = 0; done = 0; want = 0; start = 0; units = 0; front = 0; generation = 0; back = 0;
		value = 0; open = 0; granted = 0; first = 0; waits = 0; pulled = 0; was_revoked = 0
	}
}

init {
	atomic { run putter(); run getter() }
#ifdef DEATHS
	if
	:: put_gone = 1
	:: get_gone = 1
	:: true
	fi
#endif
}
