/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The two structs of the shm transport, of a channel and of a connection, and the functions by which its files use each
 * other. README.md lists the files.
 */
#ifndef HR_SHM_CONN_H
#define HR_SHM_CONN_H

#include "rdma_channel/barrier.h"
#include "rdma_channel/shm/near.h"
#include "rdma_channel/shm/ring.h"
#include "rdma_channel/shm/segment.h"
#include "rdma_channel/shm/single.h"
#include "rdma_channel/stream.h"
#include "rdma_channel/transport.h"

/* Records that lie STREAM_LINES or more behind the start of the ring are a stream, or too long to go back. Then both sides call
 * shm_make_present. */
#define STREAM_LINES 1024u

struct shm_context {
	bool heavy; /* this process is registered for the heavy barrier, and the channel calls it */
	size_t zero_copy; /* minimum size for single copy, bytes; SIZE_MAX: no single copy */
	size_t near;      /* minimum size for single copy if the processors are near, bytes; 0: as zero_copy */
	uint32_t offers;  /* maximum number of open offers */
	size_t stream;    /* minimum size of records written with non-temporal stores, bytes; SIZE_MAX: none */
	struct shm_identity self;
	struct shm_placement placement;
	uint32_t long_ring;  /* size of a long ring, bytes */
	uint32_t long_rings; /* open connections that receive from one */
	uint32_t rings_present; /* rings of open connections whose pages shm_make_present has mapped */
};

struct shm_conn {
	struct shm_sender out;
	struct shm_receiver in;
	uint32_t reserved; /* offset of the payload of the reserved record, bytes */
	uint32_t reserved_bytes; /* of its payload */
	enum { FILL_NOT_CHOSEN, FILL_ORDINARY, FILL_STREAMING } fill_way; /* of its pieces */
	bool out_present, in_present; /* shm_make_present has mapped the pages of the ring */
	bool has_long_ring; /* this side receives from a long ring */
	bool both_heavy;   /* both sides are registered for the heavy barrier */
	bool put_was_short; /* the last put did not accept all bytes */
	int broken;        /* error that every get returns: the peer or the caller broke the protocol; 0: none */
	bool was_answered; /* bytes have been received since the last put */
	bool streams;      /* more than one long message was put between the last two times that bytes were received */
	unsigned long_puts; /* long messages (not put_line's) put completely since bytes were last received */
	/* Positions in the stream of bytes put: put has accepted the bytes before `accepted`, and those before `sent` are in
	 * the ring or offered. Both stay as they are while single lines are put. */
	uint64_t accepted, sent;
	bool restart;      /* a record with SHM_RESTART must come next */
	bool ring_in_use;  /* when the last put began, the receiver may not have taken all records */
	bool wants_room;   /* the last put found no room for the next record */
	unsigned vain_puts; /* puts with an open offer since the last get or answer */
	size_t by_ring;    /* bytes from `sent` on that must go through the ring */
	uint64_t probed_at; /* when a piece was last offered to measure nearness, coarse ns */
	struct shm_nearness nearness; /* measured when this side takes up the peer's offers */
	struct shm_nearness tail_nearness; /* measured when this side loads the tail that the peer has stored */
	unsigned tail_samples; /* of these, up to SHM_NEAR_SAMPLES */
	bool writes_past; /* control->writes_past as last stored */
	unsigned records_unsampled; /* calls of near.c's sample_tail since then; wraps */
	struct shm_pusher pusher;
	struct shm_puller puller;
	struct shm_process peer;
	bool said_goodbye;
	int ended; /* the error with which the stream ended; 0: the peer lives, and may write into granted memory */
	int put_error; /* error that every put returns; the peer may still live */
	int stream;
	unsigned idle_calls; /* puts and gets that moved nothing since the stream was last checked */
	uint64_t asked_at; /* when the stream was last checked, coarse ns */
	struct shm_context *context;
	const struct hr_conn_env *env;
	struct shm_segment out_segment, in_segment;
};

/* ---- conn.c ---- */

/* Returns the size of a long ring. 0: the size of the cache is not known. */
uint32_t shm_long_ring_bytes(void);
size_t shm_conn_bytes(void *context, uint32_t ring_bytes);
int shm_conn_open(void *context, const struct hr_conn_env *env, struct hr_half *own, void **out);
int shm_conn_establish(void *data, const struct hr_half *peer, int stream);
int shm_conn_stop(void *data);
int shm_conn_shutdown(void *data);
void shm_conn_close(void *data);
/* Maps the pages of a ring. If the kernel cannot do this, each page is mapped when it is first used. */
void shm_make_present(struct shm_conn *conn, bool *present, uint8_t *lines, uint32_t mask) __attribute__((cold));

