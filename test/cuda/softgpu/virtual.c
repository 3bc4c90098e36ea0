/* SPDX-License-Identifier: BSD-3-Clause */
/* Virtual memory management: reservations, memory, mappings, access rights, and accesses by copies and kernels. */
#include "driver.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const CUmemAllocationProp on_device = {
	.type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 },
};
static const CUmemAccessDesc write_it = {
	.location = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 }, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
};
static size_t page;

static size_t free_bytes(void)
{
	size_t available, total;
	OK(cuMemGetInfo(&available, &total));
	return available;
}

/* A kernel's write; a failure ends the context, which is then a new one. */
static CUresult kernel_writes(CUdeviceptr address, uint32_t bytes)
{
	OK(launch("write", NULL, &address, &bytes));
	return cuCtxSynchronize();
}

static void two_pieces_are_one_range(void)
{
	CUdeviceptr at;
	CUmemGenericAllocationHandle piece[2];
	size_t before = free_bytes();
	uint32_t value;
	OK(cuMemAddressReserve(&at, 3 * page, 0, 0, 0));
	CHECK(at % page == 0);
	CHECK(free_bytes() == before);
	for (int i = 0; i < 2; i++) {
		OK(cuMemCreate(&piece[i], page, &on_device, 0));
		OK(cuMemMap(at + (size_t)i * page, page, 0, piece[i], 0));
		OK(cuMemRelease(piece[i])); /* the mapping keeps it */
	}
	CHECK(free_bytes() == before - 2 * page);
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
	EXPECT(cuMemFree(at), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAddressFree(at, 3 * page), CUDA_ERROR_INVALID_VALUE); /* still mapped */
	EXPECT(cuMemUnmap(at, page / 2), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemUnmap(at + page, 2 * page), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemUnmap(at + page, page));
	EXPECT(cuMemcpyDtoH(&value, at + page, 4), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemcpyDtoH(&value, at, 4));
	CHECK(value == 7);
	OK(cuMemUnmap(at, page));
	CHECK(free_bytes() == before);
	EXPECT(cuMemAddressFree(at, page), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemAddressFree(at, 3 * page));
	EXPECT(cuMemAddressFree(at, 3 * page), CUDA_ERROR_INVALID_VALUE);
}

