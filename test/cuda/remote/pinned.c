/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies of pinned memory take place in their stream's order, whatever changes the memory meanwhile, and whether the worker
 * maps the memory or gets its bytes in chunks: pinned shared | chunks. With "shared" no asynchronous copy may wait for its
 * stream; if one did, the test would hang.
 */
#define _GNU_SOURCE /* memfd_create */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { WORDS = 300000, BYTES = WORDS * 4 };

static CUcontext context;
static uint32_t *host, *other;
static CUdeviceptr device, second;
static CUstream stream;
static CUdeviceptr flag; /* in device memory */
static uint32_t *go;     /* pinned */

static uint32_t *pinned(size_t bytes)
{
	void *memory;
	OK(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE));
	return memory;
}

static void fill(uint32_t *words, uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = value + i;
}

static void expect(const uint32_t *words, uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++) {
		if (words[i] == value + i)
			continue;
		fprintf(stderr, "word %u is %u, want %u\n", i, words[i], value + i);
		exit(1);
	}
}

/* Holds the stream until release_stream. */
static void hold_stream(void)
{
	OK(cuMemsetD32Async(flag, 0, 1, stream));
	OK(cuStreamSynchronize(stream)); /* any stream may release it now */
	hold(stream, flag);
}

static void release_stream(CUstream by)
{
	OK(cuMemcpyHtoDAsync(flag, go, 4, by));
}

static void rewrite(void *argument)
{
	fill(host, (uint32_t)(uintptr_t)argument);
}

/* A host function, and a copy to the host, of the same stream write what a later copy of the stream reads. */
static void source_changes(bool shared)
{
	CUstream free_stream;
	OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 1; round <= 10; round++) {
		fill(host, 0);
		if (shared)
			hold_stream(); /* the calls below return nevertheless */
		OK(cuLaunchHostFunc(stream, rewrite, (void *)(uintptr_t)(round * 1000)));
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuMemcpyDtoHAsync(other, device, BYTES, stream));
		OK(cuMemcpyHtoDAsync(second, other, BYTES, stream));
		if (shared)
			release_stream(free_stream);
		OK(cuStreamSynchronize(stream));
		expect(other, round * 1000);
		fill(other, 7);
		OK(cuMemcpyDtoH(other, second, BYTES));
		expect(other, round * 1000);
	}
	OK(cuStreamDestroy(free_stream));
}

/* A call that waits has read, or written, all its bytes when it returns; it is ordered behind a blocking stream. */
static void waiting_calls(void)
{
	CUstream blocking;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	for (uint32_t round = 0; round < 20; round++) {
		OK(cuLaunchHostFunc(blocking, rewrite, (void *)(uintptr_t)(round * 10)));
		OK(cuMemcpyHtoD(device, host, BYTES));
		fill(host, 1); /* the call has taken the bytes */
		OK(cuMemcpyDtoH(host, device, BYTES));
		expect(host, round * 10);
	}
	OK(cuStreamDestroy(blocking));
}

/* A small copy is complete when the call returns: other streams see it, whether earlier work was complete or not. */
/* In host memory alone, and to pageable memory, an asynchronous call waits for the stream, and the bytes are there. */
static void calls_wait_for_the_stream(void)
{
	uint32_t *pageable = calloc(WORDS, 4);
	CHECK(pageable);
	for (uint32_t round = 1; round <= 5; round++) {
		OK(cuLaunchHostFunc(stream, rewrite, (void *)(uintptr_t)(1000 * round)));
		OK(cuMemcpyAsync((CUdeviceptr)(uintptr_t)other, (CUdeviceptr)(uintptr_t)host, BYTES, stream));
		expect(other, 1000 * round);
		OK(cuLaunchHostFunc(stream, rewrite, (void *)(uintptr_t)(2000 * round)));
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuMemcpyDtoHAsync(pageable, device, BYTES, stream));
		expect(pageable, 2000 * round);
		OK(cuLaunchHostFunc(stream, rewrite, (void *)(uintptr_t)(3000 * round)));
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuMemcpyDtoHAsync(pageable, device, 64, stream));
		CHECK(pageable[0] == 3000 * round && pageable[15] == 3000 * round + 15 && pageable[16] == 2000 * round + 16);
	}
	free(pageable);
}

/* No call that waits is needed for the bytes to come. */
static void bytes_come_by_themselves(void)
{
	for (uint32_t round = 1; round <= 20; round++) {
		fill(host, 77 * round);
		memset(other, 0xff, BYTES);
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuMemcpyDtoHAsync(other, device, BYTES, stream));
		/* Copies write the bytes in any order. */
		for (uint32_t i = 0; i < WORDS; i++)
			while (__atomic_load_n(&other[i], __ATOMIC_ACQUIRE) != 77 * round + i)
				sched_yield();
		OK(cuStreamSynchronize(stream));
	}
}

