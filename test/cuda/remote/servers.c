/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One program with the GPUs of two servers; the first server has one GPU, the second has two.
 *	servers all         what the list of devices is, and what works on each of them
 *	servers one         the list names only GPU 1 of the second server
 *	servers parts       small host memory is part of larger memory, which both servers share; else as death
 *	servers refused     the second server takes no pinned memory, or little, while a host function waits for the program
 *	servers refused-parts  the same, where small memory is part of larger memory; the second server takes 8 MB
 *	servers death       reads a line from stdin; by then the second server's worker must have been killed
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <unistd.h>

#define DEVICES 3
#define WORDS 200000u /* longer than a copy that is sent with its call */

/* What the test has on each device. */
static struct place {
	CUcontext context;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUfunction append, wait;
	CUdeviceptr memory, log;
	uint32_t *host; /* WORDS words */
} places[DEVICES];

static void set_up(struct place *place, int device)
{
	OK(cuDevicePrimaryCtxRetain(&place->context, device));
	OK(cuCtxSetCurrent(place->context));
	OK(cuStreamCreate(&place->stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&place->event, 0));
	OK(cuModuleLoadData(&place->module, "double\nappend wait\n"));
	OK(cuModuleGetFunction(&place->append, place->module, "append"));
	OK(cuModuleGetFunction(&place->wait, place->module, "wait"));
	OK(cuMemAlloc(&place->memory, WORDS * 4));
	OK(cuMemAlloc(&place->log, 64));
	OK(cuMemsetD8Async(place->log, 0, 64, place->stream));
	OK(cuMemHostAlloc((void **)&place->host, WORDS * 4, 0));
}

static void tear_down(struct place *place)
{
	OK(cuCtxSetCurrent(place->context));
	OK(cuMemFreeHost(place->host));
	OK(cuMemFree(place->log));
	OK(cuMemFree(place->memory));
	OK(cuModuleUnload(place->module));
	OK(cuEventDestroy(place->event));
	OK(cuStreamDestroy(place->stream));
}

static void the_list_has_all_devices(void)
{
	CUuuid uuid[DEVICES];
	char pci[DEVICES][32];
	int count, can;
	OK(cuDeviceGetCount(&count));
	CHECK(count == DEVICES);
	for (int i = 0; i < DEVICES; i++) {
		CUdevice found;
		OK(cuDeviceGetUuid_v2(&uuid[i], i));
		OK(cuDeviceGetPCIBusId(pci[i], sizeof pci[i], i));
		OK(cuDeviceGetByPCIBusId(&found, pci[i]));
		CHECK(found == i);
		for (int other = 0; other < i; other++)
			CHECK(memcmp(&uuid[i], &uuid[other], sizeof uuid[i]));
	}
	OK(cuDeviceCanAccessPeer(&can, 0, 1));
	CHECK(!can);
	OK(cuDeviceCanAccessPeer(&can, 2, 0));
	CHECK(!can);
	CUdevice none;
	EXPECT(cuDeviceGet(&none, DEVICES), CUDA_ERROR_INVALID_DEVICE);
}

static void addresses_are_disjoint(void)
{
	for (int i = 0; i < DEVICES; i++) {
		int device = -1;
		OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, places[i].memory));
		CHECK(device == i);
		for (int other = 0; other < i; other++)
			CHECK(places[i].memory + WORDS * 4 <= places[other].memory ||
			      places[other].memory + WORDS * 4 <= places[i].memory);
	}
}

static void launch_on(const struct place *place, uint32_t value)
{
	CUdeviceptr log = place->log;
	void *parameters[] = { &log, &value };
	OK(cuLaunchKernel(place->append, 1, 1, 1, 1, 1, 1, 0, place->stream, parameters, NULL));
}

