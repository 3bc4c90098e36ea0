/* SPDX-License-Identifier: BSD-3-Clause */
/* Single copy: process_vm_readv and process_vm_writev between the two sides of a pipe. single.h has the protocol. */
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
#define UNIT_MIN 65536u   /* bytes; a shorter unit is not worth its system call, unless it halves a short piece */
#define UNITS_MAX 4u      /* of a grant whose units are shorter than UNIT_MAX, as each unit costs a system call */
#define UNIT_MAX (4u << 20) /* bytes; from here on more units instead of longer ones, so that each call ends soon */
#define UNITS_LIMIT 32768u  /* claims has 16 bits for the number of units */
#define GRANT_MIN 16384u  /* bytes; the receiver pulls a shorter part alone, without a grant */
#define SMALL_ROOM 4096u  /* bytes; if a get has less room than this, the rest of the piece goes through the ring */

/* If the peer was seen within this time, its pid still names the same process: pids are not reused so soon. */
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
	*identity->token = token | 1; /* never zero: zero means a forked child */
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
		hr_log(HR_LOG_INFO, "shm: peer %s: %s: %s; no single copy, large messages go through the ring", process->name, call,
		       why);
	process->reachable = false;
}

/* Reads length bytes of the process's memory together with its token. False: not everything could be read, or the pid
 * now names another process. */
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
							       : "another process has its pid";
	unreachable(process, "process_vm_readv", why);
	return false;
}

/* Returns whether the pid still names the same process. If not, the process is unreachable from now on. */
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

/* Returns the size of a unit for a grant of length bytes: a power of two, at least a page. A short grant gets two
 * units, a long grant more. */
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

void shm_pusher_init(struct shm_pusher *pusher, struct shm_control *control, struct shm_process *peer, uint32_t most)
{
	*pusher = (struct shm_pusher){ .control = control, .peer = peer, .most = most, .first = 1, .end = 1 };
}

static struct shm_offered *offer_of(struct shm_pusher *pusher, uint32_t number)
{
	return &pusher->offer[number % SHM_OFFERS_MAX];
}

static bool is_open(const struct shm_pusher *pusher, uint32_t number)
{
	return number - pusher->first < pusher->end - pusher->first;
}

uint64_t shm_pusher_bytes(const struct shm_pusher *pusher)
{
	uint64_t bytes = 0;
	for (uint32_t number = pusher->first; number != pusher->end; number++)
		bytes += pusher->offer[number % SHM_OFFERS_MAX].length;
	return bytes;
}

bool shm_pusher_ready(const struct shm_pusher *pusher)
{
	/* Relaxed: the receiver sets it at most once, before the connection is up. It may clear it at any time later;
	 * an offer made after that is answered with 0 bytes. */
	return pusher->end - pusher->first < pusher->most &&
	       __atomic_load_n(&pusher->control->pulls, __ATOMIC_RELAXED) && !is_child(pusher->peer->self);
}

struct shm_offer shm_pusher_offer(struct shm_pusher *pusher, const void *from, size_t length, uint64_t start)
{
	uint32_t number = pusher->end++;
	bool alone = number == pusher->first;
	*offer_of(pusher, number) = (struct shm_offered){ from, length, start };
	/* Not if an earlier offer is open: its grant may be old. */
	if (alone)
		pusher->seen_at = hr_now_coarse_ns();
	/* Relaxed: nobody reads it. It brings the line of taken_up to this processor, for the receiver to measure. */
	__atomic_store_n(&pusher->control->made, number, __ATOMIC_RELAXED);
	return (struct shm_offer){ (uintptr_t)from, length, number, alone };
}

/* Copies the index-th unit of the grant into the receiver's memory. */
static bool push_unit(struct shm_pusher *pusher, const struct shm_grant *grant, size_t index)
{
	const uint8_t *from = offer_of(pusher, (uint32_t)grant->number)->from;
	size_t start = index * grant->unit, count = unit_length(index, grant->unit, grant->length);
	struct iovec here = { (void *)(from + grant->offset + start), count };
	struct iovec there = { (void *)(uintptr_t)(grant->address + start), count };
	return process_vm_writev(pusher->peer->pid, &here, 1, &there, 1, 0) == (ssize_t)count;
}

