/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 that passes calls to the driver with the engine double. It refuses single calls, waits for streams where that
 * driver does not, or lets streams share hardware queues. A worker loads it with --driver; HEADRACE_TEST_REFUSING names the file
 * that says which calls.
 */
#include "test/cuda/remote/refusing.h"

#include "cuda_remote/written_memory.h"

#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
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

#define EXPORT __attribute__((visibility("default")))
#define REAL(name) ((__typeof__(&name))dlsym(driver, #name))

EXPORT CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *data, unsigned flags)
{
	return refuses(&refusing->callback) ? REFUSED : REAL(cuStreamAddCallback)(stream, callback, data, flags);
}

EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
	return refuses(&refusing->context) ? REFUSED : REAL(cuCtxDestroy_v2)(context);
}

EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return refuses(&refusing->reset) ? REFUSED : REAL(cuDevicePrimaryCtxReset_v2)(device);
}

EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					    unsigned long long flags)
{
	return refuses(&refusing->instantiate) ? REFUSED : REAL(cuGraphInstantiateWithFlags)(exec, graph, flags);
}

EXPORT CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
	if (__atomic_load_n(&refusing->clone, __ATOMIC_ACQUIRE))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuGraphClone)(clone, graph);
}

/* ---- a driver that waits for streams ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned waiting; /* streams that wait for a value */
static bool loading;

static void await_streams(void)
{
	if (!refusing->waits)
		return;
	pthread_mutex_lock(&lock);
	while (waiting)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void await_loads(void)
{
	pthread_mutex_lock(&lock);
	while (loading)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static void passed(CUstream stream, CUresult result, void *unused)
{
	(void)stream;
	(void)result;
	(void)unused;
	pthread_mutex_lock(&lock);
	waiting--;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

EXPORT CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags)
{
	if (!refusing->waits)
		return REAL(cuStreamWaitValue32_v2)(stream, address, value, flags);
	pthread_mutex_lock(&lock);
	waiting++;
	pthread_mutex_unlock(&lock);
	CUresult result = REAL(cuStreamWaitValue32_v2)(stream, address, value, flags);
	if (result != CUDA_SUCCESS || REAL(cuStreamAddCallback)(stream, passed, NULL, 0) != CUDA_SUCCESS)
		passed(stream, result, NULL);
	return result;
}

/* So that the worker does not take this driver for the software GPU. */
EXPORT CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	static const CUuuid written = RC_WRITTEN_MEMORY_UUID;
	if ((refusing->waits || refusing->queues) && !memcmp(id, &written, sizeof written))
		return CUDA_ERROR_NOT_SUPPORTED;
	return REAL(cuGetExportTable)(table, id);
}

/* ---- streams that share hardware queues ---- */

#define CONTEXTS 16 /* and their priorities */
#define QUEUES 32

/* A queue is a stream of the real driver, and the handle of all streams that share it. The queues end with their context. */
static struct {
	CUcontext context;
	int priority;
	unsigned made; /* streams */
	CUstream queue[QUEUES];
} queues[CONTEXTS];

/* The index in queues of the current context and the priority. CONTEXTS: there are too many. */
static unsigned queues_of_current(int priority)
{
	CUcontext context = NULL;
	unsigned i = 0;
	REAL(cuCtxGetCurrent)(&context);
	while (i < CONTEXTS && queues[i].context && (queues[i].context != context || queues[i].priority != priority))
		i++;
	if (i < CONTEXTS) {
		queues[i].context = context;
		queues[i].priority = priority;
	}
	return i;
}

/* Blocking streams, which are ordered with the default stream, have a queue each. */
EXPORT CUresult cuStreamCreateWithPriority(CUstream *stream, unsigned flags, int priority)
{
	unsigned n = refusing->queues < QUEUES ? refusing->queues : QUEUES;
	if (!n || !(flags & CU_STREAM_NON_BLOCKING))
		return REAL(cuStreamCreateWithPriority)(stream, flags, priority);
	CUresult result = CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	unsigned i = queues_of_current(priority);
	if (i == CONTEXTS) {
		result = CUDA_ERROR_OUT_OF_MEMORY;
	} else {
		CUstream *queue = &queues[i].queue[queues[i].made++ % n];
		if (!*queue)
			result = REAL(cuStreamCreateWithPriority)(queue, flags, priority);
		*stream = *queue;
	}
	pthread_mutex_unlock(&lock);
	return result;
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
	return refusing->queues ? cuStreamCreateWithPriority(stream, flags, 0) : REAL(cuStreamCreate)(stream, flags);
}

static bool is_queue(CUstream stream)
{
	bool found = false;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < CONTEXTS; i++)
		for (unsigned k = 0; k < QUEUES; k++)
			found = found || queues[i].queue[k] == stream;
	pthread_mutex_unlock(&lock);
	return found;
}

/* The queue stays. */
EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	return stream && refusing->queues && is_queue(stream) ? CUDA_SUCCESS : REAL(cuStreamDestroy_v2)(stream);
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t size)
{
	await_streams();
	return REAL(cuMemAlloc_v2)(memory, size);
}

EXPORT CUresult cuMemHostAlloc(void **memory, size_t size, unsigned flags)
{
	await_streams();
	return REAL(cuMemHostAlloc)(memory, size, flags);
}

EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t size, unsigned flags)
{
	await_streams();
	return REAL(cuMemHostRegister_v2)(memory, size, flags);
}

static void load_begin(void)
{
	if (!refusing->waits)
		return;
	await_loads();
	pthread_mutex_lock(&lock);
	loading = true;
	pthread_mutex_unlock(&lock);
	await_streams();
}

static void load_end(void)
{
	pthread_mutex_lock(&lock);
	loading = false;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
	load_begin();
	CUresult result = REAL(cuModuleLoadDataEx)(module, image, n, options, values);
	load_end();
	return result;
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t size, CUstream stream)
{
	await_loads();
	return REAL(cuMemcpyHtoDAsync_v2)(to, from, size, stream);
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t size, CUstream stream)
{
	await_loads();
	return REAL(cuMemcpyDtoHAsync_v2)(to, from, size, stream);
}

/* The driver's textures that have the number EQUAL_NUMBER. */
static struct {
	CUcontext context;
	CUtexObject real;
} equals[4];

EXPORT CUresult cuTexObjectCreate(CUtexObject *made, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *texture,
				  const CUDA_RESOURCE_VIEW_DESC *view)
{
	CUcontext context;
	CUresult result = REAL(cuTexObjectCreate)(made, resource, texture, view);
	if (result != CUDA_SUCCESS || !__atomic_load_n(&refusing->equal, __ATOMIC_ACQUIRE))
		return result;
	REAL(cuCtxGetCurrent)(&context);
	for (size_t i = 0; i < sizeof equals / sizeof *equals; i++)
		if (!equals[i].context) {
			equals[i].context = context;
			equals[i].real = *made;
			*made = EQUAL_NUMBER;
			return CUDA_SUCCESS;
		}
	return CUDA_ERROR_OUT_OF_MEMORY;
}

EXPORT CUresult cuTexObjectDestroy(CUtexObject object)
{
	CUcontext context;
	if (!__atomic_load_n(&refusing->equal, __ATOMIC_ACQUIRE))
		return REAL(cuTexObjectDestroy)(object);
	REAL(cuCtxGetCurrent)(&context);
	for (size_t i = 0; i < sizeof equals / sizeof *equals; i++)
		if (equals[i].context == context && object == EQUAL_NUMBER) {
			equals[i].context = NULL;
			return REAL(cuTexObjectDestroy)(equals[i].real);
		}
	return CUDA_ERROR_INVALID_VALUE;
}
