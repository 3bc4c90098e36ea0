/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation, exact bounds of copies and fills, attributes of pointers, and out of memory. */
#include "driver.h"

#include <stdbool.h>
#include <sys/mman.h>

static void copies_stay_inside_their_allocations(void)
{
	CUdeviceptr a, b;
	static char host[8192], back[8192];
	OK(cuMemAlloc(&a, 1000));
	OK(cuMemAlloc(&b, 1000));
	CHECK(a % 512 == 0 && b % 512 == 0);
	for (int i = 0; i < 1000; i++)
		host[i] = (char)(i * 7);
	OK(cuMemcpyHtoD(a, host, 1000));
	OK(cuMemcpyDtoD(b, a, 1000));
	OK(cuMemcpyDtoH(back, b, 1000));
	CHECK(!memcmp(host, back, 1000));
	EXPECT(cuMemcpyHtoD(a, host, 1001), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(a + 999, host, 2), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD(a + 999, host, 1));
	EXPECT(cuMemcpyDtoH(back, a + 1000, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoH(back, (CUdeviceptr)(uintptr_t)host, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(a, (void *)(uintptr_t)b, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(a, host, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(0, host, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(a, NULL, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyHtoD(a, host, 0));
	EXPECT(cuMemsetD8(a, 1, 1001), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD32(a + 2, 1, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD16(a + 1, 1, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32(a, 0x01020304, 250));
	OK(cuMemcpy((CUdeviceptr)(uintptr_t)back, a, 1000));
	for (int i = 0; i < 1000; i++)
		CHECK(back[i] == 4 - i % 4);
	OK(cuMemFree(a));
	EXPECT(cuMemcpyHtoD(a, host, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(a), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(b + 512), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(b));
	OK(cuMemFree(0));
}

static void boxes_are_copied_row_by_row(void)
{
	CUdeviceptr image;
	size_t pitch;
	char host[6][10], back[6][10];
	for (int i = 0; i < 60; i++)
		host[i / 10][i % 10] = (char)i;
	OK(cuMemAllocPitch(&image, &pitch, 10, 6, 4));
	CHECK(pitch == 512);
	CUDA_MEMCPY2D in = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 10,
			     .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = image, .dstPitch = pitch,
			     .WidthInBytes = 10, .Height = 6 };
	OK(cuMemcpy2D(&in));
	/* The inner 4 x 3, moved. */
	memset(back, 99, sizeof back);
	CUDA_MEMCPY2D out = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = image, .srcPitch = pitch,
			      .srcXInBytes = 2, .srcY = 1, .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = back,
			      .dstPitch = 10, .dstXInBytes = 5, .dstY = 3, .WidthInBytes = 4, .Height = 3 };
	OK(cuMemcpy2D(&out));
	for (int y = 0; y < 6; y++)
		for (int x = 0; x < 10; x++)
			CHECK(back[y][x] == (y >= 3 && x >= 5 && x < 9 ? host[y - 2][x - 3] : 99));
	out.srcY = 4; /* rows 4, 5, 6: one too many */
	EXPECT(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE);
	out.srcY = 1;
	out.srcPitch = 3;
	EXPECT(cuMemcpy2D(&out), CUDA_ERROR_INVALID_VALUE);
	out.srcPitch = pitch;
	out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	EXPECT(cuMemcpy2D(&out), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemsetD2D8(image, pitch, 5, 10, 6));
	EXPECT(cuMemsetD2D8(image, pitch, 5, 10, 8), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(image));
}

/* 3 rows of 5 elements at a pitch of 32 bytes: each is size bytes of the value, little-endian; the rest is zero. */
static void expect_filled(CUdeviceptr memory, uint32_t value, unsigned size)
{
	unsigned char rows[4][32];
	OK(cuMemcpyDtoH(rows, memory, sizeof rows));
	for (unsigned i = 0; i < sizeof rows; i++) {
		bool inside = i < 3 * 32 && i % 32 < 5 * size;
		CHECK(rows[i / 32][i % 32] == (inside ? value >> 8 * (i % size) & 255 : 0));
	}
	OK(cuMemsetD8(memory, 0, sizeof rows));
}

static void rows_are_filled_with_elements_of_each_size(void)
{
	CUdeviceptr memory;
	OK(cuMemAlloc(&memory, 128));
	OK(cuMemsetD8(memory, 0, 128));
	OK(cuMemsetD2D8(memory, 32, 0xa1, 5, 3));
	expect_filled(memory, 0xa1, 1);
	OK(cuMemsetD2D16(memory, 32, 0xa1b2, 5, 3));
	expect_filled(memory, 0xa1b2, 2);
	OK(cuMemsetD2D32(memory, 32, 0xa1b2c3d4, 5, 3));
	expect_filled(memory, 0xa1b2c3d4, 4);
	OK(cuMemsetD2D8Async(memory, 32, 0xa1, 5, 3, NULL));
	expect_filled(memory, 0xa1, 1);
	OK(cuMemsetD2D16Async(memory, 32, 0xa1b2, 5, 3, NULL));
	expect_filled(memory, 0xa1b2, 2);
	OK(cuMemsetD2D32Async(memory, 32, 0xa1b2c3d4, 5, 3, NULL));
	expect_filled(memory, 0xa1b2c3d4, 4);
	OK(cuMemFree(memory));
}

static void slices_are_copied_with_their_own_height(void)
{
	static uint16_t host[4][5][8], back[4][5][8];
	CUdeviceptr volume;
	for (int i = 0; i < 160; i++)
		host[i / 40][i / 8 % 5][i % 8] = (uint16_t)(i + 1);
	OK(cuMemAlloc(&volume, sizeof host));
	OK(cuMemcpyHtoD(volume, host, sizeof host));
	CUDA_MEMCPY3D box = { .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
			      .srcDevice = volume,
			      .srcPitch = 16,
			      .srcHeight = 5,
			      .srcXInBytes = 4,
			      .srcY = 1,
			      .srcZ = 1,
			      .dstMemoryType = CU_MEMORYTYPE_HOST,
			      .dstHost = back,
			      .dstPitch = 16,
			      .dstHeight = 5,
			      .WidthInBytes = 6,
			      .Height = 2,
			      .Depth = 3 };
	OK(cuMemcpy3D(&box));
	for (int z = 0; z < 3; z++)
		for (int y = 0; y < 2; y++)
			for (int x = 0; x < 3; x++)
				CHECK(back[z][y][x] == host[z + 1][y + 1][x + 2]);
	box.Depth = 4;
	EXPECT(cuMemcpy3D(&box), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(volume));
}

static void memory_runs_out_and_comes_back(void)
{
	size_t before, total, now;
	CUdeviceptr big, small, more;
	OK(cuMemGetInfo(&before, &total));
	CHECK(total == 64u << 20);
	EXPECT(cuMemAlloc(&big, total + 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&big, 48u << 20));
	EXPECT(cuMemAlloc(&more, 32u << 20), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemAlloc(&small, 1));
	OK(cuMemGetInfo(&now, &total));
	CHECK(now == before - (48u << 20) - 512);
	OK(cuMemFree(big));
	OK(cuMemAlloc(&more, 32u << 20));
	OK(cuMemsetD8(more, 1, 32u << 20));
	OK(cuMemFree(more));
	OK(cuMemFree(small));
	OK(cuMemGetInfo(&now, &total));
	CHECK(now == before);
	EXPECT(cuMemAlloc(&big, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Allocations of many sizes, freed in a different order; none overwrites another. */
static void allocations_do_not_overlap(void)
{
	enum { COUNT = 400 };
	static CUdeviceptr at[COUNT];
	static size_t size[COUNT];
	uint32_t random = 1;
	size_t before, after, total;
	OK(cuMemGetInfo(&before, &total));
	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < COUNT; i++) {
			if (at[i])
				continue;
			random = random * 1664525 + 1013904223;
			size[i] = 1 + random % (i % 40 ? 20000 : 3000000);
			if (cuMemAlloc(&at[i], size[i])) {
				at[i] = 0;
				continue;
			}
			OK(cuMemsetD8(at[i], (unsigned char)i, size[i]));
		}
		for (int i = 0; i < COUNT; i++) {
			if (!at[i])
				continue;
			unsigned char first, last;
			OK(cuMemcpyDtoH(&first, at[i], 1));
			OK(cuMemcpyDtoH(&last, at[i] + size[i] - 1, 1));
			CHECK(first == (unsigned char)i && last == (unsigned char)i);
			random = random * 1664525 + 1013904223;
			if (random >> 31 || round == 5) {
				OK(cuMemFree(at[i]));
				at[i] = 0;
			}
		}
	}
	OK(cuMemGetInfo(&after, &total));
	CHECK(before == after);
}

static void pointers_tell_what_they_point_to(CUcontext context)
{
	CUdeviceptr device, base, managed;
	size_t size;
	void *pinned;
	unsigned type;
	uint64_t value = 0;
	OK(cuMemAlloc(&device, 3000));
	OK(cuMemHostAlloc(&pinned, 5000, CU_MEMHOSTALLOC_WRITECOMBINED));
	OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemGetAddressRange(&base, &size, device + 2999));
	CHECK(base == device && size == 3000);
	EXPECT(cuMemGetAddressRange(&base, &size, device + 3000), CUDA_ERROR_NOT_FOUND);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device + 1));
	CHECK(type == CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)pinned));
	CHECK(type == CU_MEMORYTYPE_HOST);
	OK(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_CONTEXT, device));
	CHECK(value == (uint64_t)(uintptr_t)context);
	unsigned char is_managed = 7;
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, managed));
	CHECK(is_managed == 1);
	EXPECT(cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_HOST_POINTER, device), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type),
	       CUDA_ERROR_INVALID_VALUE);
	CUpointer_attribute wanted[2] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL };
	int ordinal;
	void *data[2] = { &type, &ordinal };
	OK(cuPointerGetAttributes(2, wanted, data, (CUdeviceptr)(uintptr_t)&type));
	CHECK(type == 0 && ordinal == -2);
	OK(cuPointerGetAttributes(2, wanted, data, device));
	CHECK(type == CU_MEMORYTYPE_DEVICE && ordinal == 0);
	CUdeviceptr mapped;
	unsigned flags;
	OK(cuMemHostGetDevicePointer(&mapped, (char *)pinned + 1, 0));
	CHECK(mapped == (CUdeviceptr)(uintptr_t)pinned + 1);
	OK(cuMemHostGetFlags(&flags, pinned));
	CHECK(flags == (CU_MEMHOSTALLOC_WRITECOMBINED | CU_MEMHOSTALLOC_DEVICEMAP));
	EXPECT(cuMemFree((CUdeviceptr)(uintptr_t)pinned), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFreeHost((void *)(uintptr_t)device), CUDA_ERROR_INVALID_VALUE);
	memset(pinned, 3, 5000);
	memset((void *)(uintptr_t)managed, 3, 100);
	OK(cuMemFreeHost(pinned));
	OK(cuMemFree(managed));
	OK(cuMemFree(device));
}

