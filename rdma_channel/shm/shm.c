/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shm transport, between two processes of one host: for each direction a ring (ring.h) in shared memory (segment.h)
 * and single copy (single.h) for long messages. The receiver creates the ring and passes its descriptor over the Unix
 * stream. Afterwards the stream carries wake-ups and shows whether the peer has ended, which put and get check only now
 * and then.
 */
#include "config.h"

#include "rdma_channel/barrier.h"
#include "rdma_channel/clock.h"
#include "rdma_channel/shm/near.h"
#include "rdma_channel/shm/ring.h"
#include "rdma_channel/shm/segment.h"
#include "rdma_channel/shm/single.h"
#include "rdma_channel/stream.h"
#include "rdma_channel/transport.h"

#include "rdma_channel/base/copy.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/peer_copy.h"
#include "rdma_channel/base/setting.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 30)

/* Every IDLE_CALLS-th put or get that moves nothing checks the stream, if the coarse clock has advanced since. */
#define IDLE_CALLS 64

/* After this many puts with an open offer and no get or answer between them, the offers are taken back if the peer has
 * put too. */
#define PATIENT_PUTS 64

/* Pieces shorter than SHORT_BEHIND are put into the ring behind an open offer, in all up to one BEHIND_PART-th of the ring:
 * if the offers are taken back, these bytes need room a second time. */
#define SHORT_BEHIND 4096u
#define BEHIND_PART 8u

#define PREFETCH_BYTES 1024u /* of a record in place, as many lines as a processor fetches at a time */
#define FURTHER_MOST 20u     /* after a record of more lines, none is prefetched (hr_conn_watch) */

/* Records that lie STREAM_LINES or more behind the start of the ring are a stream, or too long to go back. Then both sides make the
 * ring's pages present, up to PRESENT_MOST bytes: a stream in slots (ring.h) would touch a new page with every few records, and an
 * exchange of messages of 8 KB two new pages with each, until the whole ring has been used. A channel does so for PRESENT_RINGS
 * rings at a time: if it sends a few messages to each of very many peers, it touches a small part of each. */
#define STREAM_LINES 1024u
#define PRESENT_MOST (4u << 20)
#define PRESENT_RINGS 16u

/* If the caller leaves the ring's size to the channel, LONG_RINGS rings of a channel have the length of two second-level caches.
 * If two processors share only a later cache, a store to a line that the receiver's cache still has takes several times as
 * long as a store to another line. In a ring of this length, the receiver has read enough other lines before the sender
 * comes to the same line again. Only some rings, because of their memory. */
#define LONG_RINGS 16u
#define LONG_RING_MOST (4u << 20)

#define TAIL_RECORDS 16u /* every so many records the sender may measure nearness with the tail */

#define RECORD_LEAST 8192u /* minimum record size when a longer put is split, bytes */
#define RECORD_LEAST_NEAR 4096u /* the same if the processors are near: then both copies cost the same */
#define RECORD_MOST 16384u /* maximum, but a rest of less than RECORD_REST bytes gets no record of its own */
#define RECORD_REST 2048u
#define LONG_PIECE 4096u /* a piece of so many bytes begins a record */
_Static_assert(SHM_FRONT_MAX + RECORD_MOST + RECORD_REST <= SHM_RECORD_MAX, "a record's length");

/* Default minimum size for single copy; twice that while traffic is one-way. */
HR_SETTING(zero_copy_setting, "HEADRACE_SHM_ZERO_COPY", "64k", 0, 1u << 30,
	   "shm: minimum size for single copy, bytes (at least 16k); 0: no single copy");

/* If both processors share a cache, two copies through it are quicker than a system call up to this size. */
HR_SETTING(near_setting, "HEADRACE_SHM_NEAR", "4M", 0, 1u << 30,
	   "shm: minimum size for single copy if the two processors share a cache; 0: HEADRACE_SHM_ZERO_COPY");

/* More than one, so that the receiver finds the next piece when it has taken one. Not many more, as the sender's caller cannot
 * use the memory of offered pieces. */
HR_SETTING(offers_setting, "HEADRACE_SHM_OFFERS", "8", 1, SHM_OFFERS_MAX,
	   "shm: pieces that are offered for single copy before the receiver has taken the first");

/* One piece per PROBE_NS that is too short to be offered is offered all the same: the receiver measures with it whether the
 * processors are near. */
#define PROBE_NS (2 * HR_NS_PER_MS)

/* If the processors are not near, the receiver reads what was written with non-temporal stores several times faster, unless the
 * record uses lines again that both processors had a short time ago. */
HR_SETTING(stream_setting, "HEADRACE_SHM_STREAM", "512", 0, 1u << 30,
	   "shm: minimum size of records written with non-temporal stores unless the processors are near; 0: none");

/* For shm_half_wire.flags. */
enum {
	SHM_HALF_HEAVY = 1u << 0, /* this side is registered for the heavy barrier, and calls it (barrier.h) */
	SHM_HALF_HUGE = 1u << 1,  /* the peer should ask for huge pages when it maps the ring */
};

/* The half that a side sends to its peer: describes the ring that this side receives from. The descriptor of the ring's
 * memory goes with it. Integers are little-endian. */
struct shm_half_wire {
	uint32_t ring_bytes; /* a power of two */
	uint32_t flags;
	uint64_t token, token_address; /* this process's token and its address (single.h); 0: none */
	uint32_t pid;
	uint32_t segment_bytes; /* size of the memory: ring, control page, padding to a huge page */
};
_Static_assert(sizeof(struct shm_half_wire) == 32, "wire format");

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
	uint32_t rings_present; /* rings of open connections whose pages make_present has mapped */
};

