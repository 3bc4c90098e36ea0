/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Managed memory: managed | parts | far | limited | far-limited | refused. With "parts" small allocations are parts of
 * larger memory. With "far" the server is reached over TCP, with "limited" its worker maps 16 MB, with "refused" none.
 * Of parts only: failed-parts | parts-limited (as limited) | lonely-parts (the session has two further connections).
 * managed_far.c has what only a server on another host needs.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS, MAP_FIXED_NOREPLACE, mincore */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { WORDS = 300000, BYTES = WORDS * 4 };

static CUcontext context;
static CUstream stream, other;
static bool far;

static int attribute(CUdevice_attribute which)
{
	int value;
	OK(cuDeviceGetAttribute(&value, which, 0));
	return value;
}

static void *managed(size_t bytes)
{
	CUdeviceptr address;
	OK(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL));
	return (void *)(uintptr_t)address;
}

static CUdeviceptr at(const void *memory)
{
	return (CUdeviceptr)(uintptr_t)memory;
}

/* A word that streams can be held with. A kernel sees only words of its device change while it runs, if that is far. */
static CUdeviceptr new_flag(void)
{
	CUdeviceptr flag = 0;
	if (!far) {
		flag = at(managed(4));
		*(uint32_t *)(uintptr_t)flag = 0;
		return flag;
	}
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32Async(flag, 0, 1, other));
	OK(cuStreamSynchronize(other));
	return flag;
}

static void set_flag(CUdeviceptr flag)
{
	if (far)
		OK(cuMemsetD32Async(flag, 1, 1, other));
	else
		let_go((uint32_t *)(uintptr_t)flag);
}

/* The kernel spins on a word until the host has changed it, and the host until the kernel has. */
static void host_and_kernel_talk(void)
{
	uint32_t *word = managed(4);
	*word = 0;
	for (uint32_t round = 1; round <= 20; round++) {
		uint32_t go = round * 2;
		CUdeviceptr there = at(word);
		OK(launch("meet", stream, &there, &go));
		while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != round * 2 - 1)
			sched_yield();
		__atomic_add_fetch(word, 1, __ATOMIC_RELEASE);
		OK(cuStreamSynchronize(stream));
	}
	OK(cuMemFree(at(word)));
}

/* The kernel of another stream holds this one, while the host writes the bytes between those that the device writes. */
static void neighbours(void)
{
	uint8_t *bytes = managed(1024), back[1024];
	uint32_t width = 1;
	memset(bytes, 0, 1024);
	CUdeviceptr flag = new_flag();
	hold(stream, flag);
	for (int i = 0; i < 1024; i += 2) {
		CUdeviceptr there = at(bytes + i);
		OK(launch("write", stream, &there, &width));
	}
	if (!far)
		set_flag(flag);
	for (int i = 1; i < 1024; i += 2)
		bytes[i] = (uint8_t)i;
	if (far)
		set_flag(flag);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(back, at(bytes), 1024));
	for (int i = 0; i < 1024; i++)
		CHECK(bytes[i] == (i % 2 ? (uint8_t)i : 0xA5) && back[i] == bytes[i]);
	OK(cuMemFree(at(bytes)));
	OK(cuMemFree(flag));
}

/* System calls read and write managed memory. */
static void system_calls(void)
{
	uint32_t *words = managed(16), value = 3;
	CUdeviceptr there = at(words);
	uint32_t sent[4] = { 1, 77, 0, 0 }, back[4];
	int ends[2];
	CHECK(!pipe(ends));
	CHECK(write(ends[1], sent, sizeof sent) == (ssize_t)sizeof sent);
	CHECK(read(ends[0], words, sizeof sent) == (ssize_t)sizeof sent);
	OK(launch("append", stream, &there, &value)); /* words[++words[0]] = 3 */
	OK(cuStreamSynchronize(stream));
	CHECK(write(ends[1], words, sizeof back) == (ssize_t)sizeof back);
	CHECK(read(ends[0], back, sizeof back) == (ssize_t)sizeof back);
	CHECK(back[0] == 2 && back[1] == 77 && back[2] == 3);
	close(ends[0]);
	close(ends[1]);
	OK(cuMemFree(there));
}

