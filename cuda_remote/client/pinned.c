/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory that a server on the same host shares: a memfd that each such server's worker maps. The worker copies from
 * and to it itself, when the stream gets there; the client sends one message and no byte. Servers on other hosts, and those
 * that refuse the memory, get its bytes in chunks (copy.c).
 */
#define _GNU_SOURCE /* memfd_create */
#include "cuda_remote/client/client.h"

#include "cuda_remote/door/door.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* From this size on the kernel is asked for huge pages. */
#define HUGE (2u << 20)

/* Guards the sockets over which memory is passed: one request at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Passes the memory to a session's worker. False: the worker is on another host, or does not take it. Under the lock. */
static bool pass(struct rc_session *session, const struct rc_wire_pin *ask, int fd)
{
	struct rc_wire_pinned answer;
	if (rc_session_memory(session))
		return false;
	int error = rc_door_pass(session->memory, ask, sizeof *ask, fd);
	ssize_t n = -1;
	if (!error)
		do
			n = recv(session->memory, &answer, sizeof answer, MSG_WAITALL);
		while (n < 0 && errno == EINTR);
	if (n == (ssize_t)sizeof answer && answer.pinned == ask->pinned)
		return answer.result == CUDA_SUCCESS;
	hr_log(HR_LOG_WARN, "a server on this host takes no further pinned memory: copies of it are slower");
	close(session->memory);
	session->memory = -1;
	return false;
}

/* Passes the memory to all sessions. Returns the set of those that took it, bit i for session i. */
static uint64_t pass_all(uint64_t handle, uint64_t size, int fd)
{
	struct rc_process *process;
	struct rc_wire_pin ask = { handle, size };
	uint64_t taken = 0;
	if (rc_process_get(&process) != CUDA_SUCCESS)
		return 0;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < process->sessions; i++)
		if (pass(&process->session[i], &ask, fd))
			taken |= 1ull << i;
	pthread_mutex_unlock(&lock);
	return taken;
}

/* Memory of a sealed memfd. MAP_FAILED: this kernel or this process cannot have one. */
static void *map_shared(size_t size, int *fd)
{
	*fd = memfd_create("headrace-pinned", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (*fd < 0)
		return MAP_FAILED;
	void *memory = MAP_FAILED;
	if (!ftruncate(*fd, (off_t)size) && !fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
		memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	if (memory == MAP_FAILED)
		close(*fd);
	else if (size >= HUGE)
		(void)madvise(memory, size, MADV_HUGEPAGE); /* without huge pages copies are slower */
	return memory;
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

CUresult rc_pinned_make(size_t size, void **memory, uint64_t *handle, uint64_t *sessions)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), rounded;
	int fd;
	*handle = *sessions = 0;
	if (__builtin_add_overflow((uint64_t)size, page - 1, &rounded) || rounded > INT64_MAX)
		return CUDA_ERROR_OUT_OF_MEMORY;
	rounded &= ~(page - 1);
	*memory = any_local() ? map_shared(rounded, &fd) : MAP_FAILED;
	if (*memory == MAP_FAILED) {
		*memory = mmap(NULL, rounded, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		return *memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
	}
	if (rc_handle_new(RC_KIND_PINNED, NULL, handle) == CUDA_SUCCESS)
		*sessions = pass_all(*handle, rounded, fd);
	close(fd); /* each worker has its own */
	return CUDA_SUCCESS;
}

CUresult rc_pinned_free(uint64_t handle, uint64_t sessions)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_pinned_free call;
	} message = { .call = { handle } };
	struct rc_process *process;
	CUresult result = rc_process_get(&process);
	for (unsigned i = 0; result == CUDA_SUCCESS && sessions >> i; i++) {
		struct rc_link *link;
		if (!(sessions >> i & 1) || rc_link_to(&process->session[i], 0, &link) != CUDA_SUCCESS)
			continue; /* a session that is lost has no copies */
		result = rc_link_call(link, RC_CALL_pinned_free, 0, &message.head, sizeof message, NULL, 0);
		if (result == RC_LOST)
			result = CUDA_SUCCESS;
	}
	if (handle)
		rc_handle_delete(handle);
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
