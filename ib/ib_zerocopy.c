/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The zero-copy design (paper, section 4.5). Short pieces go through the ring as in the pipeline design. A piece of
 * HEADRACE_IB_ZERO_COPY bytes and more stays where it is: a chunk of the ring announces its address and key, the
 * receiver reads it by RDMA, and its acknowledgement completes the put (ib_offer.h, ib_pull.h).
 *
 * On put: sends what was not sent yet, whatever is still to be acknowledged before it, and reports what has been.
 * On get: takes chunks in ring order; behind an announcement nothing is delivered before its bytes are. Reads go
 * straight into the user's pieces of HR_ZERO_COPY_MIN bytes and more; shorter ones get theirs by way of the bounce
 * buffer, a few pages at first and more with each time, as the next piece may be a long one.
 * On completion (from put, get, sleeping and closing alike): posts further reads, acknowledges.
 * On an error: the queue pairs are gone before put or get says so, so nothing arrives in the user's memory after it.
 *
 * The acknowledgement is a count in the control block, written together with the tail. As a chunk of the ring, as the
 * paper has it, it would need a credit, which a peer that only puts never gives back.
 *
 * Two sides that put long pieces to each other, and get nothing before their put is through, would wait for each other
 * for ever where the ring's room would have been enough for both. So a put that gets nowhere takes what has been
 * announced to it into the bounce buffer, which is as large as the ring. Where so much cannot be registered, it is
 * ordinary memory, and reads for it go through a window of a few KB that was registered with the connection: slower,
 * but who waits for whom does not depend on how much memory may be locked.
 */
#include "config.h"

#include "ib/ib_cache.h"
#include "ib/ib_conn.h"
#include "ib/ib_pull.h"

#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	STUCK_PUTS = 64,            /* puts in a row that got nowhere, before the bounce buffer helps */
	BOUNCE_FIRST = 4096,        /* bytes read ahead for a user with short pieces */
	BOUNCE_MOST = 64 * 1024,
	BOUNCES_AHEAD = 2,
};

struct ib_zerocopy {
	struct ib_offers offers;
	struct ib_pulls pulls;
	struct ib_region bounce;   /* opened when first needed */
	uint8_t *plain_bounce;     /* in its place where that cannot be registered */
	bool bounces_long;         /* the last long piece of a get could not be registered */
	uint64_t copy_until;       /* place in the stream: long pieces before it could not be registered */
	uint32_t bounce_next;      /* bytes to read ahead next time */
	unsigned next_queue;       /* queue pair of the next read */
	unsigned stuck_puts;       /* puts that got nowhere since the last get */
};

int ib_zerocopy_open(struct ib_conn *conn)
{
	conn->zerocopy = calloc(1, sizeof *conn->zerocopy);
	if (!conn->zerocopy)
		return -ENOMEM;
	conn->zerocopy->bounce_next = BOUNCE_FIRST;
	return 0;
}

void ib_zerocopy_close(struct ib_conn *conn)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	void *memory;
	if (!zerocopy)
		return;
	while (zerocopy->offers.first != zerocopy->offers.end)
		ib_cache_put(ib_offers_pop(&zerocopy->offers).memory);
	while ((memory = ib_pulls_abandon(&zerocopy->pulls)))
		ib_cache_put(memory);
	ib_region_close(&zerocopy->bounce);
	free(zerocopy->plain_bounce);
	free(zerocopy);
	conn->zerocopy = NULL;
}

/* ---- reading ---- */

bool ib_zerocopy_under_way(const struct ib_conn *conn)
{
	return conn->zerocopy && ib_pulls_under_way(&conn->zerocopy->pulls);
}

uint32_t ib_zerocopy_acknowledged(const struct ib_conn *conn)
{
	return ib_pulls_acknowledged(&conn->zerocopy->pulls);
}

/* The queue pair that takes the next read: they take turns. -1: all have as many as they may. */
static int free_queue(const struct ib_conn *conn)
{
	const struct ib_queues *queues = &conn->queues;
	for (unsigned k = 0; k < queues->n; k++) {
		unsigned i = (conn->zerocopy->next_queue + k) % queues->n;
		if (queues->reads_posted[i] - queues->reads_done[i] < queues->reads)
			return (int)i;
	}
	return -1;
}

