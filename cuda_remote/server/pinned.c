/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pinned memory of a client. If the client is on the same host it passes a memfd; the worker maps it and pins the mapping in its
 * own driver. So the driver copies between the client's memory and the device in the order of a stream, without a message.
 * The client chooses the descriptor. An access to the mapping must not fail with SIGBUS, whatever the client does: the file
 * must be one of shared memory that nobody can shrink, and not of huge pages, of which the host may have none left.
 *
 * If the client is on another host, the worker pins memory of its own at the same addresses, and mirror.c makes it a mirror.
 */
#define _GNU_SOURCE /* F_GET_SEALS, MAP_FIXED_NOREPLACE */
#include "cuda_remote/server/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* From this size on the kernel is asked for huge pages. */
#define HUGE (2u << 20)

struct pinned {
	struct server_slot slot; /* its memory and size: the mapping, a multiple of the page size */
	struct pinned *next;     /* in the list */
	bool used;               /* a copy was issued, or kernels find the memory; under the call order */
	uint64_t mirrored;       /* address of the client's memory that this is a mirror of; 0: the client has mapped it too */
};

/* Guards the list, and the pinning of memory in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pinned *first;

static void list(struct pinned *pinned)
{
	pthread_mutex_lock(&lock);
	pinned->next = first;
	first = pinned;
	pthread_mutex_unlock(&lock);
}

/* Takes the memory off the list, and unpins it in the current context. The driver may wait for work meanwhile, which must not
 * hold up calls that find other memory: what it waits for may wait for one of these calls. */
static void unlist(struct pinned *pinned)
{
	pthread_mutex_lock(&lock);
	struct pinned **at = &first;
	while (*at != pinned)
		at = &(*at)->next;
	*at = pinned->next;
	pthread_mutex_unlock(&lock);
	server_slot_unlist(&pinned->slot);
}

/* Unmaps the memory and returns it to the session's limit. */
static void pinned_unmap(struct pinned *pinned)
{
	munmap(pinned->slot.memory, pinned->slot.size);
	server_limit_return(SERVER_LIMIT_PINNED, pinned->slot.size);
	free(pinned);
}

/* The fault of the descriptor; NULL: none. */
static const char *fault_of(int fd, uint64_t size)
{
	struct stat status;
	struct statfs files;
	int seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || fstat(fd, &status) || fstatfs(fd, &files) || files.f_type != TMPFS_MAGIC || !S_ISREG(status.st_mode))
		return "not a memfd";
	if (!(seals & F_SEAL_SHRINK))
		return "not sealed against shrinking";
	if (size > (uint64_t)status.st_size)
		return "shorter than its memory";
	return NULL;
}

/* Maps the file, or new memory if fd is -1, at the address; 0: anywhere. CUDA_ERROR_ALREADY_MAPPED: other memory is there. */
static CUresult map_file(int fd, uint64_t address, uint64_t size, uint8_t **memory)
{
	void *wanted = (void *)(uintptr_t)address;
	int kind = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *at = mmap(wanted, size, PROT_READ | PROT_WRITE, kind | (address ? MAP_FIXED_NOREPLACE : 0), fd, 0);
	if (at == MAP_FAILED)
		return address && errno == EEXIST ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_OUT_OF_MEMORY;
	if (address && at != wanted) { /* a kernel before 4.17 takes the address as a hint */
		munmap(at, size);
		return CUDA_ERROR_ALREADY_MAPPED;
	}
	*memory = at;
	return CUDA_SUCCESS;
}

/* True if the driver lets kernels use the pinned memory, at the address that it is mapped at. */
static bool is_found_by_kernels(const uint8_t *memory)
{
	CUdeviceptr device;
	return driver.cuMemHostGetDevicePointer_v2 &&
	       driver.cuMemHostGetDevicePointer_v2(&device, (void *)(uintptr_t)memory, 0) == CUDA_SUCCESS &&
	       device == (uintptr_t)memory;
}

