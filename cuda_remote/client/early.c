/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Early copies: small asynchronous copies from pinned memory whose bytes are sent with the call although their stream may be
 * held by a kernel. CUDA reads the source when the stream has come to the copy, and the program may change it before. So the
 * client keeps what it has sent until it knows that the copy is complete. Before each call that gives another stream work, and
 * so could let the kernel end, it compares the kept bytes with the source. If they differ, it sends the bytes again
 * (copy_early_change), and the worker replaces those that it holds for the device.
 *
 * The program changes a source before the call that lets the stream go on; the change has a lower number than that call, so the
 * worker makes it first. If the program changes a source only after the copy, the worker still holds the bytes or ignores
 * the change; the device has got the right ones.
 *
 * Copies from one source with equal bytes form a chain, of which only the newest copy is compared with the source.
 */
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/session.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bytes of all copies that are kept. */
#define BYTES_MAX (4u << 20)
/* Bytes of a copy that are kept without memory of their own. */
#define SHORT 64
/* The worker is asked which copies are complete if at least this many are kept, and twice as many as after the last question. */
#define ASK 64u
/* If no room is left, how long the call waits for the device to complete a copy. */
#define PATIENCE_NS 10000000u
#define TICK_NS 100000
/* If the device did not: after how many copies the worker is asked again. */
#define ASK_AGAIN 64u

/* A comparison of many copies reads two cache lines of each, and its source. */
struct early {
	uint64_t number, stream; /* of the copy's call; rc_track_stream */
	const uint8_t *host;
	uint8_t *kept;           /* the bytes as the worker has them */
	uint64_t pitch, slice;
	uint32_t bytes;          /* 0: the copy is not kept any more */
	uint32_t width, height, depth;
	uint8_t few[SHORT];
};
static_assert(sizeof(struct early) == 128 && RC_INLINE_COPY <= UINT32_MAX, "two lines");

/* The place of a copy in its chain: places in the table, NONE at the end. */
struct link {
	uint16_t older, newer;
	uint16_t chain;          /* of the newest */
};

/* What a comparison needs, so that it reads only one cache line of a short copy. */
struct chain {
	const uint8_t *host;
	uint64_t stream;         /* of all its copies, or RC_TRACK_SEVERAL */
	uint32_t bytes;          /* 0: long, or with gaps */
	uint16_t newest;
};
#define NONE UINT16_MAX
static_assert(RC_EARLY_COPIES <= NONE, "places");
#define SOURCES 1024u

