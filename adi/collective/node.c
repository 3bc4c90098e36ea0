/* SPDX-License-Identifier: BSD-3-Clause */
/* Collectives in a shared segment: node.h has the protocol. */
#include "adi/collective/node.h"
#include "adi/core/entry.h"

#include <sched.h>
#include <string.h>
#include <time.h>

/* Looks at a word before a waiting rank does anything else. With more ranks than processors the awaited rank may need this one. */
#define LOOKS 4000
#define LOOKS_OVERSUBSCRIBED 30
/* Between two polls of MPI's progress: yields of the processor. */
#define YIELDS_PER_POLL 32
/* Most polls between two looks at the word, while each of them does something. */
#define POLLS_TOGETHER 16
/* After this many polls (10 ms or more) a rank sleeps between them: what it waits for takes long. */
#define POLLS_BEFORE_SLEEP 4000
#define SLEEP_NS 50000
/* Steps after which the slot that is prefetched is used. */
#define PREFETCH 4

/* ---- waiting ---- */

static bool reached(const _Atomic uint64_t *word, uint64_t value)
{
	return atomic_load_explicit(word, memory_order_acquire) >= value;
}

static void pause_processor(void)
{
#if defined __x86_64__
	__builtin_ia32_pause();
#elif defined __aarch64__
	__asm__ volatile("yield");
#endif
}

