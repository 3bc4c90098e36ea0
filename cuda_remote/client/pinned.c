/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that a server on the same host shares: a memfd that each such server's worker maps, at the same address if it
 * can. The worker copies from and to it itself, when the stream gets there; the client sends one message and no byte. Its
 * kernels use the memory at that address. Servers on other hosts, and those that refuse the memory, get its bytes in chunks
 * (copy.c).
 */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/client/handle.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/pinned.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include "cuda_remote/door/door.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* From this size on the kernel is asked for huge pages. */
#define HUGE (2u << 20)
/* Up to this size pages are allocated at once, as a driver does that pins them. */
#define HUGE_AT_ONCE (1ull << 30)
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* since Linux 6.1 */
#endif
#define ATTEMPTS 64 /* to find addresses and a handle that are free in all workers */
#define NEAR 8      /* of them in one window of addresses */

/* Guards the sockets over which memory is passed: one request at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_lost(const struct rc_session *session)
{
	return __atomic_load_n(&session->lost, __ATOMIC_RELAXED);
}

/* What memory is of use for. */
struct use {
	uint64_t mapped_by; /* sessions, by index, whose workers must map it at the client's address */
	bool divided;       /* kernels of all workers on this host must be able to use it, and their drivers must not need to know
			     * which parts of it are allocations */
};

enum shared {
	SHARED,
	NO_PLACE, /* a worker has other memory at these addresses */
	NO_USE,   /* the memory would not be of the use that was asked for */
};

/* Sends the request to a session's worker, with the descriptor unless it is -1. The answer's result is CUDA_ERROR_NOT_SUPPORTED if
 * the worker is on another host, or takes no memory. Under the lock. */
static struct rc_wire_pinned pass(struct rc_session *session, const struct rc_wire_pin *ask, int fd)
{
	struct rc_wire_pinned answer, none = { .pinned = ask->pinned, .result = CUDA_ERROR_NOT_SUPPORTED };
	if (rc_session_memory(session))
		return none;
	bool sent = fd < 0 ? send(session->memory, ask, sizeof *ask, MSG_NOSIGNAL) == (ssize_t)sizeof *ask
			   : !rc_door_pass(session->memory, ask, sizeof *ask, fd);
	ssize_t n = -1;
	if (sent)
		do
			n = recv(session->memory, &answer, sizeof answer, MSG_WAITALL);
		while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof answer && answer.pinned == ask->pinned)
		return answer;
	hr_log(HR_LOG_WARN, "a server on this host takes no further pinned memory: copies of it are slower");
	close(session->memory);
	session->memory = -1;
	return none;
}

/* Notes in the span whether the session's worker has the memory. */
static void note(const struct rc_session *session, struct rc_span *span, const struct rc_wire_pin *ask,
		 const struct rc_wire_pinned *answer)
{
	if (answer->result != CUDA_SUCCESS)
		return;
	span->shared_with |= 1ull << session->index;
	if (answer->mapped & RC_PIN_MAPPED && ask->address)
		span->mapped_by |= 1ull << session->index;
}

/* Lets each worker on this host try the memory. *tried: the sessions, by index, of the workers that accepted it. */
static enum shared try_all(struct rc_process *process, struct rc_wire_pin *ask, int fd, const struct use *use, uint64_t *tried)
{
	*tried = 0;
	ask->step = RC_PIN_TRY;
	for (unsigned i = 0; i < process->sessions; i++) {
		if (!process->session[i].local || is_lost(&process->session[i]))
			continue;
		struct rc_wire_pinned answer = pass(&process->session[i], ask, fd);
		bool taken = answer.result == CUDA_SUCCESS;
		*tried |= (uint64_t)taken << i;
		if (answer.result == CUDA_ERROR_ALREADY_MAPPED && ask->address)
			return NO_PLACE;
		if ((use->divided && !(taken && answer.mapped & RC_PIN_DIVISIBLE)) ||
		    (use->mapped_by >> i & 1 && !(taken && ask->address)))
			return NO_USE;
	}
	return SHARED;
}

/* Lets a worker keep or drop the memory that it has tried. */
static void end_try(struct rc_session *session, struct rc_span *span, struct rc_wire_pin *ask, bool keep)
{
	ask->step = keep ? RC_PIN_KEEP : RC_PIN_DROP;
	struct rc_wire_pinned answer = pass(session, ask, -1);
	if (keep)
		note(session, span, ask, &answer);
}

/* Ends the tries. A worker that must map the memory keeps it first, as it may fail; another worker that had the memory by then
 * would wait for its work to give it back. */
