/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host memory among the parameters of a launch, and pointers to it that are copied to the device. CUDA lets kernels use all
 * pinned memory by its address. A server on another host gets a mirror of it before the launch or copy (mirror/promote.c). If
 * that is not possible, the launch or copy is kept, and named as the cause when a kernel of that server has accessed an illegal
 * address.
 */
#include "cuda_remote/client/copy.h"
#include "cuda_remote/client/done.h"
#include "cuda_remote/client/hostmem.h"
#include "cuda_remote/client/kernel.h"
#include "cuda_remote/client/memory.h"
#include "cuda_remote/client/peer/peer_calls.h"
#include "cuda_remote/client/session.h"
#include "rdma_channel/base/log.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 200

/* The last such launch or copy on each server; address 0: none. */
static struct suspect {
	uint64_t address;
	const char *reason; /* why kernels cannot use the memory */
	bool told;
	char where[NAME_MAX_BYTES + 32]; /* what was the address */
} suspects[RC_SERVER_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The address was a parameter of the kernel, counted from 0. If kernel is NULL, the address was copied to the device. */
static void keep(const struct rc_session *session, const struct rc_kernel *kernel, uint32_t parameter, uint64_t address,
		 const char *reason)
{
	pthread_mutex_lock(&lock);
	struct suspect *suspect = &suspects[session->index];
	*suspect = (struct suspect){ .address = address, .reason = reason, .told = suspect->told };
	if (kernel)
		snprintf(suspect->where, sizeof suspect->where, "parameter %u of %.*s", parameter, NAME_MAX_BYTES - 1,
			 kernel->name);
	else
		snprintf(suspect->where, sizeof suspect->where, "a pointer that was copied to the device");
	pthread_mutex_unlock(&lock);
}

/* True if the address is that of host memory that kernels of the session cannot use, also not after this call. */
static bool is_unusable(struct rc_session *session, uint64_t address, const char **reason)
{
	struct rc_span span;
	if (!rc_memory_find(address, &span) || span.kind < RC_MEMORY_HOST)
		return false;
	return rc_promote(session, address, reason) != CUDA_SUCCESS;
}

void rc_unmapped_launch(struct rc_session *session, const struct rc_kernel *kernel, const uint8_t *block)
{
	for (uint32_t i = 0; i < kernel->parameters; i++)
		for (uint32_t at = 0; at + 8 <= kernel->parameter[i].size; at += 8) {
			uint64_t word;
			const char *reason;
			memcpy(&word, block + kernel->parameter[i].offset + at, sizeof word);
			if (is_unusable(session, word, &reason))
				keep(session, kernel, i, word, reason);
		}
}

/* True if the word points to host memory that is not promoted, and copies of that memory may wait for what the program does after
 * this call. */
static bool may_wait(const struct rc_session *session, uint64_t word)
{
	struct rc_span span;
	return rc_copy_any_later() && rc_held_any(session) && rc_memory_find(word, &span) && span.kind >= RC_MEMORY_HOST &&
	       !(span.mapped_by >> session->index & 1) && (rc_peer_any_host() || rc_copy_pending(span.base, span.size));
}

void rc_unmapped_copy(struct rc_session *session, uint64_t word, bool asynchronous)
{
	const char *reason = "copies of it were under way";
	if (session && ((asynchronous && may_wait(session, word)) || is_unusable(session, word, &reason)))
		keep(session, NULL, 0, word, reason);
}

/* The cause may be pinned memory of which no call has shown that the device uses it. */
static void name_the_setting(const struct rc_session *session)
{
	static bool told; /* atomic */
	if (!session->local && rc_host_mapping() != RC_MAP_ALL && rc_memory_any_unmapped() &&
	    !__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		hr_log(HR_LOG_ERROR, "a kernel has accessed an illegal address. If it found the address of pinned memory of this "
		       "host in device memory, set HEADRACE_MAP_HOST_MEMORY=1, or allocate the memory with cudaHostAllocMapped");
}

void rc_unmapped_fault(const struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	struct suspect suspect = suspects[session->index];
	suspects[session->index].told |= suspect.address != 0;
	pthread_mutex_unlock(&lock);
	if (!suspect.address)
		name_the_setting(session);
	if (!suspect.address || suspect.told)
		return;
	hr_log(HR_LOG_ERROR, "a kernel has accessed an illegal address: %s was 0x%llx, pinned memory that the kernel cannot use: "
	       "%s; allocate it with cudaHostAllocMapped", suspect.where, (unsigned long long)suspect.address,
	       suspect.reason ? suspect.reason : "");
}
