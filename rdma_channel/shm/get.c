/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport's get: copies records out of the ring, and takes up the peer's offers. */
#include "config.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/shm/conn.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/peer_copy.h"

#include <errno.h>
#include <string.h>

int shm_damaged(struct shm_conn *conn, const char *what)
{
	hr_log(HR_LOG_ERROR, "shm: damaged %s from peer %s", what, conn->env->peer);
	return -EPROTO;
}

void shm_report_tail(struct shm_conn *conn)
{
	shm_receiver_report(&conn->in);
	conn->env->stats->tail_updates++;
	shm_wake_if_armed(conn, &conn->in.control->put_armed);
	if (!conn->in_present && (conn->in.next.high & conn->in.mask) >= STREAM_LINES)
		shm_make_present(conn, &conn->in_present, conn->in.lines, conn->in.mask);
}

/* Takes up the offer in the current record. 0, or -EPROTO. */
static int begin_offer(struct shm_conn *conn)
{
	struct shm_receiver *in = &conn->in;
	struct shm_offer offer;
	memcpy(&offer, shm_receiver_payload(in), sizeof offer);
	if (in->length != sizeof offer)
		return shm_damaged(conn, "an offer");
	/* If other offers were open, this side may have used the line since the sender stored in it. */
	bool measured = offer.alone && shm_near_is_due(&conn->nearness, hr_now_coarse_ns());
	uint64_t begin = measured ? hr_now_ns() : 0;
	if (offer.alone > 1 || !shm_puller_begin(&conn->puller, &offer))
		return shm_damaged(conn, "an offer");
	/* Relaxed: the flag only decides which way is quicker. */
	if (measured && shm_near_sample(&conn->nearness, hr_now_ns() - begin < SHM_NEAR_NS))
		__atomic_store_n(&in->control->near, conn->nearness.near, __ATOMIC_RELAXED);
	if (shm_receiver_take(in, sizeof offer))
		shm_report_tail(conn);
	return 0;
}

static int does_not_go_on(const struct shm_conn *conn)
{
	hr_log(HR_LOG_ERROR, "shm: hr_channel_get from %s: the call must begin with the memory of the earlier call: a transfer "
	       "into that memory is under way", conn->env->peer);
	return -EINVAL;
}

/* Delivers bytes of the open offer. */
static ssize_t deliver_offered(struct shm_conn *conn, struct hr_iov_place *place, bool early)
{
	uint8_t *to;
	size_t room = hr_iov_piece(place, &to);
	/* The caller must offer the granted memory again, but may have divided it into other elements. */
	if (conn->puller.granted)
		room = hr_iov_run(*place);
	/* If both sides have open offers, both processors are busy with their own pulls: one system call is cheaper than two. */
	ssize_t count = shm_puller_take(&conn->puller, to, room, early, shm_pusher_open(&conn->pusher));
	if (count == -EINVAL)
		return does_not_go_on(conn);
	if (count < 0)
		return shm_damaged(conn, "the state of a grant");
	if (!conn->puller.open)
		shm_wake_if_armed(conn, &conn->in.control->put_armed);
	return count;
}

/* Takes a record that is not to be delivered: the sender sends its bytes again. 0, or -EPROTO. */
static int drop_record(struct shm_conn *conn)
{
	struct shm_receiver *in = &conn->in;
	if (in->kind == SHM_RESTART && !conn->puller.drops)
		return shm_damaged(conn, "a restart");
	if (in->kind == SHM_RESTART)
		conn->puller.drops = false;
	if (shm_receiver_take(in, in->length - in->taken))
		shm_report_tail(conn);
	return 0;
}

/* Copies bytes of a record. If they come from memory, memcpy is a little faster. */
void shm_drain(void *data, void *to, const void *from, size_t len)
{
	const struct shm_conn *conn = data;
	/* Relaxed: the word only decides which way is quicker. */
	if (__atomic_load_n(&conn->in.control->writes_past, __ATOMIC_RELAXED))
		memcpy(to, from, len);
	else
		hr_copy_from_peer(to, from, len);
}

/* Delivers bytes of the current record. */
static ssize_t deliver_record(struct shm_conn *conn, struct hr_iov_place *place)
{
	struct shm_receiver *in = &conn->in;
	uint8_t *to;
	size_t room = hr_iov_piece(place, &to);
	uint32_t count = in->length - in->taken;
	if (count > room)
		count = (uint32_t)room;
	if (count < HR_DRAIN_MIN)
		shm_copy(to, shm_receiver_payload(in), count);
	else
		shm_drain(conn, to, shm_receiver_payload(in), count);
	if (shm_receiver_take(in, count))
		shm_report_tail(conn);
	return count;
}

/* Delivers the next bytes. Returns their number; 0 if there are none now; -EPROTO if the peer's data is invalid;
 * -EINVAL if the caller does not go on with the memory of an open grant. */
static ssize_t deliver_next(struct shm_conn *conn, struct hr_iov_place *place, bool early)
{
	for (;;) {
		if (conn->puller.open) {
			ssize_t count = deliver_offered(conn, place, early);
			if (count || conn->puller.open)
				return count;
		}
		int there = shm_receiver_look(&conn->in);
		if (there < 0)
			return early ? 0 : shm_damaged(conn, "the ring");
		if (there == 0)
			return 0;
		bool drops = conn->puller.drops || conn->in.kind == SHM_RESTART;
		if (!drops && !conn->in.kind)
			return deliver_record(conn, place);
		int error = drops ? drop_record(conn) : begin_offer(conn);
		if (error)
			return error;
	}
}

/* Delivers the bytes that are there, as far as they fit. Returns an error only if no byte was delivered before it. */
static int deliver(struct shm_conn *conn, struct hr_iov_place *place, size_t *delivered)
{
	size_t done = 0;
	ssize_t count = 1;
	uint8_t *to;
	while (count > 0 && hr_iov_piece(place, &to) > 0) {
		count = deliver_next(conn, place, done > 0);
		if (count > 0) {
			hr_iov_advance(place, (size_t)count);
			done += (size_t)count;
		}
	}
	if (count < 0) {
		conn->broken = (int)count;
		if (!done)
			return conn->broken;
	}
	*delivered = done;
	conn->was_answered |= done > 0;
	return 0;
}

/* Fast path for a small message: a record of one line that exactly fills one element. False: not this case. */
static inline bool get_line(struct shm_conn *conn, const struct iovec *iov)
{
	struct shm_receiver *in = &conn->in;
	if (in->length || conn->puller.open || conn->puller.drops || shm_receiver_look(in) <= 0 || in->length != iov->iov_len ||
	    in->length > SHM_INLINE_MAX || in->kind)
		return false;
	shm_copy(iov->iov_base, shm_receiver_payload(in), in->length);
	conn->was_answered = true;
	if (shm_receiver_take(in, in->length))
		shm_report_tail(conn);
	return true;
}

int shm_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct shm_conn *conn = data;
	if (conn->broken)
		return conn->broken;
	if (n == 1 && get_line(conn, iov)) {
		*delivered = iov->iov_len;
		return 0;
	}
	struct hr_iov_place place = hr_iov_begin(iov, n);
	conn->vain_puts = 0;
	int error = deliver(conn, &place, delivered);
	if (error || *delivered)
		return error;
	shm_ask_stream_sometimes(conn);
	if (!conn->ended)
		return conn->put_error;
	/* Everything that the peer stored before it ended is visible now. Some of it may have arrived after the first
	 * deliver. */
	error = deliver(conn, &place, delivered);
	return error || *delivered ? error : conn->ended;
}
