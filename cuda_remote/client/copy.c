/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between host and device. To the device, the bytes go out with the call, or in chunks after it (chunks.c); once
 * the last chunk has been sent the caller may reuse its memory. To the host, the worker sends chunks as the device
 * produces them. Each chunk names its copy. A copy to pageable memory waits, as in CUDA. A copy to pinned memory is
 * asynchronous: the data connection (data/) brings its chunks when its stream has come to it. From and to pinned memory that a worker on this host has mapped, the worker copies by itself (pinned.c).
 */
#include "cuda_remote/client/client.h"
#include "cuda_remote/client/graph/capture_calls.h"
#include "cuda_remote/client/mirror/client_mirror.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the table of copies to the host ---- */

#define BUCKETS 256
/* An asynchronous copy from pinned memory of at most this size is sent during its call, if its source may be read then. A longer
 * one would keep the caller for about as long as it saves (docs/BENCHMARKS.md). */
#define EAGER_COPY (512u << 10)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rc_copy *buckets[BUCKETS];
static uint64_t later; /* asynchronous copies in progress; atomic */
static uint64_t newest; /* id of the newest copy of the process; atomic */
static pthread_cond_t chunk_has_ended = PTHREAD_COND_INITIALIZER;

/* Adds a new copy with the same host side as *host to the table. From then on the data connection's thread may end an
 * asynchronous one. NULL: no memory. */
static struct rc_copy *copy_begin(struct rc_session *session, const struct rc_copy *host, const struct rc_link *link,
				  uint64_t *id)
{
	struct rc_copy *copy = malloc(sizeof *copy);
	if (!copy)
		return NULL;
	*copy = *host;
	*id = copy->id = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
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

static void copy_end(struct rc_copy *copy)
{
	pthread_mutex_lock(&lock);
	unlist(copy);
	pthread_mutex_unlock(&lock);
}

/*
 * Nothing that a server sends may make the client write to memory whose copy has ended. So a chunk claims its bytes
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

/* Bytes from the first to the last of a copy's host memory. */
static uint64_t host_extent(const struct rc_copy *copy)
{
	return copy->width + (copy->depth - 1) * copy->slice + (copy->height - 1) * copy->pitch;
}

static bool overlaps(const struct rc_copy *copy, uint64_t address, uint64_t size)
{
	uint64_t first = (uint64_t)(uintptr_t)copy->host;
	return first < address + size && address < first + host_extent(copy);
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

/* ---- to the device ---- */

static CUresult copy_up(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy,
			uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t total = rc_copy_bytes(copy);
	if (total <= RC_INLINE_COPY) {
		struct iovec iov[CH3_IOV_MAX];
		bool gathered;
		int n = rc_chunks_pieces(link, copy, 0, total, iov, &gathered);
		if (n < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
		return rc_link_post(link, RC_CALL_copy_up, 0, &message.head, sizeof message, iov, n);
	}
	message.call.copy = __atomic_add_fetch(&newest, 1, __ATOMIC_RELAXED);
	message.call.staged = rc_chunks_staged(link);
	result = rc_link_post(link, RC_CALL_copy_up, 0, &message.head, sizeof message, NULL, 0);
	if (result != CUDA_SUCCESS)
		return result;
	/* The end is sent after a failure too: the worker waits for it, and finds the copy incomplete. */
	CUresult sent = rc_chunks_send(link, &message.call, copy);
	result = rc_link_post(link, RC_CALL_copy_up_end, 0, &message.head, sizeof message.head + sizeof message.call.copy, NULL,
			      0);
	return sent != CUDA_SUCCESS ? sent : result;
}

/* Sends the call of an asynchronous copy that is listed. If that fails, the session is lost. It may also have been lost since the
 * copy was listed. */
static CUresult post_later(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			   const struct iovec *iov, int n)
{
	CUresult result = rc_link_post(link, function, 0, head, len, iov, n);
	if (__atomic_load_n(&link->session->lost, __ATOMIC_SEQ_CST))
		rc_copy_session_lost(link->session);
	return result;
}

/* An asynchronous copy from pinned memory: the data connection's thread sends the bytes when the stream has come to the copy. */
static CUresult copy_up_later(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			      uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	struct rc_copy source = *host;
	source.up = true;
	source.box = *box;
	if (!copy_begin(link->session, &source, NULL, &message.call.copy))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return post_later(link, RC_CALL_copy_up_later, &message.head, sizeof message, NULL, 0);
}

/* ---- asynchronous copies between pinned memory and arrays ---- */

CUresult rc_copy_array_later(struct rc_link *link, const struct rc_copy *host, uint64_t stream, const CUDA_MEMCPY3D *array)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .unkept = !host->up, .box = host->box } };
	struct iovec iov = { (void *)(uintptr_t)array, sizeof *array };
	if (!copy_begin(link->session, host, NULL, &message.call.copy))
		return CUDA_ERROR_OUT_OF_MEMORY;
	return post_later(link, host->up ? RC_CALL_array_up_later : RC_CALL_array_down_later, &message.head, sizeof message, &iov, 1);
}