struct shm_conn {
	struct shm_sender out;
	struct shm_receiver in;
	uint32_t reserved; /* offset of the payload of the reserved record, bytes */
	uint32_t reserved_bytes; /* of its payload */
	enum { FILL_NOT_CHOSEN, FILL_ORDINARY, FILL_STREAMING } fill_way; /* of its pieces */
	bool out_present, in_present; /* make_present has mapped the pages of the ring */
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
	unsigned records_unsampled; /* calls of sample_tail since then; wraps */
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

/* ---- per channel ---- */

static uint32_t round_to_power(uint64_t bytes)
{
	uint32_t power = RING_MIN_BYTES;
	while (power < bytes && power < RING_MAX_BYTES)
		power *= 2;
	return power;
}

/* Returns the size of a long ring. 0: the size of the cache is not known. */
static uint32_t long_ring_bytes(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	uint32_t bytes = cache > 0 ? round_to_power(2 * (uint64_t)cache) : 0;
	return bytes < LONG_RING_MOST ? bytes : LONG_RING_MOST;
#else
	return 0;
#endif
}

static int shm_open_channel(const struct hr_channel_env *env, void **out, uint8_t *section, size_t *section_len)
{
	(void)section;
	struct shm_context *context = malloc(sizeof *context);
	if (!context)
		return -ENOMEM;
	context->heavy = false;
	context->rings_present = 0;
	context->long_rings = 0;
	context->long_ring = long_ring_bytes();
	uint64_t zero_copy, near, stream, offers;
	int error = hr_setting_u64(&zero_copy_setting, &zero_copy);
	if (!error)
		error = hr_setting_u64(&near_setting, &near);
	if (!error)
		error = hr_setting_u64(&stream_setting, &stream);
	if (!error)
		error = hr_setting_u64(&offers_setting, &offers);
	if (!error && !env->sleeps)
		error = hr_barrier_register(&context->heavy);
	if (!error)
		error = shm_placement_read(&context->placement);
	if (error) {
		free(context);
		return error;
	}
	context->zero_copy = zero_copy == 0 ? SIZE_MAX : zero_copy < HR_ZERO_COPY_MIN ? HR_ZERO_COPY_MIN : zero_copy;
	context->near = near;
	context->offers = (uint32_t)offers;
	context->stream = stream ? stream : SIZE_MAX;
	context->self = (struct shm_identity){ NULL, 0 };
	if (zero_copy)
		shm_identity_open(&context->self);
	*section_len = 0;
	*out = context;
	return 0;
}

static void shm_close_channel(void *data)
{
	struct shm_context *context = data;
	shm_identity_close(&context->self);
	free(context);
}

static bool shm_reaches(void *context, const uint8_t *section, size_t section_len, bool same_host)
{
	(void)context;
	(void)section;
	(void)section_len;
	return same_host;
}

/* ---- the peer's end ---- */

static void ask_stream(struct shm_conn *conn)
{
	if (!conn->ended)
		conn->ended = hr_stream_check(conn->stream);
}

/* Call this after a put or get that moved nothing. Otherwise the peer is alive, as it puts and gets. */
static void ask_stream_sometimes(struct shm_conn *conn)
{
	if (++conn->idle_calls < IDLE_CALLS)
		return;
	conn->idle_calls = 0;
	uint64_t now = hr_now_coarse_ns();
	if (now == conn->asked_at)
		return;
	conn->asked_at = now;
	ask_stream(conn);
}

/* Wakes the peer if it has armed this flag. Call this after publishing what the peer may be sleeping for. */
static inline void wake_if_armed(struct shm_conn *conn, uint32_t *armed)
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

/* ---- setting up ---- */

static size_t shm_conn_bytes(void *context, uint32_t ring_bytes)
{
	const struct shm_context *shm = context;
	uint32_t bytes = round_to_power(ring_bytes);
	size_t segment = shm_segment_bytes(&shm->placement, bytes);
	/* Own ring and peer's ring: they have the same size unless the two channels ask for different sizes. */
	return sizeof(struct shm_conn) + 2 * segment + bytes / SHM_LINE / 8;
}

/* Chooses the size of the ring that this side receives from. */
static uint32_t choose_ring(struct shm_conn *conn)
{
	struct shm_context *context = conn->context;
	uint32_t bytes = round_to_power(conn->env->ring_bytes);
	conn->has_long_ring = conn->env->ring_is_default && bytes < context->long_ring && context->long_rings < LONG_RINGS;
	context->long_rings += conn->has_long_ring;
	return conn->has_long_ring ? context->long_ring : bytes;
}

static int make_own_ring(struct shm_conn *conn, uint32_t bytes, bool may_fail, int *fd, bool *huge)
{
	int error = shm_segment_make(&conn->context->placement, bytes, may_fail ? HR_LOG_INFO : HR_LOG_ERROR, &conn->in_segment, fd, huge);
	if (error)
		return error;
	conn->in.control = shm_segment_control(&conn->in_segment, bytes);
	conn->in.lines = conn->in_segment.map;
	conn->in.mask = bytes / SHM_LINE - 1;
	shm_receiver_go(&conn->in, SHM_FIRST_POSITION);
	conn->in.reported = conn->in.control->tail = SHM_FIRST_POSITION;
	return 0;
}

static int shm_conn_open(void *context, const struct hr_conn_env *env, struct hr_half *own, void **out)
{
	struct shm_conn *conn = aligned_alloc(128, (sizeof *conn + 127) / 128 * 128);
	if (!conn)
		return -ENOMEM;
	memset(conn, 0, sizeof *conn);
	conn->context = context;
	conn->env = env;
	conn->stream = -1;
	uint32_t bytes = choose_ring(conn);
	bool huge;
	int error = make_own_ring(conn, bytes, conn->has_long_ring, &own->fds[0], &huge);
	if (error && conn->has_long_ring) { /* a limit of the process, such as RLIMIT_AS, may leave room for an ordinary one */
		conn->context->long_rings--;
		conn->has_long_ring = false;
		bytes = round_to_power(env->ring_bytes);
		error = make_own_ring(conn, bytes, false, &own->fds[0], &huge);
	}
	if (error) {
		free(conn);
		return error;
	}
	const struct shm_identity *self = &conn->context->self;
	struct shm_half_wire wire = {
		.ring_bytes = htole32(bytes),
		.flags = htole32((conn->context->heavy ? SHM_HALF_HEAVY : 0) | (huge ? SHM_HALF_HUGE : 0)),
		.token = htole64(self->token ? *self->token : 0),
		.token_address = htole64((uintptr_t)self->token),
		.pid = htole32((uint32_t)self->pid),
		.segment_bytes = htole32((uint32_t)conn->in_segment.size),
	};
	memcpy(own->blob, &wire, sizeof wire);
	own->len = sizeof wire;
	own->n_fds = 1;
	*out = conn;
	return 0;
}

static int join_ring(struct shm_conn *conn, const struct shm_half_wire *wire, int fd)
{
	uint32_t bytes = le32toh(wire->ring_bytes), segment_bytes = le32toh(wire->segment_bytes);
	bool huge = le32toh(wire->flags) & SHM_HALF_HUGE;
	if (bytes < RING_MIN_BYTES || bytes > RING_MAX_BYTES || (bytes & (bytes - 1))) {
		hr_log(HR_LOG_ERROR, "shm: peer %s: invalid ring size", conn->env->peer);
		return -EPROTO;
	}
	int error = shm_segment_join(fd, bytes, segment_bytes, huge, conn->env->peer, &conn->out_segment);
	if (error)
		return error;
	conn->out.control = shm_segment_control(&conn->out_segment, bytes);
	conn->out.lines = conn->out_segment.map;
	conn->out.mask = bytes / SHM_LINE - 1;
	conn->out.head = conn->out.tail = conn->out.loaded = SHM_FIRST_POSITION;
	shm_sender_init_short(&conn->out);
	conn->out.unclean = calloc(bytes / SHM_LINE / 64, sizeof *conn->out.unclean);
	return conn->out.unclean ? 0 : -ENOMEM;
}

/* Returns whether the peer runs as this process's user. The peer itself says which pid to read and write. If this
 * process is root, a peer of another user could name a process that the peer itself may not access. */
static bool is_of_our_user(int stream)
{
	struct ucred peer;
	socklen_t len = sizeof peer;
	return getsockopt(stream, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.uid == geteuid();
}

/* Sets up single copy in both directions. Tells the peer, before it may put, whether this side can read its memory. */
static void join_process(struct shm_conn *conn, const struct shm_half_wire *wire, int stream)
{
	conn->peer = (struct shm_process){
		.token_address = le64toh(wire->token_address), .token = le64toh(wire->token),
		.self = &conn->context->self, .name = conn->env->peer,
	};
	if (is_of_our_user(stream))
		conn->peer.pid = (pid_t)le32toh(wire->pid);
	shm_process_probe(&conn->peer);
	shm_pusher_init(&conn->pusher, conn->out.control, &conn->peer, conn->context->offers);
	conn->puller = (struct shm_puller){ .control = conn->in.control, .peer = &conn->peer };
	/* Relaxed: the channel sends its "ready" message after it. */
	__atomic_store_n(&conn->in.control->pulls, conn->peer.reachable, __ATOMIC_RELAXED);
}

static int shm_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct shm_conn *conn = data;
	struct shm_half_wire wire;
	int error = -EPROTO;
	if (peer->len == sizeof wire && peer->n_fds == 1) {
		memcpy(&wire, peer->blob, sizeof wire);
		error = join_ring(conn, &wire, peer->fds[0]);
	} else {
		hr_log(HR_LOG_ERROR, "shm: peer %s: invalid description of its half of the connection", conn->env->peer);
	}
	for (int i = 0; i < peer->n_fds; i++)
		close(peer->fds[i]);
	if (error)
		return error;
	conn->env->stats->memory_bytes = sizeof *conn + conn->in_segment.size + conn->out_segment.size +
					 (conn->out.mask + 1) / 8;
	conn->both_heavy = conn->context->heavy && (le32toh(wire.flags) & SHM_HALF_HEAVY);
	join_process(conn, &wire, stream);
	conn->stream = stream;
	return 0;
}

/* Revokes the open offers: the caller may then reuse the memory that put was offered. Withdraws the open grant: the
 * caller may reuse the memory that get was offered once the peer has finished its current copy, or has ended. */
static int shm_conn_stop(void *data)
{
	struct shm_conn *conn = data;
	shm_pusher_revoke(&conn->pusher);
	if (shm_puller_withdraw(&conn->puller))
		return 1;
	ask_stream(conn);
	return conn->ended != 0;
}

static int shm_conn_shutdown(void *data)
{
	struct shm_conn *conn = data;
	/* The accepted bytes are in memory that the peer has mapped, so this side is not needed to deliver them. Revoke
	 * the offers first, before the peer can learn that this side has ended. */
	if (!conn->said_goodbye) {
		shm_pusher_revoke(&conn->pusher);
		hr_stream_goodbye(conn->stream);
	}
	conn->said_goodbye = true;
	return shm_conn_stop(conn);
}

static void shm_conn_close(void *data)
{
	struct shm_conn *conn = data;
	conn->context->rings_present -= (uint32_t)conn->out_present + conn->in_present;
	conn->context->long_rings -= conn->has_long_ring;
	shm_segment_unmap(&conn->in_segment);
	shm_segment_unmap(&conn->out_segment);
	free(conn->out.unclean);
	free(conn);
}

/* Maps the pages of a ring. If the kernel cannot do this, each page is mapped when it is first used. */
static __attribute__((noinline, cold)) void make_present(struct shm_conn *conn, bool *present, uint8_t *lines, uint32_t mask)
{
	if (conn->context->rings_present == PRESENT_RINGS)
		return;
	conn->context->rings_present++;
	*present = true;
#ifdef MADV_POPULATE_WRITE
	size_t bytes = (size_t)(mask + 1) * SHM_LINE;
	(void)madvise(lines, bytes < PRESENT_MOST ? bytes : PRESENT_MOST, MADV_POPULATE_WRITE);
#endif
}

/* ---- put ---- */

static inline void present_if_streaming(struct shm_conn *conn)
{
	if (__builtin_expect(!conn->out_present && (conn->out.head & conn->out.mask) >= STREAM_LINES, 0))
		make_present(conn, &conn->out_present, conn->out.lines, conn->out.mask);
}

/* Returns whether the receiver has measured that the processors are near. */
static bool is_near(const struct shm_conn *conn)
{
	/* Relaxed: the flag only decides which way is quicker. */
	return __atomic_load_n(&conn->out.control->near, __ATOMIC_RELAXED);
}

/* Measures nearness for messages that are too short to be offered: how long the tail takes if the receiver has stored it since it
 * was last loaded. The first samples are taken as soon as possible. */
static void sample_tail(struct shm_conn *conn)
{
	bool first = conn->tail_samples < SHM_NEAR_SAMPLES;
	/* Reading the clock for each record takes a tenth of the time of one of 512 bytes. */
	if (!first && ++conn->records_unsampled % TAIL_RECORDS)
		return;
	if (!first && !shm_near_is_due(&conn->tail_nearness, hr_now_coarse_ns()))
		return;
	uint32_t before = conn->out.loaded;
	uint64_t begin = hr_now_ns();
	bool valid = shm_sender_refresh(&conn->out);
	uint64_t ns = hr_now_ns() - begin;
	if (!valid || conn->out.loaded == before)
		return;
	shm_near_sample(&conn->tail_nearness, ns < SHM_NEAR_TAIL_NS);
	conn->tail_samples += first;
}

/* Returns whether to write a record past the caches: `length` of its bytes, in `lines` lines. */
static bool streams_record(struct shm_conn *conn, size_t length, uint32_t lines)
{
	if (length < conn->context->stream || shm_sender_alone(&conn->out, lines))
		return false;
	sample_tail(conn);
	bool past = !conn->tail_nearness.near && !is_near(conn);
	if (__builtin_expect(past != conn->writes_past, 0)) {
		conn->writes_past = past;
		/* Relaxed: the receiver may see the change at any time. */
		__atomic_store_n(&conn->out.control->writes_past, past, __ATOMIC_RELAXED);
	}
	return past;
}

/* Copies length bytes from the vector into the record's payload. */
static void fill_record(uint8_t *payload, uint32_t length, struct hr_iov_place *place, bool streaming)
{
	for (uint32_t done = 0; done < length;) {
		uint8_t *from;
		size_t count = hr_iov_piece(place, &from);
		if (count > length - done)
			count = length - done;
		if (streaming)
			shm_copy_streaming(payload + done, from, count);
		else
			shm_copy(payload + done, from, count);
		hr_iov_advance(place, count);
		done += (uint32_t)count;
	}
	if (streaming)
		shm_copy_done();
}

/* Returns the number of lines that the next record may take. Loads the tail again if a record of `wanted` bytes does
 * not fit. If there are none, sets wants_room. -EPROTO: the tail is invalid. */
static int find_room(struct shm_conn *conn, uint32_t wanted)
{
	struct shm_sender *out = &conn->out;
	shm_sender_hear(out, &conn->in);
	if (shm_sender_free(out) < shm_record_lines(shm_payload_offset(0, wanted), wanted) + SHM_SPARE && !shm_sender_refresh(out)) {
		hr_log(HR_LOG_ERROR, "shm: peer %s: protocol violation: it returned more ring space than it had", conn->env->peer);
		return -EPROTO;
	}
	uint32_t lines = shm_sender_usable(out);
	conn->wants_room = lines == 0;
	return (int)lines;
}

/* Puts one record of at most `wanted` bytes of the `left` bytes of the put, the first `front` of them before the first full line.
 * Returns its payload bytes, 0 if there is no room, or -EPROTO. */
static int put_record(struct shm_conn *conn, struct hr_iov_place *place, uint32_t front, uint32_t wanted, size_t left)
{
	struct shm_sender *out = &conn->out;
	int lines = find_room(conn, wanted);
	if (lines <= 0)
		return lines;
	uint32_t length = shm_payload_of((uint32_t)lines);
	if (length >= wanted)
		length = wanted;
	else if (length > front + SHM_LINE) /* the next record continues at a line of the sender's memory */
		length -= (length - front) % SHM_LINE;
	uint8_t *record = (uint8_t *)shm_sender_word(out, out->head);
	uint32_t offset = shm_payload_offset(front < length ? front : 0, length);
	fill_record(record + offset, length, place, streams_record(conn, length, shm_record_lines(offset, length)));
	shm_sender_publish(out, &conn->in, offset, length, length == left ? SHM_BACK : 0);
	return (int)length;
}

/* Offers a piece for single copy. Returns 1, 0 if there is no room for the offer's record, or -EPROTO. */
static int put_offer(struct shm_conn *conn, const uint8_t *piece, size_t length)
{
	struct shm_sender *out = &conn->out;
	int lines = find_room(conn, sizeof(struct shm_offer));
	if (lines <= 0)
		return lines;
	struct shm_offer offer = shm_pusher_offer(&conn->pusher, piece, length, conn->sent);
	memcpy((uint8_t *)shm_sender_word(out, out->head) + 8, &offer, sizeof offer);
	shm_sender_publish(out, &conn->in, 8, sizeof offer, SHM_OFFER);
	return 1;
}

static int damaged(struct shm_conn *conn, const char *what)
{
	hr_log(HR_LOG_ERROR, "shm: damaged %s from peer %s", what, conn->env->peer);
	return -EPROTO;
}

/* Puts the record that says that the sender has gone back. Returns 1, 0 if there is no room, or -EPROTO. */
static int put_restart(struct shm_conn *conn)
{
	struct shm_sender *out = &conn->out;
	int lines = find_room(conn, sizeof(uint64_t));
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

/* Handles the receiver's answers to open offers. 0, or -EPROTO. */
static int collect_answers(struct shm_conn *conn)
{
	struct shm_answer answer;
	int answered = shm_pusher_answered(&conn->pusher, &answer);
	if (answered < 0)
		return damaged(conn, "an answer");
	if (!answered)
		return 0;
	conn->env->stats->zero_copy_puts += answer.offers;
	conn->env->stats->zero_copy_bytes += answer.bytes;
	conn->vain_puts = 0;
	if (answer.early)
		go_back(conn, answer.upto, answer.rest);
	return 0;
}

/* Makes progress with the open offers. 0, or -EPROTO. */
static int drive_offers(struct shm_conn *conn)
{
	struct shm_pusher *pusher = &conn->pusher;
	if (!shm_pusher_work(pusher))
		return damaged(conn, "a grant");
	int error = collect_answers(conn);
	if (error || !shm_pusher_open(pusher) || ++conn->vain_puts < PATIENT_PUTS)
		return error;
	/* The peer may be waiting in the same way for a get of this side: then take the offers back. */
	conn->vain_puts = 0;
	uint64_t start = shm_pusher_start(pusher);
	if ((conn->in.length || shm_receiver_look(&conn->in)) && shm_pusher_take_back(pusher))
		go_back(conn, start, conn->sent - start);
	return 0;
}

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
static size_t offered_from(const struct shm_conn *conn)
{
	size_t least = conn->context->zero_copy, near = conn->context->near;
	if (least == SIZE_MAX || !shm_pusher_ready(&conn->pusher))
		return SIZE_MAX;
	/* The tail is measured earlier: the receiver measures with offers, of which there are few while pieces are short. */
	if (is_near(conn) || conn->tail_nearness.near)
		return near > least ? near : least;
	return conn->was_answered && !conn->streams ? least : 2 * least;
}

/* Returns about how many bytes of a long piece the next record takes. If the receiver waits for them, a quarter of what is left, so
 * that the receiver copies this record out while the next is copied in. In a stream earlier records do that. */
static size_t record_part(const struct shm_conn *conn, size_t left)
{
	if (conn->ring_in_use)
		return RECORD_MOST;
	size_t least = is_near(conn) ? RECORD_LEAST_NEAR : RECORD_LEAST, part = left / 4 & ~(least - 1);
	return part < least ? least : part > RECORD_MOST ? RECORD_MOST : part;
}

/* Returns the payload bytes for the next record: at most the bytes before the first piece to be offered. A long piece begins a
 * record and ends one, but *front bytes of short pieces may lie before it, such as the header of a message: so the long piece
 * begins at a line. */
static uint32_t record_wanted(const struct shm_conn *conn, struct hr_iov_place place, size_t offered, size_t left, uint32_t *front)
{
	size_t part = record_part(conn, left), wanted = 0, piece;
	uint8_t *from;
	*front = 0;
	if (conn->by_ring)
		return (uint32_t)(conn->by_ring < part ? conn->by_ring : part);
	while (wanted < part && (piece = hr_iov_piece(&place, &from)) > 0 && piece < offered) {
		if (piece >= LONG_PIECE) {
			if (wanted > SHM_FRONT_MAX)
				break;
			*front = (uint32_t)wanted;
			return (uint32_t)(wanted + (piece < part + RECORD_REST ? piece : part));
		}
		wanted += piece;
		hr_iov_advance(&place, piece);
	}
	return (uint32_t)(wanted < part ? wanted : part);
}

/* Returns whether to offer the piece. */
static bool offers(struct shm_conn *conn, size_t piece, size_t offered)
{
	if (conn->by_ring || piece < HR_ZERO_COPY_MIN || offered == SIZE_MAX)
		return false;
	return piece >= offered || probes(conn);
}

/* Returns whether to put these bytes into the ring behind an open offer. */
static bool fits_behind(const struct shm_conn *conn, uint32_t wanted)
{
	size_t most = (size_t)(conn->out.mask + 1) * SHM_LINE / BEHIND_PART;
	uint64_t behind = conn->sent - shm_pusher_start(&conn->pusher) - shm_pusher_bytes(&conn->pusher);
	return wanted > 0 && !conn->by_ring && behind + wanted <= most;
}

/* Puts the next offer or record. Returns the bytes sent, 0 if none can be sent for now, or -EPROTO. */
static ssize_t send_next(struct shm_conn *conn, struct hr_iov_place *place, size_t left)
{
	uint8_t *from;
	size_t piece = hr_iov_piece(place, &from), offered = offered_from(conn);
	bool open = shm_pusher_open(&conn->pusher);
	int put;
	if (offers(conn, piece, offered)) {
		put = put_offer(conn, from, piece);
		if (put <= 0)
			return put;
		hr_iov_advance(place, piece);
		return (ssize_t)piece;
	}
	/* Behind an open offer only short pieces: a longer one is not divided, and waits. */
	uint32_t front, wanted = record_wanted(conn, *place, open ? SHORT_BEHIND : offered, left, &front);
	if (open && !fits_behind(conn, wanted))
		return 0;
	put = put_record(conn, place, front, wanted < left ? wanted : (uint32_t)left, left);
	if (put <= 0)
		return put;
	conn->by_ring -= conn->by_ring ? (uint32_t)put : 0;
	return put;
}

/* Sends the bytes of the vector that were not sent yet, as far as possible. place: its start; moved on. 0, or -EPROTO. */
static int send_more(struct shm_conn *conn, struct hr_iov_place *place, size_t total)
{
	uint64_t end = conn->accepted + total;
	uint32_t head = conn->out.head;
	ssize_t count = 1;
	conn->wants_room = false;
	if (conn->sent >= end)
		return 0;
	shm_sender_hear(&conn->out, &conn->in);
	conn->ring_in_use = conn->out.tail != conn->out.head;
	hr_iov_advance(place, (size_t)(conn->sent - conn->accepted));
	if (conn->restart)
		count = put_restart(conn);
	while (count > 0 && conn->sent < end) {
		count = send_next(conn, place, (size_t)(end - conn->sent));
		conn->sent += count > 0 ? (size_t)count : 0;
	}
	if (conn->out.head != head) {
		wake_if_armed(conn, &conn->out.control->get_armed);
		present_if_streaming(conn);
	}
	return count < 0 ? (int)count : 0;
}

/* Returns how many bytes put may accept: those before the first open offer. */
static uint64_t acceptable(const struct shm_conn *conn)
{
	return (shm_pusher_open(&conn->pusher) ? shm_pusher_start(&conn->pusher) : conn->sent) - conn->accepted;
}

/* Accepts `count` bytes, at most total. */
static size_t accept_bytes(struct shm_conn *conn, uint64_t count, size_t total)
{
	count = count < total ? count : total;
	conn->accepted += count;
	return (size_t)count;
}

/* Puts as many bytes as are accepted now. Sets *accepted also if it fails. */
static int put_all(struct shm_conn *conn, struct hr_iov_place *place, size_t total, size_t *accepted)
{
	int error = shm_pusher_open(&conn->pusher) ? drive_offers(conn) : 0;
	uint32_t head = conn->out.head;
	if (!error)
		error = send_more(conn, place, total);
	if (!error && shm_pusher_open(&conn->pusher) && conn->out.head != head)
		error = drive_offers(conn);
	uint64_t more = acceptable(conn);
	*accepted = accept_bytes(conn, more, total);
	if (more > total && !error) {
		hr_log(HR_LOG_ERROR, "shm: hr_channel_put to %s: the call must begin with the bytes that were not accepted: %llu more of "
		       "these have been transferred", conn->env->peer, (unsigned long long)(more - total));
		return -EINVAL;
	}
	return error;
}

/* Returns whether bytes were sent that put has not accepted, or must be sent again. */
static inline bool is_ahead(const struct shm_conn *conn)
{
	return conn->sent != conn->accepted || conn->restart;
}

/* Fast path for a small message: one element that fits in one line. False: not this case, or no free line. */
static inline bool put_line(struct shm_conn *conn, const struct iovec *iov)
{
	struct shm_sender *out = &conn->out;
	size_t n = iov->iov_len;
	shm_sender_hear(out, &conn->in);
	if (n - 1 >= SHM_INLINE_MAX || shm_sender_free(out) < 1 + SHM_SPARE || is_ahead(conn))
		return false;
	shm_copy((uint8_t *)shm_sender_word(out, out->head) + 8, iov->iov_base, n);
	shm_sender_publish(out, &conn->in, 8, (uint32_t)n, SHM_BACK);
	conn->put_was_short = false;
	conn->was_answered = false;
	wake_if_armed(conn, &out->control->get_armed);
	return true;
}

/* A put after the peer has ended. The peer may have answered offers before it ended: the bytes that it copied are accepted
 * first, then put fails. */
static int put_after_end(struct shm_conn *conn, const struct iovec *iov, int n, size_t *accepted)
{
	if (shm_pusher_open(&conn->pusher) && collect_answers(conn))
		return conn->ended;
	uint64_t more = acceptable(conn);
	if (!more)
		return conn->ended;
	size_t total = hr_iov_total(iov, n);
	*accepted = accept_bytes(conn, more, total);
	conn->put_was_short = *accepted < total;
	return 0;
}

/* Returns how many messages the first `accepted` bytes of the vector complete: elements that do not fit in one line. */
static unsigned long_pieces(const struct iovec *iov, int n, size_t accepted)
{
	unsigned count = 0;
	for (int i = 0; i < n && iov[i].iov_len <= accepted; i++) {
		accepted -= iov[i].iov_len;
		count += iov[i].iov_len > SHM_INLINE_MAX;
	}
	return count;
}

static int shm_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct shm_conn *conn = data;
	if (__builtin_expect(conn->put_error, 0))
		return conn->put_error;
	if (__builtin_expect(conn->ended, 0))
		return put_after_end(conn, iov, n, accepted);
	if (n == 1 && put_line(conn, iov)) {
		*accepted = iov->iov_len;
		return 0;
	}
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n);
	if (conn->was_answered && conn->long_puts) {
		conn->streams = conn->long_puts > 1;
		conn->long_puts = 0;
	}
	int error = put_all(conn, &place, total, accepted);
	if (error) {
		conn->put_error = error;
		return error;
	}
	if (*accepted)
		conn->was_answered = false;
	else
		ask_stream_sometimes(conn);
	conn->put_was_short = *accepted < total;
	conn->long_puts += long_pieces(iov, n, *accepted);
	return 0;
}