/* Managed memory takes pages when it is used, not when it is allocated. */
static void takes_no_pages_before_use(void)
{
	enum { SPARSE = 64 << 20 };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = SPARSE / page, resident = 0;
	uint8_t *memory = managed(SPARSE), *in = malloc(pages);
	CHECK(in && !mincore(memory, SPARSE, in));
	for (size_t i = 0; i < pages; i++)
		resident += in[i] & 1;
	CHECK(!resident);
	free(in);
	OK(cuMemFree(at(memory)));
}

static void fill(uint32_t *words, uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++)
		words[i] = value + i;
}

static void expect(const uint32_t *words, uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK(words[i] == value + i);
}

/* The host reads what a call that waits has written as soon as it returns, in all directions and by every call. */
static void waiting_calls(void)
{
	uint32_t *one = managed(BYTES), *two = managed(BYTES), *plain = malloc(BYTES);
	CUdeviceptr device;
	CHECK(plain);
	OK(cuMemAlloc(&device, BYTES));
	for (uint32_t round = 0; round < 10; round++) {
		fill(plain, round);
		OK(cuMemcpyHtoD(at(one), plain, BYTES));
		expect(one, round);
		OK(cuMemcpyHtoD(device, one, BYTES));
		fill(one, 0);
		OK(cuMemcpyDtoH(two, device, BYTES));
		expect(two, round);
		OK(cuMemcpyDtoD(at(one), at(two), BYTES));
		expect(one, round);
		fill(two, round + 5);
		OK(cuMemcpy(at(one), at(two), BYTES));
		expect(one, round + 5);
		OK(cuMemcpy((CUdeviceptr)(uintptr_t)plain, at(one), BYTES));
		expect(plain, round + 5);
		OK(cuMemsetD32(at(one), round, WORDS));
		CHECK(one[0] == round && one[WORDS - 1] == round);
		OK(cuMemsetD8(at(one), 9, BYTES));
		CHECK(one[WORDS - 1] == 0x09090909);
	}
	EXPECT(cuMemcpyDtoD(at(one), at(two) + 1, BYTES), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemsetD8(at(one), 0, BYTES + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
	OK(cuMemFree(at(one)));
	OK(cuMemFree(at(two)));
	free(plain);
}

struct waiter {
	uint32_t *one, *two;
	int which;
};

static void *call_that_waits(void *argument)
{
	struct waiter *waiter = argument;
	CUdeviceptr to = at(waiter->one);
	OK(cuCtxSetCurrent(context));
	switch (waiter->which) {
	case 0:
		OK(cuMemsetD8(to, 7, BYTES));
		break;
	case 1:
		OK(cuMemsetD16(to, 0x0707, BYTES / 2));
		break;
	case 2:
		OK(cuMemsetD32(to, 0x07070707, WORDS));
		break;
	case 3:
		OK(cuMemsetD2D8(to, 400, 7, 400, BYTES / 400));
		break;
	case 4:
		OK(cuMemsetD2D16(to, 400, 0x0707, 200, BYTES / 400));
		break;
	case 5:
		OK(cuMemsetD2D32(to, 400, 0x07070707, 100, BYTES / 400));
		break;
	default:
		OK(cuMemcpyDtoD(to, at(waiter->two), BYTES));
	}
	CHECK(waiter->one[0] == 0x07070707 && waiter->one[WORDS - 1] == 0x07070707);
	return NULL;
}

/* A call that waits for a blocking stream, and another thread's call, which comes later and lets this stream go on. */
static void calls_that_wait_hold_nobody_up(void)
{
	struct waiter waiter = { managed(BYTES), managed(BYTES), 0 };
	CUdeviceptr flag;
	CUstream blocking;
	OK(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
	OK(cuMemAlloc(&flag, 4));
	for (; waiter.which < 7; waiter.which++) {
		pthread_t thread;
		OK(cuMemsetD32(flag, 0, 1));
		OK(cuMemsetD8(at(waiter.one), 0, BYTES));
		OK(cuMemsetD8(at(waiter.two), 7, BYTES));
		OK(cuCtxSynchronize());
		OK(cuStreamWaitValue32(blocking, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		CHECK(!pthread_create(&thread, NULL, call_that_waits, &waiter));
		usleep(20000); /* time for the thread to make its call; if it comes later, nothing is tested */
		OK(cuStreamWriteValue32(stream, flag, 1, 0));
		CHECK(!pthread_join(thread, NULL));
	}
	OK(cuStreamDestroy(blocking));
	OK(cuMemFree(flag));
	OK(cuMemFree(at(waiter.one)));
	OK(cuMemFree(at(waiter.two)));
}

/* Asynchronous calls return while the stream is held, and take place in its order; once by calls, once in a graph. */
static void in_order(bool graph)
{
	uint32_t *one = managed(BYTES), *two = managed(BYTES);
	CUdeviceptr flag = new_flag();
	CUgraphExec exec = NULL;
	CUgraph captured;
	fill(one, 1);
	fill(two, 2);
	hold(stream, flag);
	if (graph)
		OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuMemcpyDtoHAsync(two, at(one), BYTES, stream));
	OK(cuMemsetD32Async(at(one), 8, WORDS, stream));
	OK(cuMemcpyHtoDAsync(at(two), one, 4, stream));
	if (graph) {
		OK(cuStreamEndCapture(stream, &captured));
		OK(cuGraphInstantiate(&exec, captured, 0));
		OK(cuGraphDestroy(captured));
		OK(cuGraphLaunch(exec, stream));
	}
	CHECK(one[0] == 1 && two[0] == 2);
	if (!far) /* else the host may not use memory that the device uses */
		fill(one, 30);
	set_flag(flag);
	OK(cuStreamSynchronize(stream));
	CHECK(one[0] == 8 && one[WORDS - 1] == 8 && two[0] == 8 && two[1] == (far ? 2 : 31));
	if (graph)
		OK(cuGraphExecDestroy(exec));
	OK(cuMemFree(at(one)));
	OK(cuMemFree(at(two)));
	OK(cuMemFree(flag));
}

static void *let_kernels_go(void *flag)
{
	OK(cuCtxSetCurrent(context));
	set_flag(*(const CUdeviceptr *)flag);
	return NULL;
}

/* Memory is freed once the work that uses it is complete. */
static void freed_in_use(void)
{
	for (uint32_t round = 0; round < 20; round++) {
		uint32_t *words = managed(8192), bytes = 8192;
		CUdeviceptr there = at(words), flag = new_flag();
		pthread_t thread;
		hold(stream, flag);
		OK(launch("write", stream, &there, &bytes));
		CHECK(!pthread_create(&thread, NULL, let_kernels_go, &flag));
		OK(cuMemFree(there));
		OK(cuStreamQuery(stream));
		EXPECT(cuMemFree(there), CUDA_ERROR_INVALID_VALUE);
		pthread_join(thread, NULL);
		OK(cuMemFree(flag));
	}
}

static void pointers(void)
{
	uint8_t *memory = managed(10000);
	CUdeviceptr base, device, there = at(memory + 10);
	void *host;
	size_t size;
	unsigned type;
	bool is;
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, there));
	CHECK(is);
	OK(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_MAPPED, there));
	CHECK(is);
	OK(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, there));
	CHECK(type == CU_MEMORYTYPE_DEVICE);
	OK(cuPointerGetAttribute(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, there));
	OK(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, there));
	CHECK(host == memory + 10 && device == there);
	OK(cuMemGetAddressRange(&base, &size, there));
	CHECK(base == at(memory) && size == 10000);
	EXPECT(cuMemFree(there), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(base));
	EXPECT(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, there), CUDA_ERROR_INVALID_VALUE);
}