static void post_reads(struct ib_conn *conn)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_queues *queues = &conn->queues;
	struct ib_read_request request;
	while (!conn->error && ib_pulls_next_read(&zerocopy->pulls, conn->device->read_bytes, &request)) {
		int i = free_queue(conn);
		if (i < 0)
			return;
		ib_queues_stage(queues, (unsigned)i, IB_KIND_READ, request.lkey, request.to, (uint32_t)request.len,
				request.from, request.rkey);
		int error = ib_queues_send(queues, (unsigned)i);
		if (error) {
			ib_conn_fail(conn, error);
			return;
		}
		ib_pulls_posted(&zerocopy->pulls, request.len, (uint32_t)i, queues->reads_posted[i]);
		zerocopy->next_queue = (unsigned)i + 1;
	}
}

/* Accounts for reads that are done. */
static void complete_reads(struct ib_conn *conn)
{
	struct ib_pulls *pulls = &conn->zerocopy->pulls;
	void *memory;
	ib_pulls_complete(pulls, conn->queues.reads_done);
	while ((memory = ib_pulls_release(pulls)))
		ib_cache_put(memory);
}

void ib_zerocopy_advance(struct ib_conn *conn)
{
	complete_reads(conn);
	post_reads(conn);
	ib_conn_pay_tail(conn);
}

/* A bounce buffer of ordinary memory, and the window to it. */
static bool open_plain_bounce(struct ib_conn *conn, size_t bytes, int refusal)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_scratch *scratch = conn->scratch;
	zerocopy->plain_bounce = malloc(bytes);
	hr_log(zerocopy->plain_bounce ? HR_LOG_WARN : HR_LOG_ERROR,
	       "verbs: %s: cannot register a bounce buffer of %zu bytes: %s (see ulimit -l); %s", conn->env->peer,
	       bytes, strerror(-refusal), zerocopy->plain_bounce ? "long messages in short pieces are slower" :
							    "nor is there ordinary memory for it");
	if (!zerocopy->plain_bounce) {
		ib_conn_fail(conn, -ENOMEM);
		return false;
	}
	ib_pulls_bounce(&zerocopy->pulls, zerocopy->plain_bounce, bytes, 0);
	ib_pulls_window(&zerocopy->pulls, scratch->window, sizeof scratch->window, conn->own.mr->lkey);
	return true;
}

/* Opens the bounce buffer, as large as our ring, unless it is open. */
static bool has_bounce(struct ib_conn *conn)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_region *bounce = &zerocopy->bounce;
	if (zerocopy->pulls.bounce)
		return true;
	size_t bytes = ib_geometry_bytes(&conn->receiver.geometry);
	int error = ib_region_try(bounce, conn->device, bytes, false);
	if (error && !open_plain_bounce(conn, bytes, error))
		return false;
	if (!error)
		ib_pulls_bounce(&zerocopy->pulls, bounce->base, bytes, bounce->mr->lkey);
	conn->env->stats->memory_bytes += bytes;
	return true;
}

/* Takes announcements that have arrived, up to the next chunk with data. */
static void take_announcements(struct ib_conn *conn)
{
	while (ib_receiver_is_announcement(&conn->receiver)) {
		struct ib_announcement announcement;
		uint32_t tail = conn->sender.tail; /* nothing new */
		ib_receiver_take_announcement(&conn->receiver, &announcement, &tail);
		if (ib_pulls_announce(&conn->zerocopy->pulls, &announcement))
			ib_conn_violated(conn, "announced memory that cannot be");
		if (conn->error)
			return;
		ib_conn_credit(conn, tail);
	}
}

/* ---- get ---- */

