/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cause of a kernel's illegal address, if it is host memory. CUDA lets kernels use all pinned memory by its address. Kernels of
 * a server on another host cannot, unless the memory was allocated as mapped (mirror/); kernels of no server can use registered
 * memory. So a launch with such an address among its parameters is kept, and named when a kernel of that server has failed.
 */
#include "cuda_remote/client/client.h"

#include <pthread.h>
#include <string.h>

#define NAME_MAX_BYTES 200

/* The last such launch on each server; address 0: none. */
static struct suspect {
	uint64_t address;
	uint32_t parameter; /* its number, from 0 on */
	bool registered;    /* memory of cuMemHostRegister */
	bool told;
	char kernel[NAME_MAX_BYTES];
} suspects[RC_SERVER_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* True if the address is that of host memory that kernels of the session cannot use. */
static bool is_unmapped(const struct rc_session *session, uint64_t address, bool *registered)
{
	struct rc_span span;
	if (!rc_memory_find(address, &span) || span.kind < RC_MEMORY_HOST || span.mapped_by >> session->index & 1)
		return false;
	*registered = span.kind == RC_MEMORY_REGISTERED;
	return true;
}

void rc_unmapped_launch(const struct rc_session *session, const struct rc_kernel *kernel, const uint8_t *block)
{
	for (uint32_t i = 0; i < kernel->parameters; i++)
		for (uint32_t at = 0; at + 8 <= kernel->parameter[i].size; at += 8) {
			uint64_t word;
			bool registered;
			memcpy(&word, block + kernel->parameter[i].offset + at, sizeof word);
			if (!is_unmapped(session, word, &registered))
				continue;
			pthread_mutex_lock(&lock);
			struct suspect *suspect = &suspects[session->index];
			*suspect = (struct suspect){ .address = word, .parameter = i, .registered = registered, .told = suspect->told };
			strncpy(suspect->kernel, kernel->name, NAME_MAX_BYTES - 1);
			pthread_mutex_unlock(&lock);
			return;
		}
}

void rc_unmapped_fault(const struct rc_session *session)
{
	pthread_mutex_lock(&lock);
	struct suspect suspect = suspects[session->index];
	suspects[session->index].told |= suspect.address != 0;
	pthread_mutex_unlock(&lock);
	if (!suspect.address || suspect.told)
		return;
	const char *what = suspect.registered ?
				   "memory of cudaHostRegister, which remote kernels cannot use; allocate it with "
				   "cudaHostAllocMapped" :
				   "pinned memory that kernels of a server on another host cannot use; allocate it with "
				   "cudaHostAllocMapped, or set HEADRACE_MAP_HOST_MEMORY=1";
	hr_log(HR_LOG_ERROR, "a kernel has accessed an illegal address: parameter %u of %s was 0x%llx, %s", suspect.parameter,
	       suspect.kernel, (unsigned long long)suspect.address, what);
}