/* ---- get ---- */

static void report_tail(struct shm_conn *conn)
{
	shm_receiver_report(&conn->in);
	conn->env->stats->tail_updates++;
	wake_if_armed(conn, &conn->in.control->put_armed);
	if (!conn->in_present && (conn->in.next.high & conn->in.mask) >= STREAM_LINES)
		make_present(conn, &conn->in_present, conn->in.lines, conn->in.mask);
}

/* Takes up the offer in the current record. 0, or -EPROTO. */
static int begin_offer(struct shm_conn *conn)
{
	struct shm_receiver *in = &conn->in;
	struct shm_offer offer;
	memcpy(&offer, shm_receiver_payload(in), sizeof offer);
	if (in->length != sizeof offer)
		return damaged(conn, "an offer");
	/* If other offers were open, this side may have used the line since the sender stored in it. */
	bool measured = offer.alone && shm_near_is_due(&conn->nearness, hr_now_coarse_ns());
	uint64_t begin = measured ? hr_now_ns() : 0;
	if (offer.alone > 1 || !shm_puller_begin(&conn->puller, &offer))
		return damaged(conn, "an offer");
	/* Relaxed: the flag only decides which way is quicker. */
	if (measured && shm_near_sample(&conn->nearness, hr_now_ns() - begin < SHM_NEAR_NS))
		__atomic_store_n(&in->control->near, conn->nearness.near, __ATOMIC_RELAXED);
	if (shm_receiver_take(in, sizeof offer))
		report_tail(conn);
	return 0;
}