/* A small copy that the program must find complete. If nothing else is under way, the worker completes it before it issues the
 * next call, so this call need not wait. *posted: that is the case. */
static CUresult copy_up_settled(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *copy,
				uint64_t stream, bool *posted)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	struct iovec iov[CH3_IOV_MAX];
	bool gathered;
	*posted = false;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	int n = rc_chunks_pieces(link, copy, 0, rc_copy_bytes(copy), iov, &gathered);
	if (n < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	return rc_link_post_settled(link, RC_CALL_copy_up_settled, &message.head, sizeof message, iov, n, posted);
}

/* ---- to the host ---- */

/* A small copy, whose bytes the reply has. They are stored after those of earlier copies, which arrive before the call returns. */
static CUresult copy_down_reply(struct rc_link *link, struct rc_wire_call *head, const struct rc_wire_copy *call,
				const struct rc_copy *host)
{
	uint64_t bytes = rc_copy_bytes(host);
	CUresult result = rc_link_call(link, RC_CALL_copy_down_reply, 0, head, sizeof *head + sizeof *call, NULL, 0);
	if (result == CUDA_SUCCESS && link->reply_len != bytes)
		return rc_link_broken(link, RC_CALL_copy_down_reply);
	if (result == CUDA_SUCCESS)
		rc_copy_scatter(host, 0, bytes, link->reply);
	return result;
}

static CUresult copy_down_now(struct rc_link *link, struct rc_wire_call *head, struct rc_wire_copy *call,
			      const struct rc_copy *host)
{
	struct rc_copy *copy = copy_begin(link->session, host, link, &call->copy);
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	call->staged = rc_copy_bytes(host) > RC_INLINE_COPY && rc_chunks_staged(link);
	CUresult result = rc_link_call(link, RC_CALL_copy_down, 0, head, sizeof *head + sizeof *call, NULL, 0);
	uint64_t left = __atomic_load_n(&copy->left, __ATOMIC_ACQUIRE);
	copy_end(copy);
	return result == CUDA_SUCCESS && left ? rc_link_broken(link, RC_CALL_copy_down) : result;
}

/* Reserves part of the worker's staging memory for an asynchronous copy. False: not enough is free. */
static bool staging_take(struct rc_session *session, uint64_t bytes)
{
	if (__atomic_add_fetch(&session->staged, bytes, __ATOMIC_RELAXED) <= session->staging)
		return true;
	__atomic_sub_fetch(&session->staged, bytes, __ATOMIC_RELAXED);
	return false;
}

/* An asynchronous copy to pinned memory: the data connection brings its bytes. If the worker has staging memory for them, the
 * stream goes on when the device has done the copy, otherwise when the bytes are sent. */
