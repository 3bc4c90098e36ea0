/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receiver of zero copy: the memory that the peer has announced, the local targets of its bytes, and the progress
 * of the reads. This file does not use verbs, so that it can be tested on plain memory.
 *
 *	announcement   memory of the peer that contains the next bytes of the stream; acknowledged when all of it has
 *	               been read
 *	pull           a part of one announcement with one contiguous target: in the user's memory (direct), or in the
 *	               bounce buffer if the user offers no long enough element; also bytes that came in a chunk and
 *	               were copied into the bounce buffer
 *	read           one RDMA read, for a part of one pull
 *
 * Each of the three is a queue in the order of the stream. Reads complete in order on one queue pair, but in any order
 * across queue pairs. So completions are counted for each queue pair, and the `done` bytes of a pull are those without
 * a gap.
 *
 * A direct pull is delivered as a whole, when all its bytes have arrived. Its target starts an element of
 * HR_ZERO_COPY_MIN bytes or more. As nothing after it is delivered earlier, the caller must offer the same memory again
 * (channel.h). Each get checks that, before it delivers anything (ib_pulls_goes_on). Bytes from the bounce buffer may be
 * delivered in part, and then the caller may offer other memory for the rest, or none. So all pulls before a direct pull
 * are direct too, unless the caller has promised to offer the rest of all elements (hr_conn_ahead).
 */
#ifndef IB_PULL_H
#define IB_PULL_H

#include "ib/ib_offer.h"
#include "ib/ib_ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * IB_PULLS_MAX and IB_READS_MAX are powers of two. A get plans a pull only if IB_PULLS_KEPT entries stay free. A put
 * that makes no progress needs at most that many to take all announcements into the bounce buffer: for each the bytes
 * of chunks before it, and the announcement itself, with a few pulls split at the end of the buffer.
 */
enum { IB_PULLS_MAX = 4 * IB_OFFERS_MAX, IB_PULLS_KEPT = 2 * IB_OFFERS_MAX + 8, IB_READS_MAX = 256 };

struct ib_announced {
	uint64_t address;
	uint64_t len;
	uint64_t planned; /* bytes for which pulls have been planned */
	uint64_t read;    /* bytes that have arrived */
	uint32_t rkey;
};

struct ib_pull {
	uint8_t *to;
	uint64_t len;
	uint64_t from;   /* address in the peer's memory */
	uint64_t posted; /* bytes for which reads have been posted */
	uint64_t done;   /* bytes that have arrived */
	uint64_t taken;  /* bytes delivered; of a direct pull none or all */
	uint32_t rkey, lkey;
	bool bounce;
	void *memory; /* direct: the caller's handle of the target's registration */
};

struct ib_read {
	uint64_t len;
	uint32_t queue; /* queue pair that it was posted on */
	uint32_t count; /* number of reads posted on that queue pair, this read included */
	const uint8_t *landing; /* its target in the window; NULL: its target is that of the pull */
};

struct ib_pulls {
	struct ib_announced announced[IB_OFFERS_MAX];
	/* The first announcement not completely read, the first not completely planned, the next. */
	uint32_t ann_first, ann_plan, ann_end;
	struct ib_pull pull[IB_PULLS_MAX];
	/* The first pull not delivered, not released, not done, not posted; the next. */
	uint32_t first, release, reading, post, end;
	struct ib_read read[IB_READS_MAX];
	uint32_t read_first, read_end; /* reads in flight */
	uint64_t backlog;              /* bytes announced or absorbed, and not delivered */
	bool promised;                 /* each get offers the rest of all elements: direct pulls may follow others */
	uint8_t *bounce;               /* the bounce buffer; NULL: none */
	size_t bounce_bytes;
	uint64_t bounce_head, bounce_tail; /* total bytes of it planned, delivered */
	uint32_t bounce_lkey;
	uint8_t *window;               /* target of reads if the bounce buffer is not registered; NULL: it is */
	size_t window_bytes;
	uint64_t window_head, window_tail; /* total bytes of it posted, copied out */
	uint32_t window_lkey;
};

/* An RDMA read to post. */
struct ib_read_request {
	uint8_t *to;
	uint64_t len, from;
	uint32_t lkey, rkey;
};

