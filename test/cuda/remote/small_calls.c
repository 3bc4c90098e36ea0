/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls over a worker that few programs make: events of whole contexts, pointer attributes, queries of devices and kernels. */
#include "test/cuda/softgpu/driver.h"

#include <stdbool.h>

static CUcontext context;

static uint32_t *mapped(CUdeviceptr *address)
{
	void *host;
	OK(cuMemHostAlloc(&host, 4096, 0));
	memset(host, 0, 4096);
	OK(cuMemHostGetDevicePointer(address, host, 0));
	return host;
}

static CUstream stream_new(void)
{
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static void a_contexts_event_waits_for_all_its_streams(void)
{
	CUdeviceptr flags;
	uint32_t *flag = mapped(&flags);
	CUstream one = stream_new(), other = stream_new();
	CUevent event;
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	hold(one, flags);
	hold(other, flags + 4);
	OK(cuCtxRecordEvent(context, event));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&flag[0]);
	OK(cuStreamSynchronize(one));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&flag[1]);
	OK(cuEventSynchronize(event));
	OK(cuStreamQuery(other));
	OK(cuCtxRecordEvent(NULL, event)); /* the current context */
	OK(cuEventSynchronize(event));
	EXPECT(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuCtxRecordEvent((CUcontext)(void *)event, event), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuStreamDestroy(one));
	OK(cuStreamDestroy(other));
	OK(cuEventDestroy(event));
	OK(cuMemFreeHost(flag));
}

static void all_streams_of_a_context_wait_for_an_event(void)
{
	CUdeviceptr flags, log;
	uint32_t *flag = mapped(&flags), *list = mapped(&log);
	CUstream before = stream_new(), held = stream_new(), after;
	CUevent event;
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	hold(held, flags);
	OK(cuEventRecord(event, held));
	OK(cuCtxWaitEvent(context, event));
	after = stream_new();
	append(before, log, 1);
	append(after, log, 2);
	EXPECT(cuStreamQuery(before), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
	CHECK(__atomic_load_n(&list[0], __ATOMIC_ACQUIRE) == 0);
	let_go(&flag[0]);
	OK(cuCtxSynchronize());
	CHECK(list[0] == 2);
	EXPECT(cuCtxWaitEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamDestroy(before));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(after));
	OK(cuEventDestroy(event));
	OK(cuMemFreeHost(flag));
	OK(cuMemFreeHost(list));
}

/* As the software GPU does without a worker. */
static void a_capture_refuses_its_contexts_events_and_is_lost(void)
{
	CUstream stream = stream_new();
	CUevent event, captured;
	CUgraph graph;
	OK(cuEventCreate(&event, 0));
	OK(cuEventCreate(&captured, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuEventRecord(captured, stream));
		EXPECT(i == 0 ? cuCtxRecordEvent(context, event)
		       : i == 1 ? cuCtxWaitEvent(context, event) : cuCtxWaitEvent(context, captured),
		       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	}
	OK(cuCtxRecordEvent(context, captured)); /* no longer an event of a capture */
	OK(cuEventSynchronize(captured));
	OK(cuStreamDestroy(stream));
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(captured));
}

/* A copy within a device returns before it is complete, unless the memory has SYNC_MEMOPS: then the stream is idle. */
static void memory_can_make_its_calls_wait(void)
{
	CUdeviceptr memory, other;
	unsigned on = 1;
	bool told = true;
	void *host;
	OK(cuMemAlloc(&memory, 1 << 20));
	OK(cuMemAlloc(&other, 1 << 20));
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	CHECK(!told);
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	CHECK(told);
	for (int i = 0; i < 20; i++) {
		OK(cuMemsetD8(memory, (unsigned char)i, 1 << 20));
		OK(cuStreamQuery(NULL));
		OK(cuMemcpyDtoD(other, memory, 1 << 20));
		OK(cuStreamQuery(NULL));
	}
	on = 0;
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory));
	CHECK(!told);
	EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerSetAttribute(NULL, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 64), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostAlloc(&host, 4096, 0));
	on = 1;
	OK(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)host));
	OK(cuPointerGetAttribute(&told, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, (CUdeviceptr)(uintptr_t)host));
	CHECK(told);
	OK(cuMemFreeHost(host));
	OK(cuMemFree(memory));
	OK(cuMemFree(other));
}