/* Plans a pull straight into the user's memory; false if that cannot be registered. */
static bool plan_direct(struct ib_conn *conn, uint8_t *to, uint64_t len)
{
	struct ib_cached *cached;
	if (ib_cache_get(conn->device->cache, conn->env->stats, to, len, IB_USE_RECEIVE, &cached))
		return false;
	ib_pulls_plan_direct(&conn->zerocopy->pulls, to, len, cached->lkey, cached);
	conn->zerocopy->bounce_next = BOUNCE_FIRST;
	return true;
}

/* Plans a pull for the short pieces at the place. When a long piece follows them, exactly theirs: the long one is then
 * for a direct pull. Else more than that. */
static void plan_short(struct ib_conn *conn, struct hr_iov_place place, size_t left)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	uint64_t len = 0;
	while (len < left && len < BOUNCE_MOST) {
		uint8_t *to;
		size_t piece = hr_iov_piece(&place, &to);
		if (piece >= HR_ZERO_COPY_MIN)
			break;
		len += piece;
		hr_iov_advance(&place, piece);
	}
	if (len == left && len < zerocopy->bounce_next)
		len = zerocopy->bounce_next;
	zerocopy->bounce_next = zerocopy->bounce_next < BOUNCE_MOST ? zerocopy->bounce_next * 2 : BOUNCE_MOST;
	if (has_bounce(conn))
		ib_pulls_plan_bounce(&zerocopy->pulls, len);
}

/* Plans pulls into what the user offers from the place on. moved: this get has delivered something already, so that the
 * user is likely to come back with other memory than the rest of a short piece. */
static void plan(struct ib_conn *conn, struct hr_iov_place place, size_t left, bool moved)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_pulls *pulls = &zerocopy->pulls;
	bool direct = ib_pulls_skip(pulls, &place, &left);
	uint64_t plannable;
	while (left > 0 && !conn->error && (plannable = ib_pulls_plannable(pulls)) > 0) {
		uint8_t *to;
		size_t piece = hr_iov_piece(&place, &to);
		uint64_t len = piece < plannable ? piece : plannable;
		if (piece < HR_ZERO_COPY_MIN) {
			if (!moved && pulls->end - pulls->first < BOUNCES_AHEAD)
				plan_short(conn, place, left);
			return;
		}
		if (!(direct || zerocopy->bounces_long) || !ib_pulls_get_may_plan(pulls))
			return;
		if (direct)
			zerocopy->bounces_long = !plan_direct(conn, to, len);
		direct = direct && !zerocopy->bounces_long;
		if (!direct)
			len = has_bounce(conn) ? ib_pulls_plan_bounce(pulls, len) : 0;
		if (len == 0)
			return;
		hr_iov_advance(&place, (size_t)len);
		left -= (size_t)len;
	}
}

/* Delivers what is here of the stream's next bytes, in order: of pulls, and of chunks where no pull is before them. */
static size_t deliver(struct ib_conn *conn, struct hr_iov_place *place, size_t left)
{
	struct ib_pulls *pulls = &conn->zerocopy->pulls;
	size_t total = 0;
	while (total < left) {
		size_t size = 0;
		if (pulls->backlog > 0)
			size = ib_pulls_deliver(pulls, place, left - total);
		else if (ib_receiver_is_data(&conn->receiver))
			size = ib_conn_take_chunk(conn, place, left - total);
		if (size == 0)
			break;
		total += size;
	}
	take_announcements(conn);
	return total;
}

/* The caller offers other memory than the reads under way, or done and not delivered, go to. */
static int does_not_go_on(struct ib_conn *conn)
{
	if (conn->error)
		return conn->error;
	hr_log(HR_LOG_ERROR, "verbs: hr_channel_get from %s: the call must begin with the memory of the earlier call: a transfer "
	       "into that memory is under way", conn->env->peer);
	/* The queue pairs are gone after it, and the adapter writes there no more. */
	ib_conn_fail(conn, -EINVAL);
	return conn->error;
}