static int does_not_go_on(const struct shm_conn *conn)
{
	hr_log(HR_LOG_ERROR, "shm: hr_channel_get from %s: the call must begin with the memory of the earlier call: a transfer into that "
	       "memory is under way", conn->env->peer);
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
		return damaged(conn, "the state of a grant");
	if (!conn->puller.open)
		wake_if_armed(conn, &conn->in.control->put_armed);
	return count;
}

/* Takes a record that is not to be delivered: the sender sends its bytes again. 0, or -EPROTO. */
static int drop_record(struct shm_conn *conn)
{
	struct shm_receiver *in = &conn->in;
	if (in->kind == SHM_RESTART && !conn->puller.drops)
		return damaged(conn, "a restart");
	if (in->kind == SHM_RESTART)
		conn->puller.drops = false;
	if (shm_receiver_take(in, in->length - in->taken))
		report_tail(conn);
	return 0;
}

/* Copies bytes of a record. If they come from memory, memcpy is a little faster. */
static void shm_drain(void *data, void *to, const void *from, size_t len)
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
		report_tail(conn);
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
			return early ? 0 : damaged(conn, "the ring");
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
		report_tail(conn);
	return true;
}

static int shm_get(void *data, const struct iovec *iov, int n, size_t *delivered)
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
	ask_stream_sometimes(conn);
	if (!conn->ended)
		return conn->put_error;
	/* Everything that the peer stored before it ended is visible now. Some of it may have arrived after the first
	 * deliver. */
	error = deliver(conn, &place, delivered);
	return error || *delivered ? error : conn->ended;
}

