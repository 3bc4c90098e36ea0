/* SPDX-License-Identifier: BSD-3-Clause */
/* A transport that wraps another transport and injects faults. */
#include "config.h"

#include "test/faults/fault_transport.h"

#include "rdma_channel/transport.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PIECES_MAX 1024

struct fault_plan fault_plan = FAULT_PLAN_NONE;

struct fault_context {
	const struct hr_transport *inner;
	void *context;
	struct fault_plan plan;
	uint64_t conns; /* opened so far: each has a course of its own */
};

/* One direction. */
struct fault_flow {
	uint64_t moved;   /* bytes */
	size_t owed;      /* of what the transport within was last offered, not moved yet */
	uint64_t delay;   /* calls that are to move nothing */
	bool held_back;   /* the last call moved less than it could have */
	uint64_t die_at, cut_at;
};

struct fault_conn {
	struct fault_context *context;
	void *conn; /* of the transport within */
	uint64_t random;
	struct fault_flow put, get;
	int stream;
	int event;           /* wakes without reason; -1 where the transport within has a descriptor of its own */
	bool may_mislead;    /* a put or get came since the last wake-up without reason */
	bool looks_pending;  /* without reason */
	bool cut;
	bool failed;         /* the transport within has reported an error: from then on this one only repeats it */
	struct iovec pieces[PIECES_MAX];
};

/* ---- the plan ---- */

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
#define FIELD(name) { #name, offsetof(struct fault_plan, name) }
	FIELD(seed), FIELD(refuse), FIELD(shorten), FIELD(spurious), FIELD(delay), FIELD(die_put_at),
	FIELD(die_get_at), FIELD(cut_put_at), FIELD(cut_get_at), FIELD(open_error), FIELD(conn_open_error),
	FIELD(establish_error), FIELD(flip_half), FIELD(descriptors),
#undef FIELD
};

static void set_field(struct fault_plan *plan, const char *name, size_t len, uint64_t value)
{
	for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
		if (strlen(fields[i].name) != len || strncmp(fields[i].name, name, len))
			continue;
		memcpy((char *)plan + fields[i].offset, &value, sizeof value);
		return;
	}
	fprintf(stderr, "HR_FAULTS: no field \"%.*s\"\n", (int)len, name);
	exit(2);
}

static struct fault_plan plan_in_force(void)
{
	struct fault_plan plan = fault_plan;
	const char *at = getenv("HR_FAULTS");
	while (at && *at) {
		size_t len = strcspn(at, "=");
		char *end;
		if (!at[len]) {
			fprintf(stderr, "HR_FAULTS: no value behind \"%s\"\n", at);
			exit(2);
		}
		set_field(&plan, at, len, strtoull(at + len + 1, &end, 10));
		at = end + (*end == ',');
	}
	return plan;
}