struct rc_early_table {
	_Alignas(64) struct early copy[RC_EARLY_COPIES]; /* number n, counted from 1, is copy[n % RC_EARLY_COPIES] */
	uint64_t first, end;                /* numbers of the copies that may be kept */
	uint64_t bytes;
	uint64_t change, made;              /* number of the last change's call; up to this number the worker has made all */
	uint64_t ask;                       /* number of kept copies at which the worker is asked */
	bool stuck;                         /* no room, and the device completes nothing */
	unsigned refused;                   /* copies since then */
	struct link link[RC_EARLY_COPIES];
	struct chain chain[RC_EARLY_COPIES];
	uint16_t chains;
	uint64_t moves;                     /* how often the last chain was moved to the place of a chain that ended */
	uint16_t source[SOURCES];           /* the last copy whose source has this hash; it may have ended */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned all; /* copies that are kept in all sessions; atomic */

/* ---- the bytes ---- */

/* The program's other threads may write the source meanwhile; the change is then noticed by a later comparison at the latest. */
__attribute__((no_sanitize("thread"))) static bool row_differs(const uint8_t *a, const uint8_t *b, uint64_t n)
{
	typedef uint64_t words __attribute__((vector_size(16), aligned(1), may_alias));
	uint64_t x, y, i = 0;
	for (; i + 4 * sizeof(words) <= n; i += 4 * sizeof(words)) {
		const words *v = (const words *)(a + i), *w = (const words *)(b + i);
		words differing = (v[0] ^ w[0]) | (v[1] ^ w[1]) | (v[2] ^ w[2]) | (v[3] ^ w[3]);
		if (differing[0] | differing[1])
			return true;
	}
	for (; i + sizeof x <= n; i += sizeof x) {
		__builtin_memcpy(&x, a + i, sizeof x);
		__builtin_memcpy(&y, b + i, sizeof y);
		if (x != y)
			return true;
	}
	for (; i < n; i++)
		if (a[i] != b[i])
			return true;
	return false;
}

__attribute__((no_sanitize("thread"))) static void row_keep(uint8_t *to, const volatile uint8_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		to[i] = from[i];
}

/* True if the source differs from the kept bytes. */
static bool differs(const struct early *copy)
{
	const uint8_t *kept = copy->kept;
	if (copy->width == copy->bytes)
		return row_differs(copy->host, kept, copy->bytes);
	for (uint64_t z = 0; z < copy->depth; z++)
		for (uint64_t y = 0; y < copy->height; y++, kept += copy->width)
			if (row_differs(copy->host + z * copy->slice + y * copy->pitch, kept, copy->width))
				return true;
	return false;
}

/* Makes the kept bytes equal to the source. */
static void keep_again(const struct early *copy)
{
	uint8_t *kept = copy->kept;
	for (uint64_t z = 0; z < copy->depth; z++)
		for (uint64_t y = 0; y < copy->height; y++, kept += copy->width)
			row_keep(kept, copy->host + z * copy->slice + y * copy->pitch, copy->width);
}

/* ---- the table; under the lock ---- */

static struct early *at(struct rc_early_table *table, uint64_t number)
{
	return &table->copy[number % RC_EARLY_COPIES];
}

static uint16_t place_of(const struct rc_early_table *table, const struct early *copy)
{
	return (uint16_t)(copy - table->copy);
}

/* The last chain takes the place of the one that ends. */
static void chain_end(struct rc_early_table *table, uint16_t place)
{
	table->chain[place] = table->chain[--table->chains];
	table->link[table->chain[place].newest].chain = place;
	table->moves++;
}

static void chain_begin(struct rc_early_table *table, uint16_t i, uint64_t stream)
{
	const struct early *copy = &table->copy[i];
	bool is_short = copy->bytes <= SHORT && copy->width == copy->bytes;
	table->link[i].chain = table->chains;
	table->chain[table->chains++] = (struct chain){ copy->host, stream, is_short ? copy->bytes : 0, i };
}

/* The copy is not kept any more, or is to be a chain of its own. */
static void unchain(struct rc_early_table *table, uint16_t i)
{
	struct link *at = &table->link[i];
	if (at->older != NONE)
		table->link[at->older].newer = at->newer;
	if (at->newer != NONE) {
		table->link[at->newer].older = at->older;
	} else if (at->older != NONE) {
		table->link[at->older].chain = at->chain;
		table->chain[at->chain].newest = at->older;
	} else {
		chain_end(table, at->chain);
	}
}

/* True if both copies read the same source. */
static bool have_one_source(const struct early *a, const struct early *b)
{
	return a->host == b->host && a->bytes == b->bytes && a->width == b->width && a->height == b->height && a->depth == b->depth &&
	       a->pitch == b->pitch && a->slice == b->slice;
}

/* Adds the copy to the chain of copies from its source. If there is no such chain, the copy begins one. The bytes and the stream of
 * the copy are set. */
static void enchain(struct rc_early_table *table, const struct early *copy)
{
	uint16_t i = place_of(table, copy), *last = &table->source[((uintptr_t)copy->host >> 2) * 0x9e3779b1u / 64 % SOURCES];
	table->link[i] = (struct link){ NONE, NONE, NONE };
	uint16_t other = *last;
	*last = i;
	if (other != NONE && other != i && table->copy[other].bytes && table->link[other].newer == NONE &&
	    have_one_source(copy, &table->copy[other]) && !row_differs(copy->kept, table->copy[other].kept, copy->bytes)) {
		struct chain *chain = &table->chain[table->link[other].chain];
		table->link[other].newer = i;
		table->link[i] = (struct link){ other, NONE, table->link[other].chain };
		chain->newest = i;
		if (chain->stream != copy->stream)
			chain->stream = RC_TRACK_SEVERAL;
	} else {
		chain_begin(table, i, copy->stream);
	}
}

static bool add(struct rc_session *session, struct early **added, const struct rc_copy *host)
{
	struct rc_early_table *table = session->early;
	struct early *copy = at(table, table->end);
	uint64_t bytes = rc_copy_bytes(host);
	copy->kept = bytes > SHORT ? malloc(bytes) : copy->few;
	if (!copy->kept)
		return false;
	copy->host = host->host;
	copy->pitch = host->pitch;
	copy->slice = host->slice;
	copy->bytes = (uint32_t)bytes;
	copy->width = (uint32_t)host->width;
	copy->height = (uint32_t)host->height;
	copy->depth = (uint32_t)host->depth;
	table->bytes += bytes;
	table->end++;
	*added = copy;
	return true;
}

static void drop(struct rc_session *session, struct early *copy)
{
	struct rc_early_table *table = session->early;
	unchain(table, place_of(table, copy));
	if (copy->kept != copy->few)
		free(copy->kept);
	table->bytes -= copy->bytes;
	copy->bytes = 0;
	__atomic_sub_fetch(&session->earlies, 1, __ATOMIC_RELAXED);
	__atomic_sub_fetch(&all, 1, __ATOMIC_RELAXED);
}

static void move_first(struct rc_early_table *table)
{
	while (table->first < table->end && !at(table, table->first)->bytes)
		table->first++;
}

static bool fits(const struct rc_session *session, uint64_t bytes)
{
	const struct rc_early_table *table = session->early;
	return table->end - table->first < RC_EARLY_COPIES && table->bytes + bytes <= BYTES_MAX;
}

/* ---- copies that are complete ---- */

void rc_early_end(struct rc_session *session, uint64_t stream, uint64_t number)
{
	if (!__atomic_load_n(&session->earlies, __ATOMIC_RELAXED))
		return;
	uint64_t settled = rc_link_settled(session);
	pthread_mutex_lock(&lock);
	struct rc_early_table *table = session->early;
	for (uint64_t i = table->first; i < table->end; i++) {
		struct early *copy = at(table, i);
		bool of_stream = stream != RC_TRACK_SEVERAL && copy->stream == stream && copy->number < number;
		if (copy->bytes && (of_stream || copy->number <= settled))
			drop(session, copy);
	}
	move_first(table);
	pthread_mutex_unlock(&lock);
}

static void forget_in(struct rc_session *session, uint64_t address, uint64_t size)
{
	struct rc_early_table *table = session->early;
	for (uint64_t i = table ? table->first : 0; table && i < table->end; i++) {
		struct early *copy = at(table, i);
		uint64_t first = (uint64_t)(uintptr_t)copy->host;
		if (copy->bytes && first >= address && first - address < size)
			drop(session, copy);
	}
	if (table)
		move_first(table);
}

void rc_early_forget(uint64_t address, uint64_t size)
{
	struct rc_process *process;
	if (!__atomic_load_n(&all, __ATOMIC_RELAXED) || rc_process_get(&process) != CUDA_SUCCESS)
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < process->sessions; i++)
		forget_in(&process->session[i], address, size);
	pthread_mutex_unlock(&lock);
}