/* Launches and copies on all devices, in turns. */
static void each_device_works(void)
{
	uint32_t log[4];
	for (uint32_t round = 1; round <= 2; round++)
		for (uint32_t i = 0; i < DEVICES; i++) {
			OK(cuCtxSetCurrent(places[i].context));
			launch_on(&places[i], 10 * i + round);
			OK(cuMemsetD32Async(places[i].memory, 100 * i + round, WORDS, places[i].stream));
			OK(cuMemcpyDtoHAsync(places[i].host, places[i].memory, WORDS * 4, places[i].stream));
			OK(cuEventRecord(places[i].event, places[i].stream));
		}
	for (uint32_t i = 0; i < DEVICES; i++) {
		/* Whichever context is current, an event and a stream are found. */
		OK(cuCtxSetCurrent(places[(i + 1) % DEVICES].context));
		OK(cuEventSynchronize(places[i].event));
		OK(cuEventQuery(places[i].event));
		OK(cuStreamSynchronize(places[i].stream));
		CHECK(places[i].host[0] == 100 * i + 2 && places[i].host[WORDS - 1] == 100 * i + 2);
		OK(cuMemcpyDtoH(log, places[i].log, sizeof log));
		CHECK(log[0] == 2 && log[1] == 10 * i + 1 && log[2] == 10 * i + 2);
	}
}

/* Memory is found whichever context is current, by synchronous and asynchronous copies of all sizes. */
static void memory_is_found(void)
{
	uint32_t *there = malloc(WORDS * 4), *back = malloc(WORDS * 4);
	for (uint32_t i = 0; i < DEVICES; i++) {
		struct place *here = &places[(i + 1) % DEVICES];
		OK(cuCtxSetCurrent(here->context));
		for (uint32_t words = WORDS; words; words = words == WORDS ? 16 : 0) {
			for (uint32_t j = 0; j < WORDS; j++)
				there[j] = j * (i + 3) + words;
			OK(cuMemcpyHtoD(places[i].memory, there, words * 4));
			OK(cuMemcpyDtoH(back, places[i].memory, words * 4));
			CHECK(!memcmp(there, back, words * 4));
			OK(cuMemsetD32(places[i].memory, 77, words));
			OK(cuStreamSynchronize(NULL)); /* here->stream does not wait for it */
			OK(cuMemcpyHtoDAsync(places[i].memory + 4, there, 4, here->stream));
			OK(cuStreamSynchronize(here->stream)); /* the copy below does not wait for that stream either */
			OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, places[i].memory, 12));
			CHECK(back[0] == 77 && back[1] == there[0] && back[2] == 77);
		}
		CUdeviceptr extra;
		OK(cuMemAlloc(&extra, 1000));
		OK(cuCtxSetCurrent(places[i].context));
		OK(cuMemFree(extra));
		EXPECT(cuMemFree(extra), CUDA_ERROR_INVALID_VALUE);
	}
	free(there);
	free(back);
}

/* A copy in the NULL stream comes after the work of blocking streams, also if its memory is on another server. */
static void rewrite(void *argument)
{
	for (int i = 0; i < 100; i++)
		sched_yield();
	*(uint32_t *)argument += 1;
}

static void blocking_streams_are_waited_for(void)
{
	CUstream blocking;
	uint32_t value = 0, back;
	OK(cuCtxSetCurrent(places[0].context));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	for (uint32_t round = 1; round <= 10; round++) {
		OK(cuLaunchHostFunc(blocking, rewrite, &value));
		OK(cuMemcpyHtoD(places[1].memory, &value, 4));
		OK(cuMemcpyDtoH(&back, places[1].memory, 4));
		CHECK(back == round);
	}
	OK(cuStreamDestroy(blocking));
}