static void registered_memory_is_the_kernels_too(void)
{
	static char buffer[10000];
	CUdeviceptr pointer = (CUdeviceptr)(uintptr_t)(buffer + 100);
	uint32_t count = 5000;
	OK(cuMemHostRegister(buffer + 100, 5000, 0));
	EXPECT(cuMemHostRegister(buffer + 5099, 10, 0), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
	OK(launch("write", NULL, &pointer, &count));
	OK(cuCtxSynchronize());
	CHECK(buffer[99] == 0 && buffer[100] == (char)0xA5 && buffer[5099] == (char)0xA5 && buffer[5100] == 0);
	EXPECT(cuMemHostUnregister(buffer), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	EXPECT(cuMemHostUnregister(buffer + 101), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostUnregister(buffer + 100));
	EXPECT(cuMemHostUnregister(buffer + 100), CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
	EXPECT(cuMemHostRegister((void *)(uintptr_t)4096, 4096, 0), CUDA_ERROR_INVALID_VALUE);
}

/* Memory of the pool: kernel and host use it, and it comes back when the stream reaches the free. */
static void expect_pool_of_host(CUmemoryPool pool, bool managed, unsigned type)
{
	CUdeviceptr memory;
	CUmemoryPool owner;
	cuuint64_t used;
	uint32_t count = 3000;
	unsigned found;
	unsigned char is_managed = 7;
	OK(cuMemAllocFromPoolAsync(&memory, 5000, pool, NULL));
	OK(cuPointerGetAttribute(&is_managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, memory));
	OK(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, memory));
	OK(cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
	CHECK(is_managed == managed && owner == pool && found == type);
	char *host = (char *)(uintptr_t)memory;
	memset(host, 1, 5000);
	OK(launch("write", NULL, &memory, &count));
	OK(cuCtxSynchronize());
	CHECK(host[0] == (char)0xA5 && host[2999] == (char)0xA5 && host[3000] == 1 && host[4999] == 1);
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 5000);
	EXPECT(cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFreeAsync(memory, NULL));
	OK(cuStreamSynchronize(NULL));
	OK(cuMemAllocFromPoolAsync(&memory, 5000, pool, NULL));
	OK(cuMemFree(memory));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 0);
}

static void pools_hold_managed_and_host_memory(void)
{
	static const CUmemLocation places[] = { { .type = CU_MEM_LOCATION_TYPE_NONE },
						{ .type = CU_MEM_LOCATION_TYPE_DEVICE },
						{ .type = CU_MEM_LOCATION_TYPE_HOST },
						{ .type = CU_MEM_LOCATION_TYPE_HOST_NUMA } };
	CUmemoryPool pool, again, last = NULL;
	CUmemAccess_flags access;
	for (unsigned i = 0; i < 4; i++) {
		CUmemLocation place = places[i];
		CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = place };
		OK(cuMemGetDefaultMemPool(&pool, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(pool != last);
		last = pool;
		OK(cuMemPoolCreate(&pool, &props));
		expect_pool_of_host(pool, true, CU_MEMORYTYPE_DEVICE);
		OK(cuMemSetMemPool(&place, CU_MEM_ALLOCATION_TYPE_MANAGED, pool));
		OK(cuMemGetMemPool(&again, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(again == pool);
		EXPECT(cuDeviceSetMemPool(0, pool), CUDA_ERROR_INVALID_VALUE);
		OK(cuMemPoolDestroy(pool));
		OK(cuMemGetMemPool(&again, &place, CU_MEM_ALLOCATION_TYPE_MANAGED));
		CHECK(again == last);
		props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
		EXPECT(cuMemPoolCreate(&pool, &props), CUDA_ERROR_NOT_SUPPORTED);
	}
	CUmemLocation host = places[2], nowhere = { .type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 1000000 };
	OK(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	expect_pool_of_host(pool, false, CU_MEMORYTYPE_HOST);
	OK(cuMemPoolGetAccess(&access, pool, &host));
	CHECK(access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuDeviceGetDefaultMemPool(&again, 0));
	EXPECT(cuMemPoolGetAccess(&access, again, &host), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemGetDefaultMemPool(&pool, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemGetDefaultMemPool(&pool, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_ERROR_NOT_SUPPORTED);
	/* Other managed memory is no pool's. */
	CUdeviceptr managed;
	OK(cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL));
	EXPECT(cuMemFreeAsync(managed, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(managed));
}

/* A graph's allocations are of device memory. */
static void pools_of_the_host_are_not_captured(void)
{
	CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST };
	CUmemoryPool pool;
	CUstream stream;
	CUgraph graph;
	CUdeviceptr memory;
	OK(cuMemGetDefaultMemPool(&pool, &host, CU_MEM_ALLOCATION_TYPE_PINNED));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	EXPECT(cuMemAllocFromPoolAsync(&memory, 100, pool, stream), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(stream));
}

/* Memory freed in a stream can be allocated again when the stream reaches the free; its pool counts it until then. */
static void streams_allocate_and_free(void)
{
	CUstream stream;
	CUmemoryPool pool, own;
	CUdeviceptr first, second, flag_at;
	cuuint64_t used, threshold = 7;
	void *flag;
	OK(cuMemHostAlloc(&flag, 64, 0));
	memset(flag, 0, 64);
	flag_at = (CUdeviceptr)(uintptr_t)flag;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuDeviceGetDefaultMemPool(&pool, 0));
	OK(cuMemAllocAsync(&first, 40u << 20, stream));
	OK(cuMemsetD8Async(first, 1, 40u << 20, stream));
	hold(stream, flag_at);
	OK(cuMemFreeAsync(first, stream));
	EXPECT(cuMemFreeAsync(first, stream), CUDA_ERROR_INVALID_VALUE); /* the stream has not come to the first one yet */
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 40u << 20);
	EXPECT(cuMemAlloc(&second, 40u << 20), CUDA_ERROR_OUT_OF_MEMORY);
	let_go(flag);
	OK(cuMemAllocAsync(&second, 40u << 20, stream)); /* waits for the free before it */
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree(second));
	OK(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
	CHECK(used == 0);
	EXPECT(cuMemFreeAsync(second, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .maxSize = 1 << 20,
				 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
	OK(cuMemPoolCreate(&own, &props));
	OK(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	threshold = 0;
	OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
	CHECK(threshold == 7);
	OK(cuMemAllocFromPoolAsync(&first, 1 << 20, own, stream));
	EXPECT(cuMemAllocFromPoolAsync(&second, 1, own, stream), CUDA_ERROR_OUT_OF_MEMORY);
	/* A freed allocation no longer counts, even if the stream has not reached the free. */
	for (int i = 0; i < 200; i++) {
		OK(cuMemsetD8Async(first, 1, 1 << 20, stream));
		OK(cuMemFreeAsync(first, stream));
		OK(cuMemAllocFromPoolAsync(&first, 1 << 20, own, stream));
	}
	OK(cuMemFreeAsync(first, stream));
	OK(cuStreamSynchronize(stream));
	/* Each high watermark is reset by itself. */
	cuuint64_t zero = 0, high;
	OK(cuMemPoolSetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero));
	OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &high));
	CHECK(high == 0);
	OK(cuMemPoolGetAttribute(own, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &high));
	CHECK(high == 1 << 20);
	OK(cuMemAllocFromPoolAsync(&first, 1 << 20, own, stream));
	OK(cuMemPoolDestroy(own));
	EXPECT(cuMemAllocFromPoolAsync(&second, 1, own, stream), CUDA_ERROR_INVALID_HANDLE);
	OK(cuMemsetD8Async(first, 1, 1 << 20, stream));
	OK(cuMemFreeAsync(first, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuStreamDestroy(stream));
	OK(cuMemFreeHost(flag));
}

static void managed_memory_takes_hints(void)
{
	CUdeviceptr managed, device;
	CUmemLocation here = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 }, nowhere = { .type = 0 };
	CUmemLocation absent = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 5 };
	OK(cuMemAllocManaged(&managed, 10000, CU_MEM_ATTACH_GLOBAL));
	OK(cuMemAlloc(&device, 10000));
	OK(cuMemPrefetchAsync(managed, 10000, here, 0, NULL));
	OK(cuMemAdvise(managed, 10000, CU_MEM_ADVISE_SET_ACCESSED_BY, here));
	EXPECT(cuMemPrefetchAsync(managed, 10001, here, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPrefetchAsync(managed, 10000, nowhere, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPrefetchAsync(managed, 10000, absent, 0, NULL), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuMemPrefetchAsync(device, 10000, here, 0, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAdvise(managed, 10000, (CUmem_advise)99, here), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(managed));
	OK(cuMemFree(device));
}

/* Last: the context does not survive it. */
static void a_fault_stays_until_the_context_is_reset(CUcontext context)
{
	CUdeviceptr device, other;
	uint32_t count = 513;
	CUfunction nothing = kernel("nothing");
	OK(cuMemAlloc(&device, 512));
	OK(launch("write", NULL, &device, &count));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuMemAlloc(&other, 512), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuLaunchKernel(nothing, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
	OK(cuDevicePrimaryCtxReset(0));
	EXPECT(cuMemAlloc(&other, 512), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
	OK(cuMemAlloc(&other, 512));
	size_t free_bytes, total;
	OK(cuMemGetInfo(&free_bytes, &total));
	CHECK(free_bytes == total - 512);
	OK(cuDevicePrimaryCtxRelease(0));
}

static void registered_memory_may_be_unmapped(void)
{
	const size_t bytes = 1 << 16;
	char *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CUdeviceptr at = (CUdeviceptr)(uintptr_t)host, device;
	uint32_t count = 16;
	CUmodule module;
	CUfunction write;
	void *parameters[] = { &at, &count };
	start();
	OK(cuModuleLoadData(&module, "double\nwrite\n"));
	OK(cuModuleGetFunction(&write, module, "write"));
	CHECK(host != MAP_FAILED);
	OK(cuMemAlloc(&device, bytes));
	OK(cuMemHostRegister(host, bytes, 0));
	OK(cuLaunchKernel(write, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	OK(cuCtxSynchronize());
	CHECK((unsigned char)host[15] == 0xA5);
	/* munmap without cuMemHostUnregister: a mistake of the program, which must not end the process. */
	munmap(host + bytes / 2, bytes / 2);
	EXPECT(cuMemcpyDtoD(device, at, bytes), CUDA_ERROR_INVALID_VALUE);
	OK(cuLaunchKernel(write, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	munmap(host, bytes / 2);
	OK(cuDevicePrimaryCtxReset(0));
}

int main(void)
{
	setenv("HEADRACE_SOFTGPU_MEMORY", "64M", 1);
	CUcontext context = start();
	copies_stay_inside_their_allocations();
	boxes_are_copied_row_by_row();
	rows_are_filled_with_elements_of_each_size();
	slices_are_copied_with_their_own_height();
	memory_runs_out_and_comes_back();
	allocations_do_not_overlap();
	pointers_tell_what_they_point_to(context);
	registered_memory_is_the_kernels_too();
	pools_hold_managed_and_host_memory();
	pools_of_the_host_are_not_captured();
	streams_allocate_and_free();
	managed_memory_takes_hints();
	a_fault_stays_until_the_context_is_reset(context);
	registered_memory_may_be_unmapped();
	return 0;
}
