/* SPDX-License-Identifier: BSD-3-Clause */
/* cuGetProcAddress over the generated table of names, and the answer of functions that a library lacks. */
#include "cuda_remote/api/exports.h"
#include "rdma_channel/base/log.h"

#include <string.h>

CUresult rc_exports_missing(unsigned index)
{
	static char said[1024];
	if (index < sizeof said && !__atomic_exchange_n(&said[index], 1, __ATOMIC_RELAXED))
		hr_log(HR_LOG_WARN, "%s is not supported", rc_exports_names[index]);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* The first entry of that name, or of the name that would follow it. */
static size_t first_of(const char *name)
{
	size_t low = 0, high = rc_exports_entries_count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (strcmp(rc_exports_entries[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void *rc_exports_lookup(const char *name, int version, bool per_thread, CUdriverProcAddressQueryResult *status)
{
	const struct rc_exports_entry *best = NULL;
	bool known = false;
	for (size_t i = first_of(name); i < rc_exports_entries_count; i++) {
		const struct rc_exports_entry *entry = &rc_exports_entries[i];
		if (strcmp(entry->name, name))
			break;
		known = true;
		if (entry->version <= version && (per_thread || !entry->per_thread))
			best = entry; /* later ones are newer, and per-thread ones come last */
	}
	*status = best ? CU_GET_PROC_ADDRESS_SUCCESS :
		  known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return best ? (void *)best->symbol : NULL;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *symbolStatus)
{
	const cuuint64_t streams = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	if (!symbol || !pfn || (flags & ~streams) || (flags & streams) == streams || cudaVersion > CUDA_VERSION)
		return CUDA_ERROR_INVALID_VALUE;
	CUdriverProcAddressQueryResult status;
	*pfn = rc_exports_lookup(symbol, cudaVersion, flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status);
	if (symbolStatus)
		*symbolStatus = status;
	return CUDA_SUCCESS;
}

/* The call of CUDA 11.3 has no status to tell a missing symbol with: there it is an error. */
CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUdriverProcAddressQueryResult status;
	CUresult result = cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, &status);
	if (result == CUDA_SUCCESS && status != CU_GET_PROC_ADDRESS_SUCCESS)
		return CUDA_ERROR_NOT_FOUND;
	return result;
}