static CUresult copy_down_later(struct rc_link *link, struct rc_wire_call *head, struct rc_wire_copy *call,
				const struct rc_copy *host)
{
	struct rc_copy into = *host;
	into.kept = staging_take(link->session, rc_copy_bytes(host));
	call->unkept = !into.kept;
	if (!copy_begin(link->session, &into, NULL, &call->copy)) {
		if (into.kept)
			__atomic_sub_fetch(&link->session->staged, rc_copy_bytes(host), __ATOMIC_RELAXED);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return post_later(link, RC_CALL_copy_down_later, head, sizeof *head + sizeof *call, NULL, 0);
}

static CUresult copy_down(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			  uint64_t stream, bool may_be_later)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy call;
	} message = { .call = { .stream = stream, .box = *box } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t bytes = rc_copy_bytes(host);
	if (may_be_later && rc_data_open(link->session))
		return copy_down_later(link, &message.head, &message.call, host);
	/* The data connection may still bring bytes of an earlier copy of the stream to the same memory. */
	if (rc_copy_writes((uint64_t)(uintptr_t)host->host, host_extent(host))) {
		result = rc_copy_wait_for_turn(stream);
		if (result == CUDA_SUCCESS)
			result = rc_link_get(route, true, &link);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (bytes <= RC_REPLY_COPY && rc_box_chunk(box, 0) == bytes)
		return copy_down_reply(link, &message.head, &message.call, host);
	return copy_down_now(link, &message.head, &message.call, host);
}

/* ---- one side of a copy, to which every form of the driver's copy calls is converted ---- */

struct side {
	bool device;
	uint64_t address, pitch, slice;
};

bool rc_copy_is_staged(uint64_t bytes, bool asynchronous)
{
	return asynchronous && bytes <= RC_INLINE_COPY;
}

bool rc_copy_is_pinned(uint64_t address, uint64_t size)
{
	struct rc_span span;
	return rc_memory_find(address, &span) && span.kind >= RC_MEMORY_HOST && size <= span.size - (address - span.base);
}

/* Turns a box without gaps into one row, and slices that follow each other without a gap into one. */
static void flatten(uint64_t pitch, uint64_t slice, uint64_t *width, uint64_t *height, uint64_t *depth)
{
	if (*depth > 1 && slice == *height * pitch) {
		*height *= *depth;
		*depth = 1;
	}
	if (*height == 1 || pitch == *width) {
		if (*depth == 1 || slice == *width * *height) {
			*width *= *height * *depth;
			*height = *depth = 1;
		}
	}
}

static struct rc_wire_box box_of(const struct side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_wire_box box = { side->address, side->pitch, side->slice, width, height, depth };
	return box;
}

static CUresult side_check(const struct side *side, bool written, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_wire_box box = box_of(side, width, height, depth);
	uint64_t extent = rc_box_extent(&box);
	if (!extent || (height > 1 && side->pitch < width) || (depth > 1 && side->slice < width))
		return CUDA_ERROR_INVALID_VALUE;
	if (side->device)
		return written ? rc_memory_check_written(side->address, extent) :
				 rc_memory_check_device(side->address, extent);
	return side->address ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct rc_copy host_of(const struct side *side, uint64_t width, uint64_t height, uint64_t depth)
{
	struct rc_copy copy = { .host = (uint8_t *)(uintptr_t)side->address, .pitch = side->pitch, .slice = side->slice };
	flatten(side->pitch, side->slice, &width, &height, &depth);
	copy.width = width;
	copy.height = height;
	copy.depth = depth;
	return copy;
}

/* Records an event of the current context in the stream, and waits for it. */
static CUresult wait_by_event(uint64_t stream)
{
	CUevent event;
	CUresult result = cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
	if (result != CUDA_SUCCESS)
		return result;
	result = cuEventRecord(event, (CUstream)(uintptr_t)stream);
	if (result == CUDA_SUCCESS)
		result = cuEventSynchronize(event);
	cuEventDestroy_v2(event);
	return result;
}

/* Waits until the stream would begin a new command: for its own work, and for that of the streams which it is ordered with
 * (the default stream and blocking streams). cuStreamSynchronize does not wait for the latter; an event does. */
CUresult rc_copy_wait_for_turn(uint64_t stream)
{
	const struct rc_stream *made = rc_handle_data(RC_KIND_STREAM, stream);
	CUcontext context = made ? made->context : NULL;
	if (!context || context == rc_context_current()) /* an event of another context cannot be recorded in the stream */
		return wait_by_event(stream);
	CUresult result = cuCtxPushCurrent_v2(context);
	if (result != CUDA_SUCCESS)
		return result;
	result = wait_by_event(stream);
	cuCtxPopCurrent_v2(&context);
	return result;
}

bool rc_copy_completes(const struct rc_session *session, bool pinned, uint64_t bytes)
{
	/* Copies between servers, and other processes, may read the bytes next. They do not wait for this session's calls. */
	return pinned || bytes > RC_INLINE_COPY || rc_peer_possible() ||
	       (session && __atomic_load_n(&session->shared, __ATOMIC_RELAXED));
}

CUresult rc_copy_await(const struct rc_route *route, uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		uint64_t stream;
	} message = { .stream = stream };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	/* A server of another build may not have the call. */
	if (link->session->call_number && !link->session->call_number[RC_CALL_copy_wait])
		return route->context ? cuCtxSynchronize_v2((CUcontext)(uintptr_t)route->context) : rc_copy_wait_for_turn(stream);
	return rc_link_call(link, RC_CALL_copy_wait, 0, &message.head, sizeof message, NULL, 0);
}

/* Copies from host to host in a stream's order: waits for the stream's earlier work first. */
static CUresult copy_on_host(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
			     CUstream stream)
{
	CUresult result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	if (result != CUDA_SUCCESS)
		return result;
	for (uint64_t z = 0; z < depth; z++)
		for (uint64_t y = 0; y < height; y++)
			memmove((void *)(uintptr_t)(to->address + z * to->slice + y * to->pitch),
				(void *)(uintptr_t)(from->address + z * from->slice + y * from->pitch), width);
	return CUDA_SUCCESS;
}

static CUresult copy_across(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			    uint64_t height, uint64_t depth, uint64_t stream)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_across call;
	} message = { .call = { stream, box_of(to, width, height, depth), box_of(from, width, height, depth) } };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	return rc_link_post(link, RC_CALL_copy_across, 0, &message.head, sizeof message, NULL, 0);
}