int ib_zerocopy_get(struct ib_conn *conn, const struct iovec *iov, int n, size_t *delivered)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	zerocopy->stuck_puts = 0;
	if (total > 0 && !ib_pulls_goes_on(&zerocopy->pulls, place, total))
		return does_not_go_on(conn);
	if (ib_pulls_under_way(&zerocopy->pulls)) {
		ib_conn_progress(conn);
		complete_reads(conn);
	}
	size_t moved = deliver(conn, &place, total);
	if (zerocopy->pulls.backlog > 0 && moved < total && !conn->error) {
		plan(conn, place, total - moved, moved > 0);
		post_reads(conn);
	}
	return ib_conn_end_get(conn, moved, delivered);
}

bool ib_zerocopy_can_get(const struct ib_conn *conn)
{
	const struct ib_pulls *pulls = &conn->zerocopy->pulls;
	if (pulls->backlog > 0)
		return ib_pulls_ready(pulls) || !ib_pulls_under_way(pulls);
	return ib_receiver_ready(&conn->receiver);
}

/* ---- put ---- */

/* Takes what the peer has acknowledged. */
static void take_acknowledgements(struct ib_conn *conn)
{
	struct ib_offers *offers = &conn->zerocopy->offers;
	uint32_t news;
	/* Acquire: the peer's reads of our memory were over before it wrote the count, and only after this load may the
	 * caller write there. Pairs with the order of the peer's requests: it posts the count when they are
	 * complete. */
	uint32_t count = le32toh(__atomic_load_n(&conn->control->acked, __ATOMIC_ACQUIRE));
	if (ib_offers_acknowledge(offers, count, &news)) {
		ib_conn_violated(conn, "acknowledged more than was announced");
		return;
	}
	for (; news > 0; news--) {
		struct ib_offer offer = ib_offers_pop(offers);
		ib_cache_put(offer.memory);
		conn->env->stats->zero_copy_puts++;
		conn->env->stats->zero_copy_bytes += offer.len;
	}
}

bool ib_zerocopy_can_put(struct ib_conn *conn)
{
	take_acknowledgements(conn);
	/* So that what a probe says of the tail is not taken for news. */
	ib_conn_take_tail(conn);
	const struct ib_offers *offers = &conn->zerocopy->offers;
	return ib_offers_acceptable(offers) > 0 || (offers->first == offers->end && ib_conn_has_room(conn));
}

bool ib_zerocopy_is_news(const struct ib_conn *conn, uint32_t count)
{
	return (int32_t)(count - conn->zerocopy->offers.first) > 0;
}

/* Announces the piece; returns the bytes, 0 if there is no room now. One that cannot be registered will be copied. */
static size_t announce(struct ib_conn *conn, const uint8_t *bytes, size_t len)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_cached *cached;
	struct ib_span span;
	if (!ib_offers_room(&zerocopy->offers) || !ib_conn_has_room(conn))
		return 0;
	len = len < IB_ANNOUNCED_BYTES_MAX ? len : IB_ANNOUNCED_BYTES_MAX;
	if (ib_cache_get(conn->device->cache, conn->env->stats, bytes, len, IB_USE_SEND, &cached)) {
		zerocopy->copy_until = zerocopy->offers.sent + len;
		return 0;
	}
	struct ib_announcement announcement = { (uintptr_t)bytes, cached->rkey, 0, len };
	ib_offers_announced(&zerocopy->offers, len, cached);
	ib_sender_announce(&conn->sender, &announcement, conn->receiver.next, &span);
	return ib_conn_post_chunk(conn, &span) ? 0 : len;
}

/* Bytes at the place that are to be copied into one chunk: up to the next long piece. 0: a long piece is there. */
static size_t bytes_to_copy(const struct ib_conn *conn, struct hr_iov_place place, size_t left)
{
	const struct ib_zerocopy *zerocopy = conn->zerocopy;
	size_t capacity = ib_geometry_payload(&conn->sender.geometry), run = 0;
	if (zerocopy->offers.sent < zerocopy->copy_until) {
		uint64_t refused = zerocopy->copy_until - zerocopy->offers.sent;
		return left < refused ? left : (size_t)refused;
	}
	while (run < left && run < capacity) {
		uint8_t *bytes;
		size_t piece = hr_iov_piece(&place, &bytes);
		if (piece >= conn->device->zero_copy_bytes)
			break;
		run += piece;
		hr_iov_advance(&place, piece);
	}
	return run;
}

