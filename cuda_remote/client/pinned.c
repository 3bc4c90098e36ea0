/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that a server on the same host shares: a memfd that each such server's worker maps, at the same address if it
 * can. The worker copies from and to it itself, when the stream gets there; the client sends one message and no byte. Its
 * kernels use the memory at that address. Servers on other hosts, and those that refuse the memory, get its bytes in chunks
 * (copy.c).
 */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/client/client.h"

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

/* Passes the memory to a session's worker. The answer's result is CUDA_ERROR_NOT_SUPPORTED if the worker is on another host,
 * or takes no memory. Under the lock. */
static struct rc_wire_pinned pass(struct rc_session *session, const struct rc_wire_pin *ask, int fd)
{
	struct rc_wire_pinned answer, none = { .pinned = ask->pinned, .result = CUDA_ERROR_NOT_SUPPORTED };
	if (rc_session_memory(session))
		return none;
	int error = rc_door_pass(session->memory, ask, sizeof *ask, fd);
	ssize_t n = -1;
	if (!error)
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

/* Passes the memory to all sessions, and notes in the span which of them took it. *divisible: as in
 * rc_pinned_make_whole. False: a worker has other memory at these addresses, or an object of this handle whose end,
 * a call that nobody waited for, it has not seen. */
static bool pass_all(struct rc_span *span, uint64_t bytes, int fd, bool *divisible)
{
	struct rc_process *process;
	struct rc_wire_pin ask = { span->pinned, bytes, span->place ? span->base : 0 };
	bool fits = true;
	*divisible = false;
	if (rc_process_get(&process) != CUDA_SUCCESS)
		return true;
	*divisible = ask.address;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < process->sessions && fits; i++) {
		struct rc_wire_pinned answer = pass(&process->session[i], &ask, fd);
		if (answer.result == CUDA_SUCCESS)
			span->shared_with |= 1ull << i;
		if (answer.result == CUDA_SUCCESS && answer.mapped && ask.address)
			span->mapped_by |= 1ull << i;
		*divisible &= !process->session[i].local || (answer.result == CUDA_SUCCESS && answer.mapped & RC_PIN_DIVISIBLE);
		fits = answer.result != CUDA_ERROR_INVALID_HANDLE && (answer.result != CUDA_ERROR_ALREADY_MAPPED || !ask.address);
	}
	pthread_mutex_unlock(&lock);
	return fits;
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

static CUresult end_sharing(const struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pinned_free call;
	} message = { .call = { span->pinned } };
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

/* Maps the file and shares it. Refused places and handles are kept meanwhile, so that the next attempt has others. The last
 * attempt is content with memory that kernels cannot use. False: no memory. */
static bool share(int fd, uint64_t bytes, struct rc_span *span, bool *divisible)
{
	struct rc_span refused[ATTEMPTS];
	unsigned n = 0;
	bool done = false;
	while (!done && map_file(fd, bytes, n < ATTEMPTS, span)) {
		if (rc_handle_new(RC_KIND_PINNED, NULL, &span->pinned) != CUDA_SUCCESS || pass_all(span, bytes, fd, divisible)) {
			done = true;
			break;
		}
		if (n == ATTEMPTS) {
			end_sharing(span);
			rc_pinned_unmap(span);
			rc_handle_delete(span->pinned);
			span->pinned = span->shared_with = span->mapped_by = span->place = 0;
			break;
		}
		end_sharing(span);
		refused[n++] = *span;
		if (n % NEAR == 0 && span->place)
			rc_shared_avoid(span->base);
		span->pinned = span->shared_with = span->mapped_by = 0;
	}
	while (n--) {
		rc_pinned_unmap(&refused[n]);
		rc_handle_delete(refused[n].pinned);
	}
	return done;
}

CUresult rc_pinned_make_whole(struct rc_span *span, bool *divisible)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), bytes;
	span->pinned = span->shared_with = span->mapped_by = span->place = 0;
	*divisible = false;
	if (__builtin_add_overflow(span->size, page - 1, &bytes) || bytes > INT64_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	bytes &= ~(page - 1);
	int fd = any_local() ? make_file(bytes) : -1;
	bool shared = fd >= 0 && share(fd, bytes, span, divisible);
	if (fd >= 0)
		close(fd); /* each worker has its own */
	if (shared)
		return CUDA_SUCCESS;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	span->base = (uint64_t)(uintptr_t)memory;
	return CUDA_SUCCESS;
}

CUresult rc_pinned_make(struct rc_span *span)
{
	bool divisible;
	return any_local() && rc_slab_take(span) ? CUDA_SUCCESS : rc_pinned_make_whole(span, &divisible);
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

/* Waits for the work of the session that may use memory. The first call may return the failure of an earlier call
 * instead of waiting; then the second one waits. */
static CUresult wait_for_work(struct rc_session *session)
{
	struct rc_wire_call head;
	struct rc_link *link;
	if (rc_link_is_settled(session) || rc_link_to(session, 0, &link) != CUDA_SUCCESS)
		return CUDA_SUCCESS;
	CUresult first = rc_link_call(link, RC_CALL_pinned_wait, 0, &head, sizeof head, NULL, 0), result = first;
	if (first != CUDA_SUCCESS && first != RC_LOST)
		result = rc_link_call(link, RC_CALL_pinned_wait, 0, &head, sizeof head, NULL, 0);
	if (result == CUDA_SUCCESS)
		rc_link_settle_all(session, head.number);
	return first == RC_LOST ? CUDA_SUCCESS : first;
}

/* The slab stays shared. */
static CUresult end_part(const struct rc_span *span)
{
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	for (unsigned i = 0; result == CUDA_SUCCESS && i < process->sessions; i++)
		if (span->shared_with >> i & 1)
			result = wait_for_work(&process->session[i]);
	return result;
}

uint64_t rc_pinned_offset(const struct rc_span *span, uint64_t address)
{
	return address - (span->slab ? rc_slab_base(span) : span->base);
}

CUresult rc_pinned_free(const struct rc_span *span)
{
	if (span->slab)
		return end_part(span);
	CUresult result = end_sharing(span);
	if (span->pinned)
		rc_handle_delete(span->pinned);
	return result;
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