/*
 * Finds the copy's session, that of its device memory. *elsewhere: the stream is of another session, so the copy cannot be in
 * the stream's order on the server.
 */
static CUresult copy_route(const struct side *to, const struct side *from, CUstream stream, struct rc_route *route,
			   bool *elsewhere)
{
	CUresult result = CUDA_SUCCESS;
	*elsewhere = false;
	if (to->device)
		result = rc_route_address(route, to->address);
	if (result == CUDA_SUCCESS && from->device)
		result = rc_route_address(route, from->address);
	struct rc_route of_stream = { NULL, 0, false };
	if (result == CUDA_SUCCESS)
		result = rc_route_handle(&of_stream, RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	*elsewhere = result == CUDA_SUCCESS && route->session && of_stream.session && route->session != of_stream.session;
	return result;
}

/* A copy between device memory and pinned memory, from a small source in other host memory, or within a server, in a stream of
 * another server: this process makes it when the stream has come to it. False: the call must wait. */
static bool copy_follows(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
			 CUstream stream, CUresult *result)
{
	struct rc_wire_box target = box_of(to, width, height, depth), source = box_of(from, width, height, depth);
	if (!to->device && !rc_copy_is_pinned(to->address, rc_box_extent(&target)))
		return false;
	uint8_t *staged = NULL;
	if (!from->device && !rc_copy_is_pinned(from->address, rc_box_extent(&source))) {
		/* CUDA reads a small pageable source during the call. */
		struct rc_copy host = host_of(from, width, height, depth);
		uint64_t bytes = rc_copy_bytes(&host);
		if (!rc_copy_is_staged(bytes, true) || !(staged = malloc(bytes)))
			return false;
		rc_copy_gather(&host, 0, bytes, staged);
		source = (struct rc_wire_box){ (uint64_t)(uintptr_t)staged, width, width * height, width, height, depth };
	}
	return rc_peer_copy_elsewhere(&target, to->device, &source, from->device, staged, stream, result);
}

/* Copies between the device and pinned memory that the worker has mapped. */
static CUresult copy_pinned(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			    uint64_t height, uint64_t depth, uint64_t stream, bool wait, const struct rc_span *span)
{
	const struct side *device = to->device ? to : from, *host = to->device ? from : to;
	uint64_t row = width, rows = height, slices = depth;
	flatten(host->pitch, host->slice, &row, &rows, &slices);
	if (rows == 1 && slices == 1)
		flatten(device->pitch, device->slice, &width, &height, &depth);
	struct rc_wire_copy_pinned call = { .stream = stream, .pinned = span->pinned,
					    .offset = rc_pinned_offset(span, host->address),
					    .pitch = host->pitch, .slice = host->slice,
					    .box = box_of(device, width, height, depth), .to_device = to->device };
	return rc_pinned_copy(route, &call, wait);
}

/* True if an asynchronous copy from pinned memory, which no earlier work writes, may read its source during the call, and if
 * sending it takes about as long as a message. While a stream may be held, the program may change the source after the call. */
static bool may_send_now(const struct rc_route *route, const struct rc_wire_box *box)
{
	struct rc_link *link;
	uint64_t bytes = rc_box_bytes(box);
	if (bytes > EAGER_COPY || rc_link_get(route, true, &link) != CUDA_SUCCESS || rc_held_any(link->session))
		return false;
	return bytes <= RC_INLINE_COPY || rc_chunks_room(link, box);
}

/* A small copy of this kind behind a kernel is sent during its call too: otherwise each of them would cost its stream a round
 * trip. If the program changes the source, the bytes are sent once more. *sent: the copy is on its way. */
static CUresult copy_up_early(const struct rc_route *route, const struct rc_wire_box *box, const struct rc_copy *host,
			      uint64_t stream, bool *sent)
{
	struct rc_link *link;
	*sent = false;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS || !rc_held_any(link->session) || !rc_early_suits(link->session, rc_copy_bytes(host)))
		return result;
	return rc_early_copy(link, box, host, stream, sent);
}

