/* SPDX-License-Identifier: BSD-3-Clause */
/* The sender's offers of the shm transport: which pieces put offers for single copy, what it does with the receiver's answers, and
 * when it takes offers back. single.h describes the protocol. */
#include "config.h"

#include "rdma_channel/clock.h"
#include "rdma_channel/shm/conn.h"

#include <errno.h>
#include <string.h>

/* After this many puts with an open offer and no get or answer between them, the offers are taken back if the peer has
 * put too. */
#define PATIENT_PUTS 64

/* One piece per PROBE_NS that is too short to be offered is offered all the same: the receiver measures with it whether the
 * processors are near. */
#define PROBE_NS (2 * HR_NS_PER_MS)

/* Returns whether to offer a piece now so that the receiver can measure nearness again. */
static bool probes(struct shm_conn *conn)
{
	uint64_t now = hr_now_coarse_ns();
	if (now - conn->probed_at < PROBE_NS)
		return false;
	conn->probed_at = now;
	return true;
}

/*
 * Returns the minimum size of a piece to offer now. If the peer waits for the piece, the time of its copy counts: offer
 * early. If messages stream, the two copies of a short piece overlap with those of the next piece, and an offer would
 * interrupt this: offer only long pieces. Received bytes alone do not show that the peer waits: it may have answered a
 * whole window of messages while more follow. So `streams` is checked too.
 */
size_t shm_offered_from(const struct shm_conn *conn)
{
	size_t least = conn->context->zero_copy, near = conn->context->near;
	if (least == SIZE_MAX || !shm_pusher_ready(&conn->pusher))
		return SIZE_MAX;
	/* The tail is measured earlier: the receiver measures with offers, of which there are few while pieces are short. */
	if (shm_is_near(conn) || conn->tail_nearness.near)
		return near > least ? near : least;
	return conn->was_answered && !conn->streams ? least : 2 * least;
}

bool shm_offers(struct shm_conn *conn, size_t piece, size_t offered)
{
	if (conn->by_ring || piece < HR_ZERO_COPY_MIN || offered == SIZE_MAX)
		return false;
	return piece >= offered || probes(conn);
}

int shm_put_offer(struct shm_conn *conn, const uint8_t *piece, size_t length)
{
	struct shm_sender *out = &conn->out;
	int lines = shm_find_room(conn, sizeof(struct shm_offer));
	if (lines <= 0)
		return lines;
	struct shm_offer offer = shm_pusher_offer(&conn->pusher, piece, length, conn->sent);
	memcpy((uint8_t *)shm_sender_word(out, out->head) + 8, &offer, sizeof offer);
	shm_sender_publish(out, &conn->in, 8, sizeof offer, SHM_OFFER);
	return 1;
}

int shm_put_restart(struct shm_conn *conn)
{
	struct shm_sender *out = &conn->out;
	int lines = shm_find_room(conn, sizeof(uint64_t));
	if (lines <= 0)
		return lines;
	memset((uint8_t *)shm_sender_word(out, out->head) + 8, 0, sizeof(uint64_t));
	shm_sender_publish(out, &conn->in, 8, sizeof(uint64_t), SHM_RESTART);
	conn->restart = false;
	return 1;
}

/* Sends again from this position on, the first by_ring bytes through the ring. No offer is open any more. */
static void go_back(struct shm_conn *conn, uint64_t position, size_t by_ring)
{
	conn->sent = position;
	conn->by_ring = by_ring;
	conn->restart = true;
}

int shm_collect_answers(struct shm_conn *conn)
{
	struct shm_answer answer;
	int answered = shm_pusher_answered(&conn->pusher, &answer);
	if (answered < 0)
		return shm_damaged(conn, "an answer");
	if (!answered)
		return 0;
	conn->env->stats->zero_copy_puts += answer.offers;
	conn->env->stats->zero_copy_bytes += answer.bytes;
	conn->vain_puts = 0;
	if (answer.early)
		go_back(conn, answer.upto, answer.rest);
	return 0;
}

int shm_drive_offers(struct shm_conn *conn)
{
	struct shm_pusher *pusher = &conn->pusher;
	if (!shm_pusher_work(pusher))
		return shm_damaged(conn, "a grant");
	int error = shm_collect_answers(conn);
	if (error || !shm_pusher_open(pusher) || ++conn->vain_puts < PATIENT_PUTS)
		return error;
	/* The peer may be waiting in the same way for a get of this side: then take the offers back. */
	conn->vain_puts = 0;
	uint64_t start = shm_pusher_start(pusher);
	if ((conn->in.length || shm_receiver_look(&conn->in)) && shm_pusher_take_back(pusher))
		go_back(conn, start, conn->sent - start);
	return 0;
}
