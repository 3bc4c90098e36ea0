/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What every libcuda.so.1 of this tree has in common (the software GPU's and the forwarding one), as the convenience
 * library libcuapi.la:
 *
 *  - a weak definition of each function of cuda.h and cudaProfiler.h under each of its names (_v2, _ptsz, ...). It
 *    returns CUDA_ERROR_NOT_SUPPORTED and says its name once at HEADRACE_LOG=warn. A strong definition elsewhere in the
 *    library takes its place;
 *  - cuGetProcAddress and cuGetProcAddress_v2, answered by version from cudaTypedefs.h's type names
 *    (PFN_<name>_v<version>[_ptsz|_ptds]);
 *  - cuGetErrorName and cuGetErrorString.
 *
 * Compile what defines driver functions with $(HR_DRIVER_CPPFLAGS): NVIDIA's renaming macros are off then, so that each name is
 * written as the symbol it is (cuMemAlloc_v2, cuLaunchKernel_ptsz), and the functions are visible outside.
 * The generated part is exports.c. Any thread may call anything here.
 */
#ifndef RC_API_EXPORTS_H
#define RC_API_EXPORTS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Every exported function's symbol. */
extern const unsigned rc_exports_count;
extern const char *const rc_exports_names[];

/* What each weak definition returns; index into rc_exports_names. */
CUresult rc_exports_missing(unsigned index);

/* One answer of cuGetProcAddress; sorted by name, then legacy before per-thread, then version ascending. */
struct rc_exports_entry {
	const char *name;     /* base name, without suffixes */
	int version;          /* CUDA version that introduced the symbol, as 1000 * major + 10 * minor */
	bool per_thread;      /* the default stream is each thread's own: _ptsz, _ptds */
	void (*symbol)(void);
};
extern const size_t rc_exports_entries_count;
extern const struct rc_exports_entry rc_exports_entries[];

/*
 * The newest symbol of that name not newer than version; the per-thread one if asked for and there is one. NULL if there is
 * none; *status then tells why.
 */
void *rc_exports_lookup(const char *name, int version, bool per_thread, CUdriverProcAddressQueryResult *status);

/* CUresult by number, ascending. */
struct rc_exports_error {
	CUresult code;
	const char *name;
};
extern const size_t rc_exports_errors_count;
extern const struct rc_exports_error rc_exports_errors[];

#endif
