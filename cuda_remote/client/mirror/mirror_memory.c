/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of mirrors: device memory of the worker, and memory of this process at the same address. */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/client/link.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/mirror/client_mirror.h"

#include <sys/mman.h>
#include <unistd.h>

/* The pages that a mirror has in this process. */
static size_t pages_of(const struct rc_span *span)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	return (span->size + page - 1) & ~(page - 1);
}

void rc_mirror_unmap(const struct rc_span *span)
{
	rc_mirror_end(span->base);
	/* If this fails, other memory may be mapped there soon, so the addresses are not used again. */
	if (mmap((void *)(uintptr_t)span->base, pages_of(span), PROT_NONE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED)
		rc_placing_gone(span);
}

CUresult rc_mirror_free(const struct rc_span *span)
{
	struct {
		struct rc_wire_call head;
		struct rc_wire_address call;
	} message = { .call = { span->base } };
	struct rc_link *link;
	CUresult result = rc_link_to(span->session, (uint64_t)(uintptr_t)span->context, &link);
	rc_mirror_ending(span->base, true);
	if (result == CUDA_SUCCESS)
		result = rc_link_call(link, RC_CALL_managed_free, 0, &message.head, sizeof message, NULL, 0);
	if (result == CUDA_SUCCESS) {
		rc_link_settle(link->session, (uint64_t)(uintptr_t)span->context, message.head.number);
		rc_mirror_unmap(span);
	}
	return result; /* after a failure the memory may exist, so its address is not used again */
}

CUresult rc_mirror_allocate(struct rc_span *span)
{
	CUresult result = rc_memory_allocate_managed(span);
	if (result != CUDA_SUCCESS)
		return result;
	void *copy = mmap((void *)(uintptr_t)span->base, pages_of(span), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	if (copy != MAP_FAILED && rc_mirror_begin(span))
		return CUDA_SUCCESS;
	rc_memory_remove(span->base);
	(void)rc_mirror_free(span);
	return CUDA_ERROR_OUT_OF_MEMORY;
}
