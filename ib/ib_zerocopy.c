/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The zero-copy design (paper, section 4.5). Short pieces go through the ring as in the pipeline design. A piece of
 * HEADRACE_IB_ZERO_COPY bytes or more is not copied: a chunk of the ring announces its address and key, the receiver
 * reads the bytes by RDMA, and the receiver's acknowledgement completes the put (ib_offer.h, ib_pull.h).
 *
 * put:        sends all bytes that were not sent yet, even while earlier bytes wait for an acknowledgement, and reports
 *             the acknowledged bytes as accepted.
 * get:        takes chunks in ring order. After an announcement nothing is delivered before the announced bytes. RDMA
 *             reads go directly into elements of HR_ZERO_COPY_MIN bytes or more. Shorter elements are filled from the
 *             bounce buffer. It reads ahead a few pages at first, as the next element may be a long one, and twice as
 *             many each further time.
 * ahead:      while bytes are being read, moves short chunks behind them into the bounce buffer. So the caller learns the
 *             header of the next message, and offers its memory, and the announcement behind the header is read too,
 *             before the message in front of it is complete (hr_conn_ahead).
 * completion: posts further reads and sends acknowledgements. Happens in put, get, sleeping and closing.
 * error:      the queue pairs are destroyed before put or get returns the error, so no read writes into the user's
 *             memory after it.
 *
 * The acknowledgement is a count in the control block, written together with the tail. In the paper it is a chunk of
 * the ring; but a chunk needs a credit, and a peer that only puts never returns credits.
 *
 * If both sides put long pieces, and neither calls get before its put is complete, each would wait for the other for
 * ever, even if the ring had room for all the bytes. So a put that makes no progress reads the peer's announced bytes
 * into the bounce buffer, which is as large as the ring. If so much memory cannot be registered, the bounce buffer is
 * ordinary memory, and reads go through a window of a few KB that was registered with the connection. That is slower,
 * but whether two sides wait for each other then does not depend on the limit of locked memory.
 */
#include "config.h"

#include "ib/ib_cache.h"
#include "ib/ib_conn.h"
#include "ib/ib_gauge.h"
#include "ib/ib_pull.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	STUCK_PUTS = 64,            /* after this many puts without progress and without a get, take_in runs */
	BOUNCE_FIRST = 4096,        /* bytes that are first read ahead for a caller with short elements */
	BOUNCE_MOST = 64 * 1024,    /* maximum of these bytes */
	BOUNCES_AHEAD = 2,          /* maximum number of pulls read ahead */
	AHEAD_CHUNK = 512,          /* maximum bytes of a chunk that is moved ahead: a header, not a payload */
};

/* The measurement of the threshold, with reads of the peer's control block and ring, one at a time. */
struct measuring {
	struct ib_gauge gauge;
	struct ib_region target;
	bool begun, ended;
	bool posted;               /* a read is in flight: the count-th of queue pair 0, since posted_ns */
	uint32_t count;
	uint64_t posted_ns;
};

struct ib_zerocopy {
	struct ib_offers offers;
	struct ib_pulls pulls;
	struct ib_region bounce;   /* opened when first needed */
	uint8_t *plain_bounce;     /* used if bounce cannot be registered */
	bool bounces_long;         /* the last long element of a get could not be registered */
	uint64_t copy_until;       /* position in the stream: bytes before it could not be registered, copy them */
	uint32_t bounce_next;      /* bytes to read ahead next time */
	unsigned next_queue;       /* queue pair of the next read */
	unsigned stuck_puts;       /* puts without progress since the last get */
	uint32_t threshold;        /* minimum size of a piece that is announced */
	struct measuring measuring; /* not begun if HEADRACE_IB_ZERO_COPY is a number */
};