/* Asks the worker which of the copies are complete. The answer reports no failure of earlier calls. */
static CUresult ask(struct rc_link *link)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_early_done call;
	} message;
	struct rc_session *session = link->session;
	struct rc_early_table *table = session->early;
	pthread_mutex_lock(&lock);
	message.call = (struct rc_wire_early_done){ table->first, table->end - table->first };
	pthread_mutex_unlock(&lock);
	CUresult result = rc_link_ask(link, RC_CALL_copy_early_done, &message.head, sizeof message);
	if (result != CUDA_SUCCESS)
		return result;
	if (link->reply_len != (message.call.count + 7) / 8)
		return rc_link_broken(link, RC_CALL_copy_early_done);
	pthread_mutex_lock(&lock);
	if (table->made < message.head.number)
		table->made = message.head.number;
	for (uint64_t i = 0; i < message.call.count; i++) {
		struct early *copy = at(table, message.call.first + i);
		if (message.call.first + i >= table->first && copy->bytes && link->reply[i / 8] >> i % 8 & 1)
			drop(session, copy);
	}
	move_first(table);
	uint64_t kept = __atomic_load_n(&session->earlies, __ATOMIC_RELAXED);
	table->ask = kept < ASK / 2 ? ASK : 2 * kept;
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

void rc_early_context_ended(struct rc_session *session)
{
	struct rc_link *link;
	if (__atomic_load_n(&session->earlies, __ATOMIC_RELAXED) && rc_link_to(session, 0, &link) == CUDA_SUCCESS)
		(void)ask(link);
}

/* ---- changes ---- */

/* Makes each copy of a chain a chain of its own. */
static void dissolve(struct rc_early_table *table, uint16_t newest)
{
	while (table->link[newest].older != NONE) {
		uint16_t older = table->link[newest].older;
		unchain(table, older);
		table->link[older] = (struct link){ NONE, NONE, NONE };
		chain_begin(table, older, table->copy[older].stream);
	}
	table->chain[table->link[newest].chain].stream = table->copy[newest].stream;
}

