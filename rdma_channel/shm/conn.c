/* SPDX-License-Identifier: BSD-3-Clause */
/* The shm transport's connections: making the ring to receive from, joining the peer's ring, closing. */
#include "config.h"

#include "rdma_channel/shm/conn.h"

#include "rdma_channel/base/log.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_MIN_BYTES 4096u
#define RING_MAX_BYTES (1u << 30)

/* Both sides make a ring's pages present when its traffic becomes a stream (conn.h), up to PRESENT_MOST bytes: a stream in slots
 * (ring.h) would touch a new page with every few records, and an exchange of messages of 8 KB two new pages with each, until the
 * whole ring has been used. A channel does so for PRESENT_RINGS rings at a time: if it sends a few messages to each of very many
 * peers, it touches a small part of each. */
#define PRESENT_MOST (4u << 20)
#define PRESENT_RINGS 16u

/* If the caller leaves the ring's size to the channel, LONG_RINGS rings of a channel have the length of two second-level caches.
 * If two processors share only a later cache, a store to a line that the receiver's cache still has takes several times as
 * long as a store to another line. In a ring of this length, the receiver has read enough other lines before the sender
 * comes to the same line again. Only some rings, because of their memory. */
#define LONG_RINGS 16u
#define LONG_RING_MOST (4u << 20)

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

static uint32_t round_to_power(uint64_t bytes)
{
	uint32_t power = RING_MIN_BYTES;
	while (power < bytes && power < RING_MAX_BYTES)
		power *= 2;
	return power;
}

uint32_t shm_long_ring_bytes(void)
{
#ifdef _SC_LEVEL2_CACHE_SIZE
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);
	uint32_t bytes = cache > 0 ? round_to_power(2 * (uint64_t)cache) : 0;
	return bytes < LONG_RING_MOST ? bytes : LONG_RING_MOST;
#else
	return 0;
#endif
}

/* ---- opening ---- */

size_t shm_conn_bytes(void *context, uint32_t ring_bytes)
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
	int error = shm_segment_make(&conn->context->placement, bytes, may_fail ? HR_LOG_INFO : HR_LOG_ERROR, &conn->in_segment, fd,
				     huge);
	if (error)
		return error;
	conn->in.control = shm_segment_control(&conn->in_segment, bytes);
	conn->in.lines = conn->in_segment.map;
	conn->in.mask = bytes / SHM_LINE - 1;
	shm_receiver_go(&conn->in, SHM_FIRST_POSITION);
	conn->in.reported = conn->in.control->tail = SHM_FIRST_POSITION;
	return 0;
}

int shm_conn_open(void *context, const struct hr_conn_env *env, struct hr_half *own, void **out)
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

/* ---- establishing ---- */

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

int shm_conn_establish(void *data, const struct hr_half *peer, int stream)
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

/* ---- closing ---- */

/* Revokes the open offers: the caller may then reuse the memory that put was offered. Withdraws the open grant: the
 * caller may reuse the memory that get was offered once the peer has finished its current copy, or has ended. */
int shm_conn_stop(void *data)
{
	struct shm_conn *conn = data;
	shm_pusher_revoke(&conn->pusher);
	if (shm_puller_withdraw(&conn->puller))
		return 1;
	shm_ask_stream(conn);
	return conn->ended != 0;
}

int shm_conn_shutdown(void *data)
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

void shm_conn_close(void *data)
{
	struct shm_conn *conn = data;
	conn->context->rings_present -= (uint32_t)conn->out_present + conn->in_present;
	conn->context->long_rings -= conn->has_long_ring;
	shm_segment_unmap(&conn->in_segment);
	shm_segment_unmap(&conn->out_segment);
	free(conn->out.unclean);
	free(conn);
}

/* ---- pages ---- */

void shm_make_present(struct shm_conn *conn, bool *present, uint8_t *lines, uint32_t mask)
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