static void advice(void)
{
	CUdeviceptr there = at(managed(100000)), device;
	const CUmemLocation gpu = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0 };
	const CUmemLocation host = { .type = CU_MEM_LOCATION_TYPE_HOST }, absent = { .type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 63 };
	int value, accessors[3];
	OK(cuMemPrefetchAsync(there, 100000, gpu, 0, stream));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, there, 100000));
	CHECK(value == 0);
	OK(cuMemPrefetchAsync(there, 4096, host, 0, NULL));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, there, 4096));
	CHECK(value == CU_DEVICE_CPU);
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION, there, 100000));
	CHECK(value == CU_DEVICE_INVALID);
	OK(cuMemAdvise(there, 50000, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu));
	OK(cuMemAdvise(there, 100000, CU_MEM_ADVISE_SET_ACCESSED_BY, gpu));
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, there, 50000));
	CHECK(value == 1);
	OK(cuMemRangeGetAttribute(&value, 4, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, there, 50001));
	CHECK(value == 0);
	OK(cuMemRangeGetAttribute(accessors, sizeof accessors, CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY, there, 100000));
	CHECK(accessors[0] == 0 && accessors[1] == CU_DEVICE_INVALID);
	OK(cuStreamAttachMemAsync(stream, there, 0, CU_MEM_ATTACH_SINGLE));
	EXPECT(cuStreamAttachMemAsync(stream, there, 4096, CU_MEM_ATTACH_SINGLE), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPrefetchAsync(there, 100001, gpu, 0, stream), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemPrefetchAsync(there, 100000, absent, 0, stream), CUDA_ERROR_INVALID_DEVICE);
	OK(cuMemAlloc(&device, 4096));
	EXPECT(cuMemAdvise(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, gpu), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemFree(device));
	OK(cuMemFree(there));
}

