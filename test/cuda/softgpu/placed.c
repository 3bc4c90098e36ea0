/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocation at addresses that the caller chooses (placed_memory.h): windows, budgets, wrong and overlapping addresses. */
#include "driver.h"

#include "cuda_remote/kept_memory.h"
#include "cuda_remote/placed_memory.h"

#include <sys/mman.h>

#define WINDOW_BYTES ((size_t)1 << 30)

static const struct rc_placed_memory *placed;
static CUdeviceptr base;

static size_t free_bytes(void)
{
	size_t available, total;
	OK(cuMemGetInfo(&available, &total));
	return available;
}

/* Addresses that were free a moment ago. */
static CUdeviceptr free_addresses(void)
{
	char *at = mmap(NULL, WINDOW_BYTES + placed->page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(at != MAP_FAILED);
	munmap(at, WINDOW_BYTES + placed->page);
	return ((uintptr_t)at + placed->page - 1) & ~(placed->page - 1);
}

static void other_tables_do_not_exist(void)
{
	const void *table;
	const CUuuid other = { "no such table" };
	const CUuuid id = RC_PLACED_MEMORY_UUID;
	EXPECT(cuGetExportTable(&table, &other), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuGetExportTable(NULL, &id), CUDA_ERROR_INVALID_VALUE);
	OK(cuGetExportTable(&table, &id));
	placed = table;
	CHECK(placed->size == sizeof *placed);
}

/* Registered memory that stays mapped. */
static void memory_is_kept(void)
{
	static char memory[8192];
	const CUuuid id = RC_KEPT_MEMORY_UUID;
	const void *table;
	CUdeviceptr device;
	OK(cuGetExportTable(&table, &id));
	const struct rc_kept_memory *kept = table;
	CHECK(kept->size == sizeof *kept);
	EXPECT(kept->keep(memory), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemHostRegister(memory, sizeof memory, 0));
	EXPECT(kept->keep(memory + 4096), CUDA_ERROR_INVALID_VALUE);
	OK(kept->keep(memory));
	OK(kept->keep(memory));
	OK(cuMemAlloc(&device, sizeof memory));
	OK(cuMemcpyHtoD(device, memory, sizeof memory));
	OK(cuMemFree(device));
	OK(cuMemHostUnregister(memory));
	EXPECT(kept->keep(memory), CUDA_ERROR_INVALID_VALUE);
}

static void a_window_takes_no_address_that_is_in_use(void)
{
	EXPECT(placed->budget(4096, 0), CUDA_ERROR_INVALID_VALUE); /* no window yet */
	base = free_addresses();
	EXPECT(placed->window(base + 4096, WINDOW_BYTES), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->window(base, WINDOW_BYTES - 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->window(base, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->window(base, (size_t)1 << 60), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->window((CUdeviceptr)1 << 50, WINDOW_BYTES), CUDA_ERROR_INVALID_VALUE);
	char *mine = mmap((void *)(uintptr_t)(base + placed->page), 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(mine == (char *)(uintptr_t)(base + placed->page));
	*mine = 5;
	EXPECT(placed->window(base, WINDOW_BYTES), CUDA_ERROR_ALREADY_MAPPED);
	CHECK(*mine == 5);
	munmap(mine, 4096);
	OK(placed->window(base, WINDOW_BYTES));
	EXPECT(placed->window(free_addresses(), WINDOW_BYTES), CUDA_ERROR_ALREADY_MAPPED); /* one for each device */
}

static void the_budget_is_a_limit_and_counts_as_used(void)
{
	size_t before = free_bytes();
	EXPECT(placed->place(base, 512), CUDA_ERROR_OUT_OF_MEMORY);
	OK(placed->budget(1 << 20, 0));
	CHECK(free_bytes() == before - (1 << 20));
	EXPECT(placed->place(base, (1 << 20) + 1), CUDA_ERROR_OUT_OF_MEMORY);
	OK(placed->place(base, (1 << 20) - 512 - 511)); /* counts as a multiple of the granule */
	CHECK(free_bytes() == before - (1 << 20));
	EXPECT(placed->place(base + (1 << 20), 513), CUDA_ERROR_OUT_OF_MEMORY);
	OK(placed->place(base + (1 << 20), 512));
	EXPECT(placed->budget(0, 1), CUDA_ERROR_INVALID_VALUE); /* all of it is in use */
	EXPECT(placed->budget(1, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->budget(before, 0), CUDA_ERROR_OUT_OF_MEMORY);
	OK(cuMemFree(base));
	EXPECT(cuMemFree(base), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(base + (1 << 20)));
	CHECK(free_bytes() == before - (1 << 20)); /* it belongs to the budget again */
	OK(placed->budget(0, 1 << 20));
	CHECK(free_bytes() == before);
}

static void wrong_and_overlapping_addresses_are_refused(void)
{
	size_t page = placed->page;
	OK(placed->budget(64 << 20, 0));
	EXPECT(placed->place(base + 256, 512), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base - 512, 512), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base + WINDOW_BYTES, 512), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(0, 512), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base + 512, placed->small + 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base + WINDOW_BYTES - page, page + 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(placed->place(base + page - 512, 1024), CUDA_ERROR_ALREADY_MAPPED); /* in two pages */
	OK(placed->place(base + 1024, 1024));
	EXPECT(placed->place(base + 512, 1024), CUDA_ERROR_ALREADY_MAPPED);
	EXPECT(placed->place(base + 1536, 1), CUDA_ERROR_ALREADY_MAPPED);
	EXPECT(placed->place(base, page), CUDA_ERROR_ALREADY_MAPPED);
	OK(placed->place(base + page, 3 * page));
	EXPECT(placed->place(base + 2 * page, 1), CUDA_ERROR_ALREADY_MAPPED);
	EXPECT(placed->place(base + 3 * page, 2 * page), CUDA_ERROR_ALREADY_MAPPED);
	OK(placed->place(base + 4 * page, 2 * page));
	OK(cuMemFree(base + page));
	OK(cuMemFree(base + 1024));
	OK(placed->place(base, page)); /* over the page that held small allocations */
	OK(cuMemFree(base));
	OK(cuMemFree(base + 4 * page));
	OK(placed->place(base + WINDOW_BYTES - page, page));
	OK(cuMemFree(base + WINDOW_BYTES - page));
	OK(placed->budget(0, 64 << 20));
}

static void copies_and_kernels_see_exact_bounds(void)
{
	uint32_t value = 7, eight = 8, more = 512 + 8;
	CUdeviceptr start, at = base + 8192;
	size_t size;
	OK(placed->budget(4096, 0));
	OK(placed->place(at, 500));
	OK(cuMemGetAddressRange(&start, &size, at + 499));
	CHECK(start == at && size == 500);
	OK(cuMemcpyHtoD(at + 496, &value, 4));
	EXPECT(cuMemcpyHtoD(at + 497, &value, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemcpyHtoD(at + 4096, &value, 4), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemHostRegister((void *)(uintptr_t)(at + 4096), 4096, 0), CUDA_ERROR_INVALID_VALUE);
	OK(launch("write", NULL, &at, &eight));
	OK(cuCtxSynchronize());
	OK(cuMemcpyDtoH(&value, at + 4, 4));
	CHECK(value == 0xA5A5A5A5);
	OK(launch("write", NULL, &at, &more));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

/* The context of the fault ends: its memory returns to the budget, which stays. */
static void a_reset_frees_the_allocations(void)
{
	OK(cuDevicePrimaryCtxReset(0));
	CUcontext context = start();
	(void)context;
	size_t before = free_bytes();
	OK(placed->place(base + 8192, 4096));
	OK(cuMemFree(base + 8192));
	OK(placed->budget(0, 4096));
	CHECK(free_bytes() == before + 4096);
}

int main(void)
{
	start();
	other_tables_do_not_exist();
	memory_is_kept();
	a_window_takes_no_address_that_is_in_use();
	the_budget_is_a_limit_and_counts_as_used();
	wrong_and_overlapping_addresses_are_refused();
	copies_and_kernels_see_exact_bounds();
	a_reset_frees_the_allocations();
	return 0;
}