/* Adds an announcement. -EPROTO: it is invalid, or there are more than the protocol allows. */
int ib_pulls_announce(struct ib_pulls *pulls, const struct ib_announcement *announcement);
/* Sets the bounce buffer: registered memory of any size. It need not be zero. */
void ib_pulls_bounce(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey);
/* Sets the window, if the bounce buffer is not registered: reads go to the window, which is registered, and their bytes
 * are copied into the bounce buffer when they complete. */
void ib_pulls_window(struct ib_pulls *pulls, uint8_t *base, size_t bytes, uint32_t lkey);
/* Returns the total number of announcements that have been read completely; modulo 2^32. */
uint32_t ib_pulls_acknowledged(const struct ib_pulls *pulls);

/* Returns the number of bytes for which one pull could be planned now. */
uint64_t ib_pulls_plannable(const struct ib_pulls *pulls);
/* Returns whether a get may plan another pull; if not, the free entries are kept for a put that makes no progress. */
bool ib_pulls_get_may_plan(const struct ib_pulls *pulls);
/* Plans the next pull: len bytes, at most ib_pulls_plannable, into the user's memory. */
void ib_pulls_plan_direct(struct ib_pulls *pulls, uint8_t *to, uint64_t len, uint32_t lkey, void *memory);
/* Plans the next pull: up to `most` bytes, into the bounce buffer. Returns their number, 0 if there is no room. */
uint64_t ib_pulls_plan_bounce(struct ib_pulls *pulls, uint64_t most);
/* ib_pulls_space returns the number of contiguous free bytes that come next in the bounce buffer, and their address.
 * ib_pulls_absorbed records that the caller has copied len bytes there, the next bytes of the stream, from a chunk.
 * Call it only if all announcements are planned. */
uint64_t ib_pulls_space(const struct ib_pulls *pulls, uint8_t **at);
void ib_pulls_absorbed(struct ib_pulls *pulls, uint64_t len);
/* Returns whether the left bytes at `place` have the memory of all direct pulls that are not delivered, where these begin
 * in the stream. If not, the caller does not go on with the same memory, and nothing may be delivered. */
bool ib_pulls_goes_on(const struct ib_pulls *pulls, struct hr_iov_place place, size_t left);
/* Moves `place`, with *left bytes, past the memory of all pulls that are not delivered. Returns whether a direct pull may
 * follow: all of them are direct, or the caller has promised to offer all memory again. Call it only if ib_pulls_goes_on. */
bool ib_pulls_skip(const struct ib_pulls *pulls, struct hr_iov_place *place, size_t *left);

/* Stores the next read to post, of at most `most` bytes. False: none, or not before another read completes. */
bool ib_pulls_next_read(const struct ib_pulls *pulls, uint64_t most, struct ib_read_request *request);
/* Records that this read was posted with len bytes on a queue pair, as the count-th read there. */
void ib_pulls_posted(struct ib_pulls *pulls, uint64_t len, uint32_t queue, uint32_t count);
/* Handles completions. done[i]: number of reads that have completed on queue pair i. */
void ib_pulls_complete(struct ib_pulls *pulls, const uint32_t *done);
/* Returns the handle of the next direct pull whose reads are complete; NULL: none. Call it after each completion until
 * it returns NULL. */
void *ib_pulls_release(struct ib_pulls *pulls);
/* Returns the handles of the remaining direct pulls, one in each call; then NULL. No read may be in flight. */
void *ib_pulls_abandon(struct ib_pulls *pulls);

/* Copies up to len bytes that have arrived and begin `skip` bytes behind the next byte to deliver. Returns their number, 0
 * if these bytes are not in the bounce buffer. */
size_t ib_pulls_look(const struct ib_pulls *pulls, uint64_t skip, uint8_t *to, size_t len);

/* Returns whether reads are in flight; whether ib_pulls_deliver would deliver bytes. */
bool ib_pulls_under_way(const struct ib_pulls *pulls);
bool ib_pulls_ready(const struct ib_pulls *pulls);
/* Delivers up to left bytes that have arrived at `place`, and moves `place` on. Returns their number. */
size_t ib_pulls_deliver(struct ib_pulls *pulls, struct hr_iov_place *place, size_t left);

#endif
