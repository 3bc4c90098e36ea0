/* SPDX-License-Identifier: BSD-3-Clause */
/* process_vm_readv and process_vm_writev between the two ends of a pipe; the protocol is in single.h. */
#include "config.h"

#include "rdma_channel/shm/single.h"

#include "headrace/channel.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/clock.h"
#include "rdma_channel/host.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096u
#define UNIT_MIN 65536u   /* bytes: below it a call costs more than it is worth, except to halve a piece */
#define UNITS_MAX 4u      /* of one grant: two halves for most, as each call costs */
#define UNIT_MAX (4u << 20) /* but a call is to end soon, */
#define UNITS_LIMIT 32768u  /* and the word of the claims has 16 bits for them */
#define GRANT_MIN 16384u  /* bytes: less is pulled by the receiver alone */
#define SMALL_ROOM 4096u  /* a caller that asks for less of a large piece is served from the ring */

/* A peer that did something so short a time ago is the process it was: numbers do not go round so fast. */
#define FRESH_NS (20 * HR_NS_PER_MS)

/* ---- processes ---- */

void shm_identity_open(struct shm_identity *identity)
{
	*identity = (struct shm_identity){ NULL, getpid() };
	void *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED)
		return;
	uint64_t token;
	if (madvise(page, PAGE, MADV_WIPEONFORK) || hr_random_bytes(&token, sizeof token)) {
		munmap(page, PAGE);
		return;
	}
	identity->token = page;
	*identity->token = token | 1; /* never zero, which says "a child" */
}

void shm_identity_close(struct shm_identity *identity)
{
	if (identity->token)
		munmap(identity->token, PAGE);
	identity->token = NULL;
}

static bool is_child(const struct shm_identity *identity)
{
	return !identity->token || !*(volatile uint64_t *)identity->token;
}

static void unreachable(struct shm_process *process, const char *call, const char *why)
{
	if (process->reachable)
		hr_log(HR_LOG_INFO, "shm: peer %s: %s: %s; no single copy, large messages go through the ring", process->name, call, why);
	process->reachable = false;
}

/* Reads length bytes of the process's memory, and its token with them. False: not all of it, or another process's. */
static bool pull(struct shm_process *process, uint64_t address, void *to, size_t length)
{
	uint64_t token = 0;
	struct iovec here[2] = { { to, length }, { &token, sizeof token } };
	struct iovec there[2] = { { (void *)(uintptr_t)address, length },
				  { (void *)(uintptr_t)process->token_address, sizeof token } };
	ssize_t n = process_vm_readv(process->pid, here, 2, there, 2, 0);
	if (n == (ssize_t)(length + sizeof token) && token == process->token)
		return true;
	const char *why = n < 0 ? strerror(errno)
			: n < (ssize_t)(length + sizeof token) ? "not all of it could be read"
							       : "another process has its number";
	unreachable(process, "process_vm_readv", why);
	return false;
}

/* Is it still the same process? It is unreachable from now on if not. */
static bool is_same(struct shm_process *process)
{
	uint64_t token;
	return pull(process, process->token_address, &token, sizeof token);
}

void shm_process_probe(struct shm_process *process)
{
	process->reachable = process->pid > 0 && process->token && process->self->token;
	if (process->reachable)
		is_same(process);
}

/* ---- units ---- */

struct claims {
	uint32_t generation, back, left;
};

static struct claims claims_of(uint64_t word)
{
	return (struct claims){ (uint32_t)(word >> 32), (uint32_t)word >> 16, (uint32_t)word & 0xffff };
}

static uint64_t word_of(struct claims claims)
{
	return (uint64_t)claims.generation << 32 | claims.back << 16 | claims.left;
}

/* A power of two, at least a page: two units of a short piece, more of a long one. */
static size_t unit_for(size_t length)
{
	size_t unit = UNIT_MIN;
	while (unit >= length && unit > PAGE)
		unit /= 2;
	while (length / unit >= UNITS_MAX && (unit < UNIT_MAX || length / unit > UNITS_LIMIT))
		unit *= 2;
	return unit;
}

static size_t unit_length(size_t index, size_t unit, size_t length)
{
	size_t start = index * unit;
	return length - start < unit ? length - start : unit;
}

/* ---- sender ---- */

bool shm_pusher_ready(const struct shm_pusher *pusher)
{
	/* Relaxed: the receiver stores it once before the connection is up, and later only takes it back, which it may
	 * do at any time. */
	return __atomic_load_n(&pusher->control->pulls, __ATOMIC_RELAXED) && !is_child(pusher->peer->self);
}

