/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the bytes of managed memory travel between this process and a server on another host.
 *
 * Up: before a call that gives the device work. CUDA forbids the host to use such memory while kernels run, unless the memory is
 * attached to the host or to one stream. So without attached memory it suffices to look for changes from a wait on until the
 * first launch after it, at each such call. If there is little memory, each such call looks, for programs that do not keep to
 * the rule.
 * A word: before a call that waits for work, if it is the only change: a kernel may wait for the word (send_word).
 * Down: after a call that has waited for work, if any work was given since the last such wait for all work.
 */
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include "cuda_remote/mirror/mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* If no more than this number of bytes must be compared, each launch looks for changes. If the kernel reports written pages,
 * TRACKED bytes cost as much time as one byte that is compared. */
#define LITTLE ((uint64_t)1 << 20)
#define TRACKED 16
/* If a session has no more than this number of bytes of mirrors, a single change is looked for before a call that waits. */
#define WATCHED ((uint64_t)4 << 20)

enum support { UNKNOWN, SUPPORTED, UNSUPPORTED };

/* Of one session. */
struct state {
	enum support support; /* atomic */
	uint64_t work;    /* calls so far that gave the device work; atomic */
	uint64_t fetched; /* the changes of this number of calls, counted from the first, were fetched; atomic */
	bool waited;      /* no kernel was launched since the last wait, so the host may change memory; atomic */
	uint64_t effort;  /* sum over its mirrors of the bytes to compare; under the lock, as the next two */
	unsigned mirrors;
	unsigned attached;
	unsigned promoted; /* of pinned memory, in memory of the worker's host */
	uint64_t bytes;    /* sum over its mirrors */
	bool both;         /* program and device have both changed a byte of managed memory, and no call has said so; under the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mirror_table table;
static struct state states[RC_SERVER_MAX];
static uint8_t *outgoing; /* RC_MIRROR_PUSH bytes; under the lock */
static uint64_t live;     /* mirrors; atomic */

bool rc_mirror_any(void)
{
	return __atomic_load_n(&live, __ATOMIC_RELAXED);
}

/* ---- the table ---- */

static void count(const struct mirror *mirror, bool more)
{
	const struct rc_session *session = mirror->owner;
	struct state *state = &states[session->index];
	uint64_t effort = mirror->tracked ? mirror->size / TRACKED : mirror->size;
	state->effort = more ? state->effort + effort : state->effort - effort;
	state->mirrors = more ? state->mirrors + 1 : state->mirrors - 1;
	state->bytes = more ? state->bytes + mirror->size : state->bytes - mirror->size;
	if (mirror->attached)
		state->attached = more ? state->attached + 1 : state->attached - 1;
	if (mirror->differs)
		state->promoted = more ? state->promoted + 1 : state->promoted - 1;
	__atomic_store_n(&live, table.n, __ATOMIC_RELAXED);
}

bool rc_mirror_begin(const struct rc_span *span)
{
	/* The host may use mapped memory while the device works, as it may use attached memory. */
	bool attached = span->kind >= RC_MEMORY_HOST || span->flags != CU_MEM_ATTACH_GLOBAL;
	bool shares = span->module || span->kind == RC_MEMORY_REGISTERED;
	struct mirror mirror = { .address = span->base, .size = span->size, .owner = span->session,
				 .context = span->promoted ? 0 : (uint64_t)(uintptr_t)span->context, .attached = attached,
				 .module = span->module, .shared_pages = shares, .differs = span->promoted };
	pthread_mutex_lock(&lock);
	if (!outgoing)
		outgoing = malloc(RC_MIRROR_PUSH);
	bool added = outgoing && mirror_add(&table, &mirror);
	if (added) {
		count(mirror_find(&table, span->base), true);
		/* The program writes into new memory although the device may be at work. */
		__atomic_store_n(&states[span->session->index].waited, true, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return added;
}

void rc_mirror_ending(uint64_t address, bool ending)
{
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, address);
	if (mirror)
		mirror->ending = ending;
	pthread_mutex_unlock(&lock);
}

/* module NULL: of the context. */
static bool is_of(const struct mirror *mirror, CUmodule module, CUcontext context)
{
	return module ? mirror->module == module : mirror->context == (uint64_t)(uintptr_t)context;
}

static void set_ending(CUmodule module, CUcontext context, bool ending)
{
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < table.n; i++)
		if (is_of(&table.list[i], module, context))
			table.list[i].ending = ending;
	pthread_mutex_unlock(&lock);
}

/* Under the lock. */
static void remove_one(struct mirror *mirror)
{
	struct mirror gone = *mirror;
	mirror_remove(&table, mirror);
	count(&gone, false);
}

static void remove_all(CUmodule module, CUcontext context)
{
	pthread_mutex_lock(&lock);
	for (size_t i = table.n; i--;)
		if (is_of(&table.list[i], module, context))
			remove_one(&table.list[i]);
	pthread_mutex_unlock(&lock);
}

void rc_mirror_context_ending(CUcontext context, bool ending)
{
	set_ending(NULL, context, ending);
}

void rc_mirror_module_ending(CUmodule module, bool ending)
{
	set_ending(module, NULL, ending);
}

void rc_mirror_context_end(CUcontext context)
{
	remove_all(NULL, context);
}

void rc_mirror_module_end(CUmodule module)
{
	remove_all(module, NULL);
}

void rc_mirror_end(uint64_t address)
{
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, address);
	if (mirror)
		remove_one(mirror);
	pthread_mutex_unlock(&lock);
}