/* Objects of two servers do not meet in one call, except in copies and waits for events (peer.c). */
static void mixtures_are_refused(void)
{
	struct place *a = &places[0], *b = &places[1];
	CUdeviceptr log = b->log;
	uint32_t value = 1;
	float ms;
	void *parameters[] = { &log, &value };
	OK(cuCtxSetCurrent(a->context));
	EXPECT(cuEventRecord(b->event, a->stream), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuEventRecord(b->event, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuEventElapsedTime(&ms, a->event, b->event), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel(b->append, 1, 1, 1, 1, 1, 1, 0, a->stream, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLaunchKernel(a->append, 1, 1, 1, 1, 1, 1, 0, b->stream, parameters, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuCtxEnablePeerAccess(b->context, 0), CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
	/* Two devices of one server do. */
	OK(cuCtxSetCurrent(b->context));
	OK(cuMemcpyPeer(b->memory, b->context, places[2].memory, places[2].context, 16));
	OK(cuStreamWaitEvent(b->stream, places[2].event, 0));
	OK(cuCtxSynchronize());
}

static void add(void *argument)
{
	__atomic_add_fetch((int *)argument, 1, __ATOMIC_RELEASE);
}

static void host_functions_of_both(void)
{
	int calls[DEVICES] = { 0 };
	for (int round = 0; round < 20; round++)
		for (int i = 0; i < DEVICES; i++) {
			OK(cuCtxSetCurrent(places[i].context));
			OK(cuLaunchHostFunc(places[i].stream, add, &calls[i]));
		}
	for (int i = 0; i < DEVICES; i++) {
		OK(cuStreamSynchronize(places[i].stream));
		CHECK(__atomic_load_n(&calls[i], __ATOMIC_ACQUIRE) == 20);
	}
}

/* A launch in the current context that only the driver refuses. */
static void fail_later(void)
{
	CUmodule module;
	CUfunction shaped;
	OK(cuModuleLoadData(&module, "double\nshaped\n"));
	OK(cuModuleGetFunction(&shaped, module, "shaped"));
	OK(cuLaunchKernel(shaped, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* A failure is reported by the session in which the call failed, and by no other. */
static void failures_stay_apart(void)
{
	OK(cuCtxSetCurrent(places[1].context));
	fail_later();
	OK(cuCtxSetCurrent(places[0].context));
	OK(cuCtxSynchronize());
	OK(cuCtxSetCurrent(places[1].context));
	CHECK(cuCtxSynchronize() != CUDA_SUCCESS);
	OK(cuCtxSynchronize());
}

static void contexts_and_pools(void)
{
	for (int i = 0; i < DEVICES; i++) {
		CUcontext made;
		CUdevice device;
		CUdeviceptr memory;
		CUmemoryPool pool;
		CUmemPoolProps properties = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
					      .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i } };
		OK(cuCtxCreate(&made, NULL, 0, i));
		OK(cuCtxGetDevice(&device));
		CHECK(device == i);
		OK(cuMemAlloc(&memory, 1 << 20));
		OK(cuMemsetD8(memory, 1, 1 << 20));
		OK(cuMemPoolCreate(&pool, &properties));
		OK(cuCtxSynchronize());
		OK(cuMemPoolDestroy(pool));
		OK(cuCtxDestroy(made));
	}
}

static void *on_both(void *argument)
{
	uint32_t seed = (uint32_t)(uintptr_t)argument, value;
	for (uint32_t round = 0; round < 50; round++) {
		CUdeviceptr memory;
		OK(cuCtxSetCurrent(places[round % DEVICES].context));
		OK(cuMemAlloc(&memory, 4000));
		OK(cuMemsetD32(memory, seed + round, 1000));
		OK(cuMemcpyDtoH(&value, memory + 3996, 4));
		CHECK(value == seed + round);
		OK(cuMemFree(memory));
	}
	return NULL;
}

static void threads_use_both(void)
{
	pthread_t threads[3];
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(!pthread_create(&threads[i], NULL, on_both, (void *)(1000 * i)));
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* A library is loaded once. Its kernels run on the devices of both servers, by the kernel's own handle, as a function of the
 * current context, and as a function of the library's module there. */
static void a_library_serves_both(void)
{
	CUlibrary library, found;
	CUkernel kernel;
	CUmodule module[DEVICES];
	CUfunction function;
	int threads;
	OK(cuCtxSetCurrent(places[2].context));
	OK(cuLibraryLoadData(&library, "double\nwait append\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "append"));
	for (int i = 0; i < DEVICES; i++) {
		const struct place *place = &places[i];
		CUdeviceptr log = place->log;
		uint32_t value, seen[4];
		void *parameters[] = { &log, &value };
		OK(cuCtxSetCurrent(place->context));
		OK(cuMemsetD8Async(log, 0, 64, place->stream));
		OK(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, i));
		OK(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 * (DEVICES - i), kernel, i));
		value = 10;
		OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, place->stream, parameters, NULL));
		OK(cuKernelGetFunction(&function, kernel));
		value = 11;
		OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, place->stream, parameters, NULL));
		OK(cuLibraryGetModule(&module[i], library));
		OK(cuModuleGetFunction(&function, module[i], "append"));
		value = 12;
		OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, place->stream, parameters, NULL));
		OK(cuStreamSynchronize(place->stream));
		OK(cuMemcpyDtoH(seen, log, sizeof seen));
		CHECK(seen[0] == 3 && seen[1] == 10 && seen[2] == 11 && seen[3] == 12);
		OK(cuKernelGetFunction(&function, kernel));
		OK(cuKernelGetLibrary(&found, (CUkernel)function));
		CHECK(found == library);
	}
	CHECK(module[0] != module[1]);
	/* The attribute of one device does not limit launches on another one. */
	for (int i = 0; i < DEVICES; i++) {
		uint32_t value = 13;
		void *parameters[] = { &places[i].log, &value };
		OK(cuCtxSetCurrent(places[i].context));
		OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 64 * (DEVICES - (unsigned)i), places[i].stream, parameters, NULL));
		OK(cuStreamSynchronize(places[i].stream));
	}
	OK(cuLibraryUnload(library));
	EXPECT(cuLibraryGetKernel(&kernel, library, "append"), CUDA_ERROR_INVALID_HANDLE);
	for (int i = 0; i < DEVICES; i++)
		EXPECT(cuModuleGetFunction(&function, module[i], "append"), CUDA_ERROR_INVALID_HANDLE);
}