static uint64_t units_of(const struct shm_grant *grant)
{
	return grant->unit ? grant->length / grant->unit + (grant->length % grant->unit != 0) : 0;
}

/* Takes a unit from the back. False: none is left. */
static bool claim_back(struct shm_control *control, struct shm_grant *grant, struct claims *claims)
{
	/* Acquire: the grant is read later; pairs with the release in open_grant. */
	uint64_t seen = __atomic_load_n(&control->claims, __ATOMIC_ACQUIRE);
	do {
		*claims = claims_of(seen);
		if (!claims->left)
			return false;
		/* The generation wraps: a count stored 2^32 grants ago would look like a count of this grant. Clear it.
		 * Relaxed: a receiver that sees a unit taken by the exchange below, which releases, sees this too. */
		if (!claims->back && __atomic_load_n(&control->pushed, __ATOMIC_RELAXED) >> 32 == claims->generation)
			__atomic_store_n(&control->pushed, (uint64_t)claims->generation << 32, __ATOMIC_RELAXED);
		*grant = control->grant;
		claims->back++;
		claims->left--;
		/* If the exchange succeeds, the grant read above belongs to this word: the receiver writes the next
		 * grant only after no unit is left in the word. Release: the grant was read before it. Acquire on
		 * failure: as for the first load. */
	} while (!__atomic_compare_exchange_n(&control->claims, &seen, word_of(*claims), true, __ATOMIC_ACQ_REL,
					      __ATOMIC_ACQUIRE));
	return true;
}

/*
 * Returns whether there is a unit to take and the peer's pid still names the peer. A grant may be old when this side's
 * caller puts again, and the system may have given the pid to another process. Call this before taking a unit: a
 * receiver that closes takes the remaining units first, so an untaken unit shows that it has not closed.
 */
static bool may_push(struct shm_pusher *pusher)
{
	uint64_t now = hr_now_coarse_ns();
	/* Relaxed: claim_back looks again. */
	if (!claims_of(__atomic_load_n(&pusher->control->claims, __ATOMIC_RELAXED)).left) {
		pusher->seen_at = now; /* a grant opened after this moment shows that the peer lives now */
		return false;
	}
	if (now - pusher->seen_at < FRESH_NS)
		return true;
	pusher->seen_at = now;
	return is_same(pusher->peer);
}

/* Returns whether the peer asks only for bytes of an offered piece, not for other memory of this process. */
static bool is_valid(struct shm_pusher *pusher, const struct shm_grant *grant, const struct claims *claims)
{
	if (grant->number > UINT32_MAX || !is_open(pusher, (uint32_t)grant->number))
		return false;
	size_t length = offer_of(pusher, (uint32_t)grant->number)->length;
	return grant->offset <= length && grant->length <= length - grant->offset && claims->back <= units_of(grant);
}

bool shm_pusher_work(struct shm_pusher *pusher)
{
	struct shm_control *control = pusher->control;
	struct shm_grant grant;
	struct claims claims;
	while (pusher->peer->reachable && may_push(pusher) && claim_back(control, &grant, &claims)) {
		if (!is_valid(pusher, &grant, &claims))
			return false;
		uint32_t pushed = claims.back;
		if (!push_unit(pusher, &grant, units_of(&grant) - claims.back)) {
			unreachable(pusher->peer, "process_vm_writev", strerror(errno));
			pushed = (pushed - 1) | SHM_PUSH_FAILED;
		}
		/* Release: a receiver that sees the count sees the bytes; pairs with settled. */
		__atomic_store_n(&control->pushed, (uint64_t)claims.generation << 32 | pushed, __ATOMIC_RELEASE);
	}
	return true;
}

bool shm_pusher_pending(const struct shm_pusher *pusher)
{
	const struct shm_control *control = pusher->control;
	/* Relaxed: shm_pusher_answered and shm_pusher_work load these words again. */
	if (is_open(pusher, (uint32_t)(__atomic_load_n(&control->answer, __ATOMIC_RELAXED) >> 32)))
		return true;
	return pusher->peer->reachable && claims_of(__atomic_load_n(&control->claims, __ATOMIC_RELAXED)).left > 0;
}

