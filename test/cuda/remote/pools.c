/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory pools and batches of copies over a worker. */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

static CUstream stream, other;
static CUdeviceptr flag; /* in device memory: blocks a stream until it is set */

static void block(void)
{
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuCtxSynchronize());
	hold(stream, flag);
}

static void unblock(void)
{
	OK(cuMemsetD32Async(flag, 1, 1, other));
	OK(cuStreamSynchronize(stream));
}

static CUmemoryPool make_pool(void)
{
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

static uint64_t used(CUmemoryPool pool)
{
	cuuint64_t bytes;
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &bytes));
	return bytes;
}

/* Programs set up the pools of a device before they have a context. */
static void pools_need_no_context(void)
{
	CUcontext none;
	CUmemoryPool pool;
	cuuint64_t kept = 1 << 20, back = 0, before;
	CUmemAccess_flags flags = 0;
	CUmemLocation device = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
	CUmemAccessDesc access = { .location = device, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	OK(cuInit(0));
	OK(cuCtxGetCurrent(&none));
	CHECK(!none);
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &before));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &kept));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &back));
	CHECK(back == kept);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &before));
	pool = make_pool();
	OK(cuMemPoolSetAccess(pool, &access, 1));
	OK(cuMemPoolGetAccess(&flags, pool, &device));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuMemPoolTrimTo(pool, 0));
	OK(cuMemPoolDestroy(pool));
	EXPECT(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_HANDLE);
}

