/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions for ch3 beside headrace/channel.h. For the layers of this tree, not for users of the library. Threads and
 * return values: as in headrace/channel.h.
 */
#ifndef HR_UPPER_H
#define HR_UPPER_H

#include "headrace/channel.h"

#include <stdbool.h>

/* What ch3 adds to a card; the channel does not look at it. */
struct hr_label {
	uint32_t number; /* of the process, such as a rank */
	uint32_t build;  /* processes with different values do not understand each other's messages */
};
/* Adds a label to the channel's card, and stores the new card in *card. At most once for a channel, before any process has got the
 * card. hr_card_label reads the label. */
void hr_channel_label(hr_channel_t *channel, struct hr_label label, hr_card_t *card);
/* Stores the label of a card. -ENOENT: it has none. -EINVAL: it is not a card (logged). */
int hr_card_label(const hr_card_t *card, struct hr_label *label);

/*
 * Aborts a connection with error, a negated errno value. put and get return error from now on; hr_channel_ready,
 * hr_channel_arm and hr_channel_wait ignore the connection. The peer is not notified: it receives the bytes that have
 * reached it, then -ECONNRESET. After the call no peer or adapter writes into memory that get was offered or that
 * hr_remote_expose exposed, and bytes read from memory that put was offered are discarded. If the peer is in the middle
 * of a copy, the call waits for the end of that copy, up to the channel's timeout_ms. The caller still has to close the
 * connection.
 */
void hr_conn_abort(hr_conn_t *conn, int error);

/*
 * Records in place. Over a transport whose two sides share memory, a short message can be built and read in the memory
 * of the pipe, with one copy on each side and without an iovec. These functions replace single calls of put and get;
 * the bytes are those of the same pipe, and either side may use put and get instead.
 *
 * hr_conn_reserve returns memory for the next len bytes of the pipe, 0 < len <= HR_RECORD_MAX. If it returns NULL, call
 * hr_channel_put, which sends what it can or returns the error. front is a hint, 0 <= front <= HR_FRONT_MAX: the number
 * of bytes at the start that the receiver reads before it knows where to copy the others. After a reservation the
 * caller writes all len bytes and calls hr_conn_commit with the same len, before any other function of the connection
 * but hr_conn_fill. That one copies a part into the reserved memory, as is best for the receiver: call it for parts of
 * HR_FILL_MIN bytes and more, and copy shorter ones yourself. A reservation whose memory was not written needs no
 * commit. Do not reserve while the rest of an earlier put has not been accepted.
 *
 * hr_conn_peek sets *bytes and *len to the next bytes of the pipe if it returns HR_ARRIVED. The peer can change these
 * bytes at any time, so the caller must read each of them at most once, and check only copies. hr_conn_consume removes
 * the first count <= *len of them; *bytes is invalid afterwards.
 */
#define HR_RECORD_MAX 8192u
#define HR_FRONT_MAX 56u
#define HR_FILL_MIN 256u

enum hr_arrival {
	HR_NOT_ARRIVED, /* the pipe is empty, and no error is known on this side */
	HR_ARRIVED,     /* *len > 0 bytes are at *bytes */
	HR_CALL_GET,    /* call hr_channel_get: bytes that are not in place, an error, or a connection not up yet */
};

/* Returns whether the connection is up and its transport has records in place. */
bool hr_conn_in_place(const hr_conn_t *conn);
void *hr_conn_reserve(hr_conn_t *conn, size_t front, size_t len);
void hr_conn_fill(hr_conn_t *conn, void *to, const void *from, size_t len);
/* Copies bytes of the record that has arrived, as is best for the way in which the sender has written them. Call it for parts of
 * HR_DRAIN_MIN bytes and more, and copy shorter ones yourself. */
#define HR_DRAIN_MIN 1024u
void hr_conn_drain(hr_conn_t *conn, void *to, const void *from, size_t len);
void hr_conn_commit(hr_conn_t *conn, size_t len);
/* Puts front and payload as one record, as a reservation and a commit of front_len + len bytes would. Returns false if
 * hr_conn_reserve would return NULL; then nothing was put. */
bool hr_conn_post(hr_conn_t *conn, const void *front, size_t front_len, const void *payload, size_t len);
enum hr_arrival hr_conn_peek(hr_conn_t *conn, const uint8_t **bytes, size_t *len);
void hr_conn_consume(hr_conn_t *conn, size_t count);
/*
 * Calls fn with the bytes of the next record, if one has arrived of which nothing was consumed, and consumes all of it if
 * fn returns 1; then goes on with the record after it, up to `most` > 0 records. fn returns 1, 0 or a negated errno value,
 * and calls only those functions of the connection that put. Returns fn's error, or else the number of records consumed. If
 * it is 0, fn has returned 0, or there is no such record; then hr_conn_peek says why.
 */
typedef int (*hr_record_fn)(void *context, const uint8_t *bytes, size_t len);
int hr_conn_take(hr_conn_t *conn, hr_record_fn fn, void *context, unsigned most);

/*
 * hr_conn_watch is for callers that poll much more often than bytes arrive. It returns the address of what the next
 * bytes will change, or NULL; it stays valid until hr_conn_abort or hr_conn_close, and its contents change when
 * bytes are received. As long as *word is 0 or its high half is not `high`, hr_conn_peek would return
 * HR_NOT_ARRIVED, but for errors: call it from time to time all the same. The caller loads the word with
 * __ATOMIC_RELAXED; if its high half is `high`, it calls hr_conn_peek or hr_conn_take, which order what is read. Before
 * each look it prefetches the `further` lines of 64 bytes behind the word's line: if the next bytes are as many as the
 * last ones, their transfer overlaps with that of the word. If a look finds nothing, it sets `in_vain`; the pipe clears it. So the
 * pipe knows whether the sender is ahead.
 */
struct hr_awaited {
	const uint64_t *word;
	uint32_t high;
	uint32_t further;
	bool in_vain;
};

struct hr_awaited *hr_conn_watch(hr_conn_t *conn);

/*
 * Looks ahead in the pipe while a long piece is being transferred. Copies up to len bytes that begin `skip` bytes behind
 * the next byte that hr_channel_get will deliver. Returns the number of bytes, 0 if these have not arrived or cannot be
 * read yet. They stay in the pipe: get delivers the same bytes later. With the header of the next message, the caller
 * can add that message's memory to the vector of its next get, and the transport can transfer it at once.
 * From the first call on, the caller follows a stricter rule than that of hr_channel_get: until get has filled all of a
 * vector, each get offers the rest of all its elements, those below HR_ZERO_COPY_MIN too if a longer one follows. For
 * example, a get offers {rest of a payload, header, next payload}, and both payloads are long. Each later get offers what
 * is left of the three, in this order. It may offer other memory of the same length for the header, but it may not leave
 * the header out, and the memory of the payloads stays the same. Further elements may follow.
 */
size_t hr_conn_ahead(hr_conn_t *conn, uint64_t skip, void *to, size_t len);

/* As hr_channel_wait, but waits for an event of this one connection and ignores the others. */
int hr_conn_wait(hr_conn_t *conn, int want_put, int timeout_ms);

#endif