struct shm_offer shm_pusher_offer(struct shm_pusher *pusher, const void *from, size_t length)
{
	pusher->from = from;
	pusher->length = length;
	pusher->number++;
	pusher->open = true;
	pusher->seen_at = hr_now_coarse_ns();
	/* Relaxed: the offer's record is published after it. */
	__atomic_store_n(&pusher->control->offered, 2 * pusher->number, __ATOMIC_RELAXED);
	return (struct shm_offer){ (uintptr_t)from, length, pusher->number, 0 };
}

/* Copies the index-th unit of the grant into the receiver's memory. */
static bool push_unit(const struct shm_pusher *pusher, const struct shm_grant *grant, size_t index)
{
	size_t start = index * grant->unit, count = unit_length(index, grant->unit, grant->length);
	struct iovec here = { (void *)(pusher->from + grant->offset + start), count };
	struct iovec there = { (void *)(uintptr_t)(grant->address + start), count };
	return process_vm_writev(pusher->peer->pid, &here, 1, &there, 1, 0) == (ssize_t)count;
}

static uint64_t units_of(const struct shm_grant *grant)
{
	return grant->unit ? grant->length / grant->unit + (grant->length % grant->unit != 0) : 0;
}

/* Takes a unit from the back, if there is one. */
static bool claim_back(struct shm_control *control, struct shm_grant *grant, struct claims *claims)
{
	/* Acquire: pairs with the release in open_grant; the grant is read after it. */
	uint64_t seen = __atomic_load_n(&control->claims, __ATOMIC_ACQUIRE);
	do {
		*claims = claims_of(seen);
		if (!claims->left)
			return false;
		/* A count told 2^32 grants ago would pass for one of this grant. Relaxed: the exchange below releases
		 * it to a receiver that sees a unit taken. */
		if (!claims->back && __atomic_load_n(&control->pushed, __ATOMIC_RELAXED) >> 32 == claims->generation)
			__atomic_store_n(&control->pushed, (uint64_t)claims->generation << 32, __ATOMIC_RELAXED);
		*grant = control->grant;
		claims->back++;
		claims->left--;
		/* Success means that the grant read above is this word's: the receiver writes the next one only when
		 * the word says that none is left. Release: it was read before; acquire on failure: as above. */
	} while (!__atomic_compare_exchange_n(&control->claims, &seen, word_of(*claims), true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return true;
}

/*
 * Is there a unit to take, and a process to write it to that is the peer? A grant may have lain there for long when
 * this side's caller puts again, and the peer's number be another's by now. Asked before a unit is taken: a receiver
 * that closes takes those that are left away first.
 */
static bool may_push(struct shm_pusher *pusher)
{
	uint64_t now = hr_now_coarse_ns();
	/* Relaxed: claim_back looks again. */
	if (!claims_of(__atomic_load_n(&pusher->control->claims, __ATOMIC_RELAXED)).left) {
		pusher->seen_at = now; /* what is opened from now on, a peer opens that lives now */
		return false;
	}
	if (now - pusher->seen_at < FRESH_NS)
		return true;
	pusher->seen_at = now;
	return is_same(pusher->peer);
}

bool shm_pusher_work(struct shm_pusher *pusher)
{
	struct shm_control *control = pusher->control;
	struct shm_grant grant;
	struct claims claims;
	while (pusher->peer->reachable && may_push(pusher) && claim_back(control, &grant, &claims)) {
		/* Its own memory outside of what it offered is not the peer's to ask for. */
		if (grant.offset > pusher->length || grant.length > pusher->length - grant.offset ||
		    claims.back > units_of(&grant))
			return false;
		uint32_t pushed = claims.back;
		if (!push_unit(pusher, &grant, units_of(&grant) - claims.back)) {
			unreachable(pusher->peer, "process_vm_writev", strerror(errno));
			pushed = (pushed - 1) | SHM_PUSH_FAILED;
		}
		/* Release: the bytes are in place for whoever sees the count; pairs with settled. */
		__atomic_store_n(&control->pushed, (uint64_t)claims.generation << 32 | pushed, __ATOMIC_RELEASE);
	}
	return true;
}

bool shm_pusher_pending(const struct shm_pusher *pusher)
{
	const struct shm_control *control = pusher->control;
	/* Relaxed: shm_pusher_answered and shm_pusher_work look again. */
	if (__atomic_load_n(&control->answer, __ATOMIC_RELAXED) == pusher->number)
		return true;
	return pusher->peer->reachable && claims_of(__atomic_load_n(&control->claims, __ATOMIC_RELAXED)).left > 0;
}

int shm_pusher_answered(struct shm_pusher *pusher, size_t *taken)
{
	/* Acquire: pairs with the release in answer; the bytes are read after it. */
	if (__atomic_load_n(&pusher->control->answer, __ATOMIC_ACQUIRE) != pusher->number)
		return 0;
	uint64_t bytes = pusher->control->answer_bytes;
	pusher->open = false;
	if (bytes > pusher->length)
		return -1;
	*taken = bytes;
	return 1;
}

bool shm_pusher_take_back(struct shm_pusher *pusher)
{
	uint32_t offered = 2 * pusher->number;
	/* Relaxed: a receiver that loses does nothing with the offer, and what follows goes through the ring. */
	if (!__atomic_compare_exchange_n(&pusher->control->offered, &offered, offered + 1, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	pusher->open = false;
	return true;
}

void shm_pusher_revoke(struct shm_pusher *pusher)
{
	if (!pusher->open)
		return;
	__atomic_store_n(&pusher->control->revoked, 1, __ATOMIC_RELAXED);
	/* Release: before whatever the caller stores into its buffer next; pairs with was_revoked. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	pusher->open = false;
}

/* ---- receiver ---- */

bool shm_puller_begin(struct shm_puller *puller, const struct shm_offer *offer)
{
	if (!offer->length || offer->length > SIZE_MAX / 2)
		return false;
	uint32_t offered = 2 * offer->number;
	/* Relaxed: the record was read with acquire, and nothing else is read before the peer's memory. */
	puller->open = __atomic_compare_exchange_n(&puller->control->offered, &offered, offered + 1, false,
						   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	/* The sender does not ask for it any more. But an answer that stays for 2^32 offers, all of them taken back,
	 * would pass for the next one's. Relaxed: it says nothing else. */
	if (!puller->open)
		__atomic_store_n(&puller->control->answer, offer->number, __ATOMIC_RELAXED);
	puller->address = offer->address;
	puller->length = offer->length;
	puller->number = offer->number;
	puller->done = 0;
	return true;
}

/* Were the bytes that have just been read perhaps no longer the sender's? */
static bool was_revoked(const struct shm_puller *puller)
{
	/* Acquire: the bytes were read before; pairs with shm_pusher_revoke. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&puller->control->revoked, __ATOMIC_RELAXED);
}

/* The peer can be reached, and addresses of this process are what the peer takes for them. */
static bool can_copy(const struct shm_puller *puller)
{
	return puller->peer->reachable && !is_child(puller->peer->self);
}

/* Tells the sender that it may go on: the offer's bytes up to done have been delivered. */
static void answer(struct shm_puller *puller)
{
	struct shm_control *control = puller->control;
	if (!can_copy(puller))
		__atomic_store_n(&control->pulls, 0, __ATOMIC_RELAXED); /* ordered by the release below */
	control->answer_bytes = puller->done;
	/* Release: the count is there, and the bytes have been read; pairs with shm_pusher_answered. */
	__atomic_store_n(&control->answer, puller->number, __ATOMIC_RELEASE);
	puller->open = false;
}

static void open_grant(struct shm_puller *puller, void *to, size_t length)
{
	struct shm_grant *grant = &puller->grant;
	*grant = (struct shm_grant){ (uintptr_t)to, puller->done, length, unit_for(length) };
	puller->granted = true;
	puller->units = (uint32_t)units_of(grant);
	puller->front = 0;
	puller->reported = 0;
	puller->first = true;
	puller->generation++;
	puller->control->grant = *grant;
	/* The first unit is the receiver's from the start. Release: the grant is there for whoever sees the word; pairs
	 * with claim_back. */
	__atomic_store_n(&puller->control->claims, word_of((struct claims){ puller->generation, 0, puller->units - 1 }),
			 __ATOMIC_RELEASE);
}

/* Takes a unit from the front (all that are left: `all`). 1: done; 0: none is left; -EPROTO: no peer writes that. */
static int claim_front(struct shm_puller *puller, bool all, struct claims *claims)
{
	/* Acquire, here and below: pairs with the release in claim_back; settled reads pushed after it. */
	uint64_t seen = __atomic_load_n(&puller->control->claims, __ATOMIC_ACQUIRE);
	do {
		*claims = claims_of(seen);
		if (claims->generation != puller->generation || claims->back + claims->left > puller->units)
			return -EPROTO;
		if (!claims->left)
			return 0;
		claims->left = all ? 0 : claims->left - 1;
	} while (!__atomic_compare_exchange_n(&puller->control->claims, &seen, word_of(*claims), true,
					      __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE));
	return 1;
}

/* Has the sender done with the units that it took? *pushed: how many of them are in place. */
static bool settled(const struct shm_puller *puller, const struct claims *claims, uint32_t *pushed)
{
	*pushed = 0;
	if (claims->back == 0)
		return true;
	/* Acquire: pairs with the release in shm_pusher_work; the bytes are in place after it. */
	uint64_t word = __atomic_load_n(&puller->control->pushed, __ATOMIC_ACQUIRE);
	if ((uint32_t)(word >> 32) != puller->generation)
		return false;
	*pushed = (uint32_t)word & ~SHM_PUSH_FAILED;
	if (*pushed > claims->back)
		*pushed = claims->back;
	return *pushed == claims->back || (uint32_t)word & SHM_PUSH_FAILED;
}

static bool pull_units(struct shm_puller *puller, uint32_t from, uint32_t to)
{
	const struct shm_grant *grant = &puller->grant;
	size_t start = from * grant->unit, end = to * grant->unit;
	end = end < grant->length ? end : grant->length;
	return end <= start || pull(puller->peer, puller->address + grant->offset + start,
				    (void *)(uintptr_t)(grant->address + start), end - start);
}

/* Pulls what the sender does not push. 1: all of the grant is in place; 0: not yet, or never, if the peer has become
 * unreachable; -EPROTO. *waits: the sender is still writing. */
static int pull_grant(struct shm_puller *puller, bool *waits)
{
	struct claims claims;
	uint32_t pushed;
	int more;
	if (puller->first && pull_units(puller, 0, 1))
		puller->front = 1;
	puller->first = false;
	while ((more = claim_front(puller, !puller->peer->reachable, &claims)) == 1) {
		if (!puller->peer->reachable || !pull_units(puller, puller->front, puller->front + 1))
			continue; /* takes the rest, so that the sender takes no more of it */
		puller->front++;
	}
	if (more < 0)
		return more;
	*waits = !settled(puller, &claims, &pushed);
	if (*waits || !puller->peer->reachable)
		return 0;
	/* What the sender took and could not push. */
	if (!pull_units(puller, puller->units - claims.back, puller->units - pushed))
		return 0;
	return puller->front + claims.back == puller->units;
}

/* How much of the grant may be called delivered: while the sender may be writing into it, so little that the caller
 * must go on with the same memory. */
static size_t deliverable(const struct shm_puller *puller, bool whole, bool waits)
{
	size_t length = puller->grant.length, front = puller->front * puller->grant.unit;
	if (whole)
		return length;
	size_t most = waits ? length - (length < HR_ZERO_COPY_MIN ? length : HR_ZERO_COPY_MIN) : length;
	return front < most ? front : most;
}

static ssize_t take_granted(struct shm_puller *puller)
{
	bool waits = false;
	int whole = pull_grant(puller, &waits);
	if (whole < 0)
		return whole;
	size_t upto = deliverable(puller, whole, waits);
	if (was_revoked(puller)) {
		puller->open = false;
		return 0;
	}
	size_t count = upto > puller->reported ? upto - puller->reported : 0;
	puller->reported += count;
	puller->done += count;
	if (!waits)
		puller->granted = false;
	return (ssize_t)count;
}

/* A part too short to be worth a grant. */
static size_t take_short(struct shm_puller *puller, void *to, size_t length)
{
	if (!pull(puller->peer, puller->address + puller->done, to, length))
		return 0;
	if (was_revoked(puller)) {
		puller->open = false;
		return 0;
	}
	puller->done += length;
	return length;
}

ssize_t shm_puller_take(struct shm_puller *puller, void *to, size_t room, bool early)
{
	size_t left = puller->length - puller->done, wanted = left < room ? left : room;
	ssize_t count = 0;
	/* In a copy of the process that granted the memory is another. */
	if (puller->granted && is_child(puller->peer->self) && !shm_puller_withdraw(puller))
		return 0;
	if (puller->granted && ((uintptr_t)to != puller->grant.address + puller->reported ||
				wanted < puller->grant.length - puller->reported)) {
		/* The sender takes no more of it; what it has taken it is writing. */
		shm_puller_withdraw(puller);
		return -EINVAL;
	}
	if (!puller->granted && early && wanted < left && wanted < HR_ZERO_COPY_MIN)
		return 0;
	if (!puller->granted && (!can_copy(puller) || (wanted < left && wanted < SMALL_ROOM))) {
		answer(puller);
		return 0;
	}
	if (!puller->granted && wanted < GRANT_MIN) {
		count = (ssize_t)take_short(puller, to, wanted);
	} else {
		if (!puller->granted)
			open_grant(puller, to, wanted);
		count = take_granted(puller);
	}
	if (count >= 0 && puller->open && !puller->granted &&
	    (puller->done == puller->length || !puller->peer->reachable))
		answer(puller);
	return count;
}

bool shm_puller_withdraw(struct shm_puller *puller)
{
	struct claims claims;
	uint32_t pushed;
	if (!puller->granted)
		return true;
	/* A word that no peer writes: whatever it does now, waiting would not help. */
	if (claim_front(puller, true, &claims) >= 0 && !settled(puller, &claims, &pushed))
		return false;
	puller->granted = false;
	return true;
}
