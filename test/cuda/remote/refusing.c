/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 that refuses single calls of the driver with the engine double, to which it passes all others. A worker loads it
 * with --driver; HEADRACE_TEST_REFUSING names the file that says which calls.
 */
#include "test/cuda/remote/refusing.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static struct refusing *refusing;
static void *driver;
/* The linker keeps a library only if something is used of it. */
static CUresult (*const volatile needs_the_driver)(unsigned) = cuInit;

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("HEADRACE_TEST_REFUSING");
	int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *memory = mmap(NULL, sizeof *refusing, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	close(file);
	driver = dlopen("libcuda_double.so", RTLD_NOW | RTLD_NOLOAD);
	if (memory == MAP_FAILED || !driver || !needs_the_driver)
		abort();
	refusing = memory;
}

static bool refuses(uint32_t *count)
{
	return __atomic_load_n(count, __ATOMIC_ACQUIRE) && __atomic_fetch_sub(count, 1, __ATOMIC_ACQ_REL) == 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(driver, #name))

__attribute__((visibility("default"))) CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags)
{
	return refuses(&refusing->callback) ? REFUSED : REAL(cuStreamAddCallback)(stream, callback, data, flags);
}

__attribute__((visibility("default"))) CUresult cuCtxDestroy_v2(CUcontext context)
{
	return refuses(&refusing->context) ? REFUSED : REAL(cuCtxDestroy_v2)(context);
}

__attribute__((visibility("default"))) CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return refuses(&refusing->reset) ? REFUSED : REAL(cuDevicePrimaryCtxReset_v2)(device);
}

__attribute__((visibility("default"))) CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
									    unsigned long long flags)
{
	return refuses(&refusing->instantiate) ? REFUSED : REAL(cuGraphInstantiateWithFlags)(exec, graph, flags);
}

__attribute__((visibility("default"))) CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	if (__atomic_load_n(&refusing->clone, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuGraphClone)(clone, graph);
}
