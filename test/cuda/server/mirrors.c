/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mirrors in memory that only the device reads (server/placed/device_mirror.h), on a driver of this test that counts its calls:
 * memory for hashes is used again and not freed, and a scan has one wait, however many mirrors there are.
 */
#include "cuda_remote/server/internal.h"
#include "cuda_remote/server/placed/device_mirror.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) \
	((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition), exit(1)))
#define OK(call) CHECK((call) == CUDA_SUCCESS)

#define MIRRORS 100u
#define BASE (UINT64_C(1) << 40)

/* ---- the driver ---- */

static unsigned loads, allocations, frees, fills, launches, copies, waits;
static bool full; /* no memory is left */
static uint8_t changed[MIRRORS * 2]; /* flags of the next scan */

static CUresult set_current(CUcontext context)
{
	(void)context;
	return CUDA_SUCCESS;
}

static CUresult load(CUmodule *module, const void *image, unsigned n, CUjit_option *options, void **values)
{
	(void)image;
	(void)n;
	(void)options;
	(void)values;
	*module = NULL;
	loads++;
	return CUDA_SUCCESS;
}

static CUresult get_function(CUfunction *function, CUmodule module, const char *name)
{
	(void)module;
	(void)name;
	*function = NULL;
	return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *address, size_t bytes)
{
	static CUdeviceptr last = BASE * 2;
	if (full)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*address = last;
	last += bytes;
	allocations++;
	return CUDA_SUCCESS;
}

static CUresult free_memory(CUdeviceptr address)
{
	(void)address;
	frees++;
	full = false;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
	(void)priority;
	CHECK(flags == CU_STREAM_NON_BLOCKING);
	*stream = NULL;
	return CUDA_SUCCESS;
}

static CUresult wait_for(CUstream stream)
{
	(void)stream;
	waits++;
	return CUDA_SUCCESS;
}

static CUresult fill(CUdeviceptr address, unsigned char value, size_t bytes, CUstream stream)
{
	(void)address;
	(void)bytes;
	(void)stream;
	CHECK(!value);
	fills++;
	return CUDA_SUCCESS;
}

static CUresult launch(CUfunction function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
		       unsigned threads_z, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	(void)function;
	(void)x;
	(void)y;
	(void)z;
	(void)threads;
	(void)threads_y;
	(void)threads_z;
	(void)shared;
	(void)stream;
	(void)parameters;
	(void)extra;
	launches++;
	return CUDA_SUCCESS;
}

static CUresult copy_up(CUdeviceptr to, const void *from, size_t bytes, CUstream stream)
{
	(void)to;
	(void)from;
	(void)bytes;
	(void)stream;
	return CUDA_SUCCESS;
}

/* The flags, or a page of a mirror, whose bytes are 7. */
static CUresult copy_down(void *to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	(void)stream;
	if (from >= BASE * 2) {
		CHECK(bytes <= sizeof changed);
		memcpy(to, changed, bytes);
	} else {
		memset(to, 7, bytes);
	}
	copies++;
	return CUDA_SUCCESS;
}

static void begin(void)
{
	driver.cuCtxSetCurrent = set_current;
	driver.cuModuleLoadDataEx = load;
	driver.cuModuleGetFunction = get_function;
	driver.cuMemAlloc_v2 = allocate;
	driver.cuMemFree_v2 = free_memory;
	driver.cuStreamCreateWithPriority = stream_create;
	driver.cuStreamSynchronize = wait_for;
	driver.cuMemsetD8Async = fill;
	driver.cuLaunchKernel = launch;
	driver.cuMemcpyHtoDAsync_v2 = copy_up;
	driver.cuMemcpyDtoHAsync_v2 = copy_down;
}

/* ---- tests ---- */

static struct mirror_table table;
static const CUcontext context = (CUcontext)&table; /* any address */

static CUresult make(unsigned i)
{
	struct mirror mirror = { .address = BASE + (uint64_t)i * 65536, .size = 8192, .owner = context };
	CUresult result = device_mirror_new(&mirror, &mirror.device);
	CHECK(result != CUDA_SUCCESS || mirror_add(&table, &mirror));
	return result;
}

static void make_all(void)
{
	for (unsigned i = 0; i < MIRRORS; i++)
		OK(make(i));
}

static void free_all(void)
{
	while (table.n) {
		struct device_mirror *device = table.list[0].device;
		mirror_remove(&table, &table.list[0]);
		device_mirror_free(device);
	}
}

static void a_scan_waits_once(void)
{
	static uint8_t bytes[65536];
	struct mirror_changes changes = { .bytes = bytes, .room = sizeof bytes };
	uint64_t stop;
	fills = launches = copies = waits = 0;
	memset(changed, 0, sizeof changed);
	changed[2 * 40 + 1] = 1; /* the second page of the mirror 40 */
	OK(device_mirrors_scan(&table));
	CHECK(fills == 1 && launches == MIRRORS && copies == 1 && waits == 1);
	for (unsigned i = 0; i < MIRRORS; i++) {
		size_t before = changes.used;
		OK(device_mirror_collect(&table.list[i], 0, &changes, &stop));
		CHECK(stop == 8192 && (changes.used != before) == (i == 40));
	}
	OK(device_mirror_flush());
	CHECK(copies == 2); /* one page */
	struct rc_wire_change record;
	const uint8_t *at = bytes, *end = bytes + changes.used, *data = mirror_next(&at, end, &record);
	CHECK(data && record.address == table.list[40].address + 4096 && record.bytes == 4096 && data[4095] == 7);
}

/* A mirror that was made after the scan has no flags of it. */
static void a_new_mirror_has_no_changes(void)
{
	uint8_t bytes[16384];
	struct mirror_changes changes = { .bytes = bytes, .room = sizeof bytes };
	uint64_t stop;
	memset(changed, 1, sizeof changed);
	OK(device_mirrors_scan(&table));
	OK(make(MIRRORS));
	OK(device_mirror_collect(&table.list[MIRRORS], 0, &changes, &stop));
	CHECK(stop == 8192 && !changes.used);
	OK(device_mirror_flush());
}

static void memory_is_used_again(void)
{
	free_all();
	unsigned before = allocations;
	make_all();
	CHECK(allocations == before && !frees);
	free_all();
	/* Only if the device has no other memory, it is freed. */
	full = true;
	struct mirror large = { .address = BASE, .size = 1 << 20, .owner = context };
	OK(device_mirror_new(&large, &large.device));
	CHECK(frees && allocations == before + 1);
	device_mirror_free(large.device);
}

int main(void)
{
	struct device_mirror_engine *loaded;
	begin();
	CHECK(make(0) == CUDA_ERROR_CONTEXT_IS_DESTROYED && !device_mirror_is_ready(context));
	for (int i = 0; i < 2; i++) { /* two threads may do so at a time */
		OK(device_mirror_load(context, &loaded));
		device_mirror_use(loaded);
	}
	CHECK(device_mirror_is_ready(context) && loads == 2);
	make_all();
	a_scan_waits_once();
	a_new_mirror_has_no_changes();
	memory_is_used_again();
	device_mirrors_forget(context);
	CHECK(make(0) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
	free(table.list);
	return 0;
}