int ib_zerocopy_open(struct ib_conn *conn)
{
	conn->zerocopy = calloc(1, sizeof *conn->zerocopy);
	if (!conn->zerocopy)
		return -ENOMEM;
	conn->zerocopy->bounce_next = BOUNCE_FIRST;
	conn->zerocopy->offers.most = conn->device->announced_most;
	conn->zerocopy->threshold = conn->device->zero_copy_bytes;
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
	ib_region_close(&zerocopy->measuring.target);
	free(zerocopy->plain_bounce);
	free(zerocopy);
	conn->zerocopy = NULL;
}

bool ib_zerocopy_under_way(const struct ib_conn *conn)
{
	return conn->zerocopy && (ib_pulls_under_way(&conn->zerocopy->pulls) || conn->zerocopy->measuring.posted);
}

uint32_t ib_zerocopy_acknowledged(const struct ib_conn *conn)
{
	return ib_pulls_acknowledged(&conn->zerocopy->pulls);
}

/* Returns the queue pair for the next read; they are used in turn. -1: all have the maximum number of reads in
 * flight. */
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

/* ---- the threshold ---- */

static void measuring_end(struct ib_conn *conn, uint32_t threshold)
{
	struct measuring *measuring = &conn->zerocopy->measuring;
	measuring->ended = true;
	conn->zerocopy->threshold = threshold;
	ib_region_close(&measuring->target);
	hr_log(HR_LOG_INFO, "verbs: %s: zero copy from %u bytes on (a round trip takes %llu ns, a read of %d bytes %llu ns)",
	       conn->env->peer, threshold, (unsigned long long)measuring->gauge.short_ns, IB_GAUGE_LONG,
	       (unsigned long long)measuring->gauge.long_ns);
}

/* Posts the next read of the measurement, if the last one has ended. */
static void measure(struct ib_conn *conn)
{
	struct measuring *measuring = &conn->zerocopy->measuring;
	struct ib_queues *queues = &conn->queues;
	if (!measuring->begun || measuring->ended || conn->error)
		return;
	if (measuring->posted) {
		if ((int32_t)(queues->reads_done[0] - measuring->count) < 0)
			return;
		measuring->posted = false;
		ib_gauge_ended(&measuring->gauge, hr_now_ns() - measuring->posted_ns);
	}
	uint32_t len = ib_gauge_next(&measuring->gauge);
	if (len == 0) {
		measuring_end(conn, ib_gauge_threshold(&measuring->gauge));
		return;
	}
	if (queues->reads_posted[0] - queues->reads_done[0] >= queues->reads)
		return;
	ib_queues_stage(queues, 0, IB_KIND_READ, measuring->target.mr->lkey, measuring->target.base, len, conn->peer_control,
			conn->peer_rkey);
	measuring->posted_ns = hr_now_ns();
	int error = ib_queues_send(queues, 0);
	if (error) {
		ib_conn_fail(conn, error);
		return;
	}
	measuring->posted = true;
	measuring->count = queues->reads_posted[0];
}

/* Called before the first long piece is sent. Until the measurement has ended, the default threshold is in use. */
static void measuring_begin(struct ib_conn *conn)
{
	struct measuring *measuring = &conn->zerocopy->measuring;
	measuring->begun = true;
	/* The peer's ring is behind its control block. */
	if (IB_CONTROL_BYTES + ib_geometry_bytes(&conn->sender.geometry) < IB_GAUGE_LONG ||
	    ib_region_try(&measuring->target, conn->device, IB_GAUGE_LONG, false))
		measuring->ended = true;
	else
		measure(conn);
}

/* ---- reading ---- */

/* Handles completed reads. */
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
	measure(conn);
	complete_reads(conn);
	post_reads(conn);
	ib_conn_pay_tail(conn);
}