static uint64_t draw(struct fault_conn *conn)
{
	uint64_t z = (conn->random += 0x9e3779b97f4a7c15ull); /* splitmix64 */
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static bool happens(struct fault_conn *conn, uint64_t of_100)
{
	return of_100 && draw(conn) % 100 < of_100;
}

/* ---- per channel ---- */

static int fault_open(const struct hr_transport *inner, const struct hr_channel_env *env, void **out,
		      uint8_t section[HR_SECTION_MAX], size_t *section_len)
{
	struct fault_context *context = calloc(1, sizeof *context);
	if (!context)
		return -ENOMEM;
	context->inner = inner;
	context->plan = plan_in_force();
	int error = context->plan.open_error ? -(int)context->plan.open_error
					     : inner->open(env, &context->context, section, section_len);
	if (error) {
		free(context);
		return error;
	}
	*out = context;
	return 0;
}

static void fault_close(void *data)
{
	struct fault_context *context = data;
	context->inner->close(context->context);
	free(context);
}

static bool fault_reaches(void *data, const uint8_t *section, size_t section_len, bool same_host)
{
	struct fault_context *context = data;
	return context->inner->reaches(context->context, section, section_len, same_host);
}

/* Never NULL: the channel and its users take a transport that answers 0 for one that is not open. */
static size_t fault_conn_bytes(void *data, uint32_t ring_bytes)
{
	struct fault_context *context = data;
	return context->inner->conn_bytes(context->context, ring_bytes);
}

/* ---- set-up and end ---- */

static void fault_note(void *data, uint64_t peer, uint8_t note[HR_NOTE_BYTES])
{
	struct fault_context *context = data;
	if (context->inner->note)
		context->inner->note(context->context, peer, note);
}

static bool fault_agrees(void *data, const struct hr_agreement *agreement)
{
	struct fault_context *context = data;
	return !context->inner->agrees || context->inner->agrees(context->context, agreement);
}

static int fault_conn_open(void *data, const struct hr_conn_env *env, struct hr_half *own, void **out)
{
	struct fault_context *context = data;
	if (context->plan.conn_open_error)
		return -(int)context->plan.conn_open_error;
	struct fault_conn *conn = calloc(1, sizeof *conn);
	if (!conn)
		return -ENOMEM;
	int error = context->inner->conn_open(context->context, env, own, &conn->conn);
	if (error) {
		free(conn);
		return error;
	}
	conn->context = context;
	conn->random = context->plan.seed * 1000003 + context->conns++;
	conn->put.die_at = context->plan.die_put_at;
	conn->put.cut_at = context->plan.cut_put_at;
	conn->get.die_at = context->plan.die_get_at;
	conn->get.cut_at = context->plan.cut_get_at;
	conn->stream = conn->event = -1;
	if (context->plan.spurious && !context->inner->conn_fd)
		conn->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	*out = conn;
	return 0;
}

static int other_descriptor(enum fault_descriptors kind)
{
	if (kind == FAULT_FDS_FOREIGN)
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	/* Of the size that a ring of 64 KiB has, or shorter by one page. */
	int fd = memfd_create("fault", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd >= 0 && ftruncate(fd, kind == FAULT_FDS_SHORT ? 65536 : 65536 + 4096) == 0 && kind == FAULT_FDS_SHORT)
		fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	return fd;
}

static void spoil_descriptors(struct hr_half *half, enum fault_descriptors kind)
{
	for (int i = 0; i < half->n_fds; i++) {
		close(half->fds[i]);
		half->fds[i] = kind == FAULT_FDS_REFUSED ? -1 : other_descriptor(kind);
	}
	if (kind == FAULT_FDS_REFUSED)
		half->n_fds = 0;
}

static int fault_conn_establish(void *data, const struct hr_half *peer, int stream)
{
	struct fault_conn *conn = data;
	const struct fault_plan *plan = &conn->context->plan;
	struct hr_half half = *peer;
	if (plan->flip_half && plan->flip_half <= half.len * 8)
		half.blob[(plan->flip_half - 1) / 8] ^= (uint8_t)(1u << (plan->flip_half - 1) % 8);
	if (plan->descriptors != FAULT_FDS_SOUND)
		spoil_descriptors(&half, (enum fault_descriptors)plan->descriptors);
	if (plan->establish_error) {
		for (int i = 0; i < half.n_fds; i++)
			close(half.fds[i]);
		return -(int)plan->establish_error;
	}
	conn->stream = stream;
	return conn->context->inner->conn_establish(conn->conn, &half, stream);
}

static int fault_conn_shutdown(void *data)
{
	struct fault_conn *conn = data;
	return conn->context->inner->conn_shutdown(conn->conn);
}

static int fault_conn_stop(void *data)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	return inner->conn_stop ? inner->conn_stop(conn->conn) : 1;
}

static void fault_conn_close(void *data)
{
	struct fault_conn *conn = data;
	conn->context->inner->conn_close(conn->conn);
	if (conn->event >= 0)
		close(conn->event);
	free(conn);
}

/* ---- data ---- */

/* Death and the cut, when a direction has come to its byte. */
static void reach(struct fault_conn *conn, const struct fault_flow *flow)
{
	if (flow->moved >= flow->die_at) {
		raise(SIGKILL);
		abort();
	}
	if (flow->moved >= flow->cut_at && !conn->cut) {
		conn->cut = true;
		shutdown(conn->stream, SHUT_RDWR);
	}
}

/* Bytes until the next end in this direction. */
static uint64_t until_end(const struct fault_flow *flow)
{
	uint64_t end = flow->die_at < flow->cut_at ? flow->die_at : flow->cut_at;
	return end > flow->moved ? end - flow->moved : FAULT_NEVER;
}

