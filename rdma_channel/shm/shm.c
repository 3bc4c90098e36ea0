/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm: two processes of one host, a ring (ring.h) in memory for each direction. The receiver makes its ring as a memfd
 * and passes it over the Unix stream: it has no name, so nothing can be left behind. The stream stays for wake-ups and
 * for the peer's end, which the data path asks about only now and then.
 */
#include "config.h"

#include "rdma_channel/barrier.h"
#include "rdma_channel/clock.h"
#include "rdma_channel/shm/ring.h"
#include "rdma_channel/stream.h"
#include "rdma_channel/transport.h"

#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 30)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* A put or get without success asks the stream for the peer's end, if so many came before it and a tick has passed. */
#define IDLE_CALLS 64

enum { SHM_HALF_HEAVY = 1u << 0 }; /* of flags: this side sleeps with the heavy barrier, and honours the peer's */

/* A side's half: written by it, read by its peer, which sends into the ring. Little-endian; with it, the ring. */
struct shm_half_wire {
	uint32_t ring_bytes; /* a power of two */
	uint32_t flags;
};
_Static_assert(sizeof(struct shm_half_wire) == 8, "wire format");

struct shm_context {
	bool heavy; /* this process is registered for the heavy barrier */
};

struct shm_conn {
	struct shm_sender out;
	struct shm_receiver in;
	bool both_heavy;
	bool put_was_short;
	bool said_goodbye;
	int ended; /* how the stream ended; 0: the peer lives */
	int stream;
	unsigned idle_calls;
	uint64_t asked_at; /* when the stream was last asked, coarse ns */
	const struct shm_context *context;
	const struct hr_conn_env *env;
	void *out_map, *in_map;
	size_t out_size, in_size;
};

/* ---- per channel ---- */

static int make_memory(size_t size)
{
	int fd = memfd_create("headrace-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	/* Sealed, so that a peer which shrinks it cannot make our next access a bus error. */
	if (ftruncate(fd, (off_t)size) == 0 && fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) == 0)
		return fd;
	int error = -errno;
	close(fd);
	return error;
}

static int shm_open_channel(const struct hr_channel_env *env, void **out, uint8_t *section, size_t *section_len)
{
	(void)env;
	(void)section;
	int fd = make_memory(RING_MIN_BYTES);
	if (fd < 0) {
		hr_log(HR_LOG_INFO, "shm: memfd_create: %s", strerror(-fd));
		return -ENODEV;
	}
	close(fd);
	struct shm_context *context = malloc(sizeof *context);
	if (!context)
		return -ENOMEM;
	context->heavy = hr_barrier_register();
	*section_len = 0;
	*out = context;
	return 0;
}

static void shm_close_channel(void *context)
{
	free(context);
}

static bool shm_reaches(void *context, const uint8_t *section, size_t section_len, bool same_host)
{
	(void)context;
	(void)section;
	(void)section_len;
	return same_host;
}

/* ---- setting up ---- */