/* ---- records in place (upper.h) ---- */

/* Returns whether put fails, or bytes that put has not accepted must go before a record in place. */
static inline bool is_put_only(const struct shm_conn *conn)
{
	/* Without branches, as this is tested for each short message. */
	uint64_t errors = (unsigned)conn->put_error | (unsigned)conn->ended;
	return errors | (conn->sent ^ conn->accepted) | conn->by_ring | conn->restart;
}

/* Returns the memory for the `len` bytes of payload of the next record, and its offset in the record. NULL: the ring has no room,
 * or no record may be put now. */
static inline __attribute__((always_inline)) uint8_t *place_record(struct shm_conn *conn, size_t front, size_t len, uint32_t *offset)
{
	struct shm_sender *out = &conn->out;
	if (is_put_only(conn))
		return NULL;
	shm_sender_hear(out, &conn->in);
	*offset = shm_payload_offset((uint32_t)front, (uint32_t)len);
	uint32_t lines = shm_record_lines(*offset, (uint32_t)len);
	if (shm_sender_free(out) < lines + SHM_SPARE && !shm_sender_refresh(out))
		return NULL;
	if (shm_sender_usable(out) < lines)
		return NULL;
	return (uint8_t *)shm_sender_word(out, out->head) + *offset;
}

static inline void note_reserved(struct shm_conn *conn, uint32_t offset, uint32_t len)
{
	conn->reserved = offset;
	conn->reserved_bytes = len;
	conn->fill_way = FILL_NOT_CHOSEN;
}