static enum shared end_tries(struct rc_process *process, struct rc_span *span, struct rc_wire_pin *ask, uint64_t tried,
			     const struct use *use, enum shared result)
{
	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned i = 0; i < process->sessions; i++) {
			bool needed = use->mapped_by >> i & 1;
			if (!(tried >> i & 1) || needed != !turn)
				continue;
			end_try(&process->session[i], span, ask, result == SHARED);
			if (result == SHARED && (needed || use->divided) && !(span->mapped_by >> i & 1))
				result = NO_USE;
		}
	return result;
}

/* The memory has one worker to go to, which takes it or not. */
static enum shared pass_to_one(struct rc_session *session, struct rc_span *span, struct rc_wire_pin *ask, int fd,
			       const struct use *use)
{
	struct rc_wire_pinned answer = pass(session, ask, fd);
	note(session, span, ask, &answer);
	if (answer.result == CUDA_ERROR_ALREADY_MAPPED && ask->address)
		return NO_PLACE;
	return use->mapped_by & ~span->mapped_by ? NO_USE : SHARED;
}

/* Passes the memory to all sessions on this host, and notes in the span which of them took it. */
static enum shared pass_all(struct rc_span *span, uint64_t bytes, int fd, const struct use *use)
{
	struct rc_process *process;
	struct rc_wire_pin ask = { .pinned = span->pinned, .bytes = bytes, .address = span->place ? span->base : 0 };
	struct rc_session *only = NULL;
	unsigned takers = 0;
	uint64_t tried;
	if (rc_process_get(&process) != CUDA_SUCCESS)
		return use->divided ? NO_USE : SHARED;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < process->sessions; i++)
		if (process->session[i].local && !is_lost(&process->session[i]) && !takers++)
			only = &process->session[i];
	enum shared result;
	if (takers == 1 && !use->divided) {
		result = pass_to_one(only, span, &ask, fd, use);
	} else {
		result = try_all(process, &ask, fd, use, &tried);
		result = end_tries(process, span, &ask, tried, use, result);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

/* A sealed memfd. -1: this kernel or this process cannot have one. */
static int make_file(uint64_t bytes)
{
	int fd = memfd_create("headrace-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -1;
	if (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		return fd;
	close(fd);
	return -1;
}

/* Makes the pages of new memory huge. Most systems give shared memory no huge pages by themselves, even if it asks for them
 * (shmem_enabled). The kernel makes huge pages of ranges that have a page already. Without huge pages copies are slower. CUDA
 * does not allocate the pages of managed memory before they are used, so that memory only asks for huge pages. */
static void make_huge(uint8_t *memory, uint64_t bytes, bool managed)
{
	if (bytes < HUGE || madvise(memory, bytes, MADV_HUGEPAGE) || bytes > HUGE_AT_ONCE || managed)
		return;
	for (uint64_t at = 0; at + HUGE <= bytes; at += HUGE)
		*(volatile uint8_t *)(memory + at) = 0;
	if (madvise(memory, bytes, MADV_COLLAPSE))
		hr_log(HR_LOG_DEBUG, "pinned memory without huge pages: %s", strerror(errno));
}

/* Maps the file: in the window if that has room and in_window is set, else anywhere. False: no memory. */
static bool map_file(int fd, uint64_t bytes, bool in_window, struct rc_span *span)
{
	uint64_t address = in_window ? rc_shared_take(bytes) : 0;
	void *memory = mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | (address ? MAP_FIXED : 0), fd,
			    0);
	if (memory == MAP_FAILED) {
		if (address)
			rc_shared_give(address, bytes);
		return false;
	}
	make_huge(memory, bytes, span->kind == RC_MEMORY_MANAGED);
	span->base = (uint64_t)(uintptr_t)memory;
	span->place = address ? bytes : 0;
	return true;
}

CUresult rc_pinned_lend(struct rc_session *session, uint64_t bytes, uint64_t *handle, uint8_t **memory)
{
	struct rc_wire_pin ask = { .bytes = bytes };
	int fd = make_file(bytes);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CUresult result = at == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : rc_handle_new(RC_KIND_PINNED, NULL, &ask.pinned);
	if (result == CUDA_SUCCESS) {
		(void)madvise(at, bytes, MADV_HUGEPAGE);
		pthread_mutex_lock(&lock);
		result = (CUresult)pass(session, &ask, fd).result;
		pthread_mutex_unlock(&lock);
		if (result != CUDA_SUCCESS)
			rc_handle_delete(ask.pinned);
	}
	if (fd >= 0)
		close(fd); /* the worker has its own */
	if (result != CUDA_SUCCESS) {
		if (at != MAP_FAILED)
			munmap(at, bytes);
		return result;
	}
	*handle = ask.pinned;
	*memory = at;
	return CUDA_SUCCESS;
}

/* True if a worker may take memory: then it is worth a memfd. */
static bool any_local(void)
{
	struct rc_process *process;
	bool local = false;
	if (rc_process_get(&process) != CUDA_SUCCESS)
		return false;
	for (unsigned i = 0; i < process->sessions; i++)
		local |= process->session[i].local;
	return local;
}

/* unused: no work uses the memory. */
static CUresult end_sharing(const struct rc_span *span, bool unused)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pinned_free call;
	} message = { .call = { span->pinned, unused } };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < process->sessions; i++) {
		struct rc_link *link;
		if (!(span->shared_with >> i & 1) || rc_link_to(&process->session[i], 0, &link) != CUDA_SUCCESS)
			continue; /* a session that is lost has no copies */
		result = rc_link_call(link, RC_CALL_pinned_free, 0, &message.head, sizeof message, NULL, 0);
		if (result == RC_LOST)
			result = CUDA_SUCCESS;
	}
	return result;
}