static void *map_memory(int fd, size_t size)
{
	void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

static uint32_t round_to_power(uint32_t bytes)
{
	uint32_t power = RING_MIN_BYTES;
	while (power < bytes && power < RING_MAX_BYTES)
		power *= 2;
	return power;
}

static size_t shm_conn_bytes(void *context, uint32_t ring_bytes)
{
	(void)context;
	size_t ring = SHM_CONTROL_BYTES + (size_t)round_to_power(ring_bytes);
	return sizeof(struct shm_conn) + 2 * ring; /* the peer's too, which has the same size unless it was set otherwise */
}

static int make_own_ring(struct shm_conn *conn, uint32_t bytes, int *out)
{
	size_t size = SHM_CONTROL_BYTES + (size_t)bytes;
	int fd = make_memory(size);
	if (fd < 0) {
		hr_log(HR_LOG_ERROR, "shm: cannot make a ring of %u bytes: %s", bytes, strerror(-fd));
		return fd;
	}
	conn->in_map = map_memory(fd, size);
	if (!conn->in_map) {
		int error = -errno;
		hr_log(HR_LOG_ERROR, "shm: mmap of %zu bytes: %s", size, strerror(errno));
		close(fd);
		return error;
	}
	conn->in_size = size;
	conn->in.control = conn->in_map;
	conn->in.lines = (uint8_t *)conn->in_map + SHM_CONTROL_BYTES;
	conn->in.mask = bytes / SHM_LINE - 1;
	conn->in.at = conn->in.reported = conn->in.control->tail = SHM_FIRST_POSITION;
	*out = fd;
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
	uint32_t bytes = round_to_power(env->ring_bytes);
	int error = make_own_ring(conn, bytes, &own->fds[0]);
	if (error) {
		free(conn);
		return error;
	}
	struct shm_half_wire wire = { htole32(bytes), htole32(conn->context->heavy ? SHM_HALF_HEAVY : 0) };
	memcpy(own->blob, &wire, sizeof wire);
	own->len = sizeof wire;
	own->n_fds = 1;
	*out = conn;
	return 0;
}

/* What makes the descriptor unfit to be the ring that the half describes; NULL: nothing. */
static const char *fault_of_memory(int fd, size_t size)
{
	struct stat status;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size != (off_t)size)
		return "its ring has not the size it says";
	if ((fcntl(fd, F_GET_SEALS) & SEALS) != SEALS)
		return "its ring could be taken away under our feet";
	return NULL;
}

static int join_ring(struct shm_conn *conn, uint32_t bytes, int fd)
{
	size_t size = SHM_CONTROL_BYTES + (size_t)bytes;
	const char *fault = NULL;
	if (bytes < RING_MIN_BYTES || bytes > RING_MAX_BYTES || (bytes & (bytes - 1)))
		fault = "its ring has an impossible size";
	else
		fault = fault_of_memory(fd, size);
	if (fault) {
		hr_log(HR_LOG_ERROR, "shm: %s: %s", conn->env->peer, fault);
		return -EPROTO;
	}
	conn->out_map = map_memory(fd, size);
	if (!conn->out_map) {
		hr_log(HR_LOG_ERROR, "shm: mmap of the ring of %s: %s", conn->env->peer, strerror(errno));
		return -errno;
	}
	conn->out_size = size;
	conn->out.control = conn->out_map;
	conn->out.lines = (uint8_t *)conn->out_map + SHM_CONTROL_BYTES;
	conn->out.mask = bytes / SHM_LINE - 1;
	conn->out.head = conn->out.tail = SHM_FIRST_POSITION;
	return 0;
}

static int shm_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct shm_conn *conn = data;
	struct shm_half_wire wire;
	int error = -EPROTO;
	if (peer->len == sizeof wire && peer->n_fds == 1) {
		memcpy(&wire, peer->blob, sizeof wire);
		error = join_ring(conn, le32toh(wire.ring_bytes), peer->fds[0]);
	} else {
		hr_log(HR_LOG_ERROR, "shm: %s describes its half in an unknown way", conn->env->peer);
	}
	for (int i = 0; i < peer->n_fds; i++)
		close(peer->fds[i]);
	if (error)
		return error;
	conn->env->stats->memory_bytes = sizeof *conn + conn->in_size + conn->out_size;
	conn->both_heavy = conn->context->heavy && (le32toh(wire.flags) & SHM_HALF_HEAVY);
	conn->stream = stream;
	return 0;
}

static int shm_conn_shutdown(void *data)
{
	struct shm_conn *conn = data;
	/* What put accepted lies in memory that the peer has mapped: nothing here is needed to deliver it. */
	if (!conn->said_goodbye)
		hr_stream_goodbye(conn->stream);
	conn->said_goodbye = true;
	return 1;
}