static void *shm_reserve(void *data, size_t front, size_t len)
{
	struct shm_conn *conn = data;
	uint32_t offset;
	uint8_t *at = place_record(conn, front, len, &offset);
	if (at)
		note_reserved(conn, offset, (uint32_t)len);
	return at;
}

static void shm_fill(void *data, void *to, const void *from, size_t len)
{
	struct shm_conn *conn = data;
	/* The record decides, not the piece. */
	if (conn->fill_way == FILL_NOT_CHOSEN) {
		uint32_t bytes = conn->reserved_bytes;
		bool streaming = streams_record(conn, bytes, shm_record_lines(conn->reserved, bytes));
		conn->fill_way = streaming ? FILL_STREAMING : FILL_ORDINARY;
	}
	if (conn->fill_way == FILL_ORDINARY) {
		shm_copy(to, from, len);
		return;
	}
	shm_copy_streaming(to, from, len);
	shm_copy_done();
}

/* Publishes a record whose payload is in place. */
static inline __attribute__((always_inline)) void commit(struct shm_conn *conn, uint32_t offset, uint32_t len, uint32_t lines)
{
	shm_sender_publish_lines(&conn->out, &conn->in, offset, len, lines, SHM_BACK);
	conn->put_was_short = false;
	conn->was_answered = false;
	wake_if_armed(conn, &conn->out.control->get_armed);
	present_if_streaming(conn);
}

