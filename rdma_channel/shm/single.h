/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Single copy: bytes go from the sender's buffer to the receiver's buffer without passing through the ring, by
 * process_vm_readv(2) and process_vm_writev(2). Both processes copy at the same time. In one direction of a pipe:
 *
 *	offer:  The sender puts a record with SHM_OFFER into the ring. It holds the address and length of a piece. put
 *	        accepts no byte of the piece yet, so the caller must leave the piece unchanged (hr_channel_put).
 *	grant:  When a get has room for a part of the piece, the receiver writes where that part goes, divides it into
 *	        units, and opens the units to both sides. The receiver takes units from the front and reads them from
 *	        the sender's memory (pull). During its caller's puts, the sender takes units from the back and writes
 *	        them into the receiver's memory (push). If the sender's caller does not call put, the receiver copies
 *	        all of them. A side takes a unit by compare-and-swap on one word, claims:
 *	        generation << 32 | units taken from the back << 16 | units that neither side has taken.
 *	        Each grant has its own generation, so a sender that has read an earlier word takes nothing. Only claims
 *	        says whether there is a unit to take: the receiver writes the fields of the next grant while claims
 *	        still belongs to the last grant.
 *	pushed: generation << 32 | units that the sender has pushed. With SHM_PUSH_FAILED the sender pushes no more, and
 *	        the receiver pulls the units that the sender took but did not push.
 *	answer: When the whole piece has been copied, the receiver answers, and put accepts the piece. If the receiver's
 *	        caller asks for small pieces, or a system call fails, the receiver answers early, with the bytes
 *	        copied so far, and the sender goes back.
 *
 * A sender has up to HEADRACE_SHM_OFFERS offers open, so that the receiver finds the next piece when it has one, and it
 * sends short pieces behind them. Put accepts only what comes before the first open offer. There is at most one grant:
 * the two processors themselves make the copies, so two copies at the same time would not be faster.
 *
 * If both callers put and neither gets, each would wait for the other. So the sender may take back all offers that the
 * receiver has not taken up. Compare-and-swap on `taken_up` decides which comes first: the receiver takes an offer up
 * by changing the word from the number before it to its number, and the sender takes offers back by changing it from
 * the number before the first open one to that of the last.
 *
 * go back: After an early answer, and when offers were taken back, the sender goes on with the first byte that was not
 *	        taken. Put has not accepted what the sender has sent after that byte, so the caller still offers these
 *	        bytes. The sender puts a record with SHM_RESTART, and sends them again: first the rest of the piece (if it
 *	        was taken back: all of it) through the ring. The receiver drops all records between the early answer, or the
 *	        offer that was taken back, and the restart. test/model/several.pml is the model.
 *
 * Only the right bytes are delivered. The receiver counts a unit that it pulls only if the same system call also read
 * the peer's token: a word that is in no other process's memory and does not survive exec(2). It then checks that
 * the sender has not revoked the offer; the sender revokes before its caller gets the buffer back. While the sender may
 * be writing into a grant, get delivers so little of the caller's piece that at least HR_ZERO_COPY_MIN bytes are left.
 * Then the caller must go on with the same memory (hr_channel_get), and a get with other memory fails. In a forked
 * child the token reads as zero, and the child makes no offers and no grants, as addresses mean the parent's memory. A
 * write cannot check the token in the same call. So if the sender has not seen a sign of the peer for a while, it reads
 * the token before it writes.
 */
#ifndef HR_SHM_SINGLE_H
#define HR_SHM_SINGLE_H

#include "rdma_channel/shm/ring.h"

#include <sys/types.h>

/* Payload of an offer's record, written by the sender, read by the receiver. */
struct shm_offer {
	uint64_t address, length;
	uint32_t number;
	uint32_t alone; /* 1: no other offer was open when it was made */
};
_Static_assert(sizeof(struct shm_offer) == 24, "ring format");
_Static_assert(sizeof(struct shm_offer) <= SHM_INLINE_MAX, "an offer is one line");

#define SHM_PUSH_FAILED (1u << 31)

/* What identifies this process to its peers: a pid and a token. A forked child does not inherit the token. */
struct shm_identity {
	uint64_t *token; /* in a page of its own; the word is 0 in a forked child */
	pid_t pid;
};

/* The peer's process, and access to its memory. */
struct shm_process {
	pid_t pid; /* 0: never access its memory */
	uint64_t token_address, token;
	bool reachable; /* its memory can be read; once false, stays false */
	const struct shm_identity *self;
	const char *name; /* for messages */
};

/* Makes the token. If there is no memory or no source of random bytes, token is NULL. */
void shm_identity_open(struct shm_identity *identity);
void shm_identity_close(struct shm_identity *identity);