void rc_mirror_attach(uint64_t address, unsigned flags)
{
	pthread_mutex_lock(&lock);
	struct mirror *mirror = mirror_find(&table, address);
	bool attached = flags != CU_MEM_ATTACH_GLOBAL;
	if (mirror && mirror->attached != attached) {
		const struct rc_session *session = mirror->owner;
		states[session->index].attached += attached ? 1 : -1u;
		mirror->attached = attached;
	}
	pthread_mutex_unlock(&lock);
}

/* ---- up ---- */

/* False for calls after which the device has no more work than before. */
static bool gives_work(enum rc_call function)
{
	switch (function) {
	case RC_CALL_hello:
	case RC_CALL_data_connection: /* a pull waits under the lock for what this connection brings */
	case RC_CALL_memory_window:
	case RC_CALL_memory_budget:
	case RC_CALL_memory_place:
	case RC_CALL_memory_unplace:
	case RC_CALL_memory_alloc:
	case RC_CALL_memory_alloc_pitch:
	case RC_CALL_memory_free:
	case RC_CALL_pinned_free:
	case RC_CALL_pinned_wait:
	case RC_CALL_pinned_mirror:
	case RC_CALL_managed_info:
	case RC_CALL_managed_make:
	case RC_CALL_managed_free:
	case RC_CALL_managed_variable:
	case RC_CALL_managed_push:
	case RC_CALL_managed_pull:
	case RC_CALL_copy_staging:
	case RC_CALL_copy_up_end: /* the copy's begin was the call that gave work */
	case RC_CALL_copy_wait:
	case RC_CALL_copy_early_change:
	case RC_CALL_copy_early_done:
	case RC_CALL_context_create:
	case RC_CALL_context_destroy:
	case RC_CALL_context_reset:
	case RC_CALL_context_synchronize:
	case RC_CALL_context_event:
	case RC_CALL_cuMemGetInfo_v2:
	case RC_CALL_cuStreamCreate:
	case RC_CALL_cuStreamCreateWithPriority:
	case RC_CALL_cuStreamDestroy_v2:
	case RC_CALL_cuStreamWaitEvent:
	case RC_CALL_cuStreamSynchronize:
	case RC_CALL_cuStreamQuery:
	case RC_CALL_cuEventCreate:
	case RC_CALL_cuEventDestroy_v2:
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuEventRecordWithFlags:
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_event_elapsed:
	case RC_CALL_cuEventQuery:
	case RC_CALL_cuEventElapsedTime:
	case RC_CALL_cuEventElapsedTime_v2:
	case RC_CALL_peer_gate:
	case RC_CALL_peer_event:
	case RC_CALL_peer_open:
	case RC_CALL_peer_wait:
	case RC_CALL_peer_flush:
	case RC_CALL_peer_invite:
	case RC_CALL_peer_join:
	case RC_CALL_peer_close:
		return false;
	default:
		return true;
	}
}