int shm_pusher_answered(struct shm_pusher *pusher, struct shm_answer *answer)
{
	/* Acquire: answer_bytes is read later; pairs with the release in answer. */
	uint64_t word = __atomic_load_n(&pusher->control->answer, __ATOMIC_ACQUIRE);
	uint32_t number = (uint32_t)(word >> 32);
	if (!is_open(pusher, number))
		return 0;
	const struct shm_offered *last = offer_of(pusher, number);
	*answer = (struct shm_answer){ .early = word & 1 };
	uint64_t taken = answer->early ? pusher->control->answer_bytes : last->length;
	if (answer->early && taken >= last->length)
		return -1;
	answer->upto = last->start + taken;
	answer->rest = last->length - taken;
	answer->offers = number - pusher->first + (taken > 0);
	for (answer->bytes = taken; pusher->first != number; pusher->first++)
		answer->bytes += offer_of(pusher, pusher->first)->length;
	pusher->first = answer->early ? pusher->end : number + 1;
	/* Relaxed: the receiver takes up no offer before the next one, whose record is published later, with release. */
	if (answer->early)
		__atomic_store_n(&pusher->control->taken_up, pusher->end - 1, __ATOMIC_RELAXED);
	return 1;
}

bool shm_pusher_take_back(struct shm_pusher *pusher)
{
	uint32_t before = pusher->first - 1;
	/* Relaxed: if the exchange succeeds, the receiver takes up none of the offers, and the bytes go through the ring,
	 * which has its own ordering. */
	if (!__atomic_compare_exchange_n(&pusher->control->taken_up, &before, pusher->end - 1, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED))
		return false;
	pusher->first = pusher->end;
	return true;
}

void shm_pusher_revoke(struct shm_pusher *pusher)
{
	if (!shm_pusher_open(pusher))
		return;
	__atomic_store_n(&pusher->control->revoked, 1, __ATOMIC_RELAXED);
	/* Release: the caller's later stores into the buffer come after the store above; pairs with was_revoked. */
	__atomic_thread_fence(__ATOMIC_RELEASE);
	pusher->first = pusher->end;
}

/* ---- receiver ---- */

