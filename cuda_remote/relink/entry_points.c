/* SPDX-License-Identifier: BSD-3-Clause */
/* cudaGetDriverEntryPoint for static runtimes of each release of CUDA 12 that added functions. */
#include "cuda_remote/relink/entry_points.h"

#include <stddef.h>
#include <string.h>

typedef int by_version_call(const char *symbol, void **function, unsigned version, unsigned long long flags,
			    void *status);

/* Set before the first function below is called: before the constructors of the object that calls it. */
static by_version_call *find, *find_ptsz;

#define RELEASES RELEASE(12000) RELEASE(12010) RELEASE(12020) RELEASE(12030) RELEASE(12040) RELEASE(12050) RELEASE(12080)

#define RELEASE(release)									\
	static int find_##release(const char *symbol, void **function, unsigned long long flags, void *status)		\
	{											\
		return find(symbol, function, release, flags, status);				\
	}											\
	static int find_ptsz_##release(const char *symbol, void **function, unsigned long long flags, void *status)	\
	{											\
		return find_ptsz(symbol, function, release, flags, status);			\
	}
RELEASES
#undef RELEASE

static const struct {
	unsigned release;
	int (*plain)(const char *symbol, void **function, unsigned long long flags, void *status);
	int (*ptsz)(const char *symbol, void **function, unsigned long long flags, void *status);
} releases[] = {
#define RELEASE(release) { release, find_##release, find_ptsz_##release },
	RELEASES
#undef RELEASE
};

uintptr_t entry_points_replace(const char *name, unsigned release, uintptr_t by_version, uintptr_t by_version_ptsz)
{
	static const char plain[] = "cudaGetDriverEntryPoint", ptsz[] = "cudaGetDriverEntryPoint_ptsz";
	find = (by_version_call *)by_version;
	find_ptsz = (by_version_call *)by_version_ptsz;
	for (size_t i = 0; i < sizeof releases / sizeof *releases; i++) {
		if (releases[i].release != release)
			continue;
		if (!strcmp(name, plain))
			return (uintptr_t)releases[i].plain;
		if (!strcmp(name, ptsz))
			return (uintptr_t)releases[i].ptsz;
	}
	return 0;
}