/* Asks for a line that this rank will write soon, so that the later store need not wait until the line's readers have given it up. */
static void prefetch_to_write(const void *line)
{
#if defined __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* Rank 0 looks at all members, the others at rank 0. */
static bool member_died(const struct adi_comm *comm)
{
	for (int i = 0; i < (comm->rank ? 1 : comm->size); i++)
		if (adi_job.peer[adi_comm_world(comm, i)].error)
			return true;
	return false;
}

int adi_node_error_broken(const struct adi_comm *comm)
{
	return adi_error(MPI_ERR_PROC_ABORTED, "a process of communicator %s has ended", comm->name);
}

/* Makes progress as long as there is something to do, and checks that no member has died. */
static int poll(const struct adi_comm *comm, const struct node_state *node, bool *did)
{
	*did = false;
	for (int i = 0; i < POLLS_TOGETHER && adi_poll(); i++)
		*did = true;
	if (member_died(comm))
		atomic_store_explicit(&node->shared->broken, 1, memory_order_relaxed);
	/* Relaxed: no other memory belongs to it. */
	return atomic_load_explicit(&node->shared->broken, memory_order_relaxed) ? adi_node_error_broken(comm) : MPI_SUCCESS;
}

static __attribute__((noinline)) int wait_long(const struct adi_comm *comm, const struct node_state *node,
					       const _Atomic uint64_t *word, uint64_t value)
{
	for (unsigned polls = 0;; polls++) {
		bool did;
		int class = poll(comm, node, &did);
		for (int i = 0; i < (did ? 1 : YIELDS_PER_POLL); i++) {
			if (reached(word, value))
				return MPI_SUCCESS;
			sched_yield();
		}
		if (class)
			return class;
		if (adi_threaded)
			adi_yield();
		if (did) /* peers use this rank's windows, or wait for its messages */
			polls = 0;
		if (polls > POLLS_BEFORE_SLEEP)
			nanosleep(&(struct timespec){ .tv_nsec = SLEEP_NS }, NULL);
	}
}

static int wait_for(const struct adi_comm *comm, const struct node_state *node, const _Atomic uint64_t *word, uint64_t value)
{
	int looks = adi_job.oversubscribed ? LOOKS_OVERSUBSCRIBED : LOOKS;
	for (int i = 0; i < looks; i++) {
		if (reached(word, value))
			return MPI_SUCCESS;
		pause_processor();
	}
	return wait_long(comm, node, word, value);
}

/* ---- steps ---- */

static struct node_slot *slot_of(const struct node_state *node, int rank)
{
	return &node->shared->member[rank].slot[node->seq % NODE_SLOTS];
}

char *adi_node_data(const struct node_state *node, int rank, size_t bytes)
{
	if (bytes <= NODE_INLINE)
		return slot_of(node, rank)->data;
	return node->chunks + ((size_t)rank * NODE_SLOTS + node->seq % NODE_SLOTS) * NODE_CHUNK;
}

/* Begins a step in which this rank writes: afterwards its slot may be written. */
int adi_node_begin(const struct adi_comm *comm, struct node_state *node)
{
	node->seq++;
	if (node->seq <= node->all_done + NODE_SLOTS)
		return MPI_SUCCESS;
	uint64_t needed = node->seq - NODE_SLOTS, least = node->seq - 1;
	for (int i = 0; i < comm->size; i++) {
		const _Atomic uint64_t *done = &node->shared->member[i].done;
		int class = i == comm->rank ? MPI_SUCCESS : wait_for(comm, node, done, needed);
		if (class)
			return class;
		uint64_t seen = i == comm->rank ? least : atomic_load_explicit(done, memory_order_acquire);
		least = seen < least ? seen : least;
	}
	node->all_done = least;
	return MPI_SUCCESS;
}

void adi_node_publish(const struct adi_comm *comm, const struct node_state *node, size_t bytes)
{
	struct node_slot *slot = slot_of(node, comm->rank);
	slot->bytes = bytes;
	atomic_store_explicit(&slot->flag, node->seq, memory_order_release);
}

/* Prefetches the slot of a later step. Only for collectives whose writers do not wait for the readers: in the others the readers
 * still read these lines, and an early prefetch takes the lines from them. */
static void prepare_next(const struct adi_comm *comm, const struct node_state *node)
{
	prefetch_to_write(&node->shared->member[comm->rank].slot[(node->seq + PREFETCH) % NODE_SLOTS]);
}

/* Waits for a rank's data of the step. */
int adi_node_await(const struct adi_comm *comm, const struct node_state *node, int rank, size_t bytes)
{
	const struct node_slot *slot = slot_of(node, rank);
	int class = wait_for(comm, node, &slot->flag, node->seq);
	if (!class && slot->bytes != bytes)
		class = adi_error(MPI_ERR_TRUNCATE, "rank %d of communicator %s has %llu bytes and this rank %zu; they must agree",
				  rank, comm->name, (unsigned long long)slot->bytes, bytes);
	return class;
}

int adi_node_await_all(const struct adi_comm *comm, struct node_state *node, size_t bytes)
{
	int class = MPI_SUCCESS;
	for (int i = 0; i < comm->size && !class; i++)
		if (i != comm->rank)
			class = adi_node_await(comm, node, i, bytes);
	if (!class)
		node->all_done = node->seq - 1;
	return class;
}

/* Ends a step. It is ended after an error too, so that others do not wait for this rank's done. */
void adi_node_end_step(const struct adi_comm *comm, const struct node_state *node)
{
	atomic_store_explicit(&node->shared->member[comm->rank].done, node->seq, memory_order_release);
}

/* ---- use ---- */

bool adi_node_use(struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered)
{
	struct node_state *node = comm->node;
	if (adi_select(collective, bytes, comm->size, ordered, true) != ADI_ALGORITHM_NODE)
		return false;
	if (node->state == NODE_FIRST_CALLS)
		adi_node_make(comm, node);
	return node->state == NODE_SHARED || node->state == NODE_BROKEN;
}

bool adi_node_reduces(struct adi_comm *comm, enum adi_collective collective, const struct adi_reduction *reduction)
{
	return reduction->type->contiguous && !reduction->type->contents &&
	       adi_node_use(comm, collective, adi_reduction_bytes(reduction), !reduction->op->commutative);
}

/* ---- collectives ---- */

int adi_node_barrier(struct adi_comm *comm)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	int class = adi_node_begin(comm, node);
	if (class)
		return class;
	adi_node_publish(comm, node, 0);
	class = adi_node_await_all(comm, node, 0);
	adi_node_end_step(comm, node);
	return class;
}

/* The data of a broadcast: packed if they are not contiguous. */
struct payload {
	char *at; /* NULL: use the stream */
	struct adi_stream stream;
};

static int payload_start(struct payload *payload, void *buf, MPI_Count count, struct adi_type *type)
{
	payload->at = type->contiguous ? (char *)buf + type->true_lb : NULL;
	return type->contiguous ? MPI_SUCCESS : adi_stream_start(&payload->stream, buf, count, type);
}