/* An allocation may get the handle of an event whose end the worker has not seen yet. */
enum { SMALL_MOST = 400 };

static struct small {
	char *memory; /* NULL: none */
	size_t bytes;
	bool pinned;
	char stamp;
} smalls[SMALL_MOST];

static void small_begin(struct small *small, bool pinned, size_t bytes, char stamp)
{
	unsigned long long id;
	void *memory;
	if (pinned)
		OK(cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP));
	else
		memory = managed(bytes);
	CHECK(!((uintptr_t)memory % 256));
	*small = (struct small){ memory, bytes, pinned, stamp };
	memset(memory, stamp, bytes);
	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, at(memory)));
	CHECK(id);
}

static CUresult small_free(const struct small *small)
{
	return small->pinned ? cuMemFreeHost(small->memory) : cuMemFree(at(small->memory));
}

/* The bytes are as they were written, so no other allocation has any of them; and the device writes them all, and no
 * more. */
static void small_end(struct small *small)
{
	CUdeviceptr start, address = at(small->memory);
	size_t size;
	for (size_t i = 0; i < small->bytes; i++)
		CHECK(small->memory[i] == small->stamp);
	OK(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address + small->bytes - 1));
	OK(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address + small->bytes / 2));
	CHECK(start == address && size == small->bytes);
	if (!small->pinned) {
		OK(cuMemGetAddressRange(&start, &size, address + small->bytes - 1));
		CHECK(start == address && size == small->bytes);
	}
	EXPECT(cuMemsetD8(address, 1, small->bytes + 1), CUDA_ERROR_INVALID_VALUE);
	OK(cuMemsetD8Async(address, (unsigned char)(small->stamp + 1), small->bytes, stream));
	OK(cuStreamSynchronize(stream));
	CHECK(small->memory[0] == (char)(small->stamp + 1) && small->memory[small->bytes - 1] == (char)(small->stamp + 1));
	OK(small_free(small));
	EXPECT(small_free(small), CUDA_ERROR_INVALID_VALUE);
	small->memory = NULL;
}

