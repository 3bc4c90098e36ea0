/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management over a worker: pieces in one range, memory in two places, access, and what is refused. */
#include "test/cuda/softgpu/driver.h"

#define MIB ((size_t)1 << 20)

static CUmemAllocationProp on_device = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
					 .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 } };
static CUmemAccessDesc write_it = { .location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
				    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
static size_t page;

static CUresult kernel_writes(CUdeviceptr address, uint32_t bytes)
{
	OK(launch("write", NULL, &address, &bytes));
	return cuCtxSynchronize();
}

static void two_pieces_are_one_range(void)
{
	CUdeviceptr at, base;
	CUmemGenericAllocationHandle piece[2];
	size_t bytes;
	uint32_t value;
	OK(cuMemAddressReserve(&at, 3 * page, 0, 0, 0));
	CHECK(at % page == 0);
	for (int i = 0; i < 2; i++) {
		OK(cuMemCreate(&piece[i], page, &on_device, 0));
		OK(cuMemMap(at + (size_t)i * page, page, 0, piece[i], 0));
		OK(cuMemRelease(piece[i])); /* the mapping keeps it */
		EXPECT(cuMemRelease(piece[i]), CUDA_ERROR_INVALID_VALUE);
	}
	EXPECT(cuMemsetD32(at, 1, 1), CUDA_ERROR_INVALID_VALUE); /* nobody has access */
	OK(cuMemSetAccess(at, 2 * page, &write_it, 1));
	/* Across the border of two mappings, and not a byte past the second. */
	OK(cuMemsetD32(at, 7, 2 * page / 4));
	OK(cuMemcpyDtoH(&value, at + page - 2, 4));
	CHECK(value == 0x00070000);
	OK(cuMemcpyDtoH(&value, at + 2 * page - 4, 4));
	CHECK(value == 7);
	EXPECT(cuMemcpyDtoH(&value, at + 2 * page - 2, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD8(at, 1, 2 * page + 1), CUDA_ERROR_INVALID_VALUE);
	OK(kernel_writes(at + page, 8));
	OK(cuMemcpyDtoH(&value, at + page + 4, 4));
	CHECK(value == 0xA5A5A5A5);
	OK(cuMemGetAddressRange(&base, &bytes, at + page + 100));
	CHECK(base == at && bytes == 3 * page);
	EXPECT(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFreeAsync(at, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAddressFree(at, 3 * page), CUDA_ERROR_INVALID_VALUE); /* still mapped */
	EXPECT(cuMemUnmap(at, page / 2), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemUnmap(at + page, 2 * page), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(at + page, page));
	EXPECT(cuMemcpyDtoH(&value, at + page, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(&value, at, 4));
	CHECK(value == 7);
	OK(cuMemUnmap(at, page));
	EXPECT(cuMemAddressFree(at, page), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(at, 3 * page));
	EXPECT(cuMemAddressFree(at, 3 * page), CUDA_ERROR_INVALID_VALUE);
}

/* A call that writes is refused by itself, whether it waits or not. */
static void memory_that_may_only_be_read_refuses_writes_at_the_call(void)
{
	CUdeviceptr at, other;
	CUmemGenericAllocationHandle memory;
	CUmemAccessDesc read = write_it;
	uint32_t value = 0;
	read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	OK(cuMemAlloc(&other, 4096));
	OK(cuMemCreate(&memory, page, &on_device, 0));
	OK(cuMemAddressReserve(&at, page, 0, 0, 0));
	OK(cuMemMap(at, page, 0, memory, 0));
	OK(cuMemSetAccess(at, page, &write_it, 1));
	OK(cuMemsetD32(at, 77, 1024));
	OK(cuMemSetAccess(at, page, &read, 1));
	EXPECT(cuMemsetD32Async(at, 1, 16, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyDtoDAsync(at, other, 64, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoDAsync(at, &value, 4, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD2D8(at, 512, 1, 16, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoDAsync(other, at, 64, NULL));
	OK(cuMemcpyDtoH(&value, other, 4));
	CHECK(value == 77);
	OK(cuMemSetAccess(at, page, &write_it, 1));
	OK(cuMemsetD32Async(at, 5, 1, NULL));
	OK(cuMemcpyDtoH(&value, at, 4));
	CHECK(value == 5);
	OK(cuMemUnmap(at, page));
	OK(cuMemAddressFree(at, page));
	OK(cuMemRelease(memory));
	OK(cuMemFree(other));
}

/* Device 1 writes the second of two pieces. A call that names device 0 only, for both pieces, leaves it that access. */
static void each_piece_keeps_the_access_of_devices_that_a_call_does_not_name(void)
{
	CUdeviceptr at;
	CUmemGenericAllocationHandle memory;
	CUmemAccessDesc read = write_it, there = write_it;
	int devices;
	uint32_t value;
	OK(cuDeviceGetCount(&devices));
	CHECK(devices > 1);
	read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	there.location.id = 1;
	OK(cuMemAddressReserve(&at, 2 * page, 0, 0, 0));
	for (size_t i = 0; i < 2; i++) {
		OK(cuMemCreate(&memory, page, &on_device, 0));
		OK(cuMemMap(at + i * page, page, 0, memory, 0));
		OK(cuMemRelease(memory));
	}
	OK(cuMemSetAccess(at + page, page, &there, 1));
	OK(cuMemSetAccess(at, 2 * page, &read, 1));
	EXPECT(cuMemsetD32Async(at, 1, 16, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32Async(at + page, 3, 16, NULL));
	OK(cuMemcpyDtoH(&value, at + page, 4));
	CHECK(value == 3);
	OK(cuMemUnmap(at, 2 * page));
	OK(cuMemAddressFree(at, 2 * page));
}

static void memory_can_be_in_two_places(void)
{
	CUdeviceptr one, two;
	CUmemGenericAllocationHandle memory, again;
	CUmemAllocationProp told;
	CUdevice device = 9;
	unsigned long long flags;
	uint32_t value;
	OK(cuMemCreate(&memory, 2 * page, &on_device, 0));
	OK(cuMemAddressReserve(&one, 2 * page, 0, 0, 0));
	OK(cuMemAddressReserve(&two, 4 * page, 4 * page, 0, 0));
	CHECK(two % (4 * page) == 0);
	OK(cuMemMap(one, 2 * page, 0, memory, 0));
	OK(cuMemMap(two + page, page, page, memory, 0)); /* its second page only */
	EXPECT(cuMemMap(two, 2 * page, 0, memory, 0), CUDA_ERROR_INVALID_VALUE); /* would overlap */
	EXPECT(cuMemMap(two + 3 * page, 2 * page, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemMap(two + 2 * page, 2 * page, page, memory, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemMap(two + 512, page, 0, memory, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemSetAccess(one, 2 * page, &write_it, 1));
	OK(cuMemSetAccess(two + page, page, &write_it, 1));
	OK(cuMemGetAccess(&flags, &write_it.location, two + page));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, two + page));
	CHECK(device == 0);
	CUdeviceptr base;
	size_t size;
	unsigned long long types = 1;
	OK(cuPointerGetAttribute(&base, CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, two + page + 8));
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, two + page + 8));
	OK(cuPointerGetAttribute(&types, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, two + page + 8));
	CHECK(base == two + page && size == page && types == CU_MEM_HANDLE_TYPE_NONE);
	EXPECT(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_MAPPING_SIZE, two), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD32(one + page, 0x1234, 1));
	OK(cuMemcpyDtoH(&value, two + page, 4));
	CHECK(value == 0x1234);
	OK(cuMemGetAllocationPropertiesFromHandle(&told, memory));
	CHECK(told.type == CU_MEM_ALLOCATION_TYPE_PINNED && told.location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
	      told.location.id == 0);
	OK(cuMemRelease(memory));
	EXPECT(cuMemRelease(memory), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemGetAllocationPropertiesFromHandle(&told, memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(two + page + 12)));
	CHECK(again == memory);
	EXPECT(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)two), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(one, 2 * page));
	OK(cuMemUnmap(two + page, page));
	/* The retained handle is the only reference to the memory, whose contents are kept. */
	OK(cuMemMap(one, 2 * page, 0, again, 0));
	OK(cuMemSetAccess(one, 2 * page, &write_it, 1));
	OK(cuMemcpyDtoH(&value, one + page, 4));
	CHECK(value == 0x1234);
	OK(cuMemUnmap(one, 2 * page));
	OK(cuMemRelease(again));
	EXPECT(cuMemMap(one, 2 * page, 0, again, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(one, 2 * page));
	OK(cuMemAddressFree(two, 4 * page));
}

/* The server allows this session 16 MiB. */
static void memory_counts_until_its_last_mapping_ends(void)
{
	CUmemGenericAllocationHandle memory, more;
	CUdeviceptr at;
	for (int i = 0; i < 3; i++) {
		OK(cuMemCreate(&memory, 12 * MIB, &on_device, 0));
		EXPECT(cuMemCreate(&more, 8 * MIB, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
		OK(cuMemAddressReserve(&at, 12 * MIB, 0, 0, 0));
		OK(cuMemMap(at, 12 * MIB, 0, memory, 0));
		OK(cuMemRelease(memory));
		EXPECT(cuMemCreate(&more, 8 * MIB, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
		OK(cuMemUnmap(at, 12 * MIB));
		OK(cuMemAddressFree(at, 12 * MIB));
	}
}

static void what_does_not_fit_is_refused(void)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at, fixed;
	CUmemAllocationProp wrong = on_device;
	EXPECT(cuMemCreate(&memory, page + 4096, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemCreate(&memory, 0, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
	wrong.location.id = 5;
	EXPECT(cuMemCreate(&memory, page, &wrong, 0), CUDA_ERROR_INVALID_DEVICE);
	wrong = on_device;
	wrong.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	EXPECT(cuMemCreate(&memory, page, &wrong, 0), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuMemAddressReserve(&at, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAddressReserve(&at, page, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemRelease(12345), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemMap(0x1000000, page, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemSetAccess(0x1000000, page, &write_it, 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressReserve(&at, 2 * page, 0, 0, 0));
	OK(cuMemAddressFree(at, 2 * page));
	OK(cuMemAddressReserve(&fixed, page, 0, at + page, 0)); /* where it is wanted */
	CHECK(fixed == at + page);
	OK(cuMemAddressFree(fixed, page));
}

static void a_kernel_does_not_reach_what_is_unmapped(void)
{
	CUdeviceptr at;
	CUmemGenericAllocationHandle memory;
	OK(cuMemCreate(&memory, page, &on_device, 0));
	OK(cuMemAddressReserve(&at, page, 0, 0, 0));
	OK(cuMemMap(at, page, 0, memory, 0));
	OK(cuMemSetAccess(at, page, &write_it, 1));
	OK(kernel_writes(at, 4));
	OK(cuMemUnmap(at, page));
	OK(cuMemRelease(memory));
	EXPECT(kernel_writes(at, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
	int has;
	OK(cuInit(0));
	OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	CHECK(has);
	OK(cuMemGetAllocationGranularity(&page, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM)); /* without a context */
	CHECK(page >= 4096 && !(page & (page - 1)));
	start();
	memory_counts_until_its_last_mapping_ends();
	two_pieces_are_one_range();
	memory_can_be_in_two_places();
	memory_that_may_only_be_read_refuses_writes_at_the_call();
	each_piece_keeps_the_access_of_devices_that_a_call_does_not_name();
	what_does_not_fit_is_refused();
	a_kernel_does_not_reach_what_is_unmapped();
	return 0;
}