/* Pins the memory, and binds the handle. After a failure the memory is unmapped. */
static CUresult pinned_keep(struct pinned *pinned, const struct rc_wire_pin *ask, bool *mapped)
{
	driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	CUresult result = server_slot_list(&pinned->slot, pinned->slot.memory, pinned->slot.size);
	if (result != CUDA_SUCCESS) {
		pinned_unmap(pinned);
		return result;
	}
	/* Kernels use the memory without a call that names its handle. */
	*mapped = pinned->used = ask->address && is_found_by_kernels(pinned->slot.memory);
	list(pinned);
	result = server_object_bind(RC_KIND_PINNED, ask->pinned, pinned->slot.memory, pinned);
	if (result != CUDA_SUCCESS) {
		unlist(pinned);
		pinned_unmap(pinned);
	}
	return result;
}

/* Maps size bytes of a descriptor without fault, which are taken from the session's limit. */
static CUresult pinned_map(int fd, const struct rc_wire_pin *ask, uint64_t size, struct pinned **made)
{
	uint8_t *memory;
	struct pinned *pinned = calloc(1, sizeof *pinned);
	CUresult result = pinned ? map_file(fd, ask->address, size, &memory) : CUDA_ERROR_OUT_OF_MEMORY;
	if (result != CUDA_SUCCESS) {
		free(pinned);
		return result;
	}
	if (size >= HUGE)
		(void)madvise(memory, size, MADV_HUGEPAGE); /* without huge pages copies are slower */
	pinned->slot.memory = memory;
	pinned->slot.size = size;
	*made = pinned;
	return CUDA_SUCCESS;
}