static void all(void)
{
	the_list_has_all_devices();
	for (int i = 0; i < DEVICES; i++)
		set_up(&places[i], i);
	addresses_are_disjoint();
	each_device_works();
	memory_is_found();
	blocking_streams_are_waited_for();
	mixtures_are_refused();
	host_functions_of_both();
	failures_stay_apart();
	contexts_and_pools();
	threads_use_both();
	a_library_serves_both();
	for (int i = 0; i < DEVICES; i++)
		tear_down(&places[i]);
}

static void one(void)
{
	int count;
	OK(cuDeviceGetCount(&count));
	CHECK(count == 2);
	for (int i = 0; i < count; i++)
		set_up(&places[i], i);
	OK(cuMemcpyHtoD(places[0].memory, places[1].host, 64));
	for (int i = 0; i < count; i++)
		tear_down(&places[i]);
}

/* The server that the library was loaded on is lost. The kernel's handle is that of this server. */
static void a_kernel_is_asked_about_here(CUkernel kernel)
{
	CUfunction function = (CUfunction)kernel;
	int blocks = 0, grid = 0;
	size_t shared = 0;
	OK(cuCtxSetCurrent(places[0].context));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 32, 0));
	CHECK(blocks > 0);
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 32, 0, 0));
	CHECK(blocks > 0);
	OK(cuOccupancyAvailableDynamicSMemPerBlock(&shared, function, 1, 32));
	CHECK(shared > 0);
	OK(cuOccupancyMaxPotentialBlockSize(&grid, &blocks, function, NULL, 0, 0));
	CHECK(grid > 0 && blocks > 0);
}