static void devices_are_asked(void)
{
	const CUatomicOperation operations[] = { CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_FLOAT_MAX };
	unsigned told[2] = { 7, 7 };
	CUexecAffinityParam affinity;
	OK(cuDeviceGetHostAtomicCapabilities(told, operations, 2, 0));
	CHECK(told[0] & CU_ATOMIC_CAPABILITY_SIGNED && told[1] == 0);
	told[0] = 0;
	OK(cuDeviceGetP2PAtomicCapabilities(told, operations, 2, 0, 1));
	CHECK(told[0] & CU_ATOMIC_CAPABILITY_SIGNED);
	EXPECT(cuDeviceGetP2PAtomicCapabilities(told, operations, 2, 1, 1), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceGetP2PAtomicCapabilities(told, operations, 2, 0, 2), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuDeviceGetHostAtomicCapabilities(told, operations, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDeviceGetHostAtomicCapabilities(NULL, operations, 2, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuCtxGetExecAffinity(&affinity, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY);
	EXPECT(cuCtxGetExecAffinity(NULL, CU_EXEC_AFFINITY_TYPE_SM_COUNT), CUDA_ERROR_INVALID_VALUE);
}

/* The thread's current context may be one that was destroyed while another one was current. */
static void calls_without_a_context_ignore_a_destroyed_one(void)
{
	CUmemAllocationProp properties = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					   .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 1 } };
	CUcontext one, other;
	size_t granularity = 0;
	OK(cuCtxCreate(&one, NULL, 0, 0));
	OK(cuCtxCreate(&other, NULL, 0, 1));
	OK(cuCtxDestroy(one));
	OK(cuCtxDestroy(other));
	OK(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(granularity);
	OK(cuCtxSetCurrent(context));
}

static void clusters_have_an_occupancy(void)
{
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = { 1, 1, 1 } };
	CUlaunchConfig config = { .gridDimX = 4, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 32, .blockDimY = 1, .blockDimZ = 1,
				  .attrs = &attribute, .numAttrs = 1 };
	CUfunction nothing = kernel("nothing");
	int size = 0, clusters = 0, blocks, units;
	OK(cuOccupancyMaxPotentialClusterSize(&size, nothing, &config));
	CHECK(size == 8); /* what CUDA permits on every device */
	OK(cuDeviceGetAttribute(&units, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, nothing, 32, 0));
	OK(cuOccupancyMaxActiveClusters(&clusters, nothing, &config));
	CHECK(clusters > 0 && clusters == blocks * units);
	attribute.value.clusterDim.x = 2;
	OK(cuOccupancyMaxActiveClusters(&clusters, nothing, &config));
	CHECK(clusters == blocks * units / 2);
	attribute.value.clusterDim.x = 9;
	EXPECT(cuOccupancyMaxActiveClusters(&clusters, nothing, &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
	EXPECT(cuOccupancyMaxActiveClusters(&clusters, NULL, &config), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuOccupancyMaxActiveClusters(&clusters, nothing, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuOccupancyMaxPotentialClusterSize(NULL, nothing, &config), CUDA_ERROR_INVALID_VALUE);
}

/* A library's module in a context: one handle, whose functions work, and which ends with the library. */
static void libraries_have_modules(void)
{
	CUlibrary library;
	CUkernel in_library;
	CUmodule module, again, of_function, in_second;
	CUfunction function, by_kernel;
	CUdeviceptr log;
	CUcontext second;
	unsigned count;
	uint32_t got[2], value = 9;
	void *unified;
	OK(cuLibraryLoadData(&library, "double\nappend wait nothing\n", NULL, NULL, 0, NULL, NULL, 0));
	OK(cuLibraryGetModule(&module, library));
	OK(cuLibraryGetModule(&again, library));
	CHECK(module == again);
	OK(cuModuleGetFunctionCount(&count, module));
	CHECK(count == 3);
	OK(cuModuleGetFunction(&function, module, "append"));
	OK(cuFuncGetModule(&of_function, function));
	CHECK(of_function == module);
	OK(cuLibraryGetKernel(&in_library, library, "append"));
	OK(cuKernelGetFunction(&by_kernel, in_library));
	OK(cuFuncGetModule(&of_function, by_kernel));
	CHECK(of_function == module);
	OK(cuMemAlloc(&log, 64));
	OK(cuMemsetD8(log, 0, 64));
	void *parameters[] = { &log, &value };
	OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuMemcpyDtoH(got, log, sizeof got));
	CHECK(got[0] == 1 && got[1] == 9);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuLibraryGetModule(&in_second, library));
	CHECK(in_second != module);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(context));
	EXPECT(cuModuleGetFunction(&function, in_second, "append"), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuModuleUnload(module), CUDA_ERROR_NOT_PERMITTED);
	EXPECT(cuLibraryGetUnifiedFunction(&unified, library, "append"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuLibraryGetModule(NULL, library), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLibraryGetModule(&module, (CUlibrary)module), CUDA_ERROR_INVALID_HANDLE);
	OK(cuLibraryUnload(library));
	EXPECT(cuModuleGetFunction(&function, module, "append"), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuLibraryGetModule(&module, library), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemFree(log));
}

/* A fat binary's container with one entry. Returns its bytes, which are a multiple of 8 or not, as the text has it. */
static size_t container(unsigned char *to, unsigned kind, const char *payload, size_t bytes)
{
	const struct {
		uint32_t magic;
		uint16_t version, header;
		uint64_t bytes;
		uint16_t kind, entry_version;
		uint32_t entry_header;
		uint64_t payload;
		uint32_t packed, unused[2], sm, more[2];
		uint64_t flags, rest[2];
	} head = { .magic = 0xBA55ED50u, .version = 1, .header = 16, .bytes = 64 + bytes, .kind = (uint16_t)kind,
		   .entry_version = 0x101, .entry_header = 64, .payload = bytes, .sm = 75 };
	_Static_assert(sizeof head == 80, "the layout of nvcc's fat binary");
	memcpy(to, &head, sizeof head);
	memcpy(to + sizeof head, payload, bytes);
	return sizeof head + bytes;
}

/* As nvcc links with -rdc=true: the linked container has machine code only, and the units have PTX. */
static void programs_are_linked_of_many_units(void)
{
	enum { UNITS = 60 };
	static const char *const names[] = { "append", "wait", "nothing", "increase" };
	static unsigned char linked[128], unit[UNITS][128] __attribute__((aligned(8)));
	const void *list[UNITS + 1] = { NULL };
	const struct {
		uint32_t magic, version;
		const void *data, *units;
	} wrapper = { 0x466243B1u, 2, linked, list };
	CUmodule module;
	CUlibrary library;
	CUkernel in_library;
	CUfunction function;
	container(linked, 2, "\177ELF....", 8);
	for (int i = 0; i < UNITS; i++) {
		char text[32] = { 0 };
		int length = snprintf(text, sizeof text, "double\n%s\n", i >= UNITS - 4 ? names[i - UNITS + 4] : "");
		container(unit[i], 1, text, (size_t)length + 1);
		list[i] = unit[i];
	}
	OK(cuModuleLoadData(&module, &wrapper));
	OK(cuLibraryLoadData(&library, &wrapper, NULL, NULL, 0, NULL, NULL, 0));
	for (int i = 0; i < 4; i++) {
		OK(cuModuleGetFunction(&function, module, names[i]));
		OK(cuLibraryGetKernel(&in_library, library, names[i]));
	}
	OK(cuModuleUnload(module));
	OK(cuLibraryUnload(library));
}

int main(void)
{
	context = start();
	a_contexts_event_waits_for_all_its_streams();
	all_streams_of_a_context_wait_for_an_event();
	a_capture_refuses_its_contexts_events_and_is_lost();
	memory_can_make_its_calls_wait();
	devices_are_asked();
	calls_without_a_context_ignore_a_destroyed_one();
	clusters_have_an_occupancy();
	libraries_have_modules();
	programs_are_linked_of_many_units();
	return 0;
}