/* True if the copy need not wait for a reply if nothing else is under way. Another process or server may read the bytes before the
 * worker has got the call. */
static bool may_settle(const struct rc_session *session, const struct rc_copy *copy)
{
	return rc_copy_bytes(copy) <= RC_INLINE_COPY && !rc_peer_possible() &&
	       !(session && __atomic_load_n(&session->shared, __ATOMIC_RELAXED));
}

static void nothing(void *unused)
{
	(void)unused;
}

/* The function runs when the bytes have arrived. Before the client reports its end, it compares the sources of small copies. */
CUresult rc_copy_changes_early(const struct rc_session *session, uint64_t address, uint64_t size, CUstream stream)
{
	return rc_early_reads(session, (uint64_t)(uintptr_t)stream, address, size) ? cuLaunchHostFunc(stream, nothing, NULL) :
										      CUDA_SUCCESS;
}

/* Copies between host and device. elsewhere: as copy_route says. */
static CUresult copy_with_host(const struct rc_route *route, const struct side *to, const struct side *from, uint64_t width,
			       uint64_t height, uint64_t depth, uint64_t stream, bool asynchronous, bool elsewhere)
{
	const struct side *device = to->device ? to : from, *host = to->device ? from : to;
	struct rc_span span;
	CUresult result = CUDA_SUCCESS;
	struct rc_wire_box extent = box_of(host, width, height, depth);
	uint64_t bytes = rc_box_extent(&extent);
	struct rc_session *session = route->session ? route->session : rc_context_session();
	struct rc_copy place = host_of(host, width, height, depth);
	uint64_t row = width, rows = height, slices = depth;
	flatten(device->pitch, device->slice, &row, &rows, &slices);
	struct rc_wire_box box = box_of(device, row, rows, slices);
	bool is_mapped = rc_pinned_in(session, host->address, bytes, &span);
	bool is_mine = is_mapped || rc_copy_is_pinned(host->address, bytes);
	bool changes = !is_mapped && to->device &&
		       (rc_host_any() || rc_copy_writes(host->address, bytes) || rc_pinned_shared(host->address));
	bool completes = to->device && !asynchronous && rc_copy_completes(session, is_mine, rc_copy_bytes(&place));
	if (completes && !elsewhere && !changes && may_settle(session, &place)) {
		bool posted;
		result = copy_up_settled(route, &box, &place, stream, &posted);
		if (posted || result != CUDA_SUCCESS)
			return result;
	}
	if (is_mapped)
		return copy_pinned(route, to, from, width, height, depth, stream, !asynchronous || elsewhere, &span);
	if (!to->device) {
		bool may_be_later = asynchronous && !elsewhere && is_mine;
		result = copy_down(route, &box, &place, stream, may_be_later);
		return result == CUDA_SUCCESS && may_be_later ?
			       rc_copy_changes_early(session, host->address, bytes, (CUstream)(uintptr_t)stream) :
			       result;
	}
	bool is_later = asynchronous && !elsewhere && is_mine && session;
	if (is_later && !changes) {
		bool sent;
		result = copy_up_early(route, &box, &place, stream, &sent);
		if (sent || result != CUDA_SUCCESS)
			return result;
	}
	if (is_later && (changes || !may_send_now(route, &box)) && rc_data_open(session))
		return copy_up_later(route, &box, &place, stream);
	/* Bytes to the device are read during this call. Earlier work of the stream may still write them: a copy to the
	 * host, a host function, which may write anywhere, or another server's worker, which has mapped them and for whose
	 * event the stream waits. So wait for it, unless CUDA reads the bytes in the call too. */
	if (!elsewhere && changes && (is_mine || !rc_copy_is_staged(rc_copy_bytes(&place), asynchronous)))
		result = rc_copy_wait_for_turn(stream);
	if (result == CUDA_SUCCESS)
		result = copy_up(route, &box, &place, stream);
	if (result == CUDA_SUCCESS && elsewhere)
		return cuCtxSynchronize_v2((CUcontext)(uintptr_t)route->context);
	return result == CUDA_SUCCESS && completes ? rc_copy_await(route, stream) : result;
}

