/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Model of going back to the start of the shared-memory ring (rdma_channel/shm/ring.h, "Back" and "Echo"), for spin. A
 * sender puts records of one or two lines, and may leave a line unused behind a record of one line (ring.h, "Slots"), or all
 * lines up to the first one (ring.h, "Turn"). The receiver takes the records and answers at any time. Order between stores
 * is not modelled (shm.pml does that): each step is seen at once. A line here is a pair of lines in C, as in shm.pml.
 *
 * What spin proves by visiting every state: records arrive once and in order, no line is overwritten before the receiver
 * has taken its record, and no header word of an earlier record is taken for the next one, though positions wrap and lines
 * are left out.
 *
 * Each M_... is a mutation: something is left out that is there for a reason. check.sh demands that spin finds it.
 */

#define LINES 4
#define POSITIONS 16 /* positions are modulo this, as in C modulo 2^32 */
#define EIGHTH 1     /* lines taken that need not be told: mask / 8, SHM_REPORT_MOST at most */
#define BACK_LINES 1 /* as SHM_BACK_LINES */

#define MINUS(a, b) (((a) + POSITIONS - (b)) % POSITIONS)
#define UP(position) ((((position) + LINES - 1) / LINES * LINES) % POSITIONS)

/* A line: the position in its header word + 1, or 0: no header word; and what the record has beside it. */
byte word[LINES];
bit goes_back[LINES], marked[LINES], two[LINES], gap[LINES];
bit unread[LINES];

byte head, tail, mark_end; /* shm_sender */
bit mark, awaits_echo;
bit unclean[LINES];
byte at;                   /* shm_receiver: the next position */
bit echo;
byte told;                 /* the stored tail */
chan answers = [2] of { bit }; /* echoes under way to the sender */

#define FREE (LINES - MINUS(head, tail))

inline hear(value)
{
	if
	:: awaits_echo && value == mark ->
		awaits_echo = 0;
		if
		:: MINUS(mark_end, tail) <= MINUS(head, tail) -> tail = mark_end
		:: else
		fi
	:: else
	fi
}

/* Loads the stored tail, which may be older than what an echo has said. */
inline refresh()
{
	if
	:: MINUS(head, told) < MINUS(head, tail) ->
		tail = told;
#ifndef M_OLD_MARK
		if
		:: MINUS(head, mark_end) > MINUS(head, tail) -> mark_end = tail
		:: else
		fi
#endif
	:: else
	fi
}

inline clean(line)
{
	if
	:: unclean[line] -> assert(!unread[line]); word[line] = 0; unclean[line] = 0
	:: else
	fi
}

inline publish(lines, unused, turns)
{
	back = turns || (head == tail && head % LINES >= BACK_LINES);
	next = (head + lines + unused) % POSITIONS;
	if
	:: back -> next = UP(next)
	:: else
	fi
#ifndef M_OLD_HEADERS
	if
	:: (next >= POSITIONS / 2) != (head >= POSITIONS / 2) ->
		for (i : 0 .. LINES - 1) { unclean[i] = 1 }
	:: else
	fi
#endif
	clean(next % LINES);
	if
#ifdef M_MARK_EACH
	:: true ->
#else
	:: !awaits_echo ->
#endif
		awaits_echo = 1; mark = !mark; mark_end = next
	:: else
	fi;
	assert(!unread[head % LINES]);
	word[head % LINES] = head + 1;
	goes_back[head % LINES] = back;
	marked[head % LINES] = mark;
	two[head % LINES] = lines == 2;
	gap[head % LINES] = unused;
	unread[head % LINES] = 1;
	if
	:: lines == 2 ->
		assert(!unread[(head + 1) % LINES]);
		unread[(head + 1) % LINES] = 1;
		unclean[(head + 1) % LINES] = 1
	:: else
	fi;
	head = next
}

active proctype sender()
{
	byte next, i;
	bit back, value;
end:	do
	/* One line of the ring stays free for the word after the record. A record does not wrap. */
	:: atomic { FREE >= 2 -> publish(1, 0, 0); next = 0; i = 0; back = 0 }
#ifdef M_GAP_WITHOUT_ROOM
	:: atomic { FREE >= 2 && head != tail -> publish(1, 1, 0); next = 0; i = 0; back = 0 }
#else
	:: atomic { FREE >= 3 && head != tail -> publish(1, 1, 0); next = 0; i = 0; back = 0 }
#endif
	/* A stream of short records turns: the lines up to the first one count as in use, and one line stays free. */
#ifdef M_TURN_WITHOUT_ROOM
	:: atomic { FREE >= 2 && head % LINES > 0 -> publish(1, 0, 1); next = 0; i = 0; back = 0 }
#else
	:: atomic { head % LINES > 0 && FREE > (LINES - head % LINES) -> publish(1, 0, 1); next = 0; i = 0; back = 0 }
#endif
	:: atomic { FREE >= 3 && head % LINES + 2 <= LINES -> publish(2, 0, 0); next = 0; i = 0; back = 0 }
	:: atomic { answers?value -> hear(value); value = 0 }
	:: atomic { MINUS(head, told) < MINUS(head, tail) -> refresh() }
	od
}

active proctype receiver()
{
	byte line;
end:	do
	:: atomic {
		word[at % LINES] == at + 1 ->
		line = at % LINES;
		assert(at != head); /* else no record was put there */
		assert(unread[line]);
#ifdef M_EARLY_ECHO
		echo = marked[line];
		if
		:: nfull(answers) -> answers!echo
		:: true
		fi
#endif
	   };
	   atomic {
		unread[line] = 0;
		at = (at + 1 + two[line] + gap[line]) % POSITIONS;
		if
		:: two[line] -> unread[line + 1] = 0
		:: else
		fi;
		if
		:: goes_back[line] -> at = UP(at)
		:: else
		fi;
		echo = marked[line];
		if
		:: MINUS(at, told) > EIGHTH -> told = at
		:: else
		fi;
		line = 0
	   }
	:: atomic { nfull(answers) -> answers!echo }
	od
}
