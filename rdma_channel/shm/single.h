/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy: bytes go from the sender's buffer to the receiver's without passing the ring, by process_vm_readv(2) and
 * process_vm_writev(2), and both processors copy at once. For one direction of a pipe:
 *
 *	offer:  the sender puts a record into the ring (SHM_OFFER) with the address and length of a piece, and accepts
 *	        none of it (hr_channel_put: the piece neither changes nor goes away before it is accepted).
 *	grant:  the receiver, when its caller's get has room for a part of it, tells where that part may go, cuts it into
 *	        units, and opens them to both: the receiver takes units from the front and pulls them, the sender, while
 *	        its caller calls put, takes units from the back and pushes them. A sender that does not call leaves all
 *	        to the receiver. Who takes which is settled by compare-and-swap on one word, claims:
 *	        generation << 32 | units taken from the back << 16 | units that nobody has taken.
 *	        The word names the generation of the grant, so that a sender that read an older one takes nothing. It
 *	        says by itself that there is something to take: the grant alone does not, as the next one is being
 *	        written while the word is still the last one's.
 *	pushed: generation << 32 | units that the sender has pushed; SHM_PUSH_FAILED: it pushes no more, and what it took
 *	        beyond those is the receiver's.
 *	answer: when all of the piece is there the receiver tells, and the sender accepts it. It may answer earlier: with
 *	        what it has taken so far, when its caller asks for small pieces or the system refuses; then the sender
 *	        sends the rest through the ring.
 *
 * Two callers that both put and do not get would wait for each other. So a sender may take an offer back as long as the
 * receiver has not taken it up; compare-and-swap on `offered` settles which of the two happened: twice the number of
 * the offer while it is open to both, one more when one of them has closed it.
 *
 * One offer at a time in each direction: copies are made by the two processors themselves, so that a second one under
 * way at the same time could not be faster.
 *
 * What is delivered is exact: a unit counts when all of it has been read, together with a word in the peer's memory
 * (token) which no other process and no other program of that process has, and when after that the sender had not yet
 * revoked its offer, which it does before its caller may take the buffer back. While a grant is open, what get has
 * delivered of the caller's piece stays so short that HR_ZERO_COPY_MIN bytes of it are left: the caller must go on with
 * the same memory (hr_channel_get); a get that does not is refused. A process that forks takes its token out of the
 * child, where it neither offers nor grants: addresses mean the parent's memory. What is written cannot be tied to the
 * token in that way; so a sender that has not seen the peer at work for a while looks for the token before it writes.
 */
#ifndef HR_SHM_SINGLE_H
#define HR_SHM_SINGLE_H

#include "rdma_channel/shm/ring.h"

#include <sys/types.h>

/* Payload of an offer's record, written by the sender, read by the receiver. */
struct shm_offer {
	uint64_t address, length;
	uint32_t number;
	uint32_t zero;
};
_Static_assert(sizeof(struct shm_offer) == 24, "ring format");
_Static_assert(sizeof(struct shm_offer) <= SHM_INLINE_MAX, "an offer is one line");

#define SHM_PUSH_FAILED (1u << 31)

/* This process as its peers find it: a token in memory that its forked children do not have. */
struct shm_identity {
	uint64_t *token; /* own page; 0 in a child */
	pid_t pid;
};

/* Another process, as far as its memory is concerned. */
struct shm_process {
	pid_t pid; /* 0: not to be touched */
	uint64_t token_address, token;
	bool reachable; /* its memory can be read; never true again once it was not */
	const struct shm_identity *self;
	const char *name; /* for messages */
};

/* Makes the token; without memory or randomness the process has none (token is NULL). */
void shm_identity_open(struct shm_identity *identity);
void shm_identity_close(struct shm_identity *identity);

/* Tries to read the process's token; logs why not (info). */
void shm_process_probe(struct shm_process *process);

/* ---- sender ---- */

struct shm_pusher {
	struct shm_control *control; /* of the ring that this side sends into */
	struct shm_process *peer;
	const uint8_t *from;
	size_t length;
	uint32_t number; /* of the offer under way, or the last one */
	bool open;
	uint64_t seen_at; /* when the peer was last known to be the process it was, coarse ns */
};

/* Can an offer be made now? */
bool shm_pusher_ready(const struct shm_pusher *pusher);
/* Opens an offer; the caller puts it into the ring. */
struct shm_offer shm_pusher_offer(struct shm_pusher *pusher, const void *from, size_t length);
/* Pushes units while there are any. False: the peer wrote what no peer writes. */
bool shm_pusher_work(struct shm_pusher *pusher);
/* Is there a unit to push, or an answer? */
bool shm_pusher_pending(const struct shm_pusher *pusher);
/* 1: answered, and *taken tells how much of the piece went that way; 0: not yet; -1: no peer writes that. */
int shm_pusher_answered(struct shm_pusher *pusher, size_t *taken);
/* Takes the offer back, to send the piece through the ring. False: the receiver has taken it up. */
bool shm_pusher_take_back(struct shm_pusher *pusher);
/* The memory offered is about to go away. */
void shm_pusher_revoke(struct shm_pusher *pusher);

/* ---- receiver ---- */

struct shm_puller {
	struct shm_control *control; /* of the ring that this side receives from */
	struct shm_process *peer;
	bool open; /* an offer is under way */
	uint64_t address, length, done; /* of it; done: delivered */
	uint32_t number;
	/* the grant, where there is one */
	bool granted;
	struct shm_grant grant;
	uint32_t units, front; /* of it: in all; from the front in place */
	uint32_t generation;
	bool first; /* the first unit, which is the receiver's from the start, is still to be pulled */
	size_t reported; /* bytes of it delivered */
};

/* Takes an offer up, if it was not taken back. False: no peer offers that. */
bool shm_puller_begin(struct shm_puller *puller, const struct shm_offer *offer);
/*
 * Brings bytes of the offer to `to`, where there is room for so many: of one piece of the caller's, or, while there is
 * a grant, of as many as follow each other in memory. Returns how many have been delivered, which may be none yet, or
 * -EPROTO; -EINVAL: it is not the memory that a part of the piece is being written into, or less of it, and no more may
 * be delivered. `early`: this get delivered other bytes before; then little room is left unused, as the caller has more
 * for what follows. The offer is no longer open when it was answered (so wake the sender) or revoked.
 */
ssize_t shm_puller_take(struct shm_puller *puller, void *to, size_t room, bool early);
/* Takes the grant back, as the caller's memory is about to go away. False: the sender is writing there; call again. */
bool shm_puller_withdraw(struct shm_puller *puller);

#endif