static CUresult send_records(struct rc_link *link, struct mirror_changes *changes)
{
	struct rc_wire_call head;
	struct iovec iov = { changes->bytes, changes->used };
	if (!changes->used)
		return CUDA_SUCCESS;
	changes->used = 0;
	return rc_link_post(link, RC_CALL_managed_push, 0, &head, sizeof head, &iov, 1);
}

/* Sends what the host has changed. Under the lock. */
static CUresult push(struct rc_link *link)
{
	struct mirror_changes changes = { .bytes = outgoing, .room = RC_MIRROR_PUSH };
	CUresult result = CUDA_SUCCESS;
	for (size_t i = 0; i < table.n && result == CUDA_SUCCESS; i++) {
		const struct mirror *mirror = &table.list[i];
		if (mirror->owner != link->session || mirror->ending)
			continue;
		uint64_t at = 0;
		while (result == CUDA_SUCCESS && (at = mirror_collect(mirror, at, &changes)) < mirror->size)
			result = send_records(link, &changes);
	}
	return result == CUDA_SUCCESS ? send_records(link, &changes) : result;
}

/* True for calls that return success only when earlier work is complete. */
static bool has_waited(enum rc_call function)
{
	switch (function) {
	case RC_CALL_context_synchronize:
	case RC_CALL_cuStreamSynchronize:
	case RC_CALL_cuStreamQuery:
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_event_elapsed:
	case RC_CALL_cuEventQuery:
	case RC_CALL_cuEventElapsedTime:
	case RC_CALL_cuEventElapsedTime_v2:
	case RC_CALL_copy_down:
	case RC_CALL_copy_down_reply:
	case RC_CALL_copy_pinned_wait:
	case RC_CALL_copy_wait:
	case RC_CALL_array_down:
	case RC_CALL_cuMemcpyPeer:
	case RC_CALL_memory_free:
	case RC_CALL_pinned_free:
	case RC_CALL_pinned_wait:
	case RC_CALL_managed_free:
		return true;
	default:
		return false;
	}
}

static bool has_to_fetch(const struct state *state)
{
	return __atomic_load_n(&state->work, __ATOMIC_RELAXED) != __atomic_load_n(&state->fetched, __ATOMIC_RELAXED);
}

/* A change of one value: its bytes lie in the smallest aligned unit, of 1, 2, 4 or 8 bytes, at address. */
struct word {
	uint64_t address, value;
	size_t bytes;
};

/* Another thread of the program may be writing the word. ThreadSanitizer does not look at the reads, as in changes.c. */
#ifdef __SANITIZE_THREAD__
__attribute__((no_sanitize("thread"), noinline))
#endif
static uint64_t load(uint64_t address, size_t bytes)
{
	const void *at = (const void *)(uintptr_t)address;
	switch (bytes) {
	case 1:
		return __atomic_load_n((const uint8_t *)at, __ATOMIC_ACQUIRE);
	case 2:
		return __atomic_load_n((const uint16_t *)at, __ATOMIC_ACQUIRE);
	case 4:
		return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE);
	default:
		return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
	}
}