static CUresult pinned_try(const rc_door_peer_t *peer, const struct rc_wire_pin *ask, int fd, struct pinned **made)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), size;
	if (!ask->bytes || __builtin_add_overflow(ask->bytes, page - 1, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (ask->address && (ask->address % page || ask->address < RC_PIN_LOWEST))
		return CUDA_ERROR_INVALID_VALUE;
	size &= ~(page - 1);
	const char *fault = fault_of(fd, size);
	if (fault) {
		hr_log(HR_LOG_WARN, "%s: pinned memory refused: the descriptor is %s", peer->name, fault);
		return CUDA_ERROR_INVALID_VALUE;
	}
	if (!server_limit_take(SERVER_LIMIT_PINNED, size)) {
		hr_log_once(HR_LOG_WARN, "%s: more pinned memory than HEADRACE_SESSION_PINNED=%llu: copies of it go in chunks",
			    peer->name, (unsigned long long)server_limit(SERVER_LIMIT_PINNED));
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	CUresult result = pinned_map(fd, ask, size, made);
	if (result != CUDA_SUCCESS)
		server_limit_return(SERVER_LIMIT_PINNED, size);
	return result;
}

static int answer_pin(const rc_door_peer_t *peer, const struct rc_wire_pin *ask, CUresult result, uint32_t flags)
{
	struct rc_wire_pinned answer = { .pinned = ask->pinned, .result = result, .mapped = result == CUDA_SUCCESS ? flags : 0 };
	return send(peer->fd, &answer, sizeof answer, MSG_NOSIGNAL) == (ssize_t)sizeof answer;
}

static uint32_t flags_of(bool mapped)
{
	return mapped ? RC_PIN_MAPPED | (server_memory_is_virtual() ? RC_PIN_DIVISIBLE : 0) : 0;
}

/* What was tried is kept or dropped, as the client says next. 1: go on; otherwise as rc_door_take. */
static int decide(const rc_door_peer_t *peer, const struct rc_wire_pin *tried, struct pinned *pinned)
{
	struct rc_wire_pin ask;
	ssize_t n = 0;
	if (answer_pin(peer, tried, CUDA_SUCCESS, flags_of(tried->address) & RC_PIN_DIVISIBLE))
		do
			n = recv(peer->fd, &ask, sizeof ask, MSG_WAITALL);
		while (n < 0 && errno == EINTR);
	bool known = n == (ssize_t)sizeof ask && ask.pinned == tried->pinned &&
		     (ask.step == RC_PIN_KEEP || ask.step == RC_PIN_DROP), mapped = false;
	CUresult result = CUDA_SUCCESS;
	if (known && ask.step == RC_PIN_KEEP)
		result = pinned_keep(pinned, tried, &mapped);
	else
		pinned_unmap(pinned);
	if (!known)
		return n > 0 ? -EPROTO : 0;
	return answer_pin(peer, &ask, result, flags_of(mapped));
}

void server_pinned_serve(const rc_door_peer_t *peer)
{
	int got = rc_door_peer_welcome(peer, NULL, worker.gpus, 0, 0, "") ? 0 : 1, fd;
	while (got == 1) {
		struct rc_wire_pin ask;
		struct pinned *pinned;
		got = rc_door_take(peer->fd, &ask, sizeof ask, &fd);
		if (got != 1)
			break;
		bool mapped = false;
		CUresult result = ask.step <= RC_PIN_TRY ? pinned_try(peer, &ask, fd, &pinned) : CUDA_ERROR_INVALID_VALUE;
		close(fd);
		if (result == CUDA_SUCCESS && ask.step == RC_PIN_TRY) {
			got = decide(peer, &ask, pinned);
			continue;
		}
		if (result == CUDA_SUCCESS)
			result = pinned_keep(pinned, &ask, &mapped);
		got = answer_pin(peer, &ask, result, flags_of(mapped));
	}
	if (got < 0)
		hr_log(HR_LOG_WARN, "%s: no further pinned memory: %s", peer->name, strerror(-got));
	close(peer->fd);
}

CUresult server_pinned_find(uint64_t handle, uint8_t **memory, uint64_t *bytes)
{
	struct pinned *pinned = server_object_data(RC_KIND_PINNED, handle);
	if (!pinned)
		return CUDA_ERROR_INVALID_HANDLE;
	pthread_mutex_lock(&lock);
	CUresult result = server_slot_repin(&pinned->slot);
	pthread_mutex_unlock(&lock);
	if (result != CUDA_SUCCESS)
		return result;
	pinned->used = true;
	*memory = pinned->slot.memory;
	*bytes = pinned->slot.size;
	return CUDA_SUCCESS;
}

CUresult server_pinned_adopt(uint64_t handle, uint64_t bytes, struct pinned **staging)
{
	struct pinned *pinned = server_object_data(RC_KIND_PINNED, handle);
	if (!pinned)
		return CUDA_ERROR_INVALID_HANDLE;
	if (pinned->slot.size < bytes || pinned->mirrored) /* which must stay until its mirror ends */
		return CUDA_ERROR_INVALID_VALUE;
	server_object_unbind(handle);
	pthread_mutex_lock(&lock);
	server_slot_stage(&pinned->slot);
	pthread_mutex_unlock(&lock);
	*staging = pinned;
	return CUDA_SUCCESS;
}

/* A failure to pin the memory again is not one of the copy: without it the copy is slower. */
uint8_t *server_staging_memory(struct pinned *staging)
{
	pthread_mutex_lock(&lock);
	(void)server_slot_repin(&staging->slot);
	pthread_mutex_unlock(&lock);
	return staging->slot.memory;
}

void server_staging_drop(struct pinned *staging)
{
	/* The driver takes memory out of its list in a current context. */
	(void)driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	unlist(staging);
	(void)driver.cuCtxSetCurrent(NULL);
	pinned_unmap(staging);
}

void server_pinned_renew(void)
{
	driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	pthread_mutex_lock(&lock);
	for (struct pinned *pinned = first; pinned; pinned = pinned->next)
		if (server_slot_repin(&pinned->slot) != CUDA_SUCCESS)
			hr_log_once(HR_LOG_WARN, "the driver does not pin a client's memory again after a reset: kernels cannot use it");
	pthread_mutex_unlock(&lock);
}

void server_pinned_finish(void)
{
	for (struct pinned *pinned = first, *next; pinned; pinned = next) {
		next = pinned->next;
		pinned_unmap(pinned);
	}
	first = NULL;
}

/* The handle ends in the call order, so no later copy finds the memory. The earlier ones may still use it. */
CUresult serve_pinned_free(struct server_call *call)
{
	struct rc_wire_pinned_free args;
	if (!server_take_into(call, &args, sizeof args))
		return CUDA_ERROR_INVALID_VALUE;
	struct pinned *pinned = server_object_data(RC_KIND_PINNED, args.pinned);
	if (!pinned)
		return CUDA_ERROR_INVALID_HANDLE;
	server_object_unbind(args.pinned);
	bool used = pinned->used && !(args.unused && server_memory_is_virtual());
	if (pinned->mirrored)
		server_mirror_end_host(pinned->mirrored);
	server_order_release(call);
	/* Memory that may be in use stays mapped until the session ends. */
	CUresult result = used ? server_contexts_wait(call->thread) : CUDA_SUCCESS;
	if (result != CUDA_SUCCESS)
		return result;
	/* The call names no context, and the driver takes memory out of its list in a current one. */
	(void)driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	unlist(pinned);
	call->thread->context = 0;
	(void)driver.cuCtxSetCurrent(NULL);
	pinned_unmap(pinned);
	return CUDA_SUCCESS;
}

/* The pages of the client's memory. False: they are not where a client may have memory. */
static bool mirror_pages(const struct rc_wire_pin *ask, uint64_t *start, uint64_t *size)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), end;
	if (!ask->bytes || ask->address < RC_PIN_LOWEST || __builtin_add_overflow(ask->address, ask->bytes, &end) ||
	    __builtin_add_overflow(end, page - 1, &end))
		return false;
	*start = ask->address & ~(page - 1);
	*size = (end & ~(page - 1)) - *start;
	return true;
}