static void small_copies(void)
{
	static uint32_t seen[64];
	for (uint32_t round = 0; round < 300; round++) {
		bool held = round % 3 == 2;
		for (uint32_t i = 0; i < 64; i++)
			host[i] = round * 64 + i;
		if (held)
			hold_stream();
		else if (round % 3)
			OK(cuCtxSynchronize());
		OK(cuMemcpyHtoD(device, host, sizeof seen));
		for (uint32_t i = 0; i < 64; i++)
			host[i] = 0;
		if (held)
			release_stream(NULL);
		OK(cuMemcpyDtoDAsync(second, device, sizeof seen, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(seen, second, sizeof seen));
		for (uint32_t i = 0; i < 64; i++)
			CHECK(seen[i] == round * 64 + i);
	}
}

/* Keeps the default stream waiting for long work of another stream. */
static void hold_default(CUstream blocking, CUstream busy, CUdeviceptr memory)
{
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuCtxSynchronize());
	hold(blocking, flag);
	for (int i = 0; i < 100; i++)
		OK(cuMemcpyDtoDAsync(memory, memory + BYTES, BYTES, busy));
	release_stream(busy);
}

enum form { LINE, ROWS, ARRAY, FORMS };

/* Copies from the pinned memory to the device, and on to `second` in a stream that does not wait for the default stream. The host
 * writes the memory between the two. */
static void copy_on(enum form form, CUarray array, size_t bytes)
{
	CUDA_MEMCPY2D rows = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = bytes / 8,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = device, .dstPitch = bytes / 8 + 64,
			       .WidthInBytes = bytes / 8, .Height = 8 };
	switch (form) {
	case LINE: OK(cuMemcpyHtoD(device, host, bytes)); break;
	case ROWS: OK(cuMemcpy2D(&rows)); break;
	default: OK(cuMemcpyHtoA(array, 0, host, bytes));
	}
	memset(host, 0, bytes);
	rows.srcMemoryType = form == ARRAY ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_DEVICE;
	rows.srcArray = array;
	rows.srcDevice = device;
	rows.dstDevice = second;
	rows.srcPitch = form == ROWS ? rows.dstPitch : bytes / 8;
	rows.dstPitch = bytes / 8;
	if (form == ARRAY)
		rows.WidthInBytes = rows.srcPitch = rows.dstPitch = bytes, rows.Height = 1;
	OK(cuMemcpy2DAsync(&rows, stream));
	OK(cuStreamSynchronize(stream));
}

/* A copy that is not asynchronous is complete when the call returns, whatever the default stream has waited for. */
static void complete_on_return(void)
{
	static const size_t sizes[] = { 256, 65536, 65536 + 256, 1u << 20 };
	CUDA_ARRAY_DESCRIPTOR like = { .Width = 65536 / 16, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 4 };
	CUstream blocking, busy;
	CUdeviceptr memory;
	CUarray array;
	OK(cuArrayCreate(&array, &like));
	OK(cuMemAlloc(&memory, 2 * BYTES));
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (enum form form = LINE; form < (sizes[i] > 65536 ? ARRAY : FORMS); form++) {
			fill(host, i * 1000 + form + 1);
			hold_default(blocking, busy, memory);
			copy_on(form, array, sizes[i]);
			OK(cuMemcpyDtoH(other, second, sizes[i]));
			for (uint32_t word = 0; word < sizes[i] / 4; word++)
				CHECK(other[word] == i * 1000 + form + 1 + word);
			OK(cuStreamSynchronize(busy));
		}
	OK(cuStreamDestroy(blocking));
	OK(cuStreamDestroy(busy));
	OK(cuArrayDestroy(array));
	OK(cuMemFree(memory));
}

/* Copies in three streams at a time, to the device, across and back, for many rounds. */
static void three_streams(void)
{
	CUstream streams[3];
	CUdeviceptr at[3][2];
	uint32_t *from[3], *to[3];
	for (int i = 0; i < 3; i++) {
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&at[i][0], BYTES));
		OK(cuMemAlloc(&at[i][1], BYTES));
		from[i] = pinned(BYTES);
		to[i] = pinned(BYTES);
	}
	for (uint32_t round = 0; round < 40; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			fill(from[i], round * 77 + i);
			OK(cuMemcpyHtoDAsync(at[i][0], from[i], BYTES, streams[i]));
			OK(cuMemcpyDtoDAsync(at[i][1], at[i][0], BYTES, streams[i]));
			OK(cuMemcpyDtoHAsync(to[i], at[i][1], BYTES, streams[i]));
		}
		for (uint32_t i = 0; i < 3; i++) {
			OK(cuStreamSynchronize(streams[i]));
			expect(to[i], round * 77 + i);
			memset(to[i], 0, BYTES);
		}
	}
	for (int i = 0; i < 3; i++) {
		OK(cuStreamDestroy(streams[i]));
		OK(cuMemFree(at[i][0]));
		OK(cuMemFree(at[i][1]));
		OK(cuMemFreeHost(from[i]));
		OK(cuMemFreeHost(to[i]));
	}
}