/* True if exactly one word of the session's mirrors has changed, and it is in a promoted one. Under the lock. */
static bool find_word(const struct rc_session *session, struct word *word)
{
	uint64_t first, last;
	bool any = false;
	for (size_t i = 0; i < table.n; i++) {
		const struct mirror *mirror = &table.list[i];
		if (mirror->owner != session || mirror->ending || !mirror_differs(mirror, &first, &last))
			continue;
		if (any || !mirror->differs)
			return false;
		any = true;
		uint64_t from = mirror->address + first, to = mirror->address + last;
		for (word->bytes = 1; word->bytes <= 8 && from / word->bytes != to / word->bytes; word->bytes *= 2)
			;
		word->address = from / word->bytes * word->bytes;
		if (word->bytes > 8 || word->address < mirror->address ||
		    word->address + word->bytes > mirror->address + mirror->size)
			return false;
		word->value = load(word->address, word->bytes);
	}
	return any;
}

/*
 * The program is about to wait, and a kernel may wait for a word that the program has set: sends it, if nothing else has changed.
 * What the program wrote before the word is then on the device already: the second comparison would find it otherwise. Several
 * changes are not sent, because the order in which they were made is not known, and a kernel may rely on it.
 */
static CUresult send_word(struct rc_link *link)
{
	const struct rc_session *session = link->session;
	const struct state *state = &states[session->index];
	struct word word, again;
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	if (state->promoted && state->bytes <= WATCHED && has_to_fetch(state) && find_word(session, &word) &&
	    find_word(session, &again) && word.address == again.address && word.bytes == again.bytes && word.value == again.value) {
		struct mirror_changes changes = { .bytes = outgoing, .room = RC_MIRROR_PUSH };
		struct rc_wire_change record = { word.address, word.bytes };
		const struct mirror *mirror = mirror_find(&table, word.address);
		memcpy(mirror->twin + (word.address - mirror->address), &word.value, word.bytes);
		memcpy(outgoing, &record, sizeof record);
		memcpy(outgoing + sizeof record, &word.value, word.bytes);
		changes.used = sizeof record + word.bytes;
		result = send_records(link, &changes);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

void rc_mirror_long_wait(const struct rc_session *session, enum rc_call function)
{
	static bool told; /* under the lock */
	uint64_t first, last;
	if (!has_waited(function))
		return;
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < table.n && !told; i++) {
		const struct mirror *mirror = &table.list[i];
		if (mirror->owner != session || !mirror->attached || mirror->ending ||
		    !mirror_differs(mirror, &first, &last))
			continue;
		told = true;
		hr_log(HR_LOG_ERROR, "%s has waited for %d s, and the program has changed pinned memory at %#llx. A kernel of a server on "
		       "another host sees changes from before its launch, so one that waits for this change does not end; "
		       "headrace(7), HEADRACE_MAP_HOST_MEMORY, says more", rc_call_names[function],
		       RC_MIRROR_LONG_WAIT / 1000, (unsigned long long)(mirror->address + first));
	}
	pthread_mutex_unlock(&lock);
}

CUresult rc_mirror_before(struct rc_link *link, enum rc_call function, uint64_t *work)
{
	struct state *state = &states[link->session->index];
	CUresult result = CUDA_SUCCESS;
	*work = __atomic_load_n(&state->work, __ATOMIC_RELAXED);
	if (!gives_work(function))
		return has_waited(function) ? send_word(link) : result;
	pthread_mutex_lock(&lock);
	bool waited = __atomic_load_n(&state->waited, __ATOMIC_RELAXED);
	/* After other calls, such as copies, the host may change memory without a wait. */
	if (function == RC_CALL_launch || function == RC_CALL_graph_launch)
		__atomic_store_n(&state->waited, false, __ATOMIC_RELAXED);
	if (state->mirrors && (waited || state->attached || state->effort <= LITTLE))
		result = push(link);
	__atomic_add_fetch(&state->work, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	return result;
}

/* ---- down ---- */

/*
 * Program and device have changed the byte at `address` to different values since both copies were equal, so one value is lost. In
 * managed memory CUDA forbids this, as the device attribute says that the host must not use the memory while the device works: a
 * call that waits returns an error. Mapped memory may be used by both, and the values may not matter: a line says it, once. Under
 * the lock.
 */
static void changed_by_both(const struct rc_session *session, uint64_t address)
{
	static bool told;
	const struct mirror *mirror = mirror_find(&table, address);
	if (!mirror || mirror->owner != session)
		return;
	bool managed = !mirror->attached;
	if (managed)
		states[session->index].both = true;
	if (told)
		return;
	told = true;
	hr_log(HR_LOG_ERROR, "the program has changed %s memory at %#llx while work of a server on another host changed it too, "
	       "and one of the two values is lost: the hosts share no memory, so that atomic operations of one do not reach the other. %s",
	       managed ? "managed" : "pinned or attached", (unsigned long long)address,
	       managed ? "As cudaDevAttrConcurrentManagedAccess is 0, the program must wait for the device first" :
			 "The program should wait for the device first, or use a server on its own host");
}

/* Stores the records of an answer. False: the server may not send them. Under the lock. */
static bool store(const struct rc_link *link, const uint8_t *at, const uint8_t *end)
{
	struct rc_wire_change record;
	const uint8_t *bytes;
	uint64_t both = 0;
	while ((bytes = mirror_next(&at, end, &record))) {
		const struct mirror *mirror = mirror_find(&table, record.address);
		if (!mirror || mirror->owner != link->session || !mirror_store(mirror, &record, bytes, &both))
			return false;
	}
	if (both)
		changed_by_both(link->session, both);
	return at == end;
}

/* Fetches one part of what the device has changed. *from: 0, if there is no more. Under the lock. */
static CUresult pull_part(struct rc_link *link, uint64_t *from)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pull call;
	} message = { .call = { *from } };
	struct rc_wire_pulled answer;
	CUresult result = rc_link_call(link, RC_CALL_managed_pull, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len < sizeof answer)
		return rc_link_broken(link, RC_CALL_managed_pull);
	memcpy(&answer, link->reply, sizeof answer);
	if ((answer.next && answer.next <= *from) || !store(link, link->reply + sizeof answer, link->reply + link->reply_len))
		return rc_link_broken(link, RC_CALL_managed_pull);
	if (answer.both)
		changed_by_both(link->session, answer.both);
	*from = answer.next;
	return CUDA_SUCCESS;
}