/* Unmaps memory that no worker has. A part of a slab goes back to the slab, which keeps the handle. */
static void forget(struct rc_span *span)
{
	rc_pinned_unmap(span);
	if (span->pinned && !span->slab)
		rc_handle_delete(span->pinned);
	span->pinned = span->shared_with = span->mapped_by = span->place = 0;
}

/* Maps the file and shares it. Refused places are kept meanwhile, so that the next attempt has another. The last
 * attempt is content with memory that kernels cannot use, if that is of use. Another result than SHARED: nothing is left. */
static enum shared share(int fd, uint64_t bytes, struct rc_span *span, const struct use *use)
{
	struct rc_span refused[ATTEMPTS];
	unsigned n = 0;
	enum shared result = NO_PLACE;
	while (result == NO_PLACE && n <= ATTEMPTS && map_file(fd, bytes, n < ATTEMPTS, span)) {
		result = use->divided ? NO_USE : SHARED;
		if (rc_handle_new(RC_KIND_PINNED, NULL, &span->pinned) == CUDA_SUCCESS)
			result = pass_all(span, bytes, fd, use);
		if (result == NO_PLACE && n < ATTEMPTS) {
			refused[n++] = *span;
			if (n % NEAR == 0 && span->place)
				rc_shared_avoid(span->base);
			span->pinned = span->shared_with = span->mapped_by = 0;
		} else if (result != SHARED) {
			(void)end_sharing(span, true);
			forget(span);
			break;
		}
	}
	while (n--)
		forget(&refused[n]);
	return result;
}