/* Opens a bounce buffer of ordinary memory, and its window. */
static bool open_plain_bounce(struct ib_conn *conn, size_t bytes, int refusal)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_scratch *scratch = conn->scratch;
	zerocopy->plain_bounce = malloc(bytes);
	hr_log(zerocopy->plain_bounce ? HR_LOG_WARN : HR_LOG_ERROR,
	       "verbs: %s: cannot register a bounce buffer of %zu bytes: %s (see ulimit -l); %s", conn->env->peer,
	       bytes, strerror(-refusal), zerocopy->plain_bounce ? "long messages in short pieces are slower" :
							    "ordinary memory for it cannot be allocated either");
	if (!zerocopy->plain_bounce) {
		ib_conn_fail(conn, -ENOMEM);
		return false;
	}
	ib_pulls_bounce(&zerocopy->pulls, zerocopy->plain_bounce, bytes, 0);
	ib_pulls_window(&zerocopy->pulls, scratch->window, sizeof scratch->window, conn->own.mr->lkey);
	return true;
}

/* Opens the bounce buffer, as large as this side's ring, unless it is open. False: there is no memory. */
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
		uint32_t tail = conn->sender.tail; /* unchanged if the chunk's tail was taken before */
		ib_receiver_take_announcement(&conn->receiver, &announcement, &tail);
		if (ib_pulls_announce(&conn->zerocopy->pulls, &announcement))
			ib_conn_violated(conn, "sent an invalid announcement");
		if (conn->error)
			return;
		ib_conn_credit(conn, tail);
	}
}

/* Moves the next chunk, which has data, into the bounce buffer. Call it only if all announcements are planned. */
static void absorb(struct ib_conn *conn)
{
	struct ib_pulls *pulls = &conn->zerocopy->pulls;
	uint8_t *at;
	uint64_t room = ib_pulls_space(pulls, &at);
	if (room == 0)
		return;
	struct iovec iov = { at, (size_t)room };
	struct hr_iov_place place = hr_iov_begin(&iov, 1);
	ib_pulls_absorbed(pulls, ib_conn_take_chunk(conn, &place, (size_t)room));
}

/* ---- get ---- */

/* Plans a pull directly into the user's memory. False: the memory cannot be registered. */
static bool plan_direct(struct ib_conn *conn, uint8_t *to, uint64_t len)
{
	struct ib_cached *cached;
	if (ib_cache_get(conn->device->cache, conn->env->stats, to, len, IB_USE_RECEIVE, &cached))
		return false;
	ib_pulls_plan_direct(&conn->zerocopy->pulls, to, len, cached->lkey, cached);
	conn->zerocopy->bounce_next = BOUNCE_FIRST;
	return true;
}

/* Plans a pull into the bounce buffer for the short elements at `place`. If a long element follows them, the pull has
 * exactly their bytes, so that a direct pull can fill the long element. Otherwise it reads further bytes ahead. */
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

/* Plans pulls for the elements from `place` on. moved: this get has delivered bytes already; then the next get is
 * likely to offer other memory than the rest of a short element, so no pull is planned for a short element. */
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

/* Delivers the next bytes of the stream that have arrived: from pulls, or from a chunk if no pull comes before it. */
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

