/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of copies in progress between host and device. Copies that are sent with their call are not in the table. The threads
 * that receive and send chunks find a copy here by its number, and calls that use host memory find the copies that use it.
 */
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define BUCKETS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_copy *buckets[BUCKETS];
static uint64_t later; /* asynchronous copies in progress; atomic */
static uint64_t newest; /* id of the newest copy of the process; atomic */
static pthread_cond_t chunk_has_ended = PTHREAD_COND_INITIALIZER;

uint64_t rc_copy_new_id(void)
{
	return __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
}

struct rc_copy *rc_copy_begin(struct rc_session *session, const struct rc_copy *host, const struct rc_link *link,
			      uint64_t *id)
{
	struct rc_copy *copy = malloc(sizeof *copy);
	if (!copy)
		return NULL;
	*copy = *host;
	*id = copy->id = rc_copy_new_id();
	copy->session = session;
	copy->link = link;
	copy->later = !link;
	copy->left = copy->unclaimed = rc_copy_bytes(copy);
	copy->receiving = 0;
	copy->ending = false;
	copy->forgotten = NULL;
	copy->listed = true;
	if (copy->later)
		__atomic_add_fetch(&later, 1, __ATOMIC_RELAXED);
	pthread_mutex_lock(&lock);
	copy->next = buckets[copy->id % BUCKETS];
	buckets[copy->id % BUCKETS] = copy;
	pthread_mutex_unlock(&lock);
	return copy;
}

/* Frees a copy that is not listed. If chunks of it are being received, the last of them frees it. Under the lock. */
static void free_if_unused(struct rc_copy *copy)
{
	if (!copy->listed && !copy->receiving)
		free(copy);
}

/* From now on no chunk may name the copy. May free *copy. Under the lock. */
static void unlist(struct rc_copy *copy)
{
	struct rc_copy **at = &buckets[copy->id % BUCKETS];
	while (*at != copy)
		at = &(*at)->next;
	*at = copy->next;
	copy->listed = false;
	if (copy->kept)
		__atomic_sub_fetch(&copy->session->staged, rc_copy_bytes(copy), __ATOMIC_RELAXED);
	if (copy->later) {
		__atomic_sub_fetch(&later, 1, __ATOMIC_RELAXED);
		pthread_cond_broadcast(&chunk_has_ended);
	}
	free_if_unused(copy);
}

void rc_copy_end(struct rc_copy *copy)
{
	pthread_mutex_lock(&lock);
	unlist(copy);
	pthread_mutex_unlock(&lock);
}

/*
 * Nothing that a server sends may make the client write to the memory of a copy that has ended. So a chunk claims its bytes
 * when it is announced, and the claims of a copy never exceed its size. Only the copy's own server may send it.
 * A copy that a call waits for takes chunks only from the call's own connection and only before the reply. Other copies
 * take chunks only from the data connection.
 */
static bool may_send(const struct rc_link *link, const struct rc_copy *copy)
{
	if (copy->session != link->session)
		return false;
	return copy->link ? copy->link == link && !link->answered : rc_data_is(link);
}

/* Under the lock. */
static struct rc_copy *copy_find(uint64_t id)
{
	struct rc_copy *copy = buckets[id % BUCKETS];
	while (copy && copy->id != id)
		copy = copy->next;
	return copy;
}

struct rc_copy *rc_copy_claim(const struct rc_link *link, uint64_t id, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct rc_copy *copy = copy_find(id);
	if (copy && (copy->up || !may_send(link, copy) || !bytes || bytes > copy->unclaimed))
		copy = NULL;
	if (copy) {
		copy->unclaimed -= bytes;
		copy->receiving++;
	}
	pthread_mutex_unlock(&lock);
	return copy;
}

/* True if no more bytes of an asynchronous copy come or go, as its session is lost. Under the lock. */
static bool is_over(const struct rc_copy *copy)
{
	return copy->listed && copy->later && !copy->receiving && __atomic_load_n(&copy->session->lost, __ATOMIC_SEQ_CST);
}