/* The program's call has its results in link; they are kept. A failure of an earlier call is left to the program's next
 * waiting call. Under the lock. */
static CUresult pull(struct rc_link *link)
{
	struct rc_kept_reply kept;
	bool own = link->own;
	uint64_t from = 0;
	rc_link_keep_reply(link, &kept);
	link->own = true;
	CUresult result;
	do
		result = pull_part(link, &from);
	while (result == CUDA_SUCCESS && from);
	rc_link_return_reply(link, &kept);
	link->own = own;
	return result;
}

/* Fetches the changes of a session's device memory, if any work was given since the last fetch. */
static CUresult fetch(struct rc_link *link)
{
	struct state *state = &states[link->session->index];
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	__atomic_store_n(&state->waited, true, __ATOMIC_RELAXED);
	if (state->mirrors && has_to_fetch(state))
		result = pull(link);
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult rc_mirror_fetch(struct rc_link *link)
{
	pthread_mutex_lock(&lock);
	CUresult result = pull(link);
	pthread_mutex_unlock(&lock);
	return result;
}

/* A copy between two servers may have changed memory of a server that the call did not go to. */
static CUresult fetch_from_others(const struct rc_session *session)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < process->sessions; i++) {
		struct rc_session *other = &process->session[i];
		struct rc_link *link;
		if (other != session && has_to_fetch(&states[i]) && rc_link_to(other, 0, &link) == CUDA_SUCCESS)
			(void)fetch(link); /* a lost server is reported by calls that go to it */
	}
	return result;
}