/* Fails the connection: the caller does not offer the memory of the direct pulls again. */
static int does_not_go_on(struct ib_conn *conn)
{
	if (conn->error)
		return conn->error;
	hr_log(HR_LOG_ERROR, "verbs: hr_channel_get from %s: the call must begin with the memory of the earlier call: a transfer "
	       "into that memory is under way", conn->env->peer);
	/* This destroys the queue pairs, so the adapter stops writing into that memory. */
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
	if (ib_zerocopy_under_way(conn)) {
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

size_t ib_zerocopy_ahead(struct ib_conn *conn, uint64_t skip, uint8_t *to, size_t len)
{
	struct ib_pulls *pulls = &conn->zerocopy->pulls;
	uint64_t before;
	pulls->promised = true;
	if (pulls->backlog == 0 || conn->error)
		return 0;
	do {
		before = pulls->bounce_head;
		/* A get plans direct pulls only while places are left for a put without progress: so does this. */
		if (pulls->ann_plan == pulls->ann_end && ib_pulls_get_may_plan(pulls) &&
		    ib_receiver_is_short(&conn->receiver, AHEAD_CHUNK) && has_bounce(conn))
			absorb(conn);
		take_announcements(conn);
	} while (!conn->error && pulls->bounce_head != before);
	ib_conn_pay_tail(conn);
	return ib_pulls_look(pulls, skip, to, len);
}

bool ib_zerocopy_can_get(const struct ib_conn *conn)
{
	const struct ib_pulls *pulls = &conn->zerocopy->pulls;
	if (pulls->backlog > 0)
		return ib_pulls_ready(pulls) || !ib_pulls_under_way(pulls);
	return ib_receiver_ready(&conn->receiver);
}

/* ---- put ---- */

/* Handles the peer's count of acknowledged announcements. */
static void take_acknowledgements(struct ib_conn *conn)
{
	struct ib_offers *offers = &conn->zerocopy->offers;
	uint32_t news;
	/* Acquire: the caller may write into the memory only after this load. Pairs with the order of the peer's
	 * requests: the peer writes the count after its reads of the memory have completed. */
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
	/* Take the tail now, so that ib_sleep.c does not treat the same tail in a probe as new. */
	ib_conn_take_tail(conn);
	const struct ib_offers *offers = &conn->zerocopy->offers;
	return ib_offers_acceptable(offers) > 0 || (offers->first == offers->end && ib_conn_has_room(conn));
}

bool ib_zerocopy_is_news(const struct ib_conn *conn, uint32_t count)
{
	return (int32_t)(count - conn->zerocopy->offers.first) > 0;
}

/* Announces the piece. Returns the number of bytes, 0 if there is no room now or if the piece cannot be registered;
 * then copy_until makes it be copied. */
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

/* Returns how many bytes from `place` on to copy through the ring: up to the next long piece. 0: a long piece comes
 * first. */
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
		if (piece >= conn->zerocopy->threshold)
			break;
		run += piece;
		hr_iov_advance(&place, piece);
	}
	return run;
}

/* Sends bytes from the first byte of the vector on that was not sent before. Returns whether any were sent. */
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
		/* size is 0: there is no room, or announce could not register the piece; the latter is copied next. */
		if (size == 0 && (run > 0 || offers->sent >= zerocopy->copy_until))
			break;
	}
	return offers->sent != before;
}

/* Called after a put without progress. After STUCK_PUTS of them, as the peer may be waiting in a put too: takes the
 * bytes that the peer has announced, and the chunks before them in the ring, into the bounce buffer. */
static void take_in(struct ib_conn *conn)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	struct ib_pulls *pulls = &zerocopy->pulls;
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
		/* Bytes of a chunk may follow only when all earlier announcements have been planned. */
		if (pulls->ann_plan == pulls->ann_end && ib_receiver_is_data(&conn->receiver))
			absorb(conn);
		take_announcements(conn);
		waits = ib_pulls_plannable(pulls) > 0 || ib_receiver_holds_announcement(&conn->receiver);
	} while (!conn->error && waits && pulls->bounce_head != before);
	post_reads(conn);
	ib_conn_pay_tail(conn);
}

/* Short pieces are never announced, however many they are. */
static bool has_long_piece(const struct iovec *iov, int n)
{
	for (int i = 0; i < n; i++)
		if (iov[i].iov_len >= HR_ZERO_COPY_MIN)
			return true;
	return false;
}

int ib_zerocopy_put(struct ib_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	struct ib_zerocopy *zerocopy = conn->zerocopy;
	size_t total = hr_iov_total(iov, n);
	if (ib_zerocopy_under_way(conn))
		ib_conn_progress(conn);
	/* Also after an error: bytes that the peer has read are accepted. */
	take_acknowledgements(conn);
	if (conn->device->measures && !zerocopy->measuring.begun && !conn->error && has_long_piece(iov, n))
		measuring_begin(conn);
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