/* A chunk of this copy is no longer being received, or bytes of it are no longer being sent. Under the lock. */
static void chunk_ended(struct rc_copy *copy)
{
	copy->receiving--;
	if (copy->forgotten && !copy->receiving)
		--*copy->forgotten;
	/* Release pairs with the acquire in rc_copy_await_sources: the bytes were read before. */
	if (copy->ending && !copy->receiving) {
		__atomic_add_fetch(&copy->session->ended, 1, __ATOMIC_RELEASE);
		copy->ending = false;
	}
	if (is_over(copy))
		unlist(copy);
	else
		free_if_unused(copy);
	pthread_cond_broadcast(&chunk_has_ended);
}

void rc_copy_session_lost(struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS; i++)
		for (struct rc_copy *copy = buckets[i], *next; copy; copy = next) {
			next = copy->next;
			if (copy->session == session && is_over(copy))
				unlist(copy);
		}
	pthread_mutex_unlock(&lock);
}

void rc_copy_failed(struct rc_copy *copy)
{
	pthread_mutex_lock(&lock);
	chunk_ended(copy);
	pthread_mutex_unlock(&lock);
}

bool rc_copy_any_later(void)
{
	return __atomic_load_n(&later, __ATOMIC_RELAXED) > 0 || rc_peer_any_host();
}

uint64_t rc_copy_extent(const struct rc_copy *copy)
{
	return copy->width + (copy->depth - 1) * copy->slice + (copy->height - 1) * copy->pitch;
}

static bool overlaps(const struct rc_copy *copy, uint64_t address, uint64_t size)
{
	uint64_t first = (uint64_t)(uintptr_t)copy->host;
	return first < address + size && address < first + rc_copy_extent(copy);
}

/* An asynchronous copy into address..address+size-1; up: also one from there. Under the lock. */
static struct rc_copy *copy_into(uint64_t address, uint64_t size, bool up)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct rc_copy *copy = buckets[i]; copy; copy = copy->next)
			if (copy->later && (up || !copy->up) && overlaps(copy, address, size))
				return copy;
	return NULL;
}

static bool is_used(uint64_t address, uint64_t size, bool up)
{
	if (!rc_copy_any_later())
		return false;
	pthread_mutex_lock(&lock);
	bool found = copy_into(address, size, up) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

bool rc_copy_writes(uint64_t address, uint64_t size)
{
	return is_used(address, size, false) || rc_peer_writes_host(address, size);
}

bool rc_copy_brings(const struct rc_session *session)
{
	bool found = false;
	if (!__atomic_load_n(&later, __ATOMIC_RELAXED))
		return false;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < BUCKETS && !found; i++)
		for (struct rc_copy *copy = buckets[i]; copy && !found; copy = copy->next)
			found = copy->later && !copy->up && copy->session == session;
	pthread_mutex_unlock(&lock);
	return found;
}

/* True if the last bytes of a copy from there are being sent. Under the lock. */
static bool is_being_sent(uint64_t address, uint64_t size)
{
	for (int i = 0; i < BUCKETS; i++)
		for (struct rc_copy *copy = buckets[i]; copy; copy = copy->next)
			if (copy->up && !copy->unclaimed && copy->receiving && overlaps(copy, address, size))
				return true;
	return false;
}

bool rc_copy_pending(uint64_t address, uint64_t size)
{
	if (!rc_copy_any_later())
		return false;
	pthread_mutex_lock(&lock);
	/* The device may have the last bytes of a copy before the thread that has sent them says so. */
	while (is_being_sent(address, size))
		pthread_cond_wait(&chunk_has_ended, &lock);
	bool found = copy_into(address, size, true) != NULL;
	pthread_mutex_unlock(&lock);
	return found;
}

/* True if the current context's worker reports an error that stays: then copies may never end. */
static bool has_failed(void)
{
	struct rc_session *session = rc_context_session();
	if (!session)
		return true;
	__atomic_store_n(&session->sick, true, __ATOMIC_RELAXED); /* the next call asks */
	return rc_memory_health() != CUDA_SUCCESS;
}

void rc_copy_await_memory(uint64_t address, uint64_t size)
{
	struct rc_thread *thread = rc_thread_get();
	/* A thread of this library may be the one that makes such a copy. */
	if (!thread || !thread->own)
		rc_peer_settle_memory(address, size);
	while (rc_copy_pending(address, size)) {
		struct timespec until;
		rc_delay_flush_all(); /* the copies may not have been sent */
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec++;
		pthread_mutex_lock(&lock);
		int error = 0;
		while (!error && copy_into(address, size, true))
			error = pthread_cond_timedwait(&chunk_has_ended, &lock, &until);
		pthread_mutex_unlock(&lock);
		if (error && has_failed())
			return;
	}
}

