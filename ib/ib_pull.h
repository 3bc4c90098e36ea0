/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiving end of zero-copy: what the peer has announced, where it goes, and how far it is. No verbs here, so that
 * it can be tested on plain memory.
 *
 *	announcement   memory of the peer with the stream's next bytes; acknowledged once all of it has been read
 *	pull           a part of one announcement that goes to one contiguous place here: directly into the user's
 *	               memory, or into the bounce buffer where the user offers none that is long enough; or bytes
 *	               that came in a chunk and were copied into the bounce buffer
 *	read           a part of one pull: one RDMA read
 *
 * All three are queues in the order of the stream. Reads may complete in any order across queue pairs; they are
 * counted per queue pair, where they complete in order, and a pull is done as far as it is done without a gap.
 *
 * A direct pull is delivered in one piece, when all of it is there. Its place was a piece of HR_ZERO_COPY_MIN bytes and
 * more from its first byte on, and stays one until then, because nothing behind it is delivered before; so the caller
 * is bound to offer the same memory again (channel.h). Whether it does is asked with each get (ib_pulls_goes_on),
 * before anything is delivered. Only direct pulls are ever before a direct one: what is in the bounce buffer may be
 * delivered in part, and the caller is then free to take the rest elsewhere, or to leave it.
 */
#ifndef IB_PULL_H
#define IB_PULL_H

#include "ib/ib_offer.h"
#include "ib/ib_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Powers of two. A get plans pulls only while IB_PULLS_KEPT more would find a place: so many take a bounce buffer full
 * of all announcements there may be, each cut once where the buffer ends, and with bytes that came in chunks before
 * it.
 */
enum { IB_PULLS_MAX = 4 * IB_OFFERS_MAX, IB_PULLS_KEPT = 2 * IB_OFFERS_MAX + 8, IB_READS_MAX = 256 };

struct ib_announced {
	uint64_t address;
	uint64_t len;
	uint64_t planned; /* bytes that pulls have been planned for */
	uint64_t read;    /* bytes that are here */
	uint32_t rkey;
};

struct ib_pull {
	uint8_t *to;
	uint64_t len;
	uint64_t from;   /* address at the peer */
	uint64_t posted; /* bytes that reads have been posted for */
	uint64_t done;   /* bytes that are here */
	uint64_t taken;  /* bytes delivered; of a direct one none or all */
	uint32_t rkey, lkey;
	bool bounce;
	void *memory; /* what keeps a direct one's place writable; the caller's */
};

struct ib_read {
	uint64_t len;
	uint32_t queue; /* queue pair that it was posted on */
	uint32_t count; /* reads posted there with it */
	const uint8_t *landing; /* in the window; NULL: it goes to the pull's place */
};

struct ib_pulls {
	struct ib_announced announced[IB_OFFERS_MAX];
	uint32_t ann_first, ann_plan, ann_end; /* first not all read, first not all planned, next one */
	struct ib_pull pull[IB_PULLS_MAX];
	uint32_t first, release, reading, post, end; /* first not delivered, not released, not done, not posted; next */
	struct ib_read read[IB_READS_MAX];
	uint32_t read_first, read_end; /* under way */
	uint64_t backlog;              /* bytes announced and not delivered */
	uint8_t *bounce;               /* the bounce buffer; NULL: none */
	size_t bounce_bytes;
	uint64_t bounce_head, bounce_tail; /* bytes of it ever planned, ever delivered */
	uint32_t bounce_lkey;
	uint8_t *window;               /* where reads for a bounce buffer go that is not registered; NULL: it is */
	size_t window_bytes;
	uint64_t window_head, window_tail; /* bytes of it ever posted for, ever copied out */
	uint32_t window_lkey;
};

/* What to post: a read of len bytes. */
struct ib_read_request {
	uint8_t *to;
	uint64_t len, from;
	uint32_t lkey, rkey;
};

/* Takes an announcement. -EPROTO: one that cannot be, or more than the protocol allows. */
int ib_pulls_announce(struct ib_pulls *pulls, const struct ib_announcement *announcement);
/* Gives the bounce buffer: registered memory of any size, zero content not needed. */
void ib_pulls_bounce(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey);
/* The bounce buffer is not registered: reads for it go to this memory, which is, and are copied on when they
 * complete. */
void ib_pulls_window(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey);
/* Announcements that have been read, ever; modulo 2^32. */
uint32_t ib_pulls_acknowledged(const struct ib_pulls *pulls);

/* Bytes that one pull could be planned for now. */
uint64_t ib_pulls_plannable(const struct ib_pulls *pulls);
/* May a get plan one more, or must its place be kept for a put that gets nowhere? */
bool ib_pulls_get_may_plan(const struct ib_pulls *pulls);
/* Plans the next pull: len bytes, at most what is plannable, to the user's memory. */
void ib_pulls_plan_direct(struct ib_pulls *pulls, uint8_t *to, uint64_t len, uint32_t lkey, void *memory);
/* The same with up to most bytes into the bounce buffer. Returns how many, 0 if there is no room. */
uint64_t ib_pulls_plan_bounce(struct ib_pulls *pulls, uint64_t most);
/* The contiguous free bytes of the bounce buffer that come next, and where; and: len of them have been filled with the
 * stream's next bytes, which came in a chunk. Only when everything announced is planned. */
uint64_t ib_pulls_space(const struct ib_pulls *pulls, uint8_t **at);
void ib_pulls_absorbed(struct ib_pulls *pulls, uint64_t len);
/* Does the place, of left bytes, offer the memory of every direct pull that is not delivered, in order from its first
 * byte on? Else its caller does not go on with the rest, and nothing may be delivered there. */
bool ib_pulls_goes_on(const struct ib_pulls *pulls, struct hr_iov_place place, size_t left);
/* Moves the place, of *left bytes, which goes on, over everything that is planned and not delivered. True: a direct
 * pull may follow there, as all of that is direct. */
bool ib_pulls_skip(const struct ib_pulls *pulls, struct hr_iov_place *place, size_t *left);

/* The next read to post, of at most that many bytes. False: none, or none until one completes. */
bool ib_pulls_next_read(const struct ib_pulls *pulls, uint64_t most, struct ib_read_request *request);
/* It has been posted with len bytes on that queue pair, as its count-th read. */
void ib_pulls_posted(struct ib_pulls *pulls, uint64_t len, uint32_t queue, uint32_t count);
/* Takes completions: done[queue] reads have completed there. */
void ib_pulls_complete(struct ib_pulls *pulls, const uint32_t *done);
/* The memory of the next direct pull that needs it no more; NULL: none. To be called until then after each
 * completion. */
void *ib_pulls_release(struct ib_pulls *pulls);
/* The memory of pulls that are not done, one after the other; NULL at the end. Nothing may be under way any more. */
void *ib_pulls_abandon(struct ib_pulls *pulls);

/* Are reads under way? Would deliver deliver something? */
bool ib_pulls_under_way(const struct ib_pulls *pulls);
bool ib_pulls_ready(const struct ib_pulls *pulls);
/* Delivers up to left bytes to the place, which goes on, as far as they are here; returns how many. */
size_t ib_pulls_deliver(struct ib_pulls *pulls, struct hr_iov_place *place, size_t left);

#endif