/* Sets reachable: tries to read the process's token. A failure is logged (info). */
void shm_process_probe(struct shm_process *process);

/* ---- sender ---- */

enum { SHM_OFFERS_MAX = 32 }; /* a power of two */

struct shm_offered {
	const uint8_t *from; /* the piece */
	size_t length;
	uint64_t start; /* position of its first byte in the stream */
};

struct shm_pusher {
	struct shm_control *control; /* of the ring that this side sends into */
	struct shm_process *peer;
	struct shm_offered offer[SHM_OFFERS_MAX];
	uint32_t most;       /* maximum number of open offers */
	uint32_t first, end; /* numbers of the first open offer and of the next offer; modulo 2^32 */
	uint64_t seen_at; /* when the peer was last known to be the same process, coarse ns */
};

/* Offers that the receiver has answered. */
struct shm_answer {
	unsigned offers; /* those of which it took bytes */
	uint64_t bytes;  /* that it took */
	bool early;      /* it did not take all of the last one: go back */
	uint64_t upto;   /* position of the first byte that it did not take */
	size_t rest;     /* bytes of the last one that it did not take */
};

void shm_pusher_init(struct shm_pusher *pusher, struct shm_control *control, struct shm_process *peer, uint32_t most);
static inline bool shm_pusher_open(const struct shm_pusher *pusher)
{
	return pusher->first != pusher->end;
}

/* Position of the first byte of the first open offer. */
static inline uint64_t shm_pusher_start(const struct shm_pusher *pusher)
{
	return pusher->offer[pusher->first % SHM_OFFERS_MAX].start;
}

/* Bytes of all open offers. */
uint64_t shm_pusher_bytes(const struct shm_pusher *pusher);
/* Returns whether this side may make an offer now. */
bool shm_pusher_ready(const struct shm_pusher *pusher);
/* Opens an offer of the piece at this position of the stream. The caller then puts the returned payload into the ring. */
struct shm_offer shm_pusher_offer(struct shm_pusher *pusher, const void *from, size_t length, uint64_t start);
/* Pushes units until none is left to take. False: the peer wrote an invalid grant. */
bool shm_pusher_work(struct shm_pusher *pusher);
/* Returns whether there is a unit to push or an answer. */
bool shm_pusher_pending(const struct shm_pusher *pusher);
/* Returns 1 if offers were answered since the last call, 0 if not, -1 if the answer is invalid. */
int shm_pusher_answered(struct shm_pusher *pusher, struct shm_answer *answer);
/* Takes all open offers back, so that the sender can go back to the first. False: the receiver has taken that one up. */
bool shm_pusher_take_back(struct shm_pusher *pusher);
/* Revokes all offers. Call it before the caller may change or free the offered memory. */
void shm_pusher_revoke(struct shm_pusher *pusher);

/* ---- receiver ---- */

struct shm_puller {
	struct shm_control *control; /* of the ring that this side receives from */
	struct shm_process *peer;
	bool drops; /* records are to be dropped up to the restart */
	bool open; /* there is a current offer; the next four fields describe it */
	uint64_t address, length, done; /* done: bytes delivered */
	uint32_t number;
	bool granted; /* there is a grant; the fields below describe it */
	struct shm_grant grant;
	uint32_t units, front; /* units: of the whole grant; front: units that this side has pulled */
	uint32_t generation;
	bool first; /* this side has not yet tried to pull the first unit, which the sender cannot take */
	size_t reported; /* bytes of the grant delivered */
};

/* Takes an offer up. If the sender has taken it back, sets drops. False: the offer is invalid. */
bool shm_puller_begin(struct shm_puller *puller, const struct shm_offer *offer);
/*
 * Copies bytes of the offer to `to`. room: bytes of one element of the caller's vector; if there is a grant, bytes of
 * all elements that are contiguous in memory. early: the current get has already delivered other bytes; then a short
 * room is left empty, as the caller may offer more room with its next get. alone: if the call makes a grant of up to 4 MB,
 * it leaves no unit to the sender. Returns the number of bytes delivered, which may be 0. -EPROTO: the peer wrote an
 * invalid word. -EINVAL: `to` and room do not cover the memory of the open grant; deliver no more on this connection.
 * After the call, puller->open is false if the offer was answered (wake the sender) or revoked. If it was revoked or
 * answered early, puller->drops is set.
 */
ssize_t shm_puller_take(struct shm_puller *puller, void *to, size_t room, bool early, bool alone);
/* Withdraws the grant, before the caller may reuse its memory. False: the sender is writing into it; call again. */
bool shm_puller_withdraw(struct shm_puller *puller);

#endif