/* Allocations of all small sizes, freed in another order. */
static void small_at_random(void)
{
	unsigned seed = 7;
	for (int i = 0; i < 3000; i++) {
		struct small *small = &smalls[rand_r(&seed) % SMALL_MOST];
		size_t most = (size_t)1 << rand_r(&seed) % 18;
		if (small->memory)
			small_end(small);
		else
			small_begin(small, rand_r(&seed) % 2, 1 + (size_t)rand_r(&seed) % most, (char)rand_r(&seed));
	}
	for (int i = 0; i < SMALL_MOST; i++)
		if (smalls[i].memory)
			small_end(&smalls[i]);
}

/* The mappings that this process shares with workers. */
static unsigned shared_mappings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *maps = fopen("/proc/self/maps", "r");
	CHECK(maps);
	while (fgets(line, sizeof line, maps))
		n += strstr(line, "headrace-pinned") != NULL;
	fclose(maps);
	return n;
}

static void small_share_mappings(void)
{
	unsigned before = shared_mappings();
	for (int i = 0; i < SMALL_MOST; i++)
		small_begin(&smalls[i], i % 2, 64, (char)i);
	CHECK(shared_mappings() <= before + 1);
	for (int i = 0; i < SMALL_MOST; i++)
		small_end(&smalls[i]);
}