/* Finds a copy, from chain *from on, that is in another stream and has a changed source, and makes it a chain of its own, *from.
 * NULL: there is none. Under the lock. */
static struct early *find_changed(struct rc_early_table *table, uint64_t stream, unsigned *from)
{
	for (unsigned i = *from; i < table->chains; i++) {
		const struct chain *chain = &table->chain[i];
		struct early *copy = &table->copy[chain->newest];
		if ((stream != RC_TRACK_SEVERAL && chain->stream == stream) ||
		    !(chain->bytes ? row_differs(chain->host, copy->few, chain->bytes) : differs(copy)))
			continue;
		dissolve(table, chain->newest); /* the others become the last chains */
		*from = i;
		if (stream == RC_TRACK_SEVERAL || copy->stream != stream)
			return copy;
	}
	return NULL;
}

/* The copy's number in the table. */
static uint64_t number_of(const struct rc_early_table *table, const struct early *copy)
{
	return table->first + (place_of(table, copy) - table->first % RC_EARLY_COPIES + RC_EARLY_COPIES) % RC_EARLY_COPIES;
}

/* Sends the bytes of all such copies. The number is taken under the lock: of two threads that find a change, the second one sends
 * the call that lets the stream go on only after the first one has numbered the change. */
static CUresult send_changes(struct rc_link *link, uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_early_change call;
	} message;
	CUresult result = CUDA_SUCCESS;
	struct rc_early_table *table = link->session->early;
	/* The limit is for a source that another thread writes all the time. */
	uint64_t most = 2 * __atomic_load_n(&link->session->earlies, __ATOMIC_RELAXED), moves = 0;
	unsigned from = 0;
	for (uint64_t n = 0; n < most && result == CUDA_SUCCESS; n++) {
		pthread_mutex_lock(&lock);
		if (table->moves != moves) /* by another thread */
			from = 0;
		struct early *copy = find_changed(table, stream, &from);
		uint64_t bytes = copy ? copy->bytes : 0;
		uint8_t *sent = copy ? malloc(bytes) : NULL;
		if (sent) {
			keep_again(copy);
			memcpy(sent, copy->kept, bytes);
			unchain(table, place_of(table, copy));
			enchain(table, copy);
			rc_link_number(link, &message.head);
			table->change = message.head.number;
			message.call.copy = number_of(table, copy);
			moves = table->moves; /* another chain, or this one, is now at `from` */
		}
		pthread_mutex_unlock(&lock);
		if (!copy)
			break;
		if (!sent)
			return CUDA_ERROR_OUT_OF_MEMORY;
		result = rc_link_post_numbered(link, RC_CALL_copy_early_change, &message.head, sizeof message,
					       &(struct iovec){ sent, bytes }, 1);
		free(sent);
	}
	return result;
}

/* The same, and waits until the worker has made these changes, and those that other threads may be sending. */
static CUresult make_changes(struct rc_link *link)
{
	struct rc_early_table *table = link->session->early;
	CUresult result = send_changes(link, RC_TRACK_SEVERAL);
	pthread_mutex_lock(&lock);
	bool made = table->made >= table->change;
	pthread_mutex_unlock(&lock);
	return result != CUDA_SUCCESS || made ? result : ask(link);
}

/* False for calls that give no stream work, and let none go on. */
static bool may_let_go(enum rc_call function)
{
	switch (function) {
	case RC_CALL_memory_window:
	case RC_CALL_memory_budget:
	case RC_CALL_memory_place:
	case RC_CALL_memory_unplace:
	case RC_CALL_copy_staging:
	case RC_CALL_copy_up_end: /* the copy's begin was compared */
	case RC_CALL_copy_early_change:
	case RC_CALL_copy_early_done:
	case RC_CALL_copy_wait:
	case RC_CALL_context_synchronize:
	case RC_CALL_cuMemGetInfo_v2:
	case RC_CALL_cuStreamCreate:
	case RC_CALL_cuStreamCreateWithPriority:
	case RC_CALL_cuStreamSynchronize:
	case RC_CALL_cuStreamQuery:
	case RC_CALL_cuEventCreate:
	case RC_CALL_cuEventDestroy_v2:
	case RC_CALL_cuEventSynchronize:
	case RC_CALL_event_elapsed:
	case RC_CALL_cuEventQuery:
	case RC_CALL_cuEventElapsedTime_v2:
		return false;
	default:
		return true;
	}
}

