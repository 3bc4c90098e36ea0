/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of the zero-copy handshake over verbs, for spin: a long piece stays in the sender's memory, a chunk of the ring
 * announces it, the receiver reads it by RDMA, and its acknowledgement, a count in the control block, completes the put.
 * The ring itself, its credits and sleeping are in verbs.pml; here it is a queue of RING chunks, and acknowledgements
 * and reads take any time.
 *
 * Both sides do the same at once, for ever: put a vector of two pieces, each short (copied) or long (announced), and when
 * all of it is accepted get two pieces. As neither gets before its put is through, both would wait for ever if a put did
 * not take what is announced into the bounce buffer. Two announcements may be unacknowledged, and reads finish in any
 * order. When a piece is accepted the user writes into its memory at once.
 *
 * What spin proves: each piece is delivered complete, once and in order; no memory is reused while it may still be read;
 * nothing waits for ever. Each M_... is a mutation that check.sh demands to be found.
 */

#define RING 2
#define PIECES 8 /* pieces are numbered modulo this */
#define SCRIBBLE 255

mtype = { COPIED, ANNOUNCED };
mtype = { FREE, POSTED, HERE }; /* a pull */

chan ring[2] = [RING] of { mtype, byte }; /* to side i: kind; what was copied, or which of the two pieces is meant */
chan acks[2] = [2] of { bit };            /* to side i: each raises the count by one */
byte user[4];                             /* memory of the pieces that side i puts: 2 * i, 2 * i + 1 */

mtype pull[4];      /* of side i, in the order of the stream: 2 * i, 2 * i + 1 */
byte from[4];       /* the peer's memory that it reads */
byte here[4];       /* what has arrived */
bit long_one[4];    /* it was announced, and not acknowledged */
byte planned[2], delivered[2], acked[2]; /* counts of pulls, modulo PIECES */

#define AT(me, count) (2 * (me) + (count) % 2)

/* The adapter: reads that are posted are carried out in any order; two queue pairs. */
proctype adapter(bit me)
{
end:	do
	:: d_step { pull[AT(me, 0)] == POSTED -> here[AT(me, 0)] = user[from[AT(me, 0)]]; pull[AT(me, 0)] = HERE }
	:: d_step { pull[AT(me, 1)] == POSTED -> here[AT(me, 1)] = user[from[AT(me, 1)]]; pull[AT(me, 1)] = HERE }
	od
}

#define CAN_PLAN(me) (nempty(ring[me]) && pull[AT(me, planned[me])] == FREE)

/* Takes a chunk of the ring: into the bounce buffer, or a read is posted for what it announces. */
inline plan()
{
	atomic {
		ring[me]?kind, value;
		if
		:: kind == COPIED -> here[AT(me, planned[me])] = value; pull[AT(me, planned[me])] = HERE
		:: else ->
			from[AT(me, planned[me])] = 2 * (1 - me) + value;
			pull[AT(me, planned[me])] = POSTED;
			long_one[AT(me, planned[me])] = 1
		fi;
		planned[me] = (planned[me] + 1) % PIECES;
		kind = 0;
		value = 0
	}
}

/* The oldest pull that may have to be acknowledged is here, or was copied. */
#ifdef M_ACK_BEFORE_READ
#define CAN_ACK(me) (acked[me] != planned[me])
#else
#define CAN_ACK(me) (acked[me] != planned[me] && pull[AT(me, acked[me])] != POSTED)
#endif

/* An acknowledgement is a count of announcements that are here without a gap. */
inline acknowledge()
{
#ifdef M_ACK_OUT_OF_ORDER
	atomic {
		if
		:: long_one[AT(me, 0)] && pull[AT(me, 0)] == HERE -> acks[1 - me]!1; long_one[AT(me, 0)] = 0
		:: long_one[AT(me, 1)] && pull[AT(me, 1)] == HERE -> acks[1 - me]!1; long_one[AT(me, 1)] = 0
		fi
	}
#else
	atomic {
		if
		:: long_one[AT(me, acked[me])] ->
			acks[1 - me]!1;
			long_one[AT(me, acked[me])] = 0
		:: else
		fi;
		acked[me] = (acked[me] + 1) % PIECES
	}
#endif
}
#ifdef M_ACK_OUT_OF_ORDER
#define ACKS(me) ((long_one[AT(me, 0)] && pull[AT(me, 0)] == HERE) || (long_one[AT(me, 1)] && pull[AT(me, 1)] == HERE))
#define WAS_ACKED(me) (!long_one[AT(me, delivered[me])])
#else
#define ACKS(me) CAN_ACK(me)
#define WAS_ACKED(me) (acked[me] != delivered[me])
#endif

/* The oldest announcement has been acknowledged: put reports its piece as accepted, and the user writes into it. */
inline accept()
{
	if
	:: waiting & 1 -> waiting = waiting & ~1; user[2 * me] = SCRIBBLE
	:: else -> waiting = 0; user[2 * me + 1] = SCRIBBLE
	fi
}

/* Puts the pieces next and next + 1. */
inline put()
{
	sent = 0;
	d_step { user[2 * me] = next; user[2 * me + 1] = (next + 1) % PIECES };
	do
	:: sent < 2 && nfull(ring[1 - me]) ->
		if
		:: ring[1 - me]!ANNOUNCED, sent; waiting = waiting | (1 << sent)
		:: ring[1 - me]!COPIED, user[2 * me + sent]
		fi;
		sent++
	:: d_step { acks[me]?_ -> accept() }
	:: ACKS(me) -> acknowledge()
#ifndef M_NO_BOUNCE
	:: CAN_PLAN(me) -> plan()
#endif
#ifdef M_ACCEPTED_WHEN_SENT
	:: sent == 2 -> break
#else
	:: sent == 2 && waiting == 0 -> break
#endif
	od;
	atomic { next = (next + 2) % PIECES; sent = 0 }
}

#ifdef M_DELIVERED_BEFORE_READ
#define CAN_DELIVER(me) (delivered[me] != planned[me])
#else
#define CAN_DELIVER(me) (delivered[me] != planned[me] && pull[AT(me, delivered[me])] == HERE && WAS_ACKED(me))
#endif

inline get()
{
	do
	:: sent < 2 && CAN_DELIVER(me) ->
		d_step {
			assert(here[AT(me, delivered[me])] == delivered[me]); /* complete, once, in order */
			pull[AT(me, delivered[me])] = FREE;
			delivered[me] = (delivered[me] + 1) % PIECES;
			sent++
		}
	:: ACKS(me) -> acknowledge()
	:: CAN_PLAN(me) -> plan()
#ifdef M_ACCEPTED_WHEN_SENT
	:: d_step { acks[me]?_ -> accept() }
#endif
	:: sent == 2 -> sent = 0; break
	od
}

proctype side(bit me)
{
	byte sent, waiting; /* of this vector; announced and not acknowledged, as a set */
	byte next, value;
	mtype kind;
	do
	:: put(); get()
	od
}

init {
	atomic {
		pull[0] = FREE;
		pull[1] = FREE;
		pull[2] = FREE;
		pull[3] = FREE;
		run adapter(0);
		run adapter(1);
		run side(0);
		run side(1)
	}
}