static void memory_can_be_in_two_places(void)
{
	CUdeviceptr one, two;
	CUmemGenericAllocationHandle memory, again;
	CUmemAllocationProp told;
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
	OK(cuMemsetD32(one + page, 0x1234, 1));
	OK(cuMemcpyDtoH(&value, two + page, 4));
	CHECK(value == 0x1234);
	OK(cuMemGetAllocationPropertiesFromHandle(&told, memory));
	CHECK(told.location.type == CU_MEM_LOCATION_TYPE_DEVICE && told.location.id == 0);
	OK(cuMemRelease(memory));
	EXPECT(cuMemRelease(memory), CUDA_ERROR_INVALID_VALUE);
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

static void a_descriptor_brings_the_same_memory(void)
{
	CUdeviceptr one, two;
	CUmemGenericAllocationHandle memory, imported;
	int file;
	uint32_t value;
	OK(cuMemCreate(&memory, page, &on_device, 0));
	OK(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	EXPECT(cuMemExportToShareableHandle(&file, memory, CU_MEM_HANDLE_TYPE_FABRIC, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)file,
					  CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
	close(file);
	int other = open("/dev/null", O_RDWR);
	EXPECT(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)other,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)-1,
					      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR), CUDA_ERROR_INVALID_VALUE);
	close(other);
	OK(cuMemAddressReserve(&one, page, 0, 0, 0));
	OK(cuMemAddressReserve(&two, page, 0, 0, 0));
	OK(cuMemMap(one, page, 0, memory, 0));
	OK(cuMemMap(two, page, 0, imported, 0));
	OK(cuMemSetAccess(one, page, &write_it, 1));
	CUmemAccessDesc read = write_it;
	read.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
	OK(cuMemSetAccess(two, page, &read, 1));
	unsigned long long flags;
	OK(cuMemGetAccess(&flags, &read.location, two));
	CHECK(flags == CU_MEM_ACCESS_FLAGS_PROT_READ);
	OK(cuMemsetD32(one, 99, 1));
	OK(cuMemcpyDtoH(&value, two, 4));
	CHECK(value == 99);
	EXPECT(cuMemsetD32(two, 1, 1), CUDA_ERROR_INVALID_VALUE);
	CUmemAllocationProp plain = on_device;
	plain.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
	CUmemGenericAllocationHandle own;
	OK(cuMemCreate(&own, page, &plain, 0));
	EXPECT(cuMemExportToShareableHandle(&file, own, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
	       CUDA_ERROR_INVALID_VALUE);
	OK(cuMemRelease(own));
	OK(cuMemUnmap(one, page));
	OK(cuMemUnmap(two, page));
	OK(cuMemAddressFree(one, page));
	OK(cuMemAddressFree(two, page));
	OK(cuMemRelease(memory));
	OK(cuMemRelease(imported));
}

static void what_does_not_fit_is_refused(void)
{
	CUmemGenericAllocationHandle memory;
	CUdeviceptr at;
	CUmemAllocationProp wrong = on_device;
	size_t total;
	EXPECT(cuMemCreate(&memory, page + 4096, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemCreate(&memory, 0, &on_device, 0), CUDA_ERROR_INVALID_VALUE);
	wrong.location.id = 5;
	EXPECT(cuMemCreate(&memory, page, &wrong, 0), CUDA_ERROR_INVALID_DEVICE);
	wrong = on_device;
	wrong.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
	EXPECT(cuMemCreate(&memory, page, &wrong, 0), CUDA_ERROR_NOT_SUPPORTED);
	OK(cuDeviceTotalMem(&total, 0));
	EXPECT(cuMemCreate(&memory, (total / page + 1) * page, &on_device, 0), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuMemAddressReserve(&at, 100, 0, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAddressReserve(&at, page, 3, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemRelease(12345), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemMap(0x1000000, page, 0, 12345, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemSetAccess(0x1000000, page, &write_it, 1), CUDA_ERROR_INVALID_VALUE);
	CUdeviceptr fixed;
	OK(cuMemAddressReserve(&at, 2 * page, 0, 0, 0));
	OK(cuMemAddressFree(at, 2 * page));
	OK(cuMemAddressReserve(&fixed, page, 0, at + page, 0)); /* where it is wanted */
	CHECK(fixed == at + page);
	OK(cuMemAddressFree(fixed, page));
}

static void a_kernel_does_not_reach_what_is_unmapped(CUcontext context)
{
	CUdeviceptr at;
	CUmemGenericAllocationHandle memory;
	(void)context;
	OK(cuMemCreate(&memory, page, &on_device, 0));
	OK(cuMemAddressReserve(&at, page, 0, 0, 0));
	OK(cuMemMap(at, page, 0, memory, 0));
	OK(cuMemSetAccess(at, page, &write_it, 1));
	OK(kernel_writes(at, 4));
	OK(cuMemUnmap(at, page));
	OK(cuMemRelease(memory));
	EXPECT(kernel_writes(at, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* In a process whose address space has something else where the device's memory would like to be. */
static void reserve_aligned_elsewhere(void)
{
	CUdeviceptr at, taken;
#ifndef __SANITIZE_THREAD__ /* which has that place itself */
	void *wanted = (void *)(uintptr_t)UINT64_C(0x200000000000);
	/* If that fails, something is mapped there already. */
	(void)mmap(wanted, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
#endif
	OK(cuInit(0));
	OK(cuMemGetAllocationGranularity(&page, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	for (size_t align = page; align <= UINT64_C(1) << 30; align *= 2) {
		OK(cuMemAddressReserve(&at, page, align, 0, 0));
		CHECK(!(at & (align - 1)));
		/* A wish that is not aligned does not count. */
		OK(cuMemAddressReserve(&taken, page, align, at + align / 2, 0));
		CHECK(!(taken & (align - 1)));
		OK(cuMemAddressFree(at, page));
		OK(cuMemAddressFree(taken, page));
	}
}

static void reservations_are_aligned_wherever_the_memory_is(void)
{
	int status;
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		reserve_aligned_elsewhere();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
	reservations_are_aligned_wherever_the_memory_is();
	CUcontext context = start();
	int has;
	OK(cuDeviceGetAttribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0));
	CHECK(has);
	OK(cuMemGetAllocationGranularity(&page, &on_device, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
	CHECK(page >= 4096 && !(page & (page - 1)));
	kernel("write"); /* loads the module, which takes memory too */
	two_pieces_are_one_range();
	memory_can_be_in_two_places();
	a_descriptor_brings_the_same_memory();
	what_does_not_fit_is_refused();
	a_kernel_does_not_reach_what_is_unmapped(context);
	return 0;
}
