/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps in a shared segment, and the barrier: node.h has the protocol. */
#include "adi/collective/node.h"
#include "adi/core/entry.h"

#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Looks at a word before a waiting rank does anything else. With more ranks than processors the awaited rank may need this one. */
#define LOOKS 4000
#define LOOKS_OVERSUBSCRIBED 30
/* Between two polls of MPI's progress: yields of the processor. */
#define YIELDS_PER_POLL 32
/* Most polls between two looks at the word, while each of them does something. */
#define POLLS_TOGETHER 16
/* After this many polls without work (10 ms or more), or after LONG_MS, a rank sleeps between polls: what it waits for takes
 * long. */
#define POLLS_BEFORE_SLEEP 4000
#define SLEEP_NS 50000
/* After this time a rank that waits without rank 0 opens a connection to the awaited rank. Not a number of polls: if other programs
 * use the processors, each yield can take milliseconds. */
#define LONG_MS 100
/* If other programs use the processor, a yield takes longer, on average, than YIELD_NS plus YIELD_RANK_NS times the number of
 * ranks. Then the next CROWDED waits sleep instead: a process that wakes up runs before those that have used the processor all the
 * time. */
#define YIELD_NS 1000000
#define YIELD_RANK_NS 50000
#define CROWDED 256
/* Pauses before a rank in a barrier looks at the others' flags, if the processors are near or far; barriers for a sample of
 * this. */
#define PAUSES_NEAR 1
#define PAUSES_FAR 2
#define BARRIERS_PER_SAMPLE 64

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

/* Asks for a line that this rank will write soon, so that the later store need not wait until the line's readers have given it
 * up. */
static void prefetch_to_write(const void *line)
{
#if defined __x86_64__
	__asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
	__builtin_prefetch(line, 1);
#endif
}

/* The rank to which a flag or a word `done` belongs. */
static int rank_of(const struct node_state *node, const _Atomic uint64_t *word)
{
	return (int)(((const char *)word - (const char *)node->shared->member) / (ptrdiff_t)sizeof *node->shared->member);
}

/* The rank of a member that has died, or -1. Rank 0 looks at all members, the others at rank 0 and at the awaited rank. */
static int dead_member(const struct adi_comm *comm, int awaited)
{
	for (int i = 0; i < (comm->rank ? 1 : comm->size); i++)
		if (adi_job.peer[adi_comm_world(comm, i)].error)
			return i;
	return adi_job.peer[adi_comm_world(comm, awaited)].error ? awaited : -1;
}

/* Without a connection the death of the awaited rank would not be noticed. An error is in peer->error, or comes there. */
static void watch(const struct adi_comm *comm, int awaited)
{
	struct adi_peer *peer = &adi_job.peer[adi_comm_world(comm, awaited)];
	if (peer->vc && !peer->error && !peer->opened)
		peer->opened = !ch3_vc_open(peer->vc);
}

int adi_node_error_broken(const struct adi_comm *comm)
{
	return adi_error(MPI_ERR_PROC_ABORTED, "a process of communicator %s has ended", adi_comm_text(comm));
}

/* Makes progress as long as there is something to do, and checks that no member has died. */
static int poll(const struct adi_comm *comm, const struct node_state *node, int awaited, bool *did)
{
	*did = false;
	for (int i = 0; i < POLLS_TOGETHER && adi_poll(); i++)
		*did = true;
	int dead = dead_member(comm, awaited);
	/* Relaxed: no other memory belongs to it. */
	uint32_t broken = atomic_load_explicit(&node->shared->broken, memory_order_relaxed);
	/* The first report stays: members that end because of it die too. */
	if (dead >= 0 && !broken &&
	    atomic_compare_exchange_strong_explicit(&node->shared->broken, &broken, 1 + (uint32_t)dead, memory_order_relaxed,
						    memory_order_relaxed))
		broken = 1 + (uint32_t)dead;
	if (!broken)
		return MPI_SUCCESS;
	if (broken <= (uint32_t)comm->size)
		adi_job.told_dead = adi_comm_world(comm, (int)broken - 1);
	return adi_node_error_broken(comm);
}

static int error_steps(const struct adi_comm *comm, int rank)
{
	return adi_error(MPI_ERR_TRUNCATE,
			 "rank %d of communicator %s has no data for this rank in this collective; the counts of all "
			 "ranks must agree", rank, adi_comm_text(comm));
}