static void a_device_has_a_default_and_a_current_pool(void)
{
	CUmemoryPool first, again, own;
	CUdeviceptr memory;
	CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
	OK(cuDeviceGetDefaultMemPool(&first, 0));
	OK(cuDeviceGetDefaultMemPool(&again, 0));
	CHECK(first && first == again);
	OK(cuDeviceGetMemPool(&again, 0));
	CHECK(first == again);
	EXPECT(cuDeviceGetDefaultMemPool(&again, 5), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuMemPoolDestroy(first), CUDA_ERROR_INVALID_VALUE);
	own = make_pool();
	OK(cuDeviceSetMemPool(0, own));
	OK(cuMemGetMemPool(&again, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(again == own);
	OK(cuMemGetDefaultMemPool(&again, &here, CU_MEM_ALLOCATION_TYPE_PINNED));
	CHECK(again == first);
	uint64_t before = used(first);
	OK(cuMemAllocAsync(&memory, 1 << 20, stream));
	CHECK(used(own) == 1 << 20 && used(first) == before);
	OK(cuMemFreeAsync(memory, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(!used(own));
	OK(cuMemSetMemPool(&here, CU_MEM_ALLOCATION_TYPE_PINNED, first));
	OK(cuMemAllocAsync(&memory, 1 << 20, stream));
	CHECK(!used(own) && used(first) == before + (1 << 20));
	OK(cuMemFreeAsync(memory, stream));
	OK(cuDeviceSetMemPool(0, own));
	OK(cuMemPoolDestroy(own));
	OK(cuDeviceGetMemPool(&again, 0));
	CHECK(again == first);
	EXPECT(cuDeviceSetMemPool(0, own), CUDA_ERROR_INVALID_HANDLE);
}

static void a_pool_has_limits_and_access(void)
{
	CUmemoryPool pool = make_pool();
	CUmemAccess_flags access;
	CUmemAccessDesc list[2] = { { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
				      .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE } };
	list[1] = list[0];
	cuuint64_t threshold = 12345;
	int reuse = 0;
	OK(cuMemPoolSetAccess(pool, list, 2));
	access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	OK(cuMemPoolGetAccess(&access, pool, &list[0].location));
	CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	list[1].flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
	EXPECT(cuMemPoolSetAccess(pool, list, 2), CUDA_ERROR_INVALID_VALUE);
	list[1].location.id = 7;
	EXPECT(cuMemPoolSetAccess(pool, list, 2), CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
	threshold = 0;
	reuse = 1;
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, &reuse));
	CHECK(threshold == 12345 && !reuse);
	OK(cuMemPoolTrimTo(pool, 0));
	OK(cuMemPoolDestroy(pool));
	EXPECT(cuMemPoolTrimTo(pool, 0), CUDA_ERROR_INVALID_HANDLE);
}

/* As cuda.core expects it: no error, and memory that can be freed. */
static void no_bytes_have_no_address(void)
{
	CUmemoryPool pool = make_pool();
	CUdeviceptr memory = 1;
	CUgraph graph;
	size_t nodes = 1;
	OK(cuMemAllocAsync(&memory, 0, stream));
	CHECK(!memory);
	OK(cuMemFreeAsync(memory, stream));
	memory = 1;
	OK(cuMemAllocFromPoolAsync(&memory, 0, pool, stream));
	CHECK(!memory && !used(pool));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemAllocAsync(&memory, 0, stream));
	OK(cuMemFreeAsync(memory, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	CHECK(!nodes);
	OK(cuGraphDestroy(graph));
	OK(cuMemPoolDestroy(pool));
	EXPECT(cuMemAllocFromPoolAsync(&memory, 0, pool, stream), CUDA_ERROR_INVALID_HANDLE);
}

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
	cuuint64_t bytes;
	OK(cuMemPoolGetAttribute(pool, which, &bytes));
	return bytes;
}

static CUmemoryPool make_host_pool(CUmemAllocationType type, CUmemLocationType place, size_t most)
{
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = type, .location = { .type = place, .id = 0 }, .maxSize = most };
	OK(cuMemPoolCreate(&pool, &props));
	return pool;
}

#define SIZE 5000

/* Kernels, copies, fills and the host use the pool's memory. It returns to the pool when the stream reaches the free. */
static void expect_pool_of_host(CUmemoryPool pool, bool managed)
{
	CUdeviceptr memory, more, device, start_of;
	CUmemoryPool owner;
	size_t size;
	uint32_t count = 3000;
	unsigned type;
	bool is_managed, mapped;
	char *host, back[SIZE];
	uint64_t before = used(pool);
	OK(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	OK(cuPointerGetAttribute(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, memory));
	CHECK(is_managed == managed && owner == pool && type == (managed ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST) && mapped);
	OK(cuMemGetAddressRange(&start_of, &size, memory + 10));
	CHECK(start_of == memory && size == SIZE);
	OK(cuMemAllocFromPoolAsync(&more, 2 * SIZE, pool, stream));
	CHECK(more != memory && used(pool) == before + 3 * SIZE);
	host = (char *)(uintptr_t)memory;
	memset(host, 1, SIZE);
	OK(launch("write", stream, &memory, &count));
	OK(cuMemsetD8Async(memory + 100, 7, 10, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(host[0] == (char)0xA5 && host[100] == 7 && host[109] == 7 && host[2999] == (char)0xA5 && host[3000] == 1);
	OK(cuMemAlloc(&device, SIZE));
	host[4999] = 3;
	OK(cuMemcpyAsync(device, memory, SIZE, stream));
	/* The copy is before the free: the next owner of the memory does not change what is copied. */
	OK(cuMemFreeAsync(memory, stream));
	OK(cuMemFreeAsync(more, stream));
	EXPECT(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, device, SIZE));
	CHECK(back[0] == (char)0xA5 && back[105] == 7 && back[3000] == 1 && back[4999] == 3);
	CHECK(used(pool) == before);
	OK(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
	CHECK(used(pool) == before + SIZE);
	EXPECT(cuMemFreeHost((void *)(uintptr_t)memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(memory));
	EXPECT(cuMemFree(memory), CUDA_ERROR_INVALID_VALUE);
	CHECK(used(pool) == before);
	OK(cuMemFree(device));
}

static void pools_hold_managed_and_host_memory(void)
{
	static const CUmemLocation places[] = { { .type = CU_MEM_LOCATION_TYPE_NONE },
						{ .type = CU_MEM_LOCATION_TYPE_DEVICE },
						{ .type = CU_MEM_LOCATION_TYPE_HOST },
						{ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA } };
	CUmemoryPool pool, again, last = NULL;
	CUmemAccess_flags access;
	int supported = 0, file;
	for (unsigned i = 0; i < 4; i++) {
		CUmemLocation place = places[i];
		CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = place };
		OK(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(pool != last);
		last = pool;
		EXPECT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
		OK(cuMemPoolCreate(&pool, &props));
		expect_pool_of_host(pool, true);
		OK(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
		OK(cuMemGetMemPool(&again, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(again == pool);
		EXPECT(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
		EXPECT(cuMemPoolExportToShareableHandle(&file, pool, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		       CUDA_ERROR_INVALID_VALUE);
		OK(cuMemPoolDestroy(pool));
		EXPECT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_HANDLE);
		OK(cuMemGetMemPool(&again, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(again == last);
		props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	}
	CUmemLocation host = places[2], nowhere = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 1000000 };
	OK(cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_HOST_MEMORY_POOLS_SUPPORTED, 0));
	CHECK(supported);
	OK(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_pool_of_host(pool, false);
	OK(cuMemPoolGetAccess(&access, pool, &host));
	CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	CUmemAccessDesc desc = { .location = places[1], .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	OK(cuMemPoolSetAccess(pool, &desc, 1));
	desc = (CUmemAccessDesc){ .location = host, .flags = CU_MEM_ACCESS_FLAGS_PROT_READ };
	EXPECT(cuMemPoolSetAccess(pool, &desc, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuDeviceGetDefaultMemPool(&again, 0));
	EXPECT(cuMemPoolGetAccess(&access, again, &host), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemGetDefaultMemPool(&pool, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemGetDefaultMemPool(&pool, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
	/* Other managed memory is no pool's. */
	CUdeviceptr managed;
	OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	EXPECT(cuMemFreeAsync(managed, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuPointerGetAttribute(&again, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, managed));
	CHECK(!again);
	OK(cuMemFree(managed));
}

/* A pool's memory is not used again before its stream has come to the free. */
static void frees_are_in_the_order_of_streams(CUmemAllocationType type)
{
	CUmemoryPool pool = make_host_pool(type, CU_MEM_LOCATION_TYPE_HOST, 2 * SIZE);
	CUdeviceptr first, second, third;
	cuuint64_t threshold = 1 << 30, none = 0;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuMemAllocFromPoolAsync(&first, SIZE, pool, stream));
	block();
	OK(cuMemFreeAsync(first, stream));
	CHECK(used(pool) == SIZE);
	OK(cuMemAllocFromPoolAsync(&second, SIZE, pool, other));
	CHECK(second != first && used(pool) == 2 * SIZE);
	unblock();
	CHECK(used(pool) == SIZE && attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == 2 * SIZE);
	OK(cuMemAllocFromPoolAsync(&third, SIZE, pool, other));
	CHECK(third == first);
	EXPECT(cuMemAllocFromPoolAsync(&first, 1, pool, other), CUDA_ERROR_OUT_OF_MEMORY);
	/* An allocation for which there is no room waits until the stream has reached a free. */
	for (int i = 0; i < 50; i++) {
		OK(cuMemsetD8Async(third, 1, SIZE - 2, stream));
		OK(cuMemFreeAsync(third, stream));
		OK(cuMemAllocFromPoolAsync(&third, SIZE - (size_t)i % 3, pool, stream));
	}
	OK(cuMemFreeAsync(third, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(used(pool) == SIZE && attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) > SIZE);
	OK(cuMemPoolTrimTo(pool, 0));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == SIZE);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == 2 * SIZE);
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &none));
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == SIZE);
	EXPECT(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &threshold), CUDA_ERROR_INVALID_VALUE);
	/* The memory outlives its pool. */
	OK(cuMemPoolDestroy(pool));
	*(volatile char *)(uintptr_t)second = 9;
	OK(cuMemFreeAsync(second, other));
	OK(cuCtxSynchronize());
}

/* A context ends with the managed memory of pools; the pool counts it no longer. */
static void a_context_takes_its_memory_along(void)
{
	CUmemoryPool pool = make_host_pool(CU_MEM_ALLOCATION_TYPE_MANAGED, CU_MEM_LOCATION_TYPE_NONE, 0);
	CUcontext context;
	CUstream in;
	CUdeviceptr live, freed, again;
	OK(cuCtxCreate(&context, NULL, 0, 0));
	OK(cuStreamCreate(&in, 0));
	OK(cuMemAllocFromPoolAsync(&live, SIZE, pool, in));
	OK(cuMemAllocFromPoolAsync(&freed, SIZE, pool, in));
	OK(cuMemFreeAsync(freed, in));
	OK(cuCtxDestroy(context));
	CHECK(!used(pool));
	EXPECT(cuMemFreeAsync(live, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAllocFromPoolAsync(&again, SIZE, pool, stream));
	memset((void *)(uintptr_t)again, 1, SIZE);
	OK(cuMemFreeAsync(again, stream));
	OK(cuMemPoolDestroy(pool));
	OK(cuStreamSynchronize(stream));
}

/* Devices cannot access what a pool has kept once its context has been reset: the next allocation does not get it. */
static void kept_memory_ends_with_its_context(CUmemAllocationType type)
{
	CUmemoryPool pool = make_host_pool(type, CU_MEM_LOCATION_TYPE_HOST, 0);
	cuuint64_t threshold = 1 << 30;
	CUcontext primary, before;
	CUdeviceptr memory;
	OK(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	OK(cuCtxCreate(&before, NULL, 0, 0));
	for (int i = 0; i < 3; i++) {
		OK(cuDevicePrimaryCtxRetain(&primary, 0));
		OK(cuCtxSetCurrent(primary));
		OK(cuMemAllocFromPoolAsync(&memory, SIZE, pool, NULL));
		OK(cuMemsetD8Async(memory, (unsigned char)(i + 1), SIZE, NULL));
		OK(cuStreamSynchronize(NULL));
		const char *host = (const char *)(uintptr_t)memory;
		CHECK(host[0] == i + 1 && host[SIZE - 1] == i + 1);
		OK(cuMemFreeAsync(memory, NULL));
		if (i != 1) { /* else the free is pending when its context ends */
			OK(cuStreamSynchronize(NULL));
			CHECK(!used(pool) && attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == SIZE);
		}
		OK(cuDevicePrimaryCtxReset(0));
		OK(cuCtxSetCurrent(before));
		CHECK(!used(pool) && !attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
	}
	OK(cuMemPoolDestroy(pool));
	OK(cuCtxDestroy(before));
}

/* An allocation that is refused leaves no trace. */
static void sizes_that_no_host_has(CUmemAllocationType type)
{
	CUmemoryPool pool = make_host_pool(type, CU_MEM_LOCATION_TYPE_HOST, 0);
	CUdeviceptr memory, huge;
	OK(cuMemAllocFromPoolAsync(&memory, SIZE, pool, stream));
	for (unsigned bits = 0; bits < 16; bits++)
		EXPECT(cuMemAllocFromPoolAsync(&huge, SIZE_MAX >> bits, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK(used(pool) == SIZE && attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH) == SIZE);
	CHECK(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH) == SIZE);
	OK(cuMemFreeAsync(memory, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemPoolDestroy(pool));
}

static CUmemoryPool common;
static CUcontext current;

/* No other thread has the memory between the allocation and the stream's free. */
static void *allocate_and_free(void *number)
{
	CUstream own;
	CUdeviceptr memory;
	unsigned char value = (unsigned char)(uintptr_t)number;
	OK(cuCtxSetCurrent(current));
	OK(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 60; i++) {
		OK(cuMemAllocFromPoolAsync(&memory, SIZE, common, own));
		OK(cuMemsetD8Async(memory, value, SIZE, own));
		if (i % 3 == 0) {
			OK(cuStreamSynchronize(own));
			CHECK(*(unsigned char *)(uintptr_t)memory == value && ((unsigned char *)(uintptr_t)memory)[SIZE - 1] == value);
		}
		if (i % 7 == 0)
			OK(cuMemFree(memory));
		else
			OK(cuMemFreeAsync(memory, own));
	}
	OK(cuStreamSynchronize(own));
	OK(cuStreamDestroy(own));
	return NULL;
}

/* Each thread has one allocation at a time, so there is room for all of them once the streams have come to the frees. */
static void threads_share_a_pool(CUmemAllocationType type)
{
	pthread_t threads[4];
	common = make_host_pool(type, CU_MEM_LOCATION_TYPE_HOST, 4 * SIZE);
	OK(cuCtxGetCurrent(&current));
	for (uintptr_t i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, allocate_and_free, (void *)(i + 1)));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
	CHECK(!used(common));
	OK(cuMemPoolDestroy(common));
}

/* A graph's allocations are of device memory. */
static void pools_of_the_host_are_not_captured(void)
{
	CUmemoryPool pool = make_host_pool(CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_LOCATION_TYPE_HOST, 0);
	CUgraph graph;
	CUgraphNode node;
	CUdeviceptr memory;
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED,
							     .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } },
					      .bytesize = 64 };
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(cuMemAllocFromPoolAsync(&memory, 100, pool, stream), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuMemAllocFromPoolAsync(&memory, 100, pool, stream));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(cuMemFreeAsync(memory, stream), CUDA_ERROR_INVALID_VALUE);
	(void)cuStreamEndCapture(stream, &graph);
	CHECK(used(pool) == 100);
	*(volatile char *)(uintptr_t)memory = 1;
	OK(cuMemFreeAsync(memory, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphCreate(&graph, 0));
	EXPECT(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuGraphDestroy(graph));
	OK(cuMemPoolDestroy(pool));
}

static void memory_of_a_device_names_its_pool(void)
{
	CUmemoryPool pool = make_pool(), found, standard;
	CUdeviceptr memory;
	unsigned access = 0;
	OK(cuMemAllocFromPoolAsync(&memory, 64, pool, stream));
	OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	OK(cuPointerGetAttribute(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, memory));
	CHECK(found == pool && access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
	OK(cuMemFreeAsync(memory, stream));
	OK(cuMemPoolDestroy(pool));
	OK(cuMemAllocAsync(&memory, 64, stream));
	OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	OK(cuDeviceGetDefaultMemPool(&standard, 0));
	CHECK(found == standard);
	OK(cuMemFreeAsync(memory, stream));
	OK(cuMemAlloc(&memory, 64));
	OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	CHECK(!found);
	OK(cuMemFree(memory));
}

/* As numba asks for the size of mapped memory. */
static void memory_of_the_host_has_a_range(void)
{
	void *memory;
	CUdeviceptr base;
	size_t size;
	OK(cuMemHostAlloc(&memory, 100, CU_MEMHOSTALLOC_DEVICEMAP));
	OK(cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)memory + 99));
	CHECK(base == (uintptr_t)memory && size == 100);
	OK(cuMemFreeHost(memory));
	static char own[200];
	OK(cuMemHostRegister(own, sizeof own, 0));
	OK(cuMemGetAddressRange(&base, &size, (CUdeviceptr)(uintptr_t)own + 9));
	CHECK(base == (uintptr_t)own && size == sizeof own);
	EXPECT(cuMemHostUnregister(own + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostUnregister(own));
	EXPECT(cuMemHostUnregister(own), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

#define BYTES 100000

static void sources_are_read_when_the_attributes_say(void)
{
	enum { COPIES = 3 };
	static char pageable[BYTES], back[COPIES][BYTES];
	char *pinned[2];
	CUdeviceptr to[COPIES], from[COPIES];
	size_t sizes[COPIES] = { BYTES, 1, BYTES }, starts[2] = { 0, 2 };
	CUmemcpyAttributes attributes[2] = { { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL },
					     { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM } };
	for (int i = 0; i < 2; i++)
		OK(cuMemAllocHost((void **)&pinned[i], BYTES));
	for (int i = 0; i < COPIES; i++) {
		OK(cuMemAlloc(&to[i], BYTES));
		OK(cuMemsetD8(to[i], 0, BYTES));
		from[i] = (CUdeviceptr)(uintptr_t)(i ? pinned[i - 1] : pageable);
		memset((void *)(uintptr_t)from[i], i + 1, BYTES);
	}
	block();
	OK(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 2, stream));
	for (int i = 0; i < COPIES; i++)
		memset((void *)(uintptr_t)from[i], 77, BYTES);
	unblock();
	for (int i = 0; i < COPIES; i++)
		OK(cuMemcpyDtoH(back[i], to[i], BYTES));
	CHECK(back[0][0] == 1 && back[0][BYTES - 1] == 1);
	CHECK(back[1][0] == 2 && back[1][1] == 0);
	CHECK(back[2][0] == 77 && back[2][BYTES - 1] == 77);
	/* Pageable memory in the order of the stream: the call may wait for the stream. */
	attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	from[2] = from[0];
	OK(cuMemcpyBatchAsync(to, from, sizes, COPIES, attributes, starts, 1, stream));
	OK(cuMemcpyDtoHAsync(back[2], to[2], BYTES, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(back[2][BYTES / 2] == 77);
	for (int i = 0; i < COPIES; i++)
		OK(cuMemFree(to[i]));
	for (int i = 0; i < 2; i++)
		OK(cuMemFreeHost(pinned[i]));
}

typedef CUresult batch_12_8(CUdeviceptr *to, CUdeviceptr *from, size_t *sizes, size_t count, CUmemcpyAttributes *attributes,
			    size_t *starts, size_t sets, size_t *failed, CUstream in);

static void one_wrong_copy_and_none_is_made(void)
{
	CUdeviceptr device, to[2], from[2];
	static char host[64], back[64];
	size_t sizes[2] = { 16, 65 }, start = 0, failed = 9;
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY };
	CUdriverProcAddressQueryResult status;
	void *older;
	OK(cuMemAlloc(&device, 64));
	OK(cuMemsetD8(device, 5, 64));
	to[0] = to[1] = device;
	from[0] = from[1] = (CUdeviceptr)(uintptr_t)host;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuGetProcAddress("cuMemcpyBatchAsync", &older, 12080, 0, &status));
	CHECK(status == CU_GET_PROC_ADDRESS_SUCCESS && older != (void *)(uintptr_t)cuMemcpyBatchAsync);
	EXPECT(((batch_12_8 *)(uintptr_t)older)(to, from, sizes, 2, &attributes, &start, 1, &failed, stream),
	       CUDA_ERROR_INVALID_VALUE);
	CHECK(failed == 1);
	EXPECT(((batch_12_8 *)(uintptr_t)older)(to, from, sizes, 2, &attributes, &start, 1, &failed, NULL),
	       CUDA_ERROR_INVALID_VALUE);
	CHECK(failed == SIZE_MAX);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, device, 64));
	CHECK(back[0] == 5 && back[15] == 5);
	sizes[1] = 64;
	start = 1;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream), CUDA_ERROR_INVALID_VALUE);
	start = 0;
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
}

static void boxes_have_rows_and_layers(void)
{
	unsigned char host[2][4][6], back[64];
	CUdeviceptr device;
	for (int i = 0; i < 48; i++)
		((unsigned char *)host)[i] = (unsigned char)i;
	OK(cuMemAlloc(&device, 64));
	OK(cuMemsetD8(device, 99, 64));
	OK(cuCtxSynchronize());
	/* 3 x 2 x 2 bytes out of 6 x 4 x 2 into rows of 5 and layers of 3 rows. */
	CUDA_MEMCPY3D_BATCH_OP op = { .extent = { 3, 2, 2 }, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL };
	op.src.type = op.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	op.src.op.ptr.ptr = (CUdeviceptr)(uintptr_t)&host[0][1][2];
	op.src.op.ptr.rowLength = 6;
	op.src.op.ptr.layerHeight = 4;
	op.dst.op.ptr.ptr = device;
	op.dst.op.ptr.rowLength = 5;
	op.dst.op.ptr.layerHeight = 3;
	OK(cuMemcpy3DBatchAsync(1, &op, 0, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, device, 64));
	for (int at = 0; at < 64; at++) {
		int z = at / 15, y = at % 15 / 5, x = at % 5;
		bool copied = z < 2 && y < 2 && x < 3;
		CHECK(back[at] == (copied ? host[z][1 + y][2 + x] : 99));
	}
	op.extent.width = 6; /* more than a row of the target */
	EXPECT(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
	op.extent.width = 3;
	op.extent.depth = 5; /* more than the allocation */
	EXPECT(cuMemcpy3DBatchAsync(1, &op, 0, stream), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
}

static void a_captured_batch_becomes_nodes(void)
{
	CUdeviceptr device, to[2], from[2];
	static char host[64], back[64];
	size_t sizes[2] = { 32, 32 }, start = 0, nodes;
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUgraph graph;
	CUgraphExec exec;
	OK(cuMemAlloc(&device, 64));
	memset(host, 1, sizeof host);
	to[0] = device;
	to[1] = device + 32;
	from[0] = from[1] = (CUdeviceptr)(uintptr_t)host;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 2);
	memset(host, 2, sizeof host);
	OK(cuGraphInstantiate(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, device, 64));
	CHECK(back[0] == 2 && back[63] == 2);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	attributes.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuMemcpyBatchAsync(to, from, sizes, 2, &attributes, &start, 1, stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuMemFree(device));
}

int main(void)
{
	pools_need_no_context();
	start();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&flag, 4));
	a_device_has_a_default_and_a_current_pool();
	a_pool_has_limits_and_access();
	no_bytes_have_no_address();
	pools_hold_managed_and_host_memory();
	frees_are_in_the_order_of_streams(CU_MEM_ALLOCATION_TYPE_MANAGED);
	frees_are_in_the_order_of_streams(CU_MEM_ALLOCATION_TYPE_PINNED);
	threads_share_a_pool(CU_MEM_ALLOCATION_TYPE_MANAGED);
	threads_share_a_pool(CU_MEM_ALLOCATION_TYPE_PINNED);
	a_context_takes_its_memory_along();
	sizes_that_no_host_has(CU_MEM_ALLOCATION_TYPE_MANAGED);
	sizes_that_no_host_has(CU_MEM_ALLOCATION_TYPE_PINNED);
	pools_of_the_host_are_not_captured();
	memory_of_a_device_names_its_pool();
	memory_of_the_host_has_a_range();
	sources_are_read_when_the_attributes_say();
	one_wrong_copy_and_none_is_made();
	boxes_have_rows_and_layers();
	a_captured_batch_becomes_nodes();
	OK(cuMemFree(flag));
	/* These reset the context that the others have used. */
	kept_memory_ends_with_its_context(CU_MEM_ALLOCATION_TYPE_MANAGED);
	kept_memory_ends_with_its_context(CU_MEM_ALLOCATION_TYPE_PINNED);
	return 0;
}