/* Sends on from the first byte of the vector that was not sent before. True: something was sent. */
static bool send_more(struct ib_conn *conn, const struct iovec *iov, int n, size_t total)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_offers *offers = &zerocopy->offers;
	struct hr_iov_place place = hr_iov_begin(iov, n);
	uint64_t before = offers->sent, end = offers->accepted + total;
	if (before >= end)
		return false;
	hr_iov_advance(&place, (size_t)(before - offers->accepted));
	while (offers->sent < end && !conn->error) {
		size_t run = bytes_to_copy(conn, place, (size_t)(end - offers->sent)), size;
		if (run > 0) {
			size = ib_pipeline_chunk(conn, &place, run);
			ib_offers_copied(offers, size);
		} else {
			uint8_t *bytes;
			size_t piece = hr_iov_piece(&place, &bytes);
			size = announce(conn, bytes, piece);
			hr_iov_advance(&place, size);
		}
		/* Nothing: no room, or a piece that turned out to be one to copy. */
		if (size == 0 && (run > 0 || offers->sent >= zerocopy->copy_until))
			break;
	}
	return offers->sent != before;
}

/* A put that got nowhere, again and again, while the peer may wait for us in a put too: takes what it has announced,
 * and what is before that in the ring, into the bounce buffer. */
static void take_in(struct ib_conn *conn)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_pulls *pulls = &zerocopy->pulls;
	uint8_t *at;
	uint64_t room;
	if (conn->error || ++zerocopy->stuck_puts % STUCK_PUTS)
		return;
	take_announcements(conn);
	bool waits = pulls->backlog > 0 || ib_receiver_holds_announcement(&conn->receiver);
	if (!waits || !has_bounce(conn))
		return;
	uint64_t before;
	do {
		before = pulls->bounce_head;
		while (ib_pulls_plan_bounce(pulls, UINT64_MAX) > 0)
			continue;
		/* Copied bytes may follow only when all that was announced before them has its place. */
		if (pulls->ann_plan == pulls->ann_end && ib_receiver_is_data(&conn->receiver) &&
		    (room = ib_pulls_space(pulls, &at)) > 0) {
			struct iovec iov = { at, (size_t)room };
			struct hr_iov_place place = hr_iov_begin(&iov, 1);
			ib_pulls_absorbed(pulls, ib_conn_take_chunk(conn, &place, (size_t)room));
		}
		take_announcements(conn);
		waits = ib_pulls_plannable(pulls) > 0 || ib_receiver_holds_announcement(&conn->receiver);
	} while (!conn->error && waits && pulls->bounce_head != before);
	post_reads(conn);
	ib_conn_pay_tail(conn);
}

int ib_zerocopy_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	size_t total = hr_iov_total(iov, n);
	if (ib_pulls_under_way(&zerocopy->pulls))
		ib_conn_progress(conn);
	/* Also after an error: what the peer has read it has read. */
	take_acknowledgements(conn);
	bool sent = !conn->error && send_more(conn, iov, n, total);
	uint64_t acceptable = ib_offers_acceptable(&zerocopy->offers);
	if (acceptable > total && !conn->error) {
		hr_log(HR_LOG_ERROR, "verbs: hr_channel_put to %s: the call must begin with the bytes that were not accepted: %llu "
		       "of these have been transferred", conn->env->peer, (unsigned long long)acceptable);
		ib_conn_fail(conn, -EINVAL);
	}
	size_t taken = acceptable < total ? (size_t)acceptable : total;
	zerocopy->offers.accepted += taken;
	conn->put_short = taken < total;
	if (sent)
		ib_sleep_told(conn, IB_WAKE_ON_DATA | IB_WAKE_ON_ROOM);
	if (taken == 0 && !sent) {
		ib_conn_idle(conn);
		take_in(conn);
	}
	if (taken == 0 && conn->error)
		return conn->error;
	*accepted = taken;
	return 0;
}