/* How many of total bytes the transport within is to be offered now. */
static size_t offer(struct fault_conn *conn, struct fault_flow *flow, size_t total)
{
	static const uint8_t few[] = { 1, 2, 3, 5, 7, 8, 9, 13, 31, 57, 63, 65, 127, 255 };
	const struct fault_plan *plan = &conn->context->plan;
	size_t limit = total;
	if (conn->failed)
		return total;
	if (flow->delay) {
		flow->delay--;
		return 0;
	}
	if (happens(conn, plan->refuse))
		return 0;
	if (flow->owed)
		return flow->owed < total ? flow->owed : total;
	if (happens(conn, plan->shorten))
		limit = draw(conn) % 2 ? 1 : few[draw(conn) % sizeof few];
	if (limit > until_end(flow))
		limit = (size_t)until_end(flow);
	return limit < total ? limit : total;
}

/* The first limit bytes of the vector; returns the number of pieces. Lowers *limit where they are too many. */
static int cut_vector(struct fault_conn *conn, const struct iovec *iov, int n, size_t *limit)
{
	int pieces = 0;
	size_t left = *limit;
	for (int i = 0; i < n && left && pieces < PIECES_MAX; i++) {
		conn->pieces[pieces] = iov[i];
		if (iov[i].iov_len > left)
			conn->pieces[pieces].iov_len = left;
		left -= conn->pieces[pieces++].iov_len;
	}
	*limit -= left;
	return pieces;
}

/* After bytes have moved: calls that are to move nothing, and the end of the direction. */
static void note_moved(struct fault_conn *conn, struct fault_flow *flow, size_t count)
{
	flow->moved += count;
	if (conn->context->plan.delay)
		flow->delay = draw(conn) % (conn->context->plan.delay + 1);
	reach(conn, flow);
}

typedef int (*transfer_fn)(void *conn, const struct iovec *iov, int n, size_t *moved);

static int transfer(struct fault_conn *conn, struct fault_flow *flow, transfer_fn inner, const struct iovec *iov, int n,
		    size_t *moved)
{
	size_t total = 0;
	for (int i = 0; i < n; i++)
		total += iov[i].iov_len;
	reach(conn, flow);
	size_t limit = offer(conn, flow, total);
	*moved = 0;
	if (limit) {
		int pieces = cut_vector(conn, iov, n, &limit);
		int error = inner(conn->conn, conn->pieces, pieces, moved);
		if (error) {
			conn->failed = true;
			return error;
		}
		flow->owed = limit - *moved;
	}
	flow->held_back = *moved == limit && limit < total;
	conn->may_mislead = true;
	if (!*moved && happens(conn, conn->context->plan.spurious))
		conn->looks_pending = true;
	if (*moved)
		note_moved(conn, flow, *moved);
	return 0;
}

static int fault_put(void *data, const struct iovec *iov, int n, size_t *accepted)
{
	struct fault_conn *conn = data;
	return transfer(conn, &conn->put, conn->context->inner->put, iov, n, accepted);
}

static int fault_get(void *data, const struct iovec *iov, int n, size_t *delivered)
{
	struct fault_conn *conn = data;
	return transfer(conn, &conn->get, conn->context->inner->get, iov, n, delivered);
}

/* ---- records in place ---- */

static void *fault_reserve(void *data, size_t front, size_t len)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	reach(conn, &conn->put);
	if (!inner->reserve || conn->failed || conn->put.owed || offer(conn, &conn->put, len) < len)
		return NULL;
	return inner->reserve(conn->conn, front, len);
}

static void fault_fill(void *data, void *to, const void *from, size_t len)
{
	struct fault_conn *conn = data;
	conn->context->inner->fill(conn->conn, to, from, len);
}

static void fault_drain(void *data, void *to, const void *from, size_t len)
{
	struct fault_conn *conn = data;
	conn->context->inner->drain(conn->conn, to, from, len);
}

static void fault_commit(void *data, size_t len)
{
	struct fault_conn *conn = data;
	conn->context->inner->commit(conn->conn, len);
	conn->put.held_back = false;
	note_moved(conn, &conn->put, len);
}

static size_t fault_ahead(void *data, uint64_t skip, void *to, size_t len)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	return inner->ahead && !conn->failed ? inner->ahead(conn->conn, skip, to, len) : 0;
}

static enum hr_arrival fault_peek(void *data, const uint8_t **bytes, size_t *len)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	reach(conn, &conn->get);
	if (!inner->peek || conn->failed)
		return HR_CALL_GET;
	enum hr_arrival arrival = inner->peek(conn->conn, bytes, len);
	if (arrival == HR_CALL_GET)
		return arrival;
	conn->may_mislead = true;
	conn->get.owed = 0; /* no transfer into the memory of an earlier get is under way */
	size_t limit = arrival == HR_ARRIVED ? offer(conn, &conn->get, *len) : 0;
	if (!limit) {
		conn->looks_pending |= happens(conn, conn->context->plan.spurious);
		return HR_NOT_ARRIVED;
	}
	*len = limit;
	return HR_ARRIVED;
}