/* Maps memory that no worker maps, or none of this host. */
static CUresult map_unshared(uint64_t bytes, struct rc_span *span)
{
	uint64_t address = any_local() ? 0 : rc_promote_place(bytes);
	void *memory = mmap((void *)(uintptr_t)address, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | (address ? MAP_FIXED : 0), -1, 0);
	if (memory == MAP_FAILED) {
		if (address)
			rc_shared_give(address, bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	span->base = (uint64_t)(uintptr_t)memory;
	span->place = address ? bytes : 0;
	return CUDA_SUCCESS;
}

/* Memory that is not part of a slab. CUDA_ERROR_NOT_SUPPORTED: it would not be of the use that was asked for. */
static CUresult make_whole(struct rc_span *span, const struct use *use)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;
	span->pinned = span->shared_with = span->mapped_by = span->place = 0;
	if (__builtin_add_overflow(span->size, page - 1, &bytes) || bytes > INT64_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes &= ~(page - 1);
	int fd = any_local() ? make_file(bytes) : -1;
	enum shared shared = fd >= 0 ? share(fd, bytes, span, use) : NO_PLACE;
	if (fd >= 0)
		close(fd); /* each worker has its own */
	if (shared == SHARED)
		return CUDA_SUCCESS;
	return shared == NO_USE || use->divided ? CUDA_ERROR_NOT_SUPPORTED : map_unshared(bytes, span);
}

CUresult rc_pinned_make_divisible(struct rc_span *span)
{
	return make_whole(span, &(struct use){ .divided = true });
}

/* True if each worker that may take the memory has it. */
static bool all_have(const struct rc_span *span)
{
	struct rc_process *process;
	bool all = rc_process_get(&process) == CUDA_SUCCESS;
	for (unsigned i = 0; all && i < process->sessions; i++)
		all = !process->session[i].local || is_lost(&process->session[i]) || span->shared_with >> i & 1;
	return all;
}

CUresult rc_pinned_make(struct rc_span *span, const struct rc_session *mapped_by)
{
	struct use use = { .mapped_by = mapped_by ? 1ull << mapped_by->index : 0 };
	bool local = any_local();
	if (local && rc_slab_take(span))
		return CUDA_SUCCESS;
	CUresult result = make_whole(span, &use);
	if (!local || (result == CUDA_SUCCESS && all_have(span)) || !rc_slab_end_unused())
		return result;
	if (result == CUDA_SUCCESS)
		rc_pinned_end_unused(span);
	return make_whole(span, &use);
}

bool rc_pinned_any_lost(const struct rc_span *span)
{
	struct rc_process *process;
	bool lost = false;
	if (rc_process_get(&process) != CUDA_SUCCESS)
		return false;
	for (unsigned i = 0; i < process->sessions; i++)
		lost |= span->shared_with >> i & 1 && is_lost(&process->session[i]);
	return lost;
}

void rc_pinned_unmap(const struct rc_span *span)
{
	if (span->slab)
		rc_slab_give(span);
	else if (span->place)
		rc_shared_give(span->base, span->place);
	else
		munmap((void *)(uintptr_t)span->base, span->size);
}

/* True if work that was over with call number over still is all work. Work that is over may have failed, so session->settled
 * says less. */
static bool is_over(const struct rc_session *session, const uint64_t *over)
{
	uint64_t numbered = __atomic_load_n(&session->numbered, __ATOMIC_ACQUIRE);
	return rc_link_is_settled(session) || __atomic_load_n(over, __ATOMIC_ACQUIRE) >= numbered;
}

/* Waits for the work of the session that may use memory. Failures of that work are left to the program's calls. Any result but
 * success: the work may go on. */
static CUresult wait_for_work(struct rc_session *session)
{
	static uint64_t over[RC_SERVER_MAX]; /* atomic; may be lower than it could be, if two threads store it */
	struct rc_wire_call head;
	struct rc_link *link;
	if (is_over(session, &over[session->index]))
		return CUDA_SUCCESS;
	CUresult result = rc_link_to(session, 0, &link);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_pinned_wait, 0, &head, sizeof head, NULL, 0);
	if (result == CUDA_SUCCESS)
		__atomic_store_n(&over[session->index], head.number, __ATOMIC_RELEASE);
	return result;
}

/* The slab stays shared. *over: no server uses the part any more. A session that is lost reports nothing, but its worker may
 * still write. */
static CUresult end_part(const struct rc_span *span, bool *over)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	*over = result == CUDA_SUCCESS;
	unsigned sessions = *over ? process->sessions : 0;
	for (unsigned i = 0; i < sessions; i++) {
		CUresult waited = span->shared_with >> i & 1 ? wait_for_work(&process->session[i]) : CUDA_SUCCESS;
		*over &= waited == CUDA_SUCCESS;
		if (result == CUDA_SUCCESS && !is_lost(&process->session[i]))
			result = waited;
	}
	return result;
}

uint64_t rc_pinned_offset(const struct rc_span *span, uint64_t address)
{
	return address - (span->slab ? rc_slab_base(span) : span->base);
}

CUresult rc_pinned_free(const struct rc_span *span, bool *over)
{
	if (span->slab)
		return end_part(span, over);
	*over = true; /* each worker has a mapping of its own */
	CUresult result = end_sharing(span, false);
	if (span->pinned)
		rc_handle_delete(span->pinned);
	return result;
}

CUresult rc_pinned_end(const struct rc_span *span)
{
	bool over;
	CUresult result = rc_pinned_free(span, &over);
	if (over)
		rc_pinned_unmap(span);
	return result;
}

void rc_pinned_end_unused(struct rc_span *span)
{
	if (!span->slab)
		(void)end_sharing(span, true);
	forget(span);
}

bool rc_pinned_in(const struct rc_session *session, uint64_t address, uint64_t size, struct rc_span *span)
{
	return session && rc_memory_find(address, span) && span->kind == RC_MEMORY_HOST && span->shared_with >> session->index & 1 &&
	       size <= span->size - (address - span->base);
}

bool rc_pinned_shared(uint64_t address)
{
	struct rc_span span;
	return rc_memory_find(address, &span) && span.kind == RC_MEMORY_HOST && span.shared_with;
}

CUresult rc_pinned_copy(const struct rc_route *route, const struct rc_wire_copy_pinned *copy, bool wait)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_copy_pinned call;
	} message = { .call = *copy };
	struct rc_link *link;
	CUresult result = rc_link_get(route, true, &link);
	if (result != CUDA_SUCCESS)
		return result;
	if (wait)
		return rc_link_call(link, RC_CALL_copy_pinned_wait, 0, &message.head, sizeof message, NULL, 0);
	return rc_link_post(link, RC_CALL_copy_pinned, 0, &message.head, sizeof message, NULL, 0);
}