static void shm_commit(void *data, size_t len)
{
	struct shm_conn *conn = data;
	commit(conn, conn->reserved, (uint32_t)len, shm_record_lines(conn->reserved, (uint32_t)len));
}

/* Does what shm_post does, for a record of one line: the compiler then knows the number of lines and the offset. */
static inline __attribute__((always_inline)) bool
post_line(struct shm_conn *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	struct shm_sender *out = &conn->out;
	if (__builtin_expect(is_put_only(conn), 0))
		return false;
	shm_sender_hear(out, &conn->in);
	/* A record of one line always fits before the end of the ring. */
	if (shm_sender_free(out) < 1 + SHM_SPARE && (!shm_sender_refresh(out) || shm_sender_free(out) < 1 + SHM_SPARE))
		return false;
	uint8_t *at = (uint8_t *)shm_sender_word(out, out->head) + 8;
	hr_copy(at, front, front_len);
	hr_copy(at + front_len, payload, len);
	commit(conn, 8, (uint32_t)(front_len + len), 1);
	return true;
}

/* The same of a record of several lines. */
static __attribute__((noinline)) bool
post_lines(struct shm_conn *conn, const void *front, size_t front_len, const void *payload, size_t len)
{
	uint32_t offset, bytes = (uint32_t)(front_len + len);
	uint8_t *at = place_record(conn, front_len < SHM_FRONT_MAX ? front_len : SHM_FRONT_MAX, bytes, &offset);
	if (!at)
		return false;
	/* The first line last: the receiver looks at it all the time, and could take it before the header word is stored. */
	size_t before = offset + front_len, first = before < SHM_LINE ? SHM_LINE - before : 0;
	const uint8_t *from = payload;
	if (len > first) {
		if (__builtin_expect(len - first < HR_FILL_MIN, 1)) {
			hr_copy(at + front_len + first, from + first, len - first);
		} else {
			note_reserved(conn, offset, bytes);
			shm_fill(conn, at + front_len + first, from + first, len - first);
		}
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		len = first;
	}
	hr_copy(at, front, front_len);
	hr_copy(at + front_len, from, len);
	commit(conn, offset, bytes, shm_record_lines(offset, bytes));
	return true;
}