static void fault_consume(void *data, size_t count)
{
	struct fault_conn *conn = data;
	conn->context->inner->consume(conn->conn, count);
	note_moved(conn, &conn->get, count);
}

/* ---- sleeping ---- */

static int fault_conn_arm(void *data, bool want_put)
{
	struct fault_conn *conn = data;
	/* At most once per put or get, so that who waits for nothing is not woken for ever. */
	if (conn->event >= 0 && conn->may_mislead && happens(conn, conn->context->plan.spurious)) {
		conn->may_mislead = false;
		if (eventfd_write(conn->event, 1) < 0)
			abort();
	}
	return conn->context->inner->conn_arm(conn->conn, want_put);
}

static bool fault_conn_pending(void *data, bool want_put)
{
	struct fault_conn *conn = data;
	if (conn->looks_pending) {
		conn->looks_pending = false;
		return true;
	}
	/* Who was refused here, and not by the transport within, has something to try again. */
	if (want_put && conn->put.held_back)
		return true;
	return conn->context->inner->conn_pending(conn->conn, want_put);
}

static void fault_conn_event(void *data)
{
	struct fault_conn *conn = data;
	eventfd_t value;
	if (conn->event >= 0)
		eventfd_read(conn->event, &value);
	conn->context->inner->conn_event(conn->conn);
}

static int fault_conn_check(void *data)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	return inner->conn_check ? inner->conn_check(conn->conn) : 0;
}

static int fault_conn_fd(void *data)
{
	struct fault_conn *conn = data;
	const struct hr_transport *inner = conn->context->inner;
	return inner->conn_fd ? inner->conn_fd(conn->conn) : conn->event;
}

/* ---- the transports ---- */

#define FAULTY(transport, transport_name, transport_bit, with_descriptors)                                              \
	static int open_##transport(const struct hr_channel_env *env, void **context, uint8_t section[HR_SECTION_MAX], \
				    size_t *section_len)                                                               \
	{                                                                                                              \
		return fault_open(&hr_transport_##transport, env, context, section, section_len);                      \
	}                                                                                                              \
	static const struct hr_transport faulty_##transport = {                                                        \
		.name = transport_name,                                                                                \
		.bit = transport_bit,                                                                                  \
		.needs_unix = with_descriptors,                                                                        \
		.puts_on_stream = (transport_bit) == HR_TRANSPORT_TCP,                                                 \
		.arms_in_memory = with_descriptors, /* shm, as it is */                                                \
		.open = open_##transport,                                                                              \
		.close = fault_close,                                                                                  \
		.reaches = fault_reaches,                                                                              \
		.note = fault_note,                                                                                    \
		.agrees = fault_agrees,                                                                                \
		.conn_open = fault_conn_open,                                                                          \
		.conn_establish = fault_conn_establish,                                                                \
		.conn_shutdown = fault_conn_shutdown,                                                                  \
		.conn_stop = fault_conn_stop,                                                                          \
		.conn_close = fault_conn_close,                                                                        \
		.put = fault_put,                                                                                      \
		.get = fault_get,                                                                                      \
		.ahead = fault_ahead,                                                                                  \
		.reserve = fault_reserve,                                                                              \
		.fill = fault_fill,                                                                                    \
		.drain = fault_drain,                                                                                  \
		.commit = fault_commit,                                                                                \
		.peek = fault_peek,                                                                                    \
		.consume = fault_consume,                                                                              \
		.conn_arm = fault_conn_arm,                                                                            \
		.conn_pending = fault_conn_pending,                                                                    \
		.conn_event = fault_conn_event,                                                                        \
		.conn_check = fault_conn_check,                                                                        \
		.conn_bytes = fault_conn_bytes,                                                                        \
		.conn_fd = fault_conn_fd,                                                                              \
	}

FAULTY(shm, "shm", HR_TRANSPORT_SHM, true);
#ifdef HAVE_IBVERBS
FAULTY(verbs, "verbs", HR_TRANSPORT_VERBS, false);
#endif
FAULTY(tcp, "tcp", HR_TRANSPORT_TCP, false);

const struct hr_transport *const hr_transports[] = {
	&faulty_shm,
#ifdef HAVE_IBVERBS
	&faulty_verbs,
#endif
	&faulty_tcp,
	NULL,
};
