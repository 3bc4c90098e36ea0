/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport: going to sleep, and whether the peer has ended. conn.h has shm_wake_if_armed. */
#include "config.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/shm/conn.h"

/* Every IDLE_CALLS-th put or get that moves nothing checks the stream, if the coarse clock has advanced since. */
#define IDLE_CALLS 64

/* ---- the peer's end ---- */

void shm_ask_stream(struct shm_conn *conn)
{
	if (!conn->ended)
		conn->ended = hr_stream_check(conn->stream);
}

void shm_ask_stream_sometimes(struct shm_conn *conn)
{
	if (++conn->idle_calls < IDLE_CALLS)
		return;
	conn->idle_calls = 0;
	uint64_t now = hr_now_coarse_ns();
	if (now == conn->asked_at)
		return;
	conn->asked_at = now;
	shm_ask_stream(conn);
}

/* ---- sleeping ---- */

int shm_conn_arm(void *data, bool want_put)
{
	struct shm_conn *conn = data;
	/* Relaxed: the channel's heavy barrier comes between these stores and conn_pending. A plain store is enough:
	 * if the peer clears a flag, it sends a wake-up, and a flag that is set again causes a second wake-up. */
	__atomic_store_n(&conn->in.control->get_armed, 1, __ATOMIC_RELAXED);
	if (want_put && conn->put_was_short)
		__atomic_store_n(&conn->out.control->put_armed, 1, __ATOMIC_RELAXED);
	return 0;
}

bool shm_conn_pending(void *data, bool want_put)
{
	struct shm_conn *conn = data;
	if (conn->puller.open || shm_receiver_look(&conn->in) != 0 || conn->ended || conn->put_error)
		return true;
	if (!want_put || !conn->put_was_short)
		return false;
	if (shm_pusher_open(&conn->pusher) && (shm_pusher_pending(&conn->pusher) || !conn->wants_room))
		return shm_pusher_pending(&conn->pusher);
	return !shm_sender_refresh(&conn->out) || shm_sender_usable(&conn->out) > 0;
}

void shm_conn_event(void *data)
{
	shm_ask_stream(data);
}