/* Memory that the call was to free is free, so a later call returns the error. */
static CUresult take_both(struct state *state, enum rc_call function)
{
	switch (function) {
	case RC_CALL_memory_free:
	case RC_CALL_pinned_free:
	case RC_CALL_managed_free:
		return CUDA_SUCCESS;
	default:
		break;
	}
	pthread_mutex_lock(&lock);
	bool both = state->both;
	state->both = false;
	pthread_mutex_unlock(&lock);
	return both ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

CUresult rc_mirror_after(struct rc_link *link, enum rc_call function, uint64_t work)
{
	struct state *state = &states[link->session->index];
	if (!has_waited(function))
		return CUDA_SUCCESS;
	CUresult result = fetch(link);
	if (result == CUDA_SUCCESS && rc_peer_possible())
		result = fetch_from_others(link->session);
	/* With one context, all work that was given before the call is complete. */
	uint64_t fetched = __atomic_load_n(&state->fetched, __ATOMIC_RELAXED);
	if (result == CUDA_SUCCESS && function == RC_CALL_context_synchronize && work > fetched &&
	    !__atomic_load_n(&link->session->several, __ATOMIC_SEQ_CST))
		__atomic_compare_exchange_n(&state->fetched, &fetched, work, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return result == CUDA_SUCCESS ? take_both(state, function) : result;
}

/* ---- host functions ---- */

/* The stream may have waited for work of other servers. */
CUresult rc_mirror_host_begin(struct rc_session *session)
{
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = fetch(link);
	return result == CUDA_SUCCESS && rc_peer_possible() ? fetch_from_others(session) : result;
}

/* The stream goes on when the answer to the host function arrives, on another connection. So this waits until the worker has
 * stored what was sent. */
static CUresult send_and_wait(struct rc_session *session)
{
	struct rc_link *link;
	CUresult result = rc_link_to(session, 0, &link);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	if (states[session->index].mirrors) {
		result = push(link);
		if (result == CUDA_SUCCESS)
			result = pull(link);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

static bool has_mirrors(const struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	bool has = states[session->index].mirrors;
	pthread_mutex_unlock(&lock);
	return has;
}

/* Streams of other servers may wait for this one. */
CUresult rc_mirror_host_end(struct rc_session *session)
{
	struct rc_process *process;
	CUresult result = send_and_wait(session);
	if (result != CUDA_SUCCESS || !rc_peer_possible() || rc_process_get(&process) != CUDA_SUCCESS)
		return result;
	for (unsigned i = 0; i < process->sessions; i++)
		if (&process->session[i] != session && has_mirrors(&process->session[i]))
			(void)send_and_wait(&process->session[i]); /* a lost server is reported by calls that go to it */
	return CUDA_SUCCESS;
}

/* ---- which servers can have such memory ---- */

bool rc_mirror_supported(struct rc_session *session)
{
	struct {
		struct rc_wire_call head;
	} message;
	struct state *state = &states[session->index];
	struct rc_link *link;
	enum support known = __atomic_load_n(&state->support, __ATOMIC_RELAXED);
	if (known != UNKNOWN)
		return known == SUPPORTED;
	if ((session->call_number && !session->call_number[RC_CALL_managed_info]) ||
	    rc_link_to(session, 0, &link) != CUDA_SUCCESS)
		return false;
	bool own = link->own;
	uint64_t answer = 0;
	link->own = true;
	CUresult result = rc_link_call(link, RC_CALL_managed_info, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len == sizeof answer)
		memcpy(&answer, link->reply, sizeof answer);
	link->own = own;
	known = answer == 1 ? SUPPORTED : UNSUPPORTED;
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&state->support, known, __ATOMIC_RELAXED);
	return known == SUPPORTED;
}