static unsigned crowded; /* so many of the next waits sleep at once */

static int64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * (int64_t)1000000000 + now.tv_nsec;
}

/* Lets other processes run, `most` times at most, until the word has its value. */
static bool yield_until(const struct adi_comm *comm, const _Atomic uint64_t *word, uint64_t value, int most)
{
	int64_t begin = now_ns();
	int yields = 0;
	while (!reached(word, value) && yields < most) {
		sched_yield();
		yields++;
	}
	/* Without a yield no time was measured. */
	if (yields > 0 && now_ns() - begin > yields * (YIELD_NS + YIELD_RANK_NS * (int64_t)comm->size))
		crowded = CROWDED;
	return reached(word, value);
}

/* Sleeps until a rank has stored a word, or for SLEEP_NS. */
static void sleep_until(struct node_shared *shared, const _Atomic uint64_t *word, uint64_t value)
{
	const struct timespec most = { .tv_nsec = SLEEP_NS };
	atomic_fetch_add(&shared->sleepers, 1);
	uint32_t seen = atomic_load(&shared->wake_ups);
	if (!reached(word, value))
		syscall(SYS_futex, &shared->wake_ups, FUTEX_WAIT, seen, &most, NULL, 0);
	atomic_fetch_sub(&shared->sleepers, 1);
}