static void box(CUdeviceptr on_device, uint8_t *bytes, size_t height, size_t depth, bool to_device)
{
	CUDA_MEMCPY3D copy = { .WidthInBytes = 37, .Height = height, .Depth = depth };
	if (to_device) {
		copy.srcMemoryType = CU_MEMORYTYPE_HOST, copy.srcHost = bytes, copy.srcPitch = 53, copy.srcHeight = 9;
		copy.srcXInBytes = 3, copy.srcY = 1, copy.srcZ = 1;
		copy.dstMemoryType = CU_MEMORYTYPE_DEVICE, copy.dstDevice = on_device, copy.dstPitch = 64, copy.dstHeight = 11;
		copy.dstXInBytes = 5, copy.dstY = 2;
	} else {
		copy.srcMemoryType = CU_MEMORYTYPE_DEVICE, copy.srcDevice = on_device, copy.srcPitch = 64, copy.srcHeight = 11;
		copy.srcXInBytes = 5, copy.srcY = 2;
		copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstHost = bytes, copy.dstPitch = 53, copy.dstHeight = 9;
		copy.dstXInBytes = 3, copy.dstY = 1, copy.dstZ = 1;
	}
	OK(cuMemcpy3DAsync(&copy, stream));
}

/* Boxes with gaps on both sides: the bytes of the box arrive, those of the gaps stay. */
static void boxes(void)
{
	enum { SIZE = 53 * 9 * 6 };
	static const size_t shapes[][2] = { { 1, 1 }, { 7, 1 }, { 1, 4 }, { 8, 5 } };
	uint8_t *from = (uint8_t *)pinned(SIZE), *to = (uint8_t *)pinned(SIZE);
	for (size_t i = 0; i < SIZE; i++)
		from[i] = (uint8_t)(i * 167 >> 3 | 1);
	for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
		memset(to, 0, SIZE);
		OK(cuMemsetD8Async(device, 0, 64 * 11 * 6, stream));
		box(device, from, shapes[s][0], shapes[s][1], true);
		box(device, to, shapes[s][0], shapes[s][1], false);
		OK(cuStreamSynchronize(stream));
		for (size_t i = 0; i < SIZE; i++) {
			size_t x = i % 53, y = i / 53 % 9, z = i / 53 / 9;
			bool inside = x >= 3 && x < 40 && y >= 1 && y < 1 + shapes[s][0] && z >= 1 && z < 1 + shapes[s][1];
			CHECK(to[i] == (inside ? from[i] : 0));
		}
	}
	OK(cuMemFreeHost(from));
	OK(cuMemFreeHost(to));
}

static void *let_stream_go(void *argument)
{
	(void)argument;
	CUstream mine;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&mine, CU_STREAM_NON_BLOCKING));
	release_stream(mine);
	OK(cuStreamSynchronize(mine));
	OK(cuStreamDestroy(mine));
	return NULL;
}

/* Memory that is freed while copies use it is freed after them. */
static void freed(bool shared)
{
	for (uint32_t round = 0; round < 10; round++) {
		uint32_t *from = pinned(BYTES), *to = pinned(BYTES);
		pthread_t thread;
		fill(from, round);
		if (shared)
			hold_stream();
		OK(cuMemcpyHtoDAsync(device, from, BYTES, stream));
		OK(cuMemcpyDtoHAsync(to, device, BYTES, stream));
		CHECK(!pthread_create(&thread, NULL, let_stream_go, NULL));
		OK(cuMemFreeHost(from));
		OK(cuMemFreeHost(to));
		pthread_join(thread, NULL);
		OK(cuMemcpyDtoH(host, device, BYTES));
		expect(host, round);
	}
	CUresult result = cuMemFreeHost((void *)(uintptr_t)0x1000);
	CHECK(result == CUDA_ERROR_INVALID_VALUE);
}

static void wait_for(void *set)
{
	while (!__atomic_load_n((bool *)set, __ATOMIC_ACQUIRE))
		sched_yield();
}

static void *free_memory(void *memory)
{
	OK(cuCtxSetCurrent(context));
	OK(cuMemFreeHost(memory));
	return NULL;
}