/* True if a source has changed, or the worker may not have made all changes. */
static bool has_changes(struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	struct rc_early_table *table = session->early;
	bool found = table->made < table->change || find_changed(table, RC_TRACK_SEVERAL, &(unsigned){ 0 });
	pthread_mutex_unlock(&lock);
	return found;
}

/* The link may be between two calls of the thread, which keep their context, or hold a reply that the thread has yet to read: the
 * thread fetches managed memory of another server before it reads the reply to a call that has waited. A thread that has none opens one only for changes. */
static CUresult send_changes_of(struct rc_session *session)
{
	if (__atomic_load_n(&session->lost, __ATOMIC_RELAXED))
		return RC_LOST;
	if (!has_changes(session))
		return CUDA_SUCCESS;
	struct rc_thread *thread = rc_thread_get();
	struct rc_link *link = thread ? thread->link[session->index] : NULL;
	uint32_t context = link ? link->context : 0;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS) {
		struct rc_kept_reply kept;
		rc_link_keep_reply(link, &kept);
		result = make_changes(link);
		rc_link_return_reply(link, &kept);
	}
	if (link)
		link->context = context;
	return result;
}

/* Work of a server can let a stream of another one go on, by a copy between the two. Sessions have no common order, so changes must
 * have been made before the call is sent. */
static CUresult send_elsewhere(const struct rc_session *own)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < process->sessions; i++) {
		struct rc_session *session = &process->session[i];
		if (session != own && __atomic_load_n(&session->earlies, __ATOMIC_ACQUIRE))
			result = send_changes_of(session);
		if (result == RC_LOST) /* of the other session */
			result = CUDA_SUCCESS;
	}
	return result;
}