/* Does the work of shm_reserve and shm_commit in one call; most short messages are put in this way. It makes as few stores as
 * possible: a store into a line that was last in the receiver's cache waits, and the processor's queue of stores limits how many
 * such stores wait at the same time. */
static bool shm_post(void *data, const void *front, size_t front_len, const void *payload, size_t len)
{
	return front_len + len <= SHM_INLINE_MAX ? post_line(data, front, front_len, payload, len) :
						   post_lines(data, front, front_len, payload, len);
}

/* All lines at once: the caller reads the first ones before it knows where to copy the others. */
static inline void prefetch_record(const uint8_t *bytes, size_t len)
{
	for (size_t i = SHM_LINE - 1; i < len && i < PREFETCH_BYTES; i += SHM_LINE)
		__builtin_prefetch(bytes + i);
}

static enum hr_arrival shm_peek(void *data, const uint8_t **bytes, size_t *len)
{
	struct shm_conn *conn = data;
	struct shm_receiver *in = &conn->in;
	if (conn->broken || conn->puller.open || conn->puller.drops)
		return HR_CALL_GET;
	conn->vain_puts = 0;
	int there = shm_receiver_look(in);
	if (there == 0) {
		ask_stream_sometimes(conn);
		return conn->ended || conn->put_error ? HR_CALL_GET : HR_NOT_ARRIVED;
	}
	if (there < 0 || in->kind)
		return HR_CALL_GET;
	*bytes = shm_receiver_payload(in);
	*len = in->length - in->taken;
	prefetch_record(*bytes, *len);
	return HR_ARRIVED;
}

/* Returns the lines of the ring behind that of the next record. */
static inline uint32_t lines_to_end(const struct shm_receiver *in)
{
	return in->mask - (in->next.high & in->mask);
}

/* Counts `count` bytes of the current record as consumed. */
static inline void consume(struct shm_conn *conn, uint32_t count)
{
	struct shm_receiver *in = &conn->in;
	/* If records stream, the sender may be writing the lines behind this record. */
	uint32_t further = conn->was_answered || in->record_lines > FURTHER_MOST ? 0 : in->record_lines - 1;
	conn->was_answered = true;
	if (shm_receiver_take(in, count))
		report_tail(conn);
	in->next.further = further && further > lines_to_end(in) ? lines_to_end(in) : further;
}

static void shm_consume(void *data, size_t count)
{
	consume(data, (uint32_t)count);
}

static int shm_take(void *data, hr_record_fn fn, void *context, unsigned most, uint64_t *taken)
{
	struct shm_conn *conn = data;
	struct shm_receiver *in = &conn->in;
	if ((in->length && in->taken) || conn->broken || conn->puller.open || conn->puller.drops)
		return 0;
	unsigned count = 0;
	while (count < most && shm_receiver_look(in) > 0 && !in->kind) {
		conn->vain_puts = 0;
		uint32_t length = in->length;
		const uint8_t *bytes = shm_receiver_payload(in);
		prefetch_record(bytes, length);
		int result = fn(context, bytes, length);
		if (result < 0)
			return result;
		if (!result)
			break;
		consume(conn, length);
		*taken += length;
		count++;
	}
	return (int)count;
}

/* The word of a record that is taken only in part stays. While an offer is open, the caller has a payload to get. */
static struct hr_awaited *shm_watch(void *data)
{
	struct shm_conn *conn = data;
	return &conn->in.next;
}

/* ---- sleeping ---- */

static int shm_conn_arm(void *data, bool want_put)
{
	struct shm_conn *conn = data;
	/* Relaxed: the channel's heavy barrier comes between these stores and conn_pending. A plain store is enough:
	 * if the peer clears a flag, it sends a wake-up, and a flag that is set again causes a second wake-up. */
	__atomic_store_n(&conn->in.control->get_armed, 1, __ATOMIC_RELAXED);
	if (want_put && conn->put_was_short)
		__atomic_store_n(&conn->out.control->put_armed, 1, __ATOMIC_RELAXED);
	return 0;
}

static bool shm_conn_pending(void *data, bool want_put)
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

static void shm_conn_event(void *data)
{
	ask_stream(data);
}

const struct hr_transport hr_transport_shm = {
	.name = "shm",
	.bit = HR_TRANSPORT_SHM,
	.needs_unix = true,
	.arms_in_memory = true,
	.open = shm_open_channel,
	.close = shm_close_channel,
	.reaches = shm_reaches,
	.conn_open = shm_conn_open,
	.conn_establish = shm_conn_establish,
	.conn_shutdown = shm_conn_shutdown,
	.conn_stop = shm_conn_stop,
	.conn_close = shm_conn_close,
	.put = shm_put,
	.get = shm_get,
	.reserve = shm_reserve,
	.fill = shm_fill,
	.drain = shm_drain,
	.commit = shm_commit,
	.post = shm_post,
	.peek = shm_peek,
	.consume = shm_consume,
	.take = shm_take,
	.watch = shm_watch,
	.conn_arm = shm_conn_arm,
	.conn_pending = shm_conn_pending,
	.conn_event = shm_conn_event,
	.conn_bytes = shm_conn_bytes,
};