static void death(void)
{
	CUlibrary library;
	CUkernel kernel;
	uint32_t value = 0;
	for (int i = 0; i < DEVICES; i++)
		set_up(&places[i], i);
	OK(cuCtxSetCurrent(places[1].context));
	OK(cuLibraryLoadData(&library, "double\nwait append\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetKernel(&kernel, library, "append"));
	/* A host function and a copy that are pending, and do not come to their end. */
	uint32_t *never = malloc(WORDS * 4), *source = calloc(WORDS, 4);
	CHECK(never && source);
	OK(cuMemHostRegister(never, WORDS * 4, CU_MEMHOSTREGISTER_PORTABLE));
	OK(cuStreamWaitValue32(places[1].stream, places[1].log, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuLaunchHostFunc(places[1].stream, rewrite, never));
	OK(cuMemcpyDtoHAsync(never, places[1].memory, WORDS * 4, places[1].stream));
	puts("ready");
	fflush(stdout);
	CHECK(getchar() == '\n');
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	EXPECT(cuMemcpyDtoH(&value, places[2].memory, 4), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxSetCurrent(places[0].context));
	OK(cuMemsetD32(places[0].memory, 7, WORDS));
	OK(cuMemcpyDtoH(&value, places[0].memory + 4, 4));
	CHECK(value == 7);
	OK(cuStreamWaitValue32(places[0].stream, places[0].log, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemcpyHtoDAsync(places[0].memory, source, WORDS * 4, places[0].stream));
	OK(cuMemsetD32(places[0].log, 1, 1));
	OK(cuStreamSynchronize(places[0].stream));
	OK(cuMemHostUnregister(never));
	free(never);
	free(source);
	a_kernel_is_asked_about_here(kernel);
	tear_down(&places[0]);
}

enum { PART = 4096 };

static void *part_new(void)
{
	void *part;
	OK(cuMemHostAlloc(&part, PART, CU_MEMHOSTALLOC_PORTABLE));
	return part;
}

/* Ends the kernel once the part was freed, or could have been. */
static void *end_the_kernel(void *flag)
{
	for (int i = 0; i < 300 && !__atomic_load_n((bool *)flag + 4, __ATOMIC_ACQUIRE); i++)
		usleep(1000);
	let_go(flag);
	return NULL;
}

/* A call of the first server's has failed, and a kernel of the second one may use the part. */
static void a_part_is_freed_in_use(void)
{
	pthread_t thread;
	uint32_t *flag;
	void *part = part_new();
	OK(cuMemHostAlloc((void **)&flag, 2 << 20, CU_MEMHOSTALLOC_PORTABLE));
	memset(flag, 0, 8);
	CUdeviceptr address = (CUdeviceptr)(uintptr_t)flag;
	void *arguments[] = { &address };
	OK(cuCtxSetCurrent(places[0].context));
	fail_later();
	OK(cuCtxSetCurrent(places[1].context));
	OK(cuLaunchKernel(places[1].wait, 1, 1, 1, 1, 1, 1, 0, places[1].stream, arguments, NULL));
	CHECK(!pthread_create(&thread, NULL, end_the_kernel, flag));
	OK(cuMemFreeHost(part));
	OK(cuStreamQuery(places[1].stream));
	__atomic_store_n((bool *)flag + 4, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	OK(cuCtxSetCurrent(places[0].context));
	CHECK(cuCtxSynchronize() != CUDA_SUCCESS);
	OK(cuCtxSynchronize());
	OK(cuMemFreeHost(flag));
}

/* The second server's worker could still write a part that it had when it was lost. */
static void parts(void)
{
	for (int i = 0; i < DEVICES; i++)
		set_up(&places[i], i);
	a_part_is_freed_in_use();
	void *part = part_new();
	OK(cuCtxSetCurrent(places[1].context));
	OK(cuStreamWaitValue32(places[1].stream, places[1].log, 1, CU_STREAM_WAIT_VALUE_EQ));
	puts("ready");
	fflush(stdout);
	CHECK(getchar() == '\n');
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_DEVICE_UNAVAILABLE);
	OK(cuCtxSetCurrent(places[0].context));
	OK(cuMemFreeHost(part));
	void *first = part_new();
	CHECK(first != part);
	OK(cuMemFreeHost(first));
	CHECK(part_new() == first); /* of memory that the lost server does not share */
	tear_down(&places[0]);
}

static bool goes_on; /* atomic */

static void wait_to_go_on(void *unused)
{
	(void)unused;
	while (!__atomic_load_n(&goes_on, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void free_all(void *memory[], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (memory[i])
			OK(cuMemFreeHost(memory[i]));
}

/* The context's work waits for this program until goes_on is set. */
static CUstream hold_work(CUcontext context)
{
	CUstream stream;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuLaunchHostFunc(stream, wait_to_go_on, NULL));
	return stream;
}

static void release(CUstream stream)
{
	__atomic_store_n(&goes_on, true, __ATOMIC_RELEASE);
	OK(cuStreamSynchronize(stream));
}

/* No allocation waits for the first server's work, although the second one refuses what the first one takes. */
static void refused(void)
{
	static const size_t sizes[] = { 8 << 20, 100, 4 << 20 };
	enum { N = sizeof sizes / sizeof *sizes };
	CUcontext context[2];
	void *memory[2 * N + 1] = { NULL };
	for (int i = 0; i < 2; i++)
		OK(cuDevicePrimaryCtxRetain(&context[i], i));
	CUstream stream = hold_work(context[0]);
	for (size_t i = 0; i < N; i++) {
		OK(cuCtxSetCurrent(context[1]));
		CUresult result = cuMemHostAlloc(&memory[2 * N], sizes[i], CU_MEMHOSTALLOC_DEVICEMAP);
		CHECK(result == CUDA_ERROR_NOT_SUPPORTED || (sizes[i] == 100 && result == CUDA_SUCCESS));
		OK(cuCtxSetCurrent(context[0]));
		OK(cuMemHostAlloc(&memory[i], sizes[i], CU_MEMHOSTALLOC_DEVICEMAP));
		OK(cuMemHostAlloc(&memory[N + i], sizes[i], 0));
		memset(memory[i], 1, sizes[i]);
	}
	release(stream);
	free_all(memory, 2 * N + 1);
}

/* The slab of the memory that was freed is ended to make room. The wait of the driver itself, for a primary context, is left. */
static void refused_parts(void)
{
	CUcontext context, apart;
	void *memory[3] = { NULL };
	OK(cuDevicePrimaryCtxRetain(&context, 1));
	OK(cuCtxCreate(&apart, NULL, 0, 0));
	OK(cuMemHostAlloc(&memory[0], 100, 0));
	OK(cuMemFreeHost(memory[0]));
	memory[0] = NULL;
	CUstream stream = hold_work(apart);
	OK(cuCtxSetCurrent(context));
	EXPECT(cuMemHostAlloc(&memory[0], 9 << 20, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemHostAlloc(&memory[0], 7 << 20, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostAlloc(&memory[1], 7 << 20, 0));
	OK(cuMemHostAlloc(&memory[2], 100, 0));
	release(stream);
	free_all(memory, 3);
}

/* The last server, of another host, maps no host memory. A part of larger memory that is refused therefore leaves that memory to the
 * first server, and its handle is not given to other memory. */
static void refused_part(void)
{
	CUcontext context[2];
	void *memory[4] = { NULL };
	int last;
	OK(cuDeviceGetCount(&last));
	OK(cuDevicePrimaryCtxRetain(&context[0], 0));
	OK(cuDevicePrimaryCtxRetain(&context[1], last - 1));
	OK(cuCtxSetCurrent(context[0]));
	OK(cuMemHostAlloc(&memory[0], 100, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuCtxSetCurrent(context[1]));
	EXPECT(cuMemHostAlloc(&memory[3], 100, CU_MEMHOSTALLOC_DEVICEMAP), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuCtxSetCurrent(context[0]));
	OK(cuMemHostAlloc(&memory[1], 4 << 20, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemHostAlloc(&memory[2], 100, CU_MEMHOSTALLOC_DEVICEMAP));
	free_all(memory, 3);
}

int main(int argc, char **argv)
{
	OK(cuInit(0));
	if (argc == 2 && !strcmp(argv[1], "all"))
		all();
	else if (argc == 2 && !strcmp(argv[1], "one"))
		one();
	else if (argc == 2 && !strcmp(argv[1], "death"))
		death();
	else if (argc == 2 && !strcmp(argv[1], "parts"))
		parts();
	else if (argc == 2 && !strcmp(argv[1], "refused"))
		refused();
	else if (argc == 2 && !strcmp(argv[1], "refused-parts"))
		refused_parts();
	else if (argc == 2 && !strcmp(argv[1], "refused-part"))
		refused_part();
	else
		return 2;
	return 0;
}