bool shm_puller_begin(struct shm_puller *puller, const struct shm_offer *offer)
{
	if (!offer->length || offer->length > SIZE_MAX / 2)
		return false;
	uint32_t before = offer->number - 1;
	/* Relaxed: the record was read with acquire, and the next access is a system call on the peer's memory. */
	puller->open = __atomic_compare_exchange_n(&puller->control->taken_up, &before, offer->number, false,
						   __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	puller->drops = !puller->open;
	/* The sender has taken the offer back and no longer looks for its answer. Store the number all the same: if
	 * 2^32 offers in sequence were taken back, the last answer would look like an answer to the next offer.
	 * Relaxed: nothing else is read because of it. */
	if (!puller->open)
		__atomic_store_n(&puller->control->answer, (uint64_t)offer->number << 32, __ATOMIC_RELAXED);
	puller->address = offer->address;
	puller->length = offer->length;
	puller->number = offer->number;
	puller->done = 0;
	return true;
}

/* Returns whether the sender had revoked the offer, so that the bytes just read may be wrong. */
static bool was_revoked(const struct shm_puller *puller)
{
	/* Acquire: the bytes are read before the load below; pairs with shm_pusher_revoke. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&puller->control->revoked, __ATOMIC_RELAXED);
}

/* Returns whether the peer can be reached, and this process is the one whose memory the peer accesses, not a forked
 * child of it. */
static bool can_copy(const struct shm_puller *puller)
{
	return puller->peer->reachable && !is_child(puller->peer->self);
}

/* The sender has revoked its offers. It ends, so what is in the ring behind this offer is not delivered. */
static void end_revoked(struct shm_puller *puller)
{
	puller->open = false;
	puller->drops = true;
}

/* Answers the offer: its first `done` bytes have been delivered. If that is not all of it, the sender goes back. */
static void answer(struct shm_puller *puller)
{
	struct shm_control *control = puller->control;
	if (!can_copy(puller))
		__atomic_store_n(&control->pulls, 0, __ATOMIC_RELAXED); /* ordered by the release below */
	puller->drops = puller->done < puller->length;
	/* Stored only before an early answer: the sender could read the bytes of a later answer with this one's number. */
	if (puller->drops)
		control->answer_bytes = puller->done;
	/* Release: answer_bytes was stored and the bytes were read before it; pairs with shm_pusher_answered. */
	__atomic_store_n(&control->answer, (uint64_t)puller->number << 32 | puller->drops, __ATOMIC_RELEASE);
	puller->open = false;
}

static void open_grant(struct shm_puller *puller, void *to, size_t length, bool alone)
{
	struct shm_grant *grant = &puller->grant;
	/* The receiver has the first unit from the start, so a grant of one unit leaves none to the sender. */
	size_t unit = alone && length <= UNIT_MAX ? UNIT_MAX : unit_for(length);
	*grant = (struct shm_grant){ (uintptr_t)to, puller->done, length, unit, puller->number };
	puller->granted = true;
	puller->units = (uint32_t)units_of(grant);
	puller->front = 0;
	puller->reported = 0;
	puller->first = true;
	puller->generation++;
	puller->control->grant = *grant;
	/* The receiver has the first unit from the start. Release: a sender that sees the word sees the grant; pairs
	 * with claim_back. */
	__atomic_store_n(&puller->control->claims, word_of((struct claims){ puller->generation, 0, puller->units - 1 }),
			 __ATOMIC_RELEASE);
}

/* Takes a unit from the front; with `all`, every unit that is left. Returns 1 if it took any, 0 if none is left,
 * -EPROTO if the peer wrote an invalid word. */
static int claim_front(struct shm_puller *puller, bool all, struct claims *claims)
{
	/* Acquire, here and below: settled reads pushed later; pairs with the release in claim_back. */
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

/* Returns whether the sender has finished with the units that it took. *pushed: how many of them it has copied. */
static bool settled(const struct shm_puller *puller, const struct claims *claims, uint32_t *pushed)
{
	*pushed = 0;
	if (claims->back == 0)
		return true;
	/* Acquire: the bytes that the sender copied are visible after it; pairs with the release in shm_pusher_work. */
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

/* Pulls the units that the sender does not push. Returns 1 if the whole grant has been copied; 0 if not yet, or never
 * because the peer has become unreachable; -EPROTO if the peer wrote an invalid word. *waits: the sender is still
 * writing. */
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
			continue; /* unreachable: the next pass takes all units, so that the sender takes no more */
		puller->front++;
	}
	if (more < 0)
		return more;
	*waits = !settled(puller, &claims, &pushed);
	if (*waits || !puller->peer->reachable)
		return 0;
	/* The units that the sender took and could not push. */
	if (!pull_units(puller, puller->units - claims.back, puller->units - pushed))
		return 0;
	return puller->front + claims.back == puller->units;
}

/* Returns how many bytes of the grant get may report as delivered. While the sender may be writing into the grant, at
 * least HR_ZERO_COPY_MIN bytes are held back, so that the caller must go on with the same memory. */
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
		end_revoked(puller);
		return 0;
	}
	size_t count = upto > puller->reported ? upto - puller->reported : 0;
	puller->reported += count;
	puller->done += count;
	if (!waits)
		puller->granted = false;
	return (ssize_t)count;
}

/* Pulls a part that is too short for a grant. */
static size_t take_short(struct shm_puller *puller, void *to, size_t length)
{
	if (!pull(puller->peer, puller->address + puller->done, to, length))
		return 0;
	if (was_revoked(puller)) {
		end_revoked(puller);
		return 0;
	}
	puller->done += length;
	return length;
}

ssize_t shm_puller_take(struct shm_puller *puller, void *to, size_t room, bool early, bool alone)
{
	size_t left = puller->length - puller->done, wanted = left < room ? left : room;
	ssize_t count = 0;
	/* In a forked child of the process that made the grant, the address means other memory. */
	if (puller->granted && is_child(puller->peer->self) && !shm_puller_withdraw(puller))
		return 0;
	if (puller->granted && ((uintptr_t)to != puller->grant.address + puller->reported ||
				wanted < puller->grant.length - puller->reported)) {
		/* From now on the sender takes no unit; it may still be writing a unit that it took before. */
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
			open_grant(puller, to, wanted, alone);
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
	/* If claims is invalid, waiting does not help. */
	if (claim_front(puller, true, &claims) >= 0 && !settled(puller, &claims, &pushed))
		return false;
	puller->granted = false;
	return true;
}
