/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread's connection to the worker: sends calls; receives replies, and text to print. */
#include "cuda_remote/api/context_errors.h"
#include "cuda_remote/client/chunks.h"
#include "cuda_remote/client/context.h"
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/early.h"
#include "cuda_remote/client/graph/graph_calls.h"
#include "cuda_remote/client/hostfn.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Bytes allocated for results at first. Larger results make it grow. */
#define REPLY_START 4096

HR_SETTING(idle_setting, "HEADRACE_IDLE_CONNECTIONS", "64", 0, 65536,
	   "connections to one server that ended threads leave and that are kept for other threads; 0: none");
static pthread_once_t idle_once = PTHREAD_ONCE_INIT;
static uint64_t idle_most; /* of one session */

/* Called before any thread ends: by then another thread of the program may be changing the environment. */
static void read_setting(void)
{
	if (hr_setting_u64(&idle_setting, &idle_most))
		idle_most = 0; /* logged */
}

/* Threads asleep in rc_link_await_chunks; atomic. The lock is taken only to sleep and to wake them. */
static pthread_mutex_t chunks_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t chunks_came = PTHREAD_COND_INITIALIZER;
static int chunk_waiters;

/* Sequentially consistent with the sleeper's increment: either we see it waiting, or it sees what we have just stored. */
static void wake_chunk_waiters(void)
{
	if (!__atomic_load_n(&chunk_waiters, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&chunks_lock);
	pthread_cond_broadcast(&chunks_came);
	pthread_mutex_unlock(&chunks_lock);
}

static CUresult link_lost(struct rc_link *link, int error)
{
	if (!link->error)
		link->error = error ? error : -ECONNRESET;
	/* One line for the session, from the first connection that fails. */
	if (!__atomic_exchange_n(&link->session->lost, true, __ATOMIC_SEQ_CST))
		hr_log(HR_LOG_ERROR, "connection to server %s lost: %s; the data on its GPUs is lost and every further CUDA call fails: restart the program",
		       link->server, strerror(-link->error));
	rc_copy_session_lost(link->session);
	rc_host_session_lost(link->session);
	rc_graph_host_session_lost(link->session);
	wake_chunk_waiters();
	return RC_LOST;
}

static void on_failure(void *context, ch3_vc_t *vc, int error)
{
	(void)vc;
	link_lost(context, error);
}

static void reply_done(void *context, int error, size_t bytes)
{
	struct rc_link *link = context;
	(void)bytes;
	if (!error)
		link->answered = true;
}

static int on_reply(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_link *link = context;
	if (incoming->header_len < sizeof link->head || incoming->rndv || link->answered ||
	    incoming->payload_len > RC_REPLY_BYTES_MAX)
		return -EPROTO;
	memcpy(&link->head, incoming->header, sizeof link->head);
	if (!link->waiting || link->head.number != link->waiting || rc_chunks_freed(link, link->head.freed))
		return -EPROTO;
	size_t in_header = incoming->header_len - sizeof link->head;
	size_t total = in_header + incoming->payload_len;
	if (total > link->reply_size) {
		uint8_t *larger = realloc(link->reply, total);
		if (!larger)
			return -ENOMEM;
		link->reply = larger;
		link->reply_size = total;
	}
	memcpy(link->reply, (const char *)incoming->header + sizeof link->head, in_header);
	link->reply_len = total;
	sink->iov[0] = (struct iovec){ link->reply + in_header, incoming->payload_len };
	sink->n = incoming->payload_len ? 1 : 0;
	sink->done = reply_done;
	sink->context = link;
	return 0;
}

struct text {
	size_t len;
	FILE *to;
	char bytes[];
};

/* Text goes through the program's own stdout and stderr, so that it is in order with what the program prints. */
static void text_done(void *context, int error, size_t bytes)
{
	struct text *text = context;
	if (!error)
		fwrite(text->bytes, 1, bytes, text->to);
	free(text);
}

static int on_text(void *context, const ch3_incoming_t *incoming, ch3_sink_t *sink)
{
	struct rc_wire_text wire;
	(void)context;
	if (incoming->header_len != sizeof wire || incoming->rndv || incoming->payload_len > RC_REPLY_BYTES_MAX)
		return -EPROTO;
	memcpy(&wire, incoming->header, sizeof wire);
	if (wire.stream != RC_TEXT_STDOUT && wire.stream != RC_TEXT_STDERR)
		return -EPROTO;
	struct text *text = malloc(sizeof *text + incoming->payload_len);
	if (!text)
		return -ENOMEM;
	text->len = incoming->payload_len;
	text->to = wire.stream == RC_TEXT_STDERR ? stderr : stdout;
	sink->iov[0] = (struct iovec){ text->bytes, text->len };
	sink->n = 1;
	sink->done = text_done;
	sink->context = text;
	return 0;
}

CUresult rc_link_open(struct rc_session *session, ch3_t *engine, const hr_card_t *card,
		      const hr_connect_attr_t *attr, const char *server, struct rc_link **opened)
{
	struct rc_link *link = calloc(1, sizeof *link);
	uint8_t *reply = malloc(REPLY_START);
	if (!link || !reply) {
		free(link);
		free(reply);
		close(attr->fd);
		ch3_close(engine);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	pthread_once(&idle_once, read_setting);
	pthread_mutex_init(&link->sending, NULL);
	link->engine = engine;
	link->session = session;
	link->reply = reply;
	link->reply_size = REPLY_START;
	snprintf(link->server, sizeof link->server, "%s", server);
	ch3_on_failure(engine, on_failure, link);
	ch3_register(engine, RC_PACKET_REPLY, on_reply, link);
	ch3_register(engine, RC_PACKET_CHUNK, rc_chunk_arrived, link);
	ch3_register_ahead(engine, RC_PACKET_CHUNK, rc_chunk_may_ahead);
	ch3_register(engine, RC_PACKET_STAGED, rc_staged_arrived, link);
	ch3_register(engine, RC_PACKET_CREDIT, rc_credit_arrived, link);
	ch3_register(engine, RC_PACKET_FETCH, rc_fetch_arrived, link);
	ch3_register(engine, RC_PACKET_TEXT, on_text, link);
	ch3_register(engine, RC_PACKET_HOST, rc_host_arrived, link);
	int error = ch3_connect(engine, card, attr, link, &link->vc);
	if (error) {
		CUresult result = link_lost(link, error);
		rc_link_close(link);
		return result;
	}
	*opened = link;
	return CUDA_SUCCESS;
}

void rc_link_close(struct rc_link *link)
{
	rc_delay_end(link);
	ch3_close(link->engine);
	rc_chunks_end(link);
	free(link->reply);
	free(link->scratch);
	free(link);
}

/* ---- connections that ended threads have left ---- */

static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * True if another thread may use the link: nothing is under way on it but calls that the worker has or will get, and the worker
 * keeps nothing of the ended thread. The per-thread default stream is the one of the worker's thread. A link over which it was used
 * is given away only if the stream is known to be empty: its work may have to wait for the next thread.
 */
static bool is_reusable(const struct rc_link *link)
{
	return !link->error && !__atomic_load_n(&link->session->lost, __ATOMIC_RELAXED) && !link->inside && !link->waiting &&
	       !link->receiving && !link->asking && !link->scratch_taken && !link->thread_kept &&
	       (link->thread_done >= link->thread_work || rc_link_is_settled(link->session));
}

void rc_link_leave(struct rc_link *link)
{
	struct rc_session *session = link->session;
	bool kept = is_reusable(link);
	if (kept) {
		rc_delay_leave(link);
		link->thread_work = link->thread_done = 0; /* the next thread may use that stream in another context */
	}
	pthread_mutex_lock(&idle_lock);
	kept = kept && session->idles < idle_most;
	if (kept) {
		link->next_idle = session->idle;
		session->idle = link;
		session->idles++;
	}
	pthread_mutex_unlock(&idle_lock);
	if (!kept)
		rc_link_close(link);
}

/* The link that was left last; NULL: there is none. */
static struct rc_link *take_idle(struct rc_session *session)
{
	pthread_mutex_lock(&idle_lock);
	struct rc_link *link = session->idle;
	if (link) {
		session->idle = link->next_idle;
		session->idles--;
	}
	pthread_mutex_unlock(&idle_lock);
	return link;
}

CUresult rc_link_to(struct rc_session *session, uint64_t context, struct rc_link **link)
{
	struct rc_thread *thread = rc_thread_get();
	if (!thread)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!session)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (__atomic_load_n(&session->lost, __ATOMIC_RELAXED))
		return RC_LOST;
	struct rc_link **mine = &thread->link[session->index];
	if (!*mine) {
		CUresult result = CUDA_SUCCESS;
		*mine = take_idle(session);
		if (!*mine)
			result = rc_session_join(session, mine);
		if (result != CUDA_SUCCESS)
			return result;
		(*mine)->own = thread->own;
	}
	(*mine)->context = rc_handle_index(context);
	*link = *mine;
	return CUDA_SUCCESS;
}

/* *in_time false: timeout ms have passed (-1: no limit). */
static CUresult progress(struct rc_link *link, int timeout, bool *in_time)
{
	if (link->error)
		return RC_LOST;
	rc_delay_flush(link);
	link->inside = true;
	int ran = ch3_progress_wait(link->engine, timeout);
	link->inside = false;
	*in_time = ran;
	if (ran < 0)
		return link_lost(link, ran);
	return link->error ? RC_LOST : CUDA_SUCCESS;
}

CUresult rc_link_progress(struct rc_link *link)
{
	bool in_time = true;
	return progress(link, -1, &in_time);
}

/* Waits for the answer to a call. */
static CUresult await_answer(struct rc_link *link, enum rc_call function)
{
	CUresult result = CUDA_SUCCESS;
	int limit = rc_mirror_any() ? RC_MIRROR_LONG_WAIT : -1;
	while (result == CUDA_SUCCESS && !link->answered) {
		bool in_time = true;
		result = progress(link, limit, &in_time);
		if (!in_time) {
			rc_mirror_long_wait(link->session, function);
			limit = -1;
		}
	}
	return result;
}

CUresult rc_link_finish(struct rc_link *link, ch3_request_t *request)
{
	if (!request)
		return CUDA_SUCCESS;
	CUresult result = CUDA_SUCCESS;
	rc_delay_flush(link);
	while (result == CUDA_SUCCESS && !ch3_request_test(request))
		result = rc_link_progress(link);
	if (result == CUDA_SUCCESS && ch3_request_error(request))
		result = link_lost(link, ch3_request_error(request));
	ch3_request_free(request);
	return result;
}

/* ---- what is known of the work of earlier calls: see done.c ---- */

static void note_context(struct rc_link *link)
{
	struct rc_session *session = link->session;
	uint32_t context = link->context, only = __atomic_load_n(&session->only, __ATOMIC_RELAXED);
	if (context && context != only &&
	    (only || (!__atomic_compare_exchange_n(&session->only, &only, context, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		      only != context)))
		__atomic_store_n(&session->several, true, __ATOMIC_SEQ_CST);
}

static void settle_all(struct rc_session *session, uint64_t number)
{
	uint64_t settled = __atomic_load_n(&session->settled, __ATOMIC_RELAXED);
	while (settled < number && !__atomic_compare_exchange_n(&session->settled, &settled, number, false, __ATOMIC_ACQ_REL,
								__ATOMIC_RELAXED))
		;
}

void rc_link_settle(struct rc_session *session, uint64_t context, uint64_t number)
{
	if (rc_handle_index(context) == __atomic_load_n(&session->only, __ATOMIC_RELAXED))
		settle_all(session, number);
}

bool rc_link_is_settled(const struct rc_session *session)
{
	uint64_t numbered = __atomic_load_n(&session->numbered, __ATOMIC_ACQUIRE);
	return rc_link_settled(session) >= numbered;
}

uint64_t rc_link_settled(const struct rc_session *session)
{
	return __atomic_load_n(&session->several, __ATOMIC_SEQ_CST) ? 0 : __atomic_load_n(&session->settled, __ATOMIC_ACQUIRE);
}

/* ---- a server of another build ---- */

/* True if the server does not have this call. Logged once for each call. */
static bool is_missing(const struct rc_link *link, enum rc_call function)
{
	static uint8_t logged[RC_CALLS];
	const uint16_t *numbers = link->session->call_number;
	if (!numbers || numbers[function])
		return false;
	if (!__atomic_exchange_n(&logged[function], 1, __ATOMIC_RELAXED))
		hr_log(HR_LOG_ERROR, "%s is not supported: the server is of another build of Headrace and does not have it, or another "
		       "version of it", rc_call_names[function]);
	return true;
}

/* The number that this build has for a call of the server; RC_CALLS: none. */
static uint16_t own_number(const struct rc_link *link, uint16_t theirs)
{
	const uint16_t *numbers = link->session->call_number;
	uint16_t n = 1;
	if (!numbers)
		return theirs;
	while (n < RC_CALLS && numbers[n] != theirs)
		n++;
	return n;
}

void rc_link_number(struct rc_link *link, struct rc_wire_call *head)
{
	head->flags = 0;
	head->context = link->context;
	/* Release pairs with the acquire in rc_link_see_calls: the library's threads see what this thread has written before it
	 * lets a stream go on to a copy or a host function. */
	head->number = __atomic_add_fetch(&link->session->numbered, 1, __ATOMIC_RELEASE);
}

/* True if the call may use the per-thread default stream: it names this stream at the place where the function has its stream. If
 * that place is not known: some argument has this stream's value. */
static bool uses_thread_stream(enum rc_call function, const struct rc_wire_call *head, size_t len)
{
	const uint8_t *arguments = (const uint8_t *)(head + 1);
	const uint64_t stream = (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD;
	int at = rc_done_place(function);
	size_t bytes = len - sizeof *head;
	if (head->flags & RC_CALL_PER_THREAD)
		return true;
	if (at >= 0)
		return bytes >= (size_t)at + sizeof stream && !memcmp(arguments + at, &stream, sizeof stream);
	if (rc_done_makes_or_ends(function)) /* as with CU_EVENT_DISABLE_TIMING, which has that value */
		return false;
	for (size_t i = 0; at == -1 && i + sizeof stream <= bytes; i += sizeof(uint32_t))
		if (!memcmp(arguments + i, &stream, sizeof stream))
			return true;
	return false;
}

static void note_thread_stream(struct rc_link *link, enum rc_call function, const struct rc_wire_call *head)
{
	if (!link->thread_work)
		link->thread_context = head->context;
	link->thread_work = head->number;
	if (head->context != link->thread_context || !rc_done_leaves_work_only(function))
		link->thread_kept = true;
}

/* Numbers a call, unless it has a number, and sends it. After the number is taken, every failure must end the connection: the
 * worker waits for each number. */
static CUresult link_send(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head,
			  size_t len, const struct iovec *iov, int n)
{
	head->flags = flags;
	head->context = link->context;
	if (!head->number) {
		CUresult result = rc_early_before(link, function, head);
		if (result != CUDA_SUCCESS)
			return result;
		rc_link_number(link, head);
		head->flags = flags;
	}
	note_context(link);
	head->function = link->session->call_number ? link->session->call_number[function] : (uint16_t)function;
	rc_done_note(link, function, head);
	if (hr_log_enabled(HR_LOG_DEBUG))
		hr_log(HR_LOG_DEBUG, "call %llu %s", (unsigned long long)head->number, rc_call_names[function]);
	if (flags & RC_CALL_WAIT) {
		link->waiting = head->number;
		link->answered = false;
	}
	ch3_request_t *request = NULL;
	if (uses_thread_stream(function, head, len))
		note_thread_stream(link, function, head);
	link->inside = true;
	int error = link->direct ? ch3_send(link->vc, RC_PACKET_CALL, head, len, iov, n, CH3_SEND_EAGER, &request) :
				     rc_delay_send(link, function, flags, head, len, iov, n, &request);
	link->inside = false;
	if (error)
		return link_lost(link, error);
	return rc_link_finish(link, request);
}

/* Before a call: sends what the host has changed in managed memory. *work: for rc_mirror_after. */
static CUresult before(struct rc_link *link, enum rc_call function, uint64_t *work)
{
	*work = 0;
	if (link->error)
		return RC_LOST;
	return rc_mirror_any() ? rc_mirror_before(link, function, work) : CUDA_SUCCESS;
}

CUresult rc_link_error(struct rc_link *link)
{
	if (!__atomic_load_n(&link->session->sick, __ATOMIC_RELAXED))
		return CUDA_SUCCESS;
	/* A server whose driver chooses addresses cannot be asked. */
	CUresult result = rc_link_health(link);
	return rc_error_stays(result) ? result : CUDA_SUCCESS;
}

/* True if the program makes this call, and CUDA returns from it an error that stays with the context. */
static bool tells_of_errors(enum rc_call function)
{
	switch (function) {
	case RC_CALL_launch:
	case RC_CALL_graph_launch:
	case RC_CALL_host_function:
	case RC_CALL_stream_memory:
	case RC_CALL_memory_free_async:
	case RC_CALL_context_event:
	case RC_CALL_cuMemcpyDtoD_v2:
	case RC_CALL_cuMemcpyDtoDAsync_v2:
	case RC_CALL_cuMemcpyPeerAsync:
	case RC_CALL_cuMemsetD8_v2:
	case RC_CALL_cuMemsetD16_v2:
	case RC_CALL_cuMemsetD32_v2:
	case RC_CALL_cuMemsetD2D8_v2:
	case RC_CALL_cuMemsetD2D16_v2:
	case RC_CALL_cuMemsetD2D32_v2:
	case RC_CALL_cuMemsetD8Async:
	case RC_CALL_cuMemsetD16Async:
	case RC_CALL_cuMemsetD32Async:
	case RC_CALL_cuMemsetD2D8Async:
	case RC_CALL_cuMemsetD2D16Async:
	case RC_CALL_cuMemsetD2D32Async:
	case RC_CALL_cuStreamCreate:
	case RC_CALL_cuStreamCreateWithPriority:
	case RC_CALL_cuStreamDestroy_v2:
	case RC_CALL_cuStreamWaitEvent:
	case RC_CALL_cuEventCreate:
	case RC_CALL_cuEventDestroy_v2:
	case RC_CALL_cuEventRecord:
	case RC_CALL_cuEventRecordWithFlags:
		return true;
	default:
		return false;
	}
}

CUresult rc_link_post(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		      const struct iovec *iov, int n)
{
	uint64_t work;
	CUresult result = before(link, function, &work);
	if (result != CUDA_SUCCESS)
		return result;
	if (is_missing(link, function))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!link->own && tells_of_errors(function))
		result = rc_link_error(link);
	if (result != CUDA_SUCCESS)
		return result;
	head->number = 0;
	return link_send(link, function, flags, head, len, iov, n);
}

CUresult rc_link_prepare(struct rc_link *link, enum rc_call function, struct rc_wire_call *head)
{
	uint64_t work;
	CUresult result = before(link, function, &work);
	head->flags = 0;
	head->context = link->context;
	return result == CUDA_SUCCESS ? rc_early_before(link, function, head) : result;
}

CUresult rc_link_post_numbered(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			       const struct iovec *iov, int n)
{
	return link_send(link, function, 0, head, len, iov, n);
}

/* Takes the next number if the work of all calls with lower ones is complete. */
static bool take_settled(const struct rc_link *link, struct rc_wire_call *head)
{
	struct rc_session *session = link->session;
	uint64_t settled = rc_link_settled(session);
	if (link->context != __atomic_load_n(&session->only, __ATOMIC_RELAXED))
		return false;
	/* Release: as in link_send. */
	if (!__atomic_compare_exchange_n(&session->numbered, &settled, settled + 1, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		return false;
	head->number = settled + 1;
	return true;
}

CUresult rc_link_post_settled(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len,
			      const struct iovec *iov, int n, bool *posted)
{
	uint64_t work;
	*posted = false;
	CUresult result = before(link, function, &work);
	if (result != CUDA_SUCCESS)
		return result;
	if (is_missing(link, function))
		return CUDA_ERROR_NOT_SUPPORTED;
	*posted = take_settled(link, head);
	if (!*posted)
		return CUDA_SUCCESS;
	return link_send(link, function, 0, head, len, iov, n);
}

void rc_link_see_calls(const struct rc_session *session)
{
	(void)__atomic_load_n(&session->numbered, __ATOMIC_ACQUIRE);
}

void rc_link_chunk_arrived(struct rc_session *session)
{
	/* Release, among the rest, pairs with the acquire in rc_link_await_chunks: a thread that counts this chunk sees its
	 * bytes. */
	__atomic_add_fetch(&session->arrived, 1, __ATOMIC_SEQ_CST);
	wake_chunk_waiters();
}

/* The thread of the data connection receives them. */
CUresult rc_link_await_chunks(struct rc_link *link, uint64_t shipped)
{
	struct rc_session *session = link->session;
	/* Copies to the device too may have ended before the data connection's thread knows it. */
	rc_copy_await_sources(session);
	/* Acquire pairs with the release in rc_link_chunk_arrived: the bytes of the chunks counted are seen. */
	if (__atomic_load_n(&session->arrived, __ATOMIC_ACQUIRE) >= shipped)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&chunks_lock);
	__atomic_add_fetch(&chunk_waiters, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&session->arrived, __ATOMIC_SEQ_CST) < shipped &&
	       !__atomic_load_n(&session->lost, __ATOMIC_SEQ_CST))
		pthread_cond_wait(&chunks_came, &chunks_lock);
	__atomic_sub_fetch(&chunk_waiters, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&chunks_lock);
	return __atomic_load_n(&session->arrived, __ATOMIC_ACQUIRE) >= shipped ? CUDA_SUCCESS : RC_LOST;
}

/* True if another process may use device memory of the session from this call on. */
static bool is_shared_by(enum rc_call function)
{
	switch (function) {
	case RC_CALL_ipc_get_memory:
	case RC_CALL_ipc_open_memory:
	case RC_CALL_virtual_export:
	case RC_CALL_virtual_import:
	case RC_CALL_pool_export_pointer:
	case RC_CALL_pool_import_pointer:
		return true;
	default:
		return false;
	}
}

/* Sends a call and waits for its reply. */
static CUresult call(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		     const struct iovec *iov, int n)
{
	if (link->error)
		return RC_LOST;
	if (is_missing(link, function))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (is_shared_by(function))
		__atomic_store_n(&link->session->shared, true, __ATOMIC_RELAXED);
	head->number = 0;
	uint16_t own = link->own ? RC_CALL_OWN : 0;
	bool may_be_alone = function == RC_CALL_copy_down_reply || function == RC_CALL_copy_pinned_wait;
	if (may_be_alone && take_settled(link, head))
		flags |= RC_CALL_ALONE;
	CUresult result = link_send(link, function, flags | RC_CALL_WAIT | own, head, len, iov, n);
	rc_delay_flush_all();
	if (result == CUDA_SUCCESS)
		result = await_answer(link, function);
	link->waiting = 0;
	link->answered = false;
	if (result != CUDA_SUCCESS)
		return result;
	result = rc_link_await_chunks(link, link->head.shipped);
	if (result == CUDA_SUCCESS)
		result = (CUresult)link->head.result;
	uint16_t failed = own_number(link, link->head.function);
	if (link->head.failed != head->number && failed < RC_CALLS)
		hr_log(HR_LOG_INFO, "%s, call %llu, failed with CUresult %d; reported by %s, call %llu", rc_call_names[failed], (unsigned long long)link->head.failed, (int)result,
		       rc_call_names[function], (unsigned long long)head->number);
	return result;
}

CUresult rc_link_ask(struct rc_link *link, enum rc_call function, struct rc_wire_call *head, size_t len)
{
	return call(link, function, RC_CALL_OWN, head, len, NULL, 0);
}

/* True if the call may be made under the lock that rc_placing_return takes, or under one that is taken after it. */
static bool is_made_under_lock(enum rc_call function)
{
	return function == RC_CALL_memory_budget || function == RC_CALL_memory_window || function == RC_CALL_managed_make ||
	       function == RC_CALL_managed_pull || function == RC_CALL_context_synchronize;
}

CUresult rc_link_call(struct rc_link *link, enum rc_call function, uint16_t flags, struct rc_wire_call *head, size_t len,
		      const struct iovec *iov, int n)
{
	uint64_t work;
	if (rc_done_known(link, function, head))
		return CUDA_SUCCESS;
	CUresult result = before(link, function, &work);
	if (result != CUDA_SUCCESS)
		return result;
	result = call(link, function, flags, head, len, iov, n);
	/* The unused budget is free memory: the call fails only without it. A trial of a link is half of a pair of calls, and so is
	 * not repeated. */
	if (result == CUDA_ERROR_OUT_OF_MEMORY && link->head.failed == head->number && !is_made_under_lock(function) &&
	    function != RC_CALL_peer_trial && rc_placing_return(link))
		result = call(link, function, flags, head, len, iov, n);
	if (rc_error_stays(result))
		__atomic_store_n(&link->session->sick, true, __ATOMIC_RELAXED);
	if (result == CUDA_ERROR_ILLEGAL_ADDRESS)
		rc_unmapped_fault(link->session);
	if (result == CUDA_SUCCESS) {
		rc_done_waited(link, function, head);
		if (rc_done_empties_thread_stream(link, function, head))
			link->thread_done = head->number;
	}
	return result == CUDA_SUCCESS && rc_mirror_any() ? rc_mirror_after(link, function, work) : result;
}

CUresult rc_link_packet(struct rc_link *link, enum rc_packet type, const void *header, size_t len, const struct iovec *iov,
			int n, ch3_request_t **request)
{
	if (link->error)
		return RC_LOST;
	rc_delay_flush(link);
	link->inside = true;
	int error = ch3_send(link->vc, type, header, len, iov, n, CH3_SEND_EAGER, request);
	link->inside = false;
	return error ? link_lost(link, error) : CUDA_SUCCESS;
}

void rc_link_keep_reply(struct rc_link *link, struct rc_kept_reply *kept)
{
	*kept = (struct rc_kept_reply){ link->head, link->reply, link->reply_len, link->reply_size };
	link->reply = NULL;
	link->reply_len = link->reply_size = 0;
}

void rc_link_return_reply(struct rc_link *link, const struct rc_kept_reply *kept)
{
	free(link->reply);
	link->head = kept->head;
	link->reply = kept->reply;
	link->reply_len = kept->len;
	link->reply_size = kept->size;
}

CUresult rc_link_broken(struct rc_link *link, enum rc_call function)
{
	hr_log(HR_LOG_ERROR, "server %s: invalid reply of %zu bytes to %s; update the server or report this", link->server, link->reply_len,
	       rc_call_names[function]);
	return link_lost(link, -EPROTO);
}