/* Maps and pins the memory of a mirror in the current context. */
static CUresult mirror_map(uint64_t start, uint64_t size, struct pinned *pinned)
{
	uint8_t *memory;
	CUresult result = map_file(-1, start, size, &memory);
	if (result != CUDA_SUCCESS)
		return result;
	result = server_slot_list(&pinned->slot, memory, size);
	if (result != CUDA_SUCCESS) {
		munmap(memory, size);
		pinned->slot.memory = NULL;
		return result;
	}
	list(pinned);
	return is_found_by_kernels(memory) ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

static CUresult mirror_make(const struct rc_wire_pin *ask, uint64_t start, uint64_t size)
{
	struct pinned *pinned = calloc(1, sizeof *pinned);
	if (!pinned)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = mirror_map(start, size, pinned);
	bool listed = pinned->slot.memory;
	if (result == CUDA_SUCCESS)
		result = server_mirror_add_host(ask->address, ask->bytes);
	if (result == CUDA_SUCCESS) {
		pinned->mirrored = ask->address;
		pinned->used = true;
		result = server_object_bind(RC_KIND_PINNED, ask->pinned, pinned->slot.memory, pinned);
	}
	if (result == CUDA_SUCCESS)
		return result;
	if (pinned->mirrored)
		server_mirror_end_host(pinned->mirrored);
	if (listed) {
		unlist(pinned);
		munmap(pinned->slot.memory, pinned->slot.size);
	}
	free(pinned);
	return result;
}

/* Tells whether no memory of the worker is there. */
static CUresult mirror_try(uint64_t start, uint64_t size)
{
	void *wanted = (void *)(uintptr_t)start;
	void *at = mmap(wanted, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (at == MAP_FAILED)
		return errno == EEXIST ? CUDA_ERROR_ALREADY_MAPPED : CUDA_ERROR_OUT_OF_MEMORY;
	munmap(at, size);
	return at == wanted ? CUDA_SUCCESS : CUDA_ERROR_ALREADY_MAPPED;
}

CUresult serve_pinned_mirror(struct server_call *call)
{
	struct rc_wire_pin ask;
	uint64_t start, size;
	if (!server_take_into(call, &ask, sizeof ask) || !mirror_pages(&ask, &start, &size))
		return CUDA_ERROR_INVALID_VALUE;
	if (!ask.pinned)
		return mirror_try(start, size);
	if (!server_limit_take(SERVER_LIMIT_PINNED, size))
		return CUDA_ERROR_OUT_OF_MEMORY;
	(void)driver.cuCtxSetCurrent(__atomic_load_n(&worker.primary[0], __ATOMIC_RELAXED));
	CUresult result = mirror_make(&ask, start, size);
	if (result != CUDA_SUCCESS)
		server_limit_return(SERVER_LIMIT_PINNED, size);
	call->thread->context = 0;
	(void)driver.cuCtxSetCurrent(NULL);
	return result;
}

/* Part of such memory is freed: what was issued may still use it. */
CUresult serve_pinned_wait(struct server_call *call)
{
	server_order_release(call);
	return server_contexts_wait(call->thread);
}