/* Stores a word of this rank. Release: its reads and writes of data come before. */
static inline void store(struct node_shared *shared, _Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_release);
	/* Relaxed: a sleeper that is missed wakes up by itself. */
	if (__builtin_expect(atomic_load_explicit(&shared->sleepers, memory_order_relaxed) == 0, 1))
		return;
	atomic_fetch_add(&shared->wake_ups, 1);
	syscall(SYS_futex, &shared->wake_ups, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static __attribute__((noinline)) int wait_long(const struct adi_comm *comm, const struct node_state *node,
					       const _Atomic uint64_t *word, uint64_t value)
{
	int awaited = rank_of(node, word);
	const _Atomic uint64_t *done = &node->shared->member[awaited].done;
	int64_t start = adi_now_ms();
	bool is_long = false, sleeps = crowded > 0;
	crowded -= sleeps;
	for (unsigned polls = 0;; polls++) {
		bool did, was_long = is_long;
		int class = poll(comm, node, awaited, &did);
		if (sleeps ? reached(word, value) : yield_until(comm, word, value, did || is_long ? 1 : YIELDS_PER_POLL))
			return MPI_SUCCESS;
		if (class)
			return class;
		/* A rank stores a flag before done. */
		if (reached(done, value))
			return reached(word, value) ? MPI_SUCCESS : error_steps(comm, awaited);
		if (adi_threaded)
			adi_yield();
		is_long = was_long || adi_now_ms() - start >= LONG_MS;
		if (node->watches && is_long && !was_long)
			watch(comm, awaited);
		if (did) /* peers use this rank's windows, or wait for its messages */
			polls = 0;
		else if (polls > POLLS_BEFORE_SLEEP || is_long || sleeps)
			sleep_until(node->shared, word, value);
		sleeps |= crowded > 0;
	}
}

static int wait_for(const struct adi_comm *comm, const struct node_state *node, const _Atomic uint64_t *word, uint64_t value)
{
	int looks = adi_job.oversubscribed || crowded ? LOOKS_OVERSUBSCRIBED : LOOKS;
	for (int i = 0; i < looks; i++) {
		if (reached(word, value))
			return MPI_SUCCESS;
		pause_processor();
	}
	return wait_long(comm, node, word, value);
}

/* ---- steps ---- */

/* The slot of a step. If collectives have one step, consecutive ones use all slots in turn. If they have up to five steps, a
 * collective does not use the slots of the two collectives before it. */
static unsigned slot_number(uint64_t seq)
{
	return (unsigned)((seq >> NODE_STEP_BITS) * 5 + seq) % NODE_SLOTS;
}

static struct node_slot *slot_of(const struct node_state *node, int rank)
{
	return &node->shared->member[rank].slot[slot_number(node->seq)];
}

char *adi_node_data(const struct node_state *node, int rank, size_t bytes)
{
	struct node_slot *slot = slot_of(node, rank);
	if (bytes <= NODE_INLINE)
		return slot->of.data;
	return node->chunks + (size_t)rank * NODE_DATA + slot->of.at;
}

size_t adi_node_piece(const struct node_state *node, size_t bytes)
{
	/* Each step of a rank that shares its processor costs a change of processes. */
	if (node->oversubscribed)
		return bytes < NODE_LARGE ? bytes : NODE_LARGE;
	size_t piece = bytes / 4 & ~(size_t)63;
	return piece < NODE_PIECE_LEAST ? NODE_PIECE_LEAST : piece < NODE_PIECE ? piece : NODE_PIECE;
}

/* Reserves bytes of this rank's ring for the data of the step. Returns a step: if all ranks have ended it, they have read all data
 * that this step overwrites. 0: the caller need not wait. */
static uint64_t take_ring(struct node_state *node, size_t bytes, uint64_t *place)
{
	/* This call forgets the oldest of NODE_SLOTS steps, so the data of that step must have been read. */
	uint64_t begin = node->ring_end, needed = node->runs < NODE_SLOTS ? 0 : node->run[node->runs % NODE_SLOTS].seq;
	if (begin % NODE_RING + bytes > NODE_RING) /* no data lie around the ring's end */
		begin += NODE_RING - begin % NODE_RING;
	uint64_t end = begin + ((bytes + 63) & ~(size_t)63);
	for (uint64_t i = 1; i <= NODE_SLOTS && i <= node->runs; i++) {
		const struct node_run *run = &node->run[(node->runs - i) % NODE_SLOTS];
		if (run->begin + NODE_RING >= end)
			continue;
		needed = run->seq;
		break;
	}
	node->run[node->runs++ % NODE_SLOTS] = (struct node_run){ node->seq, begin };
	node->ring_end = end;
	*place = begin % NODE_RING;
	return needed;
}

static int wait_for_readers(const struct adi_comm *comm, struct node_state *node, uint64_t needed)
{
	uint64_t least = node->seq - 1;
	for (int i = 0; i < comm->size; i++) {
		const _Atomic uint64_t *done = &node->shared->member[i].done;
		int class = i == comm->rank ? MPI_SUCCESS : wait_for(comm, node, done, needed);
		if (class)
			return class;
		uint64_t seen = i == comm->rank ? least : atomic_load_explicit(done, memory_order_acquire);
		least = seen < least ? seen : least;
		if (i == (comm->rank + 1) % comm->size)
			node->seen_done = seen;
	}
	node->all_done = least;
	return MPI_SUCCESS;
}

static void store_done(const struct adi_comm *comm, const struct node_state *node)
{
	store(node->shared, &node->shared->member[comm->rank].done, node->seq);
}

int adi_node_enter(const struct adi_comm *comm, struct node_state *node)
{
	if (node->state == NODE_BROKEN)
		return adi_node_error_broken(comm);
	node->seq = (node->call << NODE_STEP_BITS) - 1;
	return MPI_SUCCESS;
}

void adi_node_skip(const struct adi_comm *comm, struct node_state *node)
{
	if ((node->seq & NODE_LAST_STEP) != NODE_LAST_STEP)
		store_done(comm, node);
	node->seq++;
}

void adi_node_leave(const struct adi_comm *comm, struct node_state *node)
{
	if (!node->shared)
		return;
	/* A collective with very many steps has used the numbers of later collectives too. */
	uint64_t last = node->seq >> NODE_STEP_BITS;
	if (node->call < last)
		node->call = last;
	node->seq = node->call << NODE_STEP_BITS | NODE_LAST_STEP;
	store_done(comm, node);
}

int adi_node_begin(const struct adi_comm *comm, struct node_state *node, size_t bytes)
{
	adi_node_skip(comm, node);
	unsigned slot = slot_number(node->seq);
	uint64_t place = slot * NODE_CHUNK, needed = node->used[slot];
	node->used[slot] = node->seq;
	if (bytes > NODE_CHUNK || adi_node_past_caches(node, bytes)) {
		uint64_t before = take_ring(node, bytes, &place);
		needed = before > needed ? before : needed;
		place += NODE_SLOTS * NODE_CHUNK;
	}
	int class = needed > node->all_done ? wait_for_readers(comm, node, needed) : MPI_SUCCESS;
	if (!class && bytes > NODE_INLINE)
		slot_of(node, comm->rank)->of.at = place;
	return class;
}

void adi_node_publish(const struct adi_comm *comm, const struct node_state *node, size_t total)
{
	struct node_slot *slot = slot_of(node, comm->rank);
	slot->total = total;
	store(node->shared, &slot->flag, node->seq);
}

void adi_node_prepare(const struct adi_comm *comm, const struct node_state *node, unsigned calls)
{
	prefetch_to_write(&node->shared->member[comm->rank].slot[slot_number((node->call + calls) << NODE_STEP_BITS)]);
}

void adi_node_give_time(const struct node_state *node, int pauses)
{
	for (int i = 0; i < pauses && !node->oversubscribed; i++)
		pause_processor();
}

int adi_node_error_bytes(const struct adi_comm *comm, int rank, size_t theirs, size_t mine)
{
	return adi_error(MPI_ERR_TRUNCATE, "rank %d of communicator %s has %zu bytes and this rank %zu; they must agree", rank,
			 adi_comm_text(comm), theirs, mine);
}

int adi_node_await_some(const struct adi_comm *comm, const struct node_state *node, int rank, size_t *total)
{
	const struct node_slot *slot = slot_of(node, rank);
	int class = wait_for(comm, node, &slot->flag, node->seq);
	/* If the flag is of a later step, the rank has not written this step. Relaxed: wait_for has loaded it with acquire. */
	if (!class && atomic_load_explicit(&slot->flag, memory_order_relaxed) != node->seq)
		class = error_steps(comm, rank);
	*total = class ? 0 : (size_t)slot->total;
	return class;
}

int adi_node_wrote(const struct adi_comm *comm, const struct node_state *node, int rank, bool *wrote)
{
	const struct node_member *member = &node->shared->member[rank];
	uint64_t first = node->call << NODE_STEP_BITS;
	const _Atomic uint64_t *flag = &member->slot[slot_number(first)].flag;
	int class = MPI_SUCCESS;
	for (int i = 0; i < LOOKS_OVERSUBSCRIBED && !reached(flag, first) && !reached(&member->done, first); i++)
		pause_processor();
	if (!reached(flag, first) && !reached(&member->done, first))
		class = wait_long(comm, node, flag, first);
	/* A rank stores a flag before done. */
	*wrote = atomic_load_explicit(flag, memory_order_acquire) == first;
	return class == MPI_ERR_TRUNCATE ? MPI_SUCCESS : class;
}

/* Waits for a rank's data of the step. */
int adi_node_await(const struct adi_comm *comm, const struct node_state *node, int rank, size_t total)
{
	size_t theirs;
	int class = adi_node_await_some(comm, node, rank, &theirs);
	return class || theirs == total ? class : adi_node_error_bytes(comm, rank, theirs, total);
}

int adi_node_await_all(const struct adi_comm *comm, struct node_state *node, size_t total)
{
	int class = MPI_SUCCESS;
	for (int i = 0; i < comm->size && !class; i++)
		if (i != comm->rank)
			class = adi_node_await(comm, node, i, total);
	if (!class)
		node->all_done = node->seq - 1;
	return class;
}

/* ---- use ---- */

/* If ranks share processors, the rank that leaves a barrier first would wait until the root of the next broadcast or scatter gets a
 * processor. So if such a collective followed the last barrier, its root leaves the next barrier first. All ranks choose the same
 * root if they call collectives in the same order. But they may start blocking and nonblocking ones in different orders:
 * schedule_private.h. root: -1: the collective is no broadcast and no scatter. */
static void follow_barrier(struct node_state *node, bool is_barrier, int root)
{
	if (node->after_barrier)
		node->next_root = root;
	node->after_barrier = is_barrier;
}

void adi_node_started(struct adi_comm *comm, int root)
{
	if (comm->node)
		follow_barrier(comm->node, false, root);
}

bool adi_node_use(struct adi_comm *comm, enum adi_collective collective, size_t bytes, bool ordered, int root)
{
	struct node_state *node = comm->node;
	enum adi_algorithm way = adi_select(collective, bytes, comm->size, ordered, ADI_MAY_NODE);
	bool blocks = collective >= ADI_COLLECTIVE_GATHER; /* if the blocks are empty, there is no step */
	bool uses = (way == ADI_ALGORITHM_NODE || way == ADI_ALGORITHM_DIRECT) && (bytes > 0 || !blocks);
	node->call++;
	node->direct = way == ADI_ALGORITHM_DIRECT;
	follow_barrier(node, collective == ADI_COLLECTIVE_BARRIER, root);
	if (uses && node->state == NODE_FIRST_CALLS)
		adi_node_make(comm, node);
	if (uses)
		return node->state == NODE_SHARED || node->state == NODE_BROKEN;
	/* Ranks whose counts differ may wait for this rank in the segment. The receiver of a broadcast of two looks at the root's
	 * flag before it leaves: bcast.c. */
	bool looks = collective == ADI_COLLECTIVE_BCAST && comm->size == 2 && comm->rank != root;
	if (node->state == NODE_SHARED && !looks)
		adi_node_leave(comm, node);
	return false;
}

bool adi_node_reduces(struct adi_comm *comm, enum adi_collective collective, const struct adi_reduction *reduction)
{
	return reduction->type->contiguous && !reduction->type->contents &&
	       adi_node_use(comm, collective, adi_reduction_bytes(reduction), !reduction->op->commutative, -1);
}

/* ---- barrier ---- */

/* Waits until the others may have stored their flags. Now and then, looks how far they are. */
static void give_time(const struct adi_comm *comm, struct node_state *node)
{
	adi_node_give_time(node, node->near ? PAUSES_NEAR : PAUSES_FAR);
	if (node->oversubscribed || node->barriers++ % BARRIERS_PER_SAMPLE)
		return;
	/* The slot was last read in an earlier step. */
	uint64_t seen = node->seq - 1;
	enum node_distance distance = adi_node_distance(&slot_of(node, (comm->rank + 1) % comm->size)->flag, &seen);
	if (distance != NODE_UNKNOWN)
		node->near = distance == NODE_NEAR;
}

/* Each rank waits for all others: the ranks leave as soon as the last one has come. */
static int meet_all(const struct adi_comm *comm, struct node_state *node)
{
	adi_node_publish(comm, node, 0);
	adi_node_prepare(comm, node, NODE_NEXT);
	give_time(comm, node);
	return adi_node_await_all(comm, node, 0);
}

/* What a rank says in a barrier of ranks that share processors, in the slot of its flag. */
struct turn {
	int first;  /* the rank that leaves first, as this rank expects; -1: none. Valid with the flag */
	int failed; /* this rank leaves with an error. Valid with `done`, if this rank leaves first */
};
_Static_assert(sizeof(struct turn) <= NODE_INLINE, "in the slot");

static struct turn *turn_of(const struct node_state *node, int rank)
{
	return (struct turn *)(void *)adi_node_data(node, rank, sizeof(struct turn));
}

/* Waits until the rank `first` has left the barrier, which it does when it has seen the flags of all, or after an error. */
static int leave_after(const struct adi_comm *comm, struct node_state *node, int first)
{
	int class = adi_node_await(comm, node, first, 0);
	if (class)
		return class;
	const struct turn *theirs = turn_of(node, first);
	/* Two ranks that wait for each other's end would wait without end. */
	if (theirs->first != first)
		return adi_node_await_all(comm, node, 0);
	class = wait_for(comm, node, &node->shared->member[first].done, node->seq);
	if (class)
		return class;
	/* Then only their flags say who has entered. */
	if (theirs->failed)
		return adi_node_await_all(comm, node, 0);
	node->all_done = node->seq - 1; /* the rank `first` has seen the flags of all */
	/* It has probably written the first data of its broadcast or scatter too. Their line comes while this rank calls that. */
	__builtin_prefetch(&node->shared->member[first].slot[slot_number((node->call + 1) << NODE_STEP_BITS)]);
	return MPI_SUCCESS;
}

/* The rank next_root leaves first. Ranks may differ in which rank this is: follow_barrier. So each says it with its flag. */
static int meet_in_turn(const struct adi_comm *comm, struct node_state *node)
{
	int first = node->next_root;
	struct turn *mine = turn_of(node, comm->rank);
	*mine = (struct turn){ .first = first };
	adi_node_publish(comm, node, 0);
	if (first >= 0 && first != comm->rank)
		return leave_after(comm, node, first);
	int class = adi_node_await_all(comm, node, 0);
	if (class)
		mine->failed = 1;
	return class;
}

int adi_node_barrier(struct adi_comm *comm)
{
	struct node_state *node = comm->node;
	int class = adi_node_enter(comm, node);
	adi_schedule_none(comm);
	if (!class)
		class = adi_node_begin(comm, node, 0);
	if (class)
		return class;
	class = node->oversubscribed ? meet_in_turn(comm, node) : meet_all(comm, node);
	adi_node_leave(comm, node);
	return class;
}