/* To end memory takes the worker a wait for work, also for work that comes after the call: that of one context while it waits for
 * another one's. That work may wait for later copies of other memory. The pause lets the worker come to its first wait; if it does
 * not, the test shows less. */
static void freed_beside_later_work(void)
{
	CUcontext apart;
	CUstream held, third;
	OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
	OK(cuCtxCreate(&apart, NULL, 0, 0));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 0; round < 10; round++) {
		bool first = false, later = false;
		uint32_t *memory = pinned(BYTES);
		pthread_t thread;
		OK(cuCtxSetCurrent(apart));
		OK(cuLaunchHostFunc(held, wait_for, &first));
		OK(cuCtxSetCurrent(context));
		CHECK(!pthread_create(&thread, NULL, free_memory, memory));
		usleep(1000 << round % 5);
		OK(cuLaunchHostFunc(stream, wait_for, &later));
		__atomic_store_n(&first, true, __ATOMIC_RELEASE);
		usleep(1000 << round % 5);
		fill(other, round);
		OK(cuMemcpyHtoDAsync(device, other, BYTES, third));
		OK(cuStreamSynchronize(third));
		__atomic_store_n(&later, true, __ATOMIC_RELEASE);
		pthread_join(thread, NULL);
		OK(cuMemcpyDtoH(host, device, BYTES));
		expect(host, round);
	}
	OK(cuCtxDestroy(apart));
	OK(cuCtxSetCurrent(context));
	OK(cuStreamDestroy(third));
}

/* The memory outlives the context that the worker pinned it in. */
static void after_reset(void)
{
	OK(cuDevicePrimaryCtxReset(0));
	context = start();
	OK(cuMemAlloc(&device, BYTES));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 0; round < 3; round++) {
		fill(host, 0);
		OK(cuLaunchHostFunc(stream, rewrite, (void *)(uintptr_t)(round + 5)));
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuMemcpyDtoHAsync(other, device, BYTES, stream));
		OK(cuStreamSynchronize(stream));
		expect(other, round + 5);
	}
	OK(cuMemFreeHost(host));
	OK(cuMemFreeHost(other));
}

/* The bytes of shared memory at the address that are mapped as huge pages. */
static unsigned long huge_bytes(const void *at)
{
	FILE *file = fopen("/proc/self/smaps", "r");
	char line[512];
	unsigned long first, end, kilobytes = 0;
	bool inside = false;
	CHECK(file);
	while (fgets(line, sizeof line, file)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			inside = (uintptr_t)at >= first && (uintptr_t)at < end;
		else if (inside && sscanf(line, "ShmemPmdMapped: %lu", &kilobytes) == 1)
			break;
	}
	fclose(file);
	return kilobytes << 10;
}

enum { HUGE = 2 << 20, TRIES = 20 };

/* True if this system makes huge pages of shared memory on demand. */
static bool has_huge_pages(void)
{
	int fd = memfd_create("huge", MFD_CLOEXEC);
	CHECK(fd >= 0 && !ftruncate(fd, HUGE));
	uint8_t *window = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(window != MAP_FAILED);
	uint8_t *memory = window + (-(uintptr_t)window & (HUGE - 1));
	CHECK(mmap(memory, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == memory);
	close(fd);
	*memory = 1;
	bool has = !madvise(memory, HUGE, MADV_COLLAPSE);
	munmap(window, 2 * HUGE);
	return has;
}

/* A long allocation has huge pages. The system may have none left at times, so one of several is enough. */
static void huge_pages(void)
{
	bool found = false;
	for (int i = 0; i < TRIES && !found; i++) {
		if (!has_huge_pages())
			continue;
		uint8_t *memory = (uint8_t *)pinned(2 * HUGE + 4096);
		for (int at = 0; at < 2 * HUGE + 4096; at++)
			CHECK(!memory[at]);
		memory[HUGE] = 1;
		found = huge_bytes(memory) == 2 * HUGE;
		OK(cuMemFreeHost(memory));
		if (i + 1 == TRIES)
			CHECK(found);
	}
	if (!found)
		fprintf(stderr, "this system has no huge pages for shared memory: not tested\n");
}

int main(int argc, char **argv)
{
	bool shared = argc > 1 && !strcmp(argv[1], "shared");
	context = start();
	host = pinned(BYTES);
	other = pinned(BYTES);
	go = pinned(4);
	*go = 1;
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemAlloc(&second, BYTES));
	OK(cuMemAlloc(&flag, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	if (shared)
		huge_pages();
	source_changes(shared);
	waiting_calls();
	calls_wait_for_the_stream();
	bytes_come_by_themselves();
	small_copies();
	complete_on_return();
	three_streams();
	boxes();
	freed(shared);
	if (shared)
		freed_beside_later_work();
	after_reset();
	return 0;
}