/* ---- put.c ---- */

int shm_put(void *data, const struct iovec *iov, int n, size_t *accepted);
/* Returns the number of lines that the next record may take. Loads the tail again if a record of `wanted` bytes does
 * not fit. If there are none, sets wants_room. -EPROTO: the tail is invalid. */
int shm_find_room(struct shm_conn *conn, uint32_t wanted);

/* ---- offer.c ---- */

/* Returns the minimum size of a piece to offer now. */
size_t shm_offered_from(const struct shm_conn *conn);
/* Returns whether to offer the piece. */
bool shm_offers(struct shm_conn *conn, size_t piece, size_t offered);
/* Offers a piece for single copy. Returns 1, 0 if there is no room for the offer's record, or -EPROTO. */
int shm_put_offer(struct shm_conn *conn, const uint8_t *piece, size_t length);
/* Puts the record that says that the sender has gone back. Returns 1, 0 if there is no room, or -EPROTO. */
int shm_put_restart(struct shm_conn *conn);
/* Handles the receiver's answers to open offers. 0, or -EPROTO. */
int shm_collect_answers(struct shm_conn *conn);
/* Makes progress with the open offers. 0, or -EPROTO. */
int shm_drive_offers(struct shm_conn *conn);

/* ---- get.c ---- */

int shm_get(void *data, const struct iovec *iov, int n, size_t *delivered);
void shm_drain(void *data, void *to, const void *from, size_t len);
void shm_report_tail(struct shm_conn *conn);
/* Logs that the peer has broken the protocol. Returns -EPROTO. */
int shm_damaged(struct shm_conn *conn, const char *what);

/* ---- in_place.c ---- */

void *shm_reserve(void *data, size_t front, size_t len);
void shm_fill(void *data, void *to, const void *from, size_t len);
void shm_commit(void *data, size_t len);
bool shm_post(void *data, const void *front, size_t front_len, const void *payload, size_t len);
enum hr_arrival shm_peek(void *data, const uint8_t **bytes, size_t *len);
void shm_consume(void *data, size_t count);
int shm_take(void *data, hr_record_fn fn, void *context, unsigned most, uint64_t *taken);
struct hr_awaited *shm_watch(void *data);

/* ---- near.c ---- */

/* Returns whether the receiver has measured that the processors are near. */
bool shm_is_near(const struct shm_conn *conn);
/* Returns whether to write a record past the caches: `length` of its bytes, in `lines` lines. */
bool shm_streams_record(struct shm_conn *conn, size_t length, uint32_t lines);

/* ---- sleep.c ---- */

int shm_conn_arm(void *data, bool want_put);
bool shm_conn_pending(void *data, bool want_put);
void shm_conn_event(void *data);
/* Checks whether the peer has ended. */
void shm_ask_stream(struct shm_conn *conn);
/* Call this after a put or get that moved nothing. Otherwise the peer is alive, as it puts and gets. */
void shm_ask_stream_sometimes(struct shm_conn *conn);

/* ---- inline, as they are called for each record ---- */

/* Wakes the peer if it has armed this flag. Call this after publishing what the peer may be sleeping for. */
static inline void shm_wake_if_armed(struct shm_conn *conn, uint32_t *armed)
{
	/* Orders the publishing store before the load of the flag. Pairs with the peer's heavy barrier, between its
	 * store of the flag and its last look at the ring. */
	hr_barrier_light(conn->both_heavy);
	if (__builtin_expect(!__atomic_load_n(armed, __ATOMIC_RELAXED), 1))
		return;
	/* Relaxed: the exchange publishes nothing, and it does not matter which of two wake-ups clears the flag. */
	if (__atomic_exchange_n(armed, 0, __ATOMIC_RELAXED)) {
		hr_stream_wake(conn->stream);
		conn->env->stats->wakeups_sent++;
	}
}

static inline void shm_present_if_streaming(struct shm_conn *conn)
{
	if (__builtin_expect(!conn->out_present && (conn->out.head & conn->out.mask) >= STREAM_LINES, 0))
		shm_make_present(conn, &conn->out_present, conn->out.lines, conn->out.mask);
}

#endif