static void payload_get(struct payload *payload, void *to, size_t bytes)
{
	if (!payload->at) {
		adi_stream_pack(&payload->stream, to, bytes);
		return;
	}
	memcpy(to, payload->at, bytes);
	payload->at += bytes;
}

static void payload_put(struct payload *payload, const void *from, size_t bytes)
{
	if (!payload->at) {
		adi_stream_unpack(&payload->stream, from, bytes);
		return;
	}
	memcpy(payload->at, from, bytes);
	payload->at += bytes;
}

static int bcast_chunk(struct adi_comm *comm, struct node_state *node, struct payload *payload, size_t bytes, int root)
{
	if (comm->rank == root) {
		int class = adi_node_begin(comm, node);
		if (class)
			return class;
		payload_get(payload, adi_node_data(node, root, bytes), bytes);
		adi_node_publish(comm, node, bytes);
		prepare_next(comm, node);
		adi_node_end_step(comm, node);
		return MPI_SUCCESS;
	}
	node->seq++;
	int class = adi_node_await(comm, node, root, bytes);
	if (!class)
		payload_put(payload, adi_node_data(node, root, bytes), bytes);
	adi_node_end_step(comm, node);
	return class;
}

static size_t chunk_of(size_t left)
{
	return left < NODE_CHUNK ? left : NODE_CHUNK;
}

int adi_node_bcast(struct adi_comm *comm, void *buf, MPI_Count count, struct adi_type *type, int root)
{
	struct node_state *node = comm->node;
	size_t left = (size_t)(count * type->size);
	struct payload payload;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	int class = payload_start(&payload, buf, count, type);
	for (size_t some; left > 0 && !class; left -= some) {
		some = chunk_of(left);
		class = bcast_chunk(comm, node, &payload, some, root);
	}
	return class;
}

/* result = the data of all ranks, combined from the last to the first: so in the order of ranks, and the same at all of them. */
static void combine(const struct adi_comm *comm, const struct node_state *node, const struct adi_reduction *chunk)
{
	size_t bytes = adi_reduction_bytes(chunk);
	memcpy(chunk->receive, adi_node_data(node, comm->size - 1, bytes), bytes);
	for (int i = comm->size - 2; i >= 0; i--)
		adi_op_apply(chunk->op, adi_node_data(node, i, bytes), chunk->receive, chunk->count, chunk->type);
}

/* chunk->receive is NULL at ranks that do not get the result. everybody: all ranks get it. */
static int reduce_chunk(struct adi_comm *comm, struct node_state *node, const struct adi_reduction *chunk)
{
	size_t bytes = adi_reduction_bytes(chunk);
	int class = adi_node_begin(comm, node);
	if (class)
		return class;
	memcpy(adi_node_data(node, comm->rank, bytes), chunk->send, bytes);
	adi_node_publish(comm, node, bytes);
	if (!chunk->receive)
		prepare_next(comm, node);
	else
		class = adi_node_await_all(comm, node, bytes);
	if (chunk->receive && !class)
		combine(comm, node, chunk);
	adi_node_end_step(comm, node);
	return class;
}

static int reduce(struct adi_comm *comm, const struct adi_reduction *reduction, bool result)
{
	struct node_state *node = comm->node;
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	struct adi_reduction chunk = *reduction;
	MPI_Count size = reduction->type->size, lb = reduction->type->true_lb, most = size ? NODE_CHUNK / size : 0;
	int class = MPI_SUCCESS;
	for (MPI_Count at = 0; size && at < reduction->count && !class; at += chunk.count) {
		chunk.count = reduction->count - at < most ? reduction->count - at : most;
		chunk.send = (const char *)reduction->send + lb + at * size;
		chunk.receive = result ? (char *)reduction->receive + lb + at * size : NULL;
		class = reduce_chunk(comm, node, &chunk);
	}
	return class;
}

int adi_node_reduce(struct adi_comm *comm, const struct adi_reduction *reduction, int root)
{
	return reduce(comm, reduction, comm->rank == root);
}

int adi_node_allreduce(struct adi_comm *comm, const struct adi_reduction *reduction)
{
	return reduce(comm, reduction, true);
}
