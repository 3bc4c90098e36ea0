/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of several offers under way over shared memory (rdma_channel/shm/single.h, single.c; put.c, offer.c, and get.c call
 * them), for spin: one direction, a process that puts and one that gets. How both sides copy one offer is in single.pml; here the
 * receiver copies it. Memory is sequentially consistent here.
 *
 * The sender puts units of a stream for ever: two units as one offer, or one unit as a record of the ring. Up to OFFERS
 * offers are open at a time, and records follow offers. Put accepts units before the first open offer only, and the user
 * writes into the memory of an accepted unit at once.
 *
 * The receiver takes records in order. It may answer an offer early, with the units that it has (a small get, or a system
 * call that fails); the sender may take offers back that were not taken up. Then the sender goes back: what it sent after
 * the units that were taken was not accepted, so its caller still offers it, and it is sent again. The receiver drops all
 * records up to the one that says where the sender goes on (RESTART).
 *
 * taken_up: number of the last offer that was taken up, or that will never be. The receiver takes an offer up only by a
 * compare-and-swap from the number before it, and the sender takes back all that are open by one to the last of them. Their
 * records are still in the ring, and their numbers are not used again.
 * answer: number of the last offer answered, and whether its answer is early. All offers before it were taken completely.
 * Only an early answer has a count, because the receiver does not answer again before the RESTART: otherwise the sender
 * could read the count of one answer with the number of another.
 *
 * What spin proves: each unit is delivered once, complete and in order; no memory is read after it was accepted, or after
 * the sender closed; nobody waits for ever. -DCLOSES: the sender closes at any point. Each M_... is a mutation that
 * check.sh demands to be found.
 */

#define WINDOW 4     /* units that the caller of put offers */
#define POSITIONS 8  /* units are numbered modulo this */
#define OFFERS 2
#define NUMBERS 8    /* offers are numbered modulo this */
#define RING 3
#define SCRIBBLE 255

#define NEXT(number) (((number) + 1) % NUMBERS)
#define LAST(number) (((number) + NUMBERS - 1) % NUMBERS)
#define BETWEEN(number) (((number) + NUMBERS - first) % NUMBERS < (end + NUMBERS - first) % NUMBERS)

mtype = { OFFER, DATA, RESTART };
chan ring = [RING] of { mtype, byte, byte }; /* number of an offer; the unit, or the first unit of the offer */

byte user[WINDOW]; /* the sender's memory: the unit that each place holds */
byte taken_up, answer, answer_done;
bit answer_early; /* in the word of the answer */
bit revoked, closed;

/* ---- the side that puts ---- */

/* Units before this one are accepted, and their memory is the user's, who fills it with what it puts next. */
inline accept(position)
{
	d_step {
		until = position;
		do
		:: accepted != until ->
			user[accepted % WINDOW] = (accepted + WINDOW) % POSITIONS;
			accepted = (accepted + 1) % POSITIONS;
			ahead--
		:: else -> break
		od;
		until = 0
	}
}

/* Goes on from this unit; no offer is open any more. */
inline go_back(position)
{
	accept(position);
#ifdef M_NUMBERS_AGAIN
	d_step { end = first; ahead = 0; restart = 1 }
#else
#ifdef M_REST_STAYS_SENT
	d_step { first = end; restart = 1 };
	accept((accepted + ahead) % POSITIONS)
#else
	d_step { first = end; ahead = 0; restart = 1 }
#endif
#endif
}

inline collect()
{
#ifdef M_COUNT_IN_EVERY_ANSWER
	number = answer;
	early = (answer_done < 2);
#else
	d_step { number = answer; early = answer_early };
#endif
	if
	:: early ->
		/* The answers before it were full. */
		until = (start[number % OFFERS] + answer_done) % POSITIONS;
#ifndef M_WORD_STAYS
		taken_up = LAST(end);
#endif
		go_back(until)
	:: else ->
		first = NEXT(number);
		if
		:: first == end -> accept((accepted + ahead) % POSITIONS)
		:: else -> accept(start[first % OFFERS])
		fi
	fi;
	d_step { number = 0; early = 0 }
}

#ifdef M_TAKE_BACK_BY_STORE
#define TAKE_BACK taken_up == LAST(first) -> taken_up = LAST(end)
#else
#define TAKE_BACK atomic { taken_up == LAST(first) -> taken_up = LAST(end) }
#endif