static void shm_conn_close(void *data)
{
	struct shm_conn *conn = data;
	if (conn->in_map)
		munmap(conn->in_map, conn->in_size);
	if (conn->out_map)
		munmap(conn->out_map, conn->out_size);
	free(conn);
}

/* ---- the peer's end ---- */

static void ask_stream(struct shm_conn *conn)
{
	if (!conn->ended)
		conn->ended = hr_stream_check(conn->stream);
}

/* Called when a put or a get had no success: a peer that puts and gets is alive. */
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

/* Wakes the peer if it armed this flag. The caller has just published what the peer sleeps for. */
static inline void wake_if_armed(struct shm_conn *conn, uint32_t *armed)
{
	/* Orders the publishing store before the load of the flag; pairs with the heavy barrier between the peer's
	 * store of the flag and its last look. */
	hr_barrier_light(conn->both_heavy);
	if (__builtin_expect(!__atomic_load_n(armed, __ATOMIC_RELAXED), 1))
		return;
	/* Relaxed: which of two wake-ups clears it does not matter, and it publishes nothing. */
	if (__atomic_exchange_n(armed, 0, __ATOMIC_RELAXED)) {
		hr_stream_wake(conn->stream);
		conn->env->stats->wakeups_sent++;
	}
}

/* ---- put ---- */

/* Copies length bytes from the place into the record being built. */
static void fill_record(uint8_t *payload, uint32_t length, struct hr_iov_place *place)
{
	bool streaming = length >= SHM_STREAM_MIN;
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

/* The payload bytes that the next record may have: up to the end of the ring, up to the last free line but one. */
static uint32_t record_room(const struct shm_sender *out)
{
	uint32_t to_end = out->mask + 1 - (out->head & out->mask);
	uint32_t usable = shm_sender_free(out) - 1;
	if (!usable)
		return 0;
	return shm_payload_of(usable < to_end ? usable : to_end);
}

/* Puts one record of at most left bytes; returns its payload bytes, 0 without room, or -EPROTO. */
static int put_record(struct shm_conn *conn, struct hr_iov_place *place, size_t left)
{
	struct shm_sender *out = &conn->out;
	uint32_t wanted = left < SHM_RECORD_MAX ? (uint32_t)left : SHM_RECORD_MAX;
	if (shm_sender_free(out) < shm_record_lines(wanted) + 1 && !shm_sender_refresh(out)) {
		hr_log(HR_LOG_ERROR, "shm: %s gave back room that it did not have", conn->env->peer);
		return -EPROTO;
	}
	uint32_t length = record_room(out);
	if (length > wanted)
		length = wanted;
	if (!length)
		return 0;
	uint8_t *record = (uint8_t *)shm_sender_word(out, out->head);
	fill_record(record + shm_payload_offset(length), length, place);
	shm_sender_publish(out, length);
	return (int)length;
}

/* The everyday small message: one piece that goes into one line, and a line is free. False: it is not that. */
static inline bool put_line(struct shm_conn *conn, const struct iovec *iov)
{
	struct shm_sender *out = &conn->out;
	size_t n = iov->iov_len;
	if (n - 1 >= SHM_INLINE_MAX || shm_sender_free(out) < 2)
		return false;
	shm_copy((uint8_t *)shm_sender_word(out, out->head) + 8, iov->iov_base, n);
	shm_sender_publish(out, (uint32_t)n);
	conn->put_was_short = false;
	wake_if_armed(conn, &out->control->get_armed);
	return true;
}

static int shm_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct shm_conn *conn = data;
	if (conn->ended)
		return conn->ended;
	if (n == 1 && put_line(conn, iov)) {
		*accepted = iov->iov_len;
		return 0;
	}
	struct hr_iov_place place = hr_iov_begin(iov, n);
	size_t total = hr_iov_total(iov, n), done = 0;
	while (done < total) {
		int length = put_record(conn, &place, total - done);
		if (length < 0) {
			conn->ended = length;
			return length;
		}
		if (length == 0)
			break;
		done += (size_t)length;
	}
	if (done)
		wake_if_armed(conn, &conn->out.control->get_armed);
	else
		ask_stream_sometimes(conn);
	conn->put_was_short = done < total;
	*accepted = done;
	return 0;
}