static void synchronize(uint64_t handle, void *data, void *unused)
{
	(void)data;
	(void)unused;
	if (rc_copy_any_later() && cuCtxSynchronize_v2((CUcontext)(uintptr_t)handle) != CUDA_SUCCESS && rc_copy_any_later())
		cuCtxSynchronize_v2((CUcontext)(uintptr_t)handle); /* the first may report the failure of an earlier call */
}

void rc_copy_settle(void)
{
	rc_handle_each(RC_KIND_CONTEXT, synchronize, NULL);
}

struct rc_copy *rc_copy_claim_source(const struct rc_link *link, uint64_t id, uint64_t offset, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	struct rc_copy *copy = copy_find(id);
	if (copy && (!copy->up || !may_send(link, copy) || !bytes || bytes > copy->unclaimed ||
		     offset != rc_copy_bytes(copy) - copy->unclaimed))
		copy = NULL;
	if (copy) {
		copy->unclaimed -= bytes;
		copy->receiving++;
		copy->ending = !copy->unclaimed;
	}
	if (copy && copy->ending)
		__atomic_add_fetch(&copy->session->ending, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return copy;
}

/* One thread sends all copies, one after another. Copies that begin to send their last bytes later are not waited for. */
void rc_copy_await_sources(struct rc_session *session)
{
	uint64_t begun = __atomic_load_n(&session->ending, __ATOMIC_ACQUIRE);
	if (__atomic_load_n(&session->ended, __ATOMIC_ACQUIRE) >= begun)
		return;
	pthread_mutex_lock(&lock);
	while (__atomic_load_n(&session->ended, __ATOMIC_ACQUIRE) < begun)
		pthread_cond_wait(&chunk_has_ended, &lock);
	pthread_mutex_unlock(&lock);
}

void rc_copy_sent(struct rc_copy *copy, uint64_t bytes)
{
	pthread_mutex_lock(&lock);
	if (!__atomic_sub_fetch(&copy->left, bytes, __ATOMIC_ACQ_REL) && copy->listed)
		unlist(copy);
	chunk_ended(copy);
	pthread_mutex_unlock(&lock);
}

void rc_copy_forget(uint64_t address, uint64_t size)
{
	struct rc_copy *copy;
	unsigned receiving = 0; /* copies of which chunks are being received or sent */
	if (!rc_copy_any_later())
		return;
	pthread_mutex_lock(&lock);
	while ((copy = copy_into(address, size, true))) {
		if (copy->receiving) {
			copy->forgotten = &receiving;
			receiving++;
		}
		unlist(copy); /* chunks of it that are announced from now on are dropped */
	}
	while (receiving)
		pthread_cond_wait(&chunk_has_ended, &lock);
	pthread_mutex_unlock(&lock);
}

void rc_copy_arrived(struct rc_copy *copy, uint64_t bytes)
{
	struct rc_session *session = copy->later ? copy->session : NULL;
	pthread_mutex_lock(&lock);
	uint64_t left = __atomic_sub_fetch(&copy->left, bytes, __ATOMIC_ACQ_REL);
	if (!left && copy->later && copy->listed)
		unlist(copy);
	chunk_ended(copy);
	pthread_mutex_unlock(&lock);
	if (session)
		rc_link_chunk_arrived(session);
}

bool rc_copy_has_ended(const struct rc_link *link, uint64_t id)
{
	pthread_mutex_lock(&lock);
	bool ended = rc_data_is(link) && id && id <= __atomic_load_n(&newest, __ATOMIC_RELAXED) && !copy_find(id);
	pthread_mutex_unlock(&lock);
	return ended;
}

bool rc_copy_refused(const struct rc_link *link, uint64_t id)
{
	pthread_mutex_lock(&lock);
	struct rc_copy *copy = copy_find(id);
	bool found = copy && copy->later && may_send(link, copy);
	if (found)
		unlist(copy);
	pthread_mutex_unlock(&lock);
	if (found)
		rc_link_chunk_arrived(link->session);
	return found;
}