active proctype putter()
{
	byte accepted, ahead; /* accepted: the first unit that is not; ahead: units sent from there on */
	byte first = 1, end = 1; /* numbers of the first open offer, and of the next */
	byte start[OFFERS];      /* first units of the open offers */
	byte number, until;
	bit restart, early;
	d_step { user[0] = 0; user[1] = 1; user[2] = 2; user[3] = 3 };
	do
	:: restart && nfull(ring) ->
#ifndef M_NO_RESTART
		ring!RESTART(0, 0);
#endif
		restart = 0
	:: !restart && ahead + 2 <= WINDOW && (end + NUMBERS - first) % NUMBERS < OFFERS && nfull(ring) ->
		start[end % OFFERS] = (accepted + ahead) % POSITIONS;
		ring!OFFER(end, (accepted + ahead) % POSITIONS);
		d_step { end = NEXT(end); ahead = ahead + 2 }
	:: !restart && ahead < WINDOW && nfull(ring) ->
		ring!DATA(0, user[(accepted + ahead) % WINDOW]);
		ahead++;
		if
#ifdef M_ACCEPTED_BEHIND_AN_OFFER
		:: true -> accept((accepted + ahead) % POSITIONS)
#else
		:: first == end -> accept((accepted + ahead) % POSITIONS)
		:: else
#endif
		fi
	:: first != end && BETWEEN(answer) -> collect()
	:: first != end && !BETWEEN(answer) -> /* not answered while it looked */
		if
		:: TAKE_BACK; go_back(start[first % OFFERS])
		:: BETWEEN(answer)
		:: !restart && nfull(ring) && ahead < WINDOW
		fi
#ifdef CLOSES
	:: break
#endif
	od;
#ifdef M_NO_REVOKE
	skip;
#else
	revoked = 1;
#endif
	d_step { user[0] = SCRIBBLE; user[1] = SCRIBBLE; user[2] = SCRIBBLE; user[3] = SCRIBBLE };
	closed = 1
}

/* ---- the side that gets ---- */

inline take_record()
{
	if
	:: drops ->
		if
		:: kind == RESTART -> drops = 0
		:: else
		fi
	:: !drops && kind == DATA ->
		assert(position == next);
		next = (next + 1) % POSITIONS
	:: !drops && kind == OFFER ->
		atomic {
			if
			:: taken_up == LAST(number) -> taken_up = number; open = 1; assert(position == next)
			:: else ->
				drops = 1;
#ifndef M_ANSWER_STAYS
				/* Nobody waits for it. If so many offers were taken back that numbers come again, the
				 * last answer would look like one to a new offer. */
				answer = number;
				answer_early = 0
#endif
			fi
		}
	:: !drops && kind == RESTART -> assert(false)
	fi
}

/* One unit of the offer. */
inline pull()
{
	value = user[next % WINDOW];
	if
#ifdef M_GOES_ON_AFTER_THE_END
	:: revoked -> d_step { open = 0; done = 0 }
#else
	:: revoked -> d_step { open = 0; done = 0; drops = 1 } /* the records behind it are not what comes next */
#endif
	:: else ->
		assert(value == next);
		d_step { next = (next + 1) % POSITIONS; done++; value = 0 }
	fi
}

inline tell(is_early)
{
#ifdef M_COUNT_IN_EVERY_ANSWER
	answer_done = done;
	answer = number;
#else
#ifdef M_ANSWER_FIRST
	d_step { answer = number; answer_early = is_early };
	answer_done = done;
#else
	if
	:: is_early -> answer_done = done
	:: else
	fi;
	d_step { answer = number; answer_early = is_early };
#endif
#endif
#ifdef M_DROPS_NOTHING
	d_step { open = 0; done = 0 }
#else
	d_step { open = 0; done = 0; drops = is_early }
#endif
}

active proctype getter()
{
	mtype kind;
	byte number, position, value;
	byte next, done; /* the next unit to deliver; units of the offer that were delivered */
	bit open, drops;
	do
	:: !open ->
end_idle:	if
		:: ring?kind, number, position -> take_record()
		:: closed && empty(ring) -> break
		fi;
		d_step { kind = 0; position = 0 }
	:: open && done < 2 -> pull()
	:: open && done < 2 -> tell(1)
#ifdef M_ANSWER_BEFORE_COPY
	:: open && done == 1 -> d_step { answer = number; answer_early = 0 }; pull(); d_step { open = 0; done = 0 }
#endif
	:: open && done == 2 -> tell(0)
	od
}