/* ---- get ---- */

static void report_tail(struct shm_conn *conn)
{
	shm_receiver_report(&conn->in);
	conn->env->stats->tail_updates++;
	wake_if_armed(conn, &conn->in.control->put_armed);
}

/* Delivers what the ring has, as far as it fits; -EPROTO if that is no record and nothing came before it. */
static int deliver(struct shm_conn *conn, struct hr_iov_place *place, size_t *delivered)
{
	struct shm_receiver *in = &conn->in;
	size_t done = 0, room;
	uint8_t *to;
	while ((room = hr_iov_piece(place, &to)) > 0) {
		int there = shm_receiver_look(in);
		if (there == 0)
			break;
		if (there < 0 && done)
			break;
		if (there < 0) {
			hr_log(HR_LOG_ERROR, "shm: the ring from %s is damaged", conn->env->peer);
			return -EPROTO;
		}
		uint32_t count = in->length - in->taken;
		if (count > room)
			count = (uint32_t)room;
		shm_copy(to, shm_receiver_payload(in), count);
		hr_iov_advance(place, count);
		done += count;
		if (shm_receiver_take(in, count))
			report_tail(conn);
	}
	*delivered = done;
	return 0;
}

/* The everyday small message: a whole record for the whole of one piece. False: it is not that. */
static inline bool get_line(struct shm_conn *conn, const struct iovec *iov)
{
	struct shm_receiver *in = &conn->in;
	if (in->length || shm_receiver_look(in) <= 0 || in->length != iov->iov_len || in->length > SHM_INLINE_MAX)
		return false;
	shm_copy(iov->iov_base, shm_receiver_payload(in), in->length);
	if (shm_receiver_take(in, in->length))
		report_tail(conn);
	return true;
}

static int shm_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct shm_conn *conn = data;
	if (n == 1 && get_line(conn, iov)) {
		*delivered = iov->iov_len;
		return 0;
	}
	struct hr_iov_place place = hr_iov_begin(iov, n);
	int error = deliver(conn, &place, delivered);
	if (error || *delivered)
		return error;
	ask_stream_sometimes(conn);
	if (!conn->ended)
		return 0;
	/* All that the peer stored before its end is visible now, and may have come since the look above. */
	error = deliver(conn, &place, delivered);
	return error || *delivered ? error : conn->ended;
}

/* ---- sleeping ---- */

static int shm_conn_arm(void *data, bool want_put)
{
	struct shm_conn *conn = data;
	/* Relaxed: the channel's heavy barrier comes between these and conn_pending. Exchange is not needed: the peer
	 * that clears a flag sends a wake-up, and a flag set a second time means a second one. */
	__atomic_store_n(&conn->in.control->get_armed, 1, __ATOMIC_RELAXED);
	if (want_put && conn->put_was_short)
		__atomic_store_n(&conn->out.control->put_armed, 1, __ATOMIC_RELAXED);
	return 0;
}

static bool shm_conn_pending(void *data, bool want_put)
{
	struct shm_conn *conn = data;
	if (shm_receiver_look(&conn->in) != 0 || conn->ended)
		return true;
	if (!want_put || !conn->put_was_short)
		return false;
	return !shm_sender_refresh(&conn->out) || record_room(&conn->out) > 0;
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
	.conn_close = shm_conn_close,
	.put = shm_put,
	.get = shm_get,
	.conn_arm = shm_conn_arm,
	.conn_pending = shm_conn_pending,
	.conn_event = shm_conn_event,
	.conn_bytes = shm_conn_bytes,
};