/* The end of a part waits for a kernel that fails. The program is still told of the failure. */
static void failed_parts(void)
{
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS;
	void *parts[3];
	for (int i = 0; i < 3; i++)
		OK(cuMemHostAlloc(&parts[i], 4096, 0));
	kernel("fault");
	OK(cuCtxSynchronize());
	OK(launch("fault", NULL, &code, NULL));
	OK(cuMemFreeHost(parts[0]));
	OK(cuMemFreeHost(parts[1]));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

enum { MEGABYTE = 1 << 20 };

/* 2 + 4 + 8 MB of slabs leave no room for one of 16 MB, so that the next one is of 2 MB. Slabs without an allocation end
 * if an allocation of its own finds no room. */
static void limited_parts(void)
{
	void *parts[16];
	unsigned before = shared_mappings();
	for (int i = 0; i < 16; i++)
		parts[i] = managed(MEGABYTE);
	CHECK(shared_mappings() == before + 4);
	for (int i = 0; i < 16; i++)
		OK(cuMemFree(at(parts[i])));
	CHECK(shared_mappings() == before + 4);
	OK(cuMemFree(at(managed(15 * MEGABYTE))));
	CHECK(shared_mappings() == before);
}

static pthread_barrier_t connected, done;

/* Takes a connection, if there still is one. */
static void *take_connection(void *unused)
{
	size_t free_bytes, total;
	(void)cuCtxSetCurrent(context);
	(void)cuMemGetInfo(&free_bytes, &total);
	pthread_barrier_wait(&connected);
	pthread_barrier_wait(&done);
	return unused;
}

static void *free_without_connection(void *part)
{
	OK(cuCtxSetCurrent(context));
	CHECK(cuMemFreeHost(part) != CUDA_SUCCESS);
	return NULL;
}

/* A thread without a connection cannot wait for the kernel. So nothing else gets the part that it frees. */
static void lonely_parts(void)
{
	pthread_t holders[2], thread;
	uint32_t *flag;
	void *part, *next;
	pthread_barrier_init(&connected, NULL, 3);
	pthread_barrier_init(&done, NULL, 3);
	OK(cuMemHostAlloc((void **)&flag, 2 * MEGABYTE, 0));
	OK(cuMemHostAlloc(&part, 4096, 0));
	*flag = 0;
	hold(stream, at(flag));
	for (int i = 0; i < 2; i++)
		CHECK(!pthread_create(&holders[i], NULL, take_connection, NULL));
	pthread_barrier_wait(&connected);
	CHECK(!pthread_create(&thread, NULL, free_without_connection, part));
	pthread_join(thread, NULL);
	EXPECT(cuMemFreeHost(part), CUDA_ERROR_INVALID_VALUE);
	for (int i = 0; i < 8; i++) {
		OK(cuMemHostAlloc(&next, 4096, 0));
		CHECK(next != part);
	}
	let_go(flag);
	OK(cuStreamSynchronize(stream));
	pthread_barrier_wait(&done);
	for (int i = 0; i < 2; i++)
		pthread_join(holders[i], NULL);
}

static void handles_used_again(void)
{
	for (int round = 0; round < 200; round++) {
		CUevent event;
		OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
		OK(cuEventRecord(event, stream));
		OK(cuEventDestroy(event));
		OK(cuMemFree(at(managed(4096))));
	}
}

static void wrong_arguments(void)
{
	CUdeviceptr address;
	EXPECT(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAllocManaged(NULL, 4, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAllocManaged(&address, 4, 7), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemAllocManaged(&address, (size_t)1 << 62, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
	EXPECT(cuMemAllocManaged(&address, SIZE_MAX, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
}

/* A reset frees managed memory. */
static void ends_with_its_context(void)
{
	CUdeviceptr there = at(managed(4096));
	bool is;
	OK(cuDevicePrimaryCtxReset(0));
	context = start();
	EXPECT(cuPointerGetAttribute(&is, CU_POINTER_ATTRIBUTE_IS_MANAGED, there), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuMemFree(there), CUDA_ERROR_INVALID_VALUE);
	uint32_t *words = managed(8);
	words[0] = 0;
	OK(cuMemsetD32(at(words), 5, 2));
	CHECK(words[1] == 5);
	OK(cuMemFree(at(words)));
}

static void limited(void)
{
	CUdeviceptr address;
	for (int i = 0; i < 3; i++) {
		EXPECT(cuMemAllocManaged(&address, 17 << 20, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_OUT_OF_MEMORY);
		OK(cuMemAllocManaged(&address, 10 << 20, CU_MEM_ATTACH_GLOBAL));
		OK(cuMemFree(address));
	}
}

static CUlibrary library_new(void)
{
	CUlibrary library;
	OK(cuLibraryLoadData(&library, test_program("double\nappend\n"), NULL, NULL, 0, NULL, NULL, 0));
	return library;
}

static void refused(void)
{
	CUdeviceptr address;
	CHECK(!attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) && !attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS));
	CHECK(!attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY) && !attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
	EXPECT(cuMemAllocManaged(&address, 4, CU_MEM_ATTACH_GLOBAL), CUDA_ERROR_NOT_SUPPORTED);
	EXPECT(cuLibraryGetManaged(&address, NULL, library_new(), "cell"), CUDA_ERROR_NOT_SUPPORTED);
}

/* The program has other memory where the variable is. The session goes on, and the worker sends nothing of the variable. */
static void variable_without_a_place(void)
{
	CUlibrary library = library_new();
	CUdeviceptr address;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *other_mirror = managed(64);
	OK(cuLibraryGetGlobal(&address, NULL, library, "cell"));
	OK(cuMemsetD32(address, 0, 4));
	void *want = (void *)(uintptr_t)(address & ~(CUdeviceptr)(page - 1));
	void *mine = mmap(want, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	CHECK(mine == want);
	EXPECT(cuLibraryGetManaged(&address, NULL, library, "cell"), CUDA_ERROR_OUT_OF_MEMORY);
	append(NULL, address, 5);
	OK(cuCtxSynchronize());
	for (size_t i = 0; i < page; i++)
		CHECK(!((const uint8_t *)mine)[i]);
	CHECK(!munmap(mine, page));
	OK(cuLibraryGetManaged(&address, NULL, library, "cell"));
	const uint32_t *cell = (const uint32_t *)(uintptr_t)address;
	CHECK(cell[0] == 1 && cell[1] == 5);
	OK(cuLibraryUnload(library));
	OK(cuMemFree(at(other_mirror)));
}

/* Host, kernels, fills and copies see the same bytes of a variable, until its library ends. */
static void variables(void)
{
	CUlibrary libraries[2] = { library_new(), library_new() };
	CUdeviceptr address[2], again, nothing;
	size_t bytes;
	unsigned managed;
	uint32_t *cell[2], got;
	for (int i = 0; i < 2; i++) {
		OK(cuLibraryGetGlobal(&again, NULL, libraries[i], "cell"));
		OK(cuLibraryGetManaged(&address[i], &bytes, libraries[i], "cell"));
		CHECK(bytes == 16 && again == address[i]);
		OK(cuLibraryGetManaged(&again, NULL, libraries[i], "cell"));
		CHECK(again == address[i]);
		cell[i] = (uint32_t *)(uintptr_t)address[i];
		memset(cell[i], 0, 16);
	}
	for (uint32_t n = 1; n <= 3; n++)
		for (int i = 0; i < 2; i++) {
			append(NULL, address[i], 5 * n);
			OK(cuCtxSynchronize());
			CHECK(cell[i][0] == n && cell[i][n] == 5 * n);
			cell[i][n] += 1; /* the device must not change it back */
			OK(cuMemcpyDtoH(&got, address[i] + 4 * n, 4));
			CHECK(got == 5 * n + 1);
		}
	OK(cuMemsetD32(address[0], 77, 4));
	CHECK(cell[0][3] == 77 && cell[1][3] == 16);
	OK(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address[0]));
	CHECK((managed & 0xff) == 1);
	EXPECT(cuMemFree(address[0]), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLibraryGetManaged(&nothing, NULL, libraries[0], "absent"), CUDA_ERROR_NOT_FOUND);
	EXPECT(cuLibraryGetManaged(&nothing, NULL, libraries[0], NULL), CUDA_ERROR_INVALID_VALUE);
	/* What the host writes just before the end reaches nobody, and the other library is not disturbed. */
	cell[0][0] = 1;
	OK(cuLibraryUnload(libraries[0]));
	EXPECT(cuLibraryGetManaged(&nothing, NULL, libraries[0], "cell"), CUDA_ERROR_INVALID_HANDLE);
	/* The failure of an earlier call is no end of the library: the variable is mirrored as before. */
	OK(launch_of_a_wrong_shape(NULL));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
	cell[1][0] = 0;
	append(NULL, address[1], 9);
	OK(cuCtxSynchronize());
	CHECK(cell[1][0] == 1 && cell[1][1] == 9);
	OK(cuLibraryUnload(libraries[1]));
	OK(cuCtxSynchronize());
}

int main(int argc, char **argv)
{
	const char *part = argc > 1 ? argv[1] : "managed";
	context = start();
	if (!strcmp(part, "refused")) {
		refused();
		return 0;
	}
	far = !strncmp(part, "far", 3);
	CHECK(attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 1);
	CHECK(attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == !far);
	CHECK(!attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
	if (!strcmp(part, "parts-limited"))
		limited_parts();
	if (strstr(part, "limited")) {
		limited();
		return 0;
	}
	if (!strcmp(part, "failed-parts")) {
		failed_parts();
		return 0;
	}
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (!strcmp(part, "lonely-parts")) {
		lonely_parts();
		return 0;
	}
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	kernel("wait"); /* loaded before a stream is held */
	if (!far) {
		host_and_kernel_talk();
		takes_no_pages_before_use();
	}
	if (!strcmp(part, "parts"))
		small_share_mappings();
	if (!far)
		small_at_random();
	neighbours();
	system_calls();
	waiting_calls();
	calls_that_wait_hold_nobody_up();
	in_order(false);
	in_order(true);
	freed_in_use();
	pointers();
	if (far)
		variable_without_a_place();
	variables();
	advice();
	handles_used_again();
	wrong_arguments();
	ends_with_its_context();
	return 0;
}