/* True if one side is host memory of which a server has a mirror, and the other side memory of another server. */
static bool is_mirror_apart(const struct side *mirror, const struct side *other)
{
	struct rc_span here, there;
	return rc_memory_find(mirror->address, &here) && here.kind >= RC_MEMORY_HOST && here.session &&
	       rc_memory_find(other->address, &there) && there.session && there.session != here.session;
}

/* Makes a copy between such memory and another server's one between this process's memory and that server: the call waits for the
 * stream, and takes over what the mirror's server has written. */
static CUresult bring_home(struct side *mirror, CUstream stream, bool *asynchronous)
{
	struct rc_span span;
	CUresult result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS && rc_memory_find(mirror->address, &span) && span.session)
		result = rc_mirror_host_begin(span.session);
	mirror->device = false;
	*asynchronous = false;
	return result;
}

static CUresult settle_apart(struct side *to, struct side *from, CUstream stream, bool *asynchronous)
{
	if (!rc_peer_possible() || !to->device || !from->device)
		return CUDA_SUCCESS;
	if (is_mirror_apart(to, from))
		return bring_home(to, stream, asynchronous);
	return is_mirror_apart(from, to) ? bring_home(from, stream, asynchronous) : CUDA_SUCCESS;
}

/* Every copy comes through here, or through copy below. asynchronous: the caller allows the copy to complete after the call. */
static CUresult issue(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
		     CUstream stream, bool asynchronous)
{
	struct rc_context *context;
	CUresult result = rc_context_get(&context);
	if (result == CUDA_SUCCESS)
		result = rc_handle_check(RC_KIND_STREAM, (uint64_t)(uintptr_t)stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (!width || !height || !depth)
		return CUDA_SUCCESS;
	result = side_check(to, true, width, height, depth);
	if (result == CUDA_SUCCESS)
		result = side_check(from, false, width, height, depth);
	if (result != CUDA_SUCCESS)
		return result;
	if (__atomic_load_n(&rc_context_session()->sick, __ATOMIC_RELAXED)) {
		struct rc_link *link;
		result = rc_link_get(&(struct rc_route){ NULL, 0, false }, true, &link);
		if (result == CUDA_SUCCESS)
			result = rc_link_error(link);
		if (result != CUDA_SUCCESS)
			return result;
	}
	if (to->device && from->device && rc_peer_apart(to->address, from->address)) {
		struct rc_wire_box target = box_of(to, width, height, depth), source = box_of(from, width, height, depth);
		return rc_peer_copy(&target, &source, stream);
	}
	bool captured;
	struct rc_capture_side into = { to->device, to->address, to->pitch, to->slice };
	struct rc_capture_side out_of = { from->device, from->address, from->pitch, from->slice };
	result = rc_capture_copy(stream, &into, &out_of, width, height, depth, asynchronous, &captured);
	if (result != CUDA_SUCCESS || captured)
		return result;
	struct side here = *to, there = *from;
	result = settle_apart(&here, &there, stream, &asynchronous);
	if (result != CUDA_SUCCESS)
		return result;
	to = &here;
	from = &there;
	if (!to->device && !from->device)
		return copy_on_host(to, from, width, height, depth, stream);
	struct rc_route route = { NULL, 0, false };
	bool elsewhere;
	result = copy_route(to, from, stream, &route, &elsewhere);
	if (result == CUDA_SUCCESS && elsewhere && asynchronous &&
	    copy_follows(to, from, width, height, depth, stream, &result))
		return result;
	if (result == CUDA_SUCCESS && elsewhere) {
		/* The call waits for the stream, copies in the default stream of the memory's context, and waits for the copy. */
		result = rc_copy_wait_for_turn((uint64_t)(uintptr_t)stream);
		stream = CU_STREAM_LEGACY;
	}
	if (result != CUDA_SUCCESS)
		return result;
	uint64_t named = (uint64_t)(uintptr_t)stream;
	if (to->device && from->device) {
		result = copy_across(&route, to, from, width, height, depth, named);
		return result == CUDA_SUCCESS && elsewhere ? cuCtxSynchronize_v2((CUcontext)(uintptr_t)route.context) : result;
	}
	return copy_with_host(&route, to, from, width, height, depth, named, asynchronous, elsewhere);
}

/* issue does not wait for copies to and between devices. If the host may use such memory itself, this call does. */
static CUresult copy(const struct side *to, const struct side *from, uint64_t width, uint64_t height, uint64_t depth,
		     CUstream stream, bool asynchronous)
{
	CUresult result = issue(to, from, width, height, depth, stream, asynchronous);
	if (result == CUDA_SUCCESS && !asynchronous && to->device)
		result = rc_managed_settle(to->address, (uint64_t)(uintptr_t)stream);
	if (result == CUDA_SUCCESS && !asynchronous && to->device && from->device)
		result = rc_managed_settle(from->address, (uint64_t)(uintptr_t)stream);
	return result;
}

static CUresult copy_line(const struct side *to, const struct side *from, size_t size, CUstream stream, bool asynchronous)
{
	return copy(to, from, size, size ? 1 : 0, 1, stream, asynchronous);
}

/* Managed memory is copied by the worker, wherever a call takes its address. */
static struct side host_side(const void *pointer)
{
	uint64_t address = (uint64_t)(uintptr_t)pointer;
	return (struct side){ .device = rc_managed_at(address), .address = address };
}

static struct side device_side(CUdeviceptr pointer)
{
	return (struct side){ .device = true, .address = pointer };
}

static struct side either_side(CUdeviceptr pointer)
{
	return (struct side){ .device = rc_memory_is_device(pointer), .address = pointer };
}

/* ---- the driver's calls, one line of memory ---- */

static CUresult copy_h2d(CUdeviceptr to, const void *from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = device_side(to), b = host_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

static CUresult copy_d2h(void *to, CUdeviceptr from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = host_side(to), b = device_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

static CUresult copy_any(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream, bool asynchronous)
{
	struct side a = either_side(to), b = either_side(from);
	return copy_line(&a, &b, size, stream, asynchronous);
}

/* The stream that a per-thread variant means by NULL. */
static CUstream own(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
	return copy_h2d(to, from, size, NULL, false);
}

CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr to, const void *from, size_t size)
{
	return copy_h2d(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy_h2d(to, from, size, stream, true);
}

CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	return copy_h2d(to, from, size, own(stream), true);
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
	return copy_d2h(to, from, size, NULL, false);
}

CUresult cuMemcpyDtoH_v2_ptds(void *to, CUdeviceptr from, size_t size)
{
	return copy_d2h(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_d2h(to, from, size, stream, true);
}

CUresult cuMemcpyDtoHAsync_v2_ptsz(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_d2h(to, from, size, own(stream), true);
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_any(to, from, size, NULL, false);
}

CUresult cuMemcpy_ptds(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	return copy_any(to, from, size, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_any(to, from, size, stream, true);
}

CUresult cuMemcpyAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	return copy_any(to, from, size, own(stream), true);
}

static CUresult dtod_check(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	CUresult result = rc_memory_check_written(to, size);
	return result == CUDA_SUCCESS ? rc_memory_check_device(from, size) : result;
}

CUresult copy_check_dtod(CUdeviceptr to, CUdeviceptr from, size_t size)
{
	CUresult result = dtod_check(to, from, size);
	return result == CUDA_SUCCESS ? rc_capture_now() : result;
}

CUresult copy_check_dtod_async(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
	bool captured;
	struct rc_capture_side into = { .device = true, .address = to }, out_of = { .device = true, .address = from };
	CUresult result = dtod_check(to, from, size);
	if (result == CUDA_SUCCESS)
		result = rc_capture_copy(stream, &into, &out_of, size, 1, 1, true, &captured);
	return result == CUDA_SUCCESS && captured ? RC_ANSWERED : result;
}

CUresult copy_check_peer_async(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
			       CUstream stream)
{
	CUresult result = dtod_check(to, from, size);
	return result == CUDA_SUCCESS ? capture_check_peer_async(to, to_context, from, from_context, size, stream) : result;
}

/* ---- and in two and three dimensions ---- */

static CUresult side_of(CUmemorytype type, const void *host, CUdeviceptr device, struct side *side)
{
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		*side = host_side(host);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_DEVICE:
		*side = device_side(device);
		return CUDA_SUCCESS;
	case CU_MEMORYTYPE_UNIFIED:
		*side = either_side(device);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

/* Moves a side to its first byte. A pitch of 0 is valid for a single row, a height of 0 for a single slice. */
static CUresult side_start(struct side *side, const CUDA_MEMCPY3D *p, size_t x, size_t y, size_t z, size_t pitch, size_t height)
{
	uint64_t across, row, rows;
	if (__builtin_add_overflow((uint64_t)x, (uint64_t)p->WidthInBytes, &row) ||
	    __builtin_add_overflow((uint64_t)y, (uint64_t)p->Height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	bool one_row = !pitch && rows <= 1, one_slice = !height && !z && p->Depth <= 1;
	if ((!one_row && pitch < row) || (!one_slice && height < rows))
		return CUDA_ERROR_INVALID_VALUE;
	side->pitch = one_row ? row : pitch;
	if (__builtin_mul_overflow(side->pitch, one_slice ? rows : (uint64_t)height, &side->slice) ||
	    __builtin_mul_overflow((uint64_t)z, side->slice, &across) ||
	    __builtin_add_overflow(side->address, across, &side->address) ||
	    __builtin_mul_overflow((uint64_t)y, side->pitch, &across) ||
	    __builtin_add_overflow(side->address, across, &side->address) ||
	    __builtin_add_overflow(side->address, (uint64_t)x, &side->address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool asynchronous)
{
	struct side to, from;
	if (!p || p->srcLOD || p->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	if (p->dstMemoryType == CU_MEMORYTYPE_ARRAY || p->srcMemoryType == CU_MEMORYTYPE_ARRAY)
		return rc_array_copy(p, stream, asynchronous);
	CUresult result = side_of(p->dstMemoryType, p->dstHost, p->dstDevice, &to);
	if (result == CUDA_SUCCESS)
		result = side_of(p->srcMemoryType, p->srcHost, p->srcDevice, &from);
	if (result == CUDA_SUCCESS)
		result = side_start(&to, p, p->dstXInBytes, p->dstY, p->dstZ, p->dstPitch, p->dstHeight);
	if (result == CUDA_SUCCESS)
		result = side_start(&from, p, p->srcXInBytes, p->srcY, p->srcZ, p->srcPitch, p->srcHeight);
	if (result != CUDA_SUCCESS)
		return result;
	return copy(&to, &from, p->WidthInBytes, p->Height, p->Depth, stream, asynchronous);
}

static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool asynchronous)
{
	if (!p)
		return CUDA_ERROR_INVALID_VALUE;
	CUDA_MEMCPY3D box = {
		.srcXInBytes = p->srcXInBytes, .srcY = p->srcY, .srcMemoryType = p->srcMemoryType, .srcHost = p->srcHost,
		.srcDevice = p->srcDevice, .srcArray = p->srcArray, .srcPitch = p->srcPitch,
		.dstXInBytes = p->dstXInBytes, .dstY = p->dstY, .dstMemoryType = p->dstMemoryType, .dstHost = p->dstHost,
		.dstDevice = p->dstDevice, .dstArray = p->dstArray, .dstPitch = p->dstPitch,
		.WidthInBytes = p->WidthInBytes, .Height = p->Height, .Depth = 1,
	};
	return copy_3d(&box, stream, asynchronous);
}

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, NULL, false);
}

CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *p)
{
	return copy_2d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *p, CUstream stream)
{
	return copy_2d(p, stream, true);
}

CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *p, CUstream stream)
{
	return copy_2d(p, own(stream), true);
}

CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D *p)
{
	return copy_3d(p, NULL, false);
}

CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *p)
{
	return copy_3d(p, CU_STREAM_PER_THREAD, false);
}

CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *p, CUstream stream)
{
	return copy_3d(p, stream, true);
}

CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *p, CUstream stream)
{
	return copy_3d(p, own(stream), true);
}