/* Work in the stream of a copy comes after the copy, and so cannot let its stream go on. */
CUresult rc_early_before(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	const struct rc_session *session = link->session;
	if (!__atomic_load_n(&all, __ATOMIC_ACQUIRE) || !may_let_go(function))
		return CUDA_SUCCESS;
	CUresult result = send_elsewhere(session);
	if (result != CUDA_SUCCESS || !__atomic_load_n(&session->earlies, __ATOMIC_ACQUIRE))
		return result;
	uint64_t stream = rc_done_stream(function, head);
	if (stream != RC_TRACK_SEVERAL && stream == __atomic_load_n(&session->early_stream, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	return send_changes(link, stream);
}

/* The answer is no call, so the changes must have been made before it is sent. */
CUresult rc_early_host_done(struct rc_session *session)
{
	CUresult result = __atomic_load_n(&all, __ATOMIC_ACQUIRE) ? send_elsewhere(session) : CUDA_SUCCESS;
	if (result == CUDA_SUCCESS && __atomic_load_n(&session->earlies, __ATOMIC_ACQUIRE))
		result = send_changes_of(session);
	return result;
}

bool rc_early_reads(const struct rc_session *own, uint64_t stream, uint64_t address, uint64_t size)
{
	struct rc_process *process;
	bool found = false;
	if (!__atomic_load_n(&all, __ATOMIC_ACQUIRE) || rc_process_get(&process) != CUDA_SUCCESS)
		return false;
	pthread_mutex_lock(&lock);
	for (unsigned s = 0; s < process->sessions && !found; s++) {
		const struct rc_early_table *table = process->session[s].early;
		for (unsigned i = 0; table && i < table->chains && !found; i++) {
			const struct early *copy = &table->copy[table->chain[i].newest];
			uint64_t first = (uint64_t)(uintptr_t)copy->host;
			uint64_t extent = copy->width + (copy->depth - 1) * copy->slice + (copy->height - 1) * copy->pitch;
			bool same = &process->session[s] == own && table->chain[i].stream == stream;
			found = !same && first < address + size && address < first + extent;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* ---- the copy ---- */

bool rc_early_suits(const struct rc_session *session, uint64_t bytes)
{
	return bytes <= RC_INLINE_COPY && !rc_held_by_value(session) && !__atomic_load_n(&session->shared, __ATOMIC_RELAXED) &&
	       (!session->call_number || (session->call_number[RC_CALL_copy_up_early] &&
					  session->call_number[RC_CALL_copy_early_change] &&
					  session->call_number[RC_CALL_copy_early_done]));
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Waits for the device as long as it completes copies. As a driver's, the client's queue has an end; but no call waits for a
 * stream that is held. */
static CUresult make_room(struct rc_link *link, uint64_t bytes, bool *made)
{
	struct rc_session *session = link->session;
	struct rc_early_table *table = session->early;
	uint64_t since = now_ns();
	CUresult result = CUDA_SUCCESS;
	*made = false;
	while (!*made && result == CUDA_SUCCESS && now_ns() - since < PATIENCE_NS) {
		uint64_t before = __atomic_load_n(&session->earlies, __ATOMIC_RELAXED);
		result = ask(link);
		if (__atomic_load_n(&session->earlies, __ATOMIC_RELAXED) < before)
			since = now_ns();
		pthread_mutex_lock(&lock);
		*made = fits(session, bytes);
		table->stuck = !*made;
		pthread_mutex_unlock(&lock);
		if (!*made)
			nanosleep(&(struct timespec){ .tv_nsec = TICK_NS }, NULL);
	}
	return result;
}

static struct rc_early_table *make_table(void)
{
	struct rc_early_table *table = aligned_alloc(_Alignof(struct rc_early_table), sizeof *table);
	if (!table)
		return NULL;
	size_t behind = offsetof(struct rc_early_table, first);
	memset((uint8_t *)table + behind, 0, sizeof *table - behind);
	table->first = table->end = 1;
	memset(table->source, 0xff, sizeof table->source);
	table->ask = ASK;
	return table;
}

/* *found: the copy may be kept. */
static CUresult find_room(struct rc_link *link, uint64_t bytes, bool *found)
{
	struct rc_session *session = link->session;
	pthread_mutex_lock(&lock);
	struct rc_early_table *table = session->early;
	if (!table && (table = make_table()))
		session->early = table;
	*found = table && fits(session, bytes);
	bool waits = table && !*found && (!table->stuck || ++table->refused % ASK_AGAIN == 0);
	bool asks = *found && __atomic_load_n(&session->earlies, __ATOMIC_RELAXED) >= table->ask;
	pthread_mutex_unlock(&lock);
	if (asks)
		return ask(link);
	return waits ? make_room(link, bytes, found) : CUDA_SUCCESS;
}

/* Takes the call's number and keeps the bytes under one lock: a thread that compares sees either no copy, and then its call
 * comes before this one, or what is sent. */
static bool keep(struct rc_link *link, struct rc_wire_call *head, struct rc_wire_copy *call, const struct rc_copy *host)
{
	struct rc_session *session = link->session;
	uint64_t bytes = rc_copy_bytes(host);
	struct early *copy;
	pthread_mutex_lock(&lock);
	if (!fits(session, bytes) || !add(session, &copy, host)) {
		pthread_mutex_unlock(&lock);
		return false;
	}
	call->copy = session->early->end - 1;
	rc_copy_gather(host, 0, bytes, link->scratch);
	memcpy(copy->kept, link->scratch, bytes);
	rc_link_number(link, head);
	copy->number = head->number;
	copy->stream = rc_done_stream(RC_CALL_copy_up_early, head);
	enchain(session->early, copy);
	bool alone = !__atomic_load_n(&session->earlies, __ATOMIC_RELAXED) ||
		     __atomic_load_n(&session->early_stream, __ATOMIC_RELAXED) == copy->stream;
	__atomic_store_n(&session->early_stream, alone ? copy->stream : RC_TRACK_SEVERAL, __ATOMIC_RELAXED);
	/* Release pairs with the acquire in rc_early_before. */
	__atomic_add_fetch(&session->earlies, 1, __ATOMIC_RELEASE);
	__atomic_add_fetch(&all, 1, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return true;
}

CUresult rc_early_copy(struct rc_link *link, const struct rc_wire_box *box, const struct rc_copy *host, uint64_t stream,
		       bool *sent)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	uint64_t bytes = rc_copy_bytes(host);
	bool found;
	*sent = false;
	if (!link->scratch && !(link->scratch = malloc(RC_CHUNK_MAX)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = find_room(link, bytes, &found);
	if (result == CUDA_SUCCESS && found)
		result = rc_link_prepare(link, RC_CALL_copy_up_early, &message.head);
	if (result != CUDA_SUCCESS || !found || !keep(link, &message.head, &message.call, host))
		return result;
	*sent = true;
	return rc_link_post_numbered(link, RC_CALL_copy_up_early, &message.head, sizeof message,
				     &(struct iovec){ link->scratch, bytes }, 1);
}
