/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies between the device and host memory that the worker has not mapped. Bytes to the host arrive without a
 * further call, in the order of streams and events, and also if the context ends. Bytes to the device are read when the stream
 * has come to the copy, and the call returns at once: delivery [CASE]. All cases use registered memory. HEADRACE_STAGING, if it is
 * set, is less than the bytes of one copy.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <time.h>

/* ThreadSanitizer takes ten times as long for each access. */
#ifdef __SANITIZE_THREAD__
enum { WORDS = 1 << 19, BYTES = WORDS * 4 };
#else
enum { WORDS = 5 << 18, BYTES = WORDS * 4 }; /* more chunks than a connection has slots */
#endif

static CUcontext context;
static uint32_t *host;
static bool few_kept; /* the worker keeps less than the bytes of one copy */

/* A thread of the client library writes the memory that the program looks at: a race by design. */
__attribute__((no_sanitize("thread"))) static bool has_arrived(uint32_t value)
{
	return __atomic_load_n(&host[0], __ATOMIC_ACQUIRE) == value && __atomic_load_n(&host[WORDS - 1], __ATOMIC_ACQUIRE) == value;
}

/* Looks at the memory until the value is there. On a loaded machine a thread that yields in a loop would hold up the others. */
static void await_arrival(uint32_t value)
{
	while (!has_arrived(value))
		nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL);
}

/* The program makes no call, and looks at its memory. */
static void polled(void)
{
	CUstream stream;
	CUdeviceptr device;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	for (uint32_t round = 1; round <= 5; round++) {
		OK(cuMemsetD32Async(device, round, WORDS, stream));
		OK(cuMemcpyDtoHAsync(host, device, BYTES, stream));
		await_arrival(round);
	}
	OK(cuStreamSynchronize(stream));
	OK(cuMemFree(device));
	OK(cuStreamDestroy(stream));
}

/* A copy whose stream is held holds up no other. */
static void beside_a_held_stream(void)
{
	CUstream held, stream;
	CUdeviceptr device, flag;
	uint32_t *late = malloc(BYTES);
	CHECK(late);
	OK(cuMemHostRegister(late, BYTES, 0));
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemAlloc(&flag, 4));
	OK(cuMemsetD32(flag, 0, 1));
	OK(cuMemsetD32(device, 77, WORDS));
	OK(cuCtxSynchronize());
	late[0] = 0;
	OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuMemcpyDtoHAsync(late, device, BYTES, held));
	OK(cuMemcpyDtoHAsync(host, device, BYTES, stream));
	await_arrival(77);
	CHECK(!late[0]);
	OK(cuStreamWriteValue32(stream, flag, 1, 0));
	OK(cuStreamSynchronize(held));
	CHECK(late[0] == 77 && late[WORDS - 1] == 77);
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(stream));
	OK(cuMemHostUnregister(late));
	free(late);
}

/* Two threads copy into the same memory; an event orders the copies. */
static struct {
	CUstream stream[2];
	CUdeviceptr device[2];
	CUevent event;
	pthread_barrier_t meet;
} two;

enum { ROUNDS = 15 };

static void *first(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		OK(cuMemsetD32Async(two.device[0], 2 * round, WORDS, two.stream[0]));
		OK(cuMemcpyDtoHAsync(host, two.device[0], BYTES, two.stream[0]));
		OK(cuEventRecord(two.event, two.stream[0]));
		pthread_barrier_wait(&two.meet);
		OK(cuStreamSynchronize(two.stream[0]));
		pthread_barrier_wait(&two.meet);
	}
	return NULL;
}

static void two_threads(void)
{
	pthread_t thread;
	OK(cuEventCreate(&two.event, CU_EVENT_DISABLE_TIMING));
	CHECK(!pthread_barrier_init(&two.meet, NULL, 2));
	for (int i = 0; i < 2; i++) {
		OK(cuStreamCreate(&two.stream[i], CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&two.device[i], BYTES));
	}
	CHECK(!pthread_create(&thread, NULL, first, NULL));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		pthread_barrier_wait(&two.meet);
		OK(cuStreamWaitEvent(two.stream[1], two.event, 0));
		OK(cuMemsetD32Async(two.device[1], 2 * round + 1, WORDS, two.stream[1]));
		OK(cuMemcpyDtoHAsync(host, two.device[1], BYTES, two.stream[1]));
		OK(cuStreamSynchronize(two.stream[1]));
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(host[i] == 2 * round + 1);
		pthread_barrier_wait(&two.meet);
	}
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&two.meet);
	for (int i = 0; i < 2; i++) {
		OK(cuStreamDestroy(two.stream[i]));
		OK(cuMemFree(two.device[i]));
	}
	OK(cuEventDestroy(two.event));
}

/* A copy that is pending when its context is destroyed arrives. If the worker keeps no bytes of it, it arrives or an error says
 * that it does not. */
static void context_ends(void)
{
	for (uint32_t round = 1; round <= 10; round++) {
		CUcontext passing;
		CUstream stream;
		CUdeviceptr device;
		OK(cuCtxCreate(&passing, NULL, 0, 0));
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&device, BYTES));
		OK(cuMemsetD32Async(device, 500 + round, WORDS, stream));
		OK(cuMemcpyDtoHAsync(host, device, BYTES, stream));
		OK(cuCtxDestroy(passing));
		OK(cuCtxSetCurrent(context));
		if (few_kept && cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED)
			continue;
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(host[i] == 500 + round);
	}
}

/* ---- to the device ---- */

static struct {
	CUstream held, other;
	CUdeviceptr device, flag;
} up;

static void up_begin(void)
{
	OK(cuStreamCreate(&up.held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&up.other, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&up.device, BYTES));
	OK(cuMemAlloc(&up.flag, 4));
}

static void up_end(void)
{
	OK(cuStreamDestroy(up.held));
	OK(cuStreamDestroy(up.other));
	OK(cuMemFree(up.device));
	OK(cuMemFree(up.flag));
}

static void hold_up(void)
{
	OK(cuMemsetD32Async(up.flag, 0, 1, up.other));
	OK(cuStreamSynchronize(up.other));
	OK(cuStreamWaitValue32(up.held, up.flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void release_held(void)
{
	OK(cuStreamWriteValue32(up.other, up.flag, 1, 0));
}

static void write_host(uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++)
		host[i] = value + i;
}

static void expect_device(uint32_t value)
{
	static uint32_t back[WORDS];
	OK(cuMemcpyDtoH(back, up.device, BYTES));
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK(back[i] == value + i);
}

/* One thread gives a held stream more chunks than a connection has slots, changes the source, and lets the stream go. */
static void behind_a_held_stream(void)
{
	up_begin();
	for (uint32_t round = 0; round < 5; round++) {
		hold_up();
		write_host(1);
		for (int i = 0; i < 10; i++)
			OK(cuMemcpyHtoDAsync(up.device, host, BYTES, up.held));
		write_host(1000 * round);
		release_held();
		OK(cuStreamSynchronize(up.held));
		memset(host, 0, BYTES);
		expect_device(1000 * round);
	}
	up_end();
}

/* A host function waits for what its thread does after a later copy of the stream, and writes that copy's source. */
static sem_t may_go;

static void wait_and_write(void *argument)
{
	while (sem_wait(&may_go))
		;
	write_host((uint32_t)(uintptr_t)argument);
}

static void host_function_waits(void)
{
	up_begin();
	for (uint32_t round = 1; round <= 5; round++) {
		uint32_t n = round % 2 ? WORDS : 16;
		OK(cuMemsetD32(up.device, 3, WORDS));
		OK(cuCtxSynchronize());
		OK(cuLaunchHostFunc(up.held, wait_and_write, (void *)(uintptr_t)(round * 77)));
		OK(cuMemcpyHtoDAsync(up.device, host, n * 4, up.held));
		sem_post(&may_go);
		OK(cuStreamSynchronize(up.held));
		uint32_t first, last;
		OK(cuMemcpyDtoH(&first, up.device, 4));
		OK(cuMemcpyDtoH(&last, up.device + (n - 1) * 4, 4));
		CHECK(first == round * 77 && last == round * 77 + n - 1);
	}
	up_end();
}

/* The same with a small copy from pageable memory: CUDA reads it during the call, and the call waits for nothing. */
static void small_pageable_source(void)
{
	uint32_t source[16], back[16];
	up_begin();
	for (uint32_t round = 1; round <= 5; round++) {
		for (uint32_t i = 0; i < 16; i++)
			source[i] = round * 5 + i;
		OK(cuLaunchHostFunc(up.held, wait_and_write, (void *)(uintptr_t)round));
		OK(cuMemcpyHtoDAsync(up.device, source, sizeof source, up.held));
		memset(source, 0, sizeof source);
		sem_post(&may_go);
		OK(cuStreamSynchronize(up.held));
		OK(cuMemcpyDtoH(back, up.device, sizeof back));
		for (uint32_t i = 0; i < 16; i++)
			CHECK(back[i] == round * 5 + i);
	}
	up_end();
}

/* The program changes the source of small copies while their stream waits for a value. */
static void small_behind_a_held_stream(void)
{
	uint32_t back[16];
	up_begin();
	for (uint32_t round = 0; round < 5; round++) {
		hold_up();
		write_host(1);
		OK(cuMemcpyHtoDAsync(up.device, host, sizeof back, up.held));
		write_host(1000 * round);
		release_held();
		OK(cuStreamSynchronize(up.held));
		OK(cuMemcpyDtoH(back, up.device, sizeof back));
		for (uint32_t i = 0; i < 16; i++)
			CHECK(back[i] == 1000 * round + i);
	}
	up_end();
}

/* To the host and from there to another place on the device, and the memory is unregistered while copies are pending. */
static void there_and_back(void)
{
	CUdeviceptr second;
	up_begin();
	OK(cuMemAlloc(&second, BYTES));
	for (uint32_t round = 1; round <= 5; round++) {
		uint32_t *own = malloc(BYTES);
		CHECK(own);
		OK(cuMemHostRegister(own, BYTES, 0));
		OK(cuMemsetD32Async(second, round, WORDS, up.held));
		OK(cuMemcpyDtoHAsync(own, second, BYTES, up.held));
		OK(cuMemcpyHtoDAsync(up.device, own, BYTES, up.held));
		OK(cuMemcpyDtoHAsync(host, up.device, BYTES, up.held));
		OK(cuMemHostUnregister(own));
		free(own);
		OK(cuStreamSynchronize(up.held));
		CHECK(host[0] == round && host[WORDS - 1] == round);
	}
	OK(cuMemFree(second));
	up_end();
}

/* Rows with gaps on both sides. */
static void rows(void)
{
	enum { WIDTH = 1000, PITCH = 1024, HEIGHT = BYTES / PITCH / 4 };
	up_begin();
	write_host(9);
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = WIDTH + 24,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = up.device, .dstPitch = PITCH,
			       .WidthInBytes = WIDTH, .Height = HEIGHT };
	OK(cuMemsetD8(up.device, 0, BYTES));
	OK(cuCtxSynchronize());
	OK(cuMemcpy2DAsync(&copy, up.held));
	OK(cuStreamSynchronize(up.held));
	uint8_t *back = malloc(BYTES);
	CHECK(back);
	OK(cuMemcpyDtoH(back, up.device, BYTES));
	for (size_t y = 0; y < HEIGHT; y++)
		for (size_t x = 0; x < PITCH; x++)
			CHECK(back[y * PITCH + x] == (x < WIDTH ? ((uint8_t *)host)[y * (WIDTH + 24) + x] : 0));
	free(back);
	up_end();
}

/* Many copies to the host in a held stream, in other streams, and in one that they delay. No call waits. */
static void many_are_pending(void)
{
	int copies = few_kept ? 30 : 4;
	CUstream fast;
	CUdeviceptr word;
	uint32_t *value = calloc(1, 4096);
	CHECK(value);
	up_begin();
	OK(cuStreamCreate(&fast, CU_STREAM_NON_BLOCKING));
	OK(cuMemHostRegister(value, 4096, 0));
	OK(cuMemAlloc(&word, 4));
	for (uint32_t round = 1; round <= 3; round++) {
		OK(cuMemsetD32Async(up.device, round, WORDS, up.other));
		OK(cuStreamSynchronize(up.other));
		hold_up();
		for (int i = 0; i < copies; i++)
			OK(cuMemcpyDtoHAsync(host, up.device, BYTES, up.held));
		/* What follows a copy in its stream does not change the copy's bytes. */
		OK(cuMemsetD32Async(up.device, 9999, WORDS, up.held));
		OK(cuMemsetD32Async(word, round, 1, fast));
		OK(cuMemcpyDtoHAsync(value, word, 4, fast));
		OK(cuStreamSynchronize(fast));
		CHECK(*value == round);
		host[0] = 0;
		release_held();
		OK(cuMemsetD32Async(word, 7 * round, 1, fast));
		OK(cuMemcpyDtoHAsync(value, word, 4, fast));
		OK(cuStreamSynchronize(fast));
		CHECK(*value == 7 * round);
		OK(cuStreamSynchronize(up.held));
		for (uint32_t i = 0; i < WORDS; i++)
			CHECK(host[i] == round);
	}
	OK(cuMemHostUnregister(value));
	OK(cuMemFree(word));
	OK(cuStreamDestroy(fast));
	free(value);
	up_end();
}

/* Such rows in both directions at a time. */
static void rows_both_ways(void)
{
	enum { WIDTH = 1000, PITCH = 1024, HEIGHT = BYTES / PITCH / 4 };
	CUdeviceptr second;
	uint8_t *to = malloc(BYTES);
	CHECK(to);
	up_begin();
	OK(cuMemAlloc(&second, BYTES));
	OK(cuMemHostRegister(to, BYTES, 0));
	for (uint32_t round = 0; round < 10; round++) {
		write_host(round);
		CUDA_MEMCPY2D there = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = PITCH,
					.dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = up.device, .dstPitch = PITCH,
					.WidthInBytes = WIDTH, .Height = HEIGHT };
		CUDA_MEMCPY2D back = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = second, .srcPitch = PITCH,
				       .dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = to, .dstPitch = PITCH,
				       .WidthInBytes = WIDTH, .Height = HEIGHT };
		OK(cuMemsetD8(second, (unsigned char)(100 + round), BYTES));
		OK(cuCtxSynchronize());
		OK(cuMemcpy2DAsync(&there, up.held));
		OK(cuMemcpy2DAsync(&back, up.other));
		OK(cuCtxSynchronize());
		for (size_t y = 0; y < HEIGHT; y++)
			for (size_t x = 0; x < WIDTH; x++)
				CHECK(to[y * PITCH + x] == 100 + round);
		OK(cuMemcpyDtoH(to, up.device, BYTES));
		for (size_t y = 0; y < HEIGHT; y++)
			CHECK(!memcmp(to + y * PITCH, (uint8_t *)host + y * PITCH, WIDTH));
	}
	OK(cuMemHostUnregister(to));
	OK(cuMemFree(second));
	free(to);
	up_end();
}

/* Copies up and down in three streams, which are held and let go in turns. */
static void three_streams(void)
{
	struct {
		CUstream stream;
		CUdeviceptr device, flag;
		uint32_t *from, *to;
	} lane[3];
	CUstream free_stream;
	unsigned seed = 7;
	OK(cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < 3; i++) {
		OK(cuStreamCreate(&lane[i].stream, CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&lane[i].device, BYTES));
		OK(cuMemAlloc(&lane[i].flag, 4));
		lane[i].from = malloc(BYTES);
		lane[i].to = malloc(BYTES);
		CHECK(lane[i].from && lane[i].to);
		OK(cuMemHostRegister(lane[i].from, BYTES, 0));
		OK(cuMemHostRegister(lane[i].to, BYTES, 0));
	}
	for (uint32_t round = 0; round < 6; round++) {
		for (uint32_t i = 0; i < 3; i++) {
			OK(cuMemsetD32Async(lane[i].flag, 0, 1, free_stream));
			OK(cuStreamSynchronize(free_stream));
			OK(cuStreamWaitValue32(lane[i].stream, lane[i].flag, 1, CU_STREAM_WAIT_VALUE_EQ));
			for (uint32_t j = 0; j < WORDS; j++)
				lane[i].from[j] = round * 5 + i + j;
			OK(cuMemcpyHtoDAsync(lane[i].device, lane[i].from, BYTES, lane[i].stream));
			OK(cuMemcpyDtoHAsync(lane[i].to, lane[i].device, BYTES, lane[i].stream));
		}
		for (unsigned i = 0, first = (unsigned)rand_r(&seed) % 3; i < 3; i++) {
			OK(cuStreamWriteValue32(free_stream, lane[(first + i) % 3].flag, 1, 0));
			for (volatile unsigned spin = (unsigned)rand_r(&seed) % 200000; spin; spin--)
				;
		}
		for (uint32_t i = 0; i < 3; i++) {
			OK(cuStreamSynchronize(lane[i].stream));
			for (uint32_t j = 0; j < WORDS; j++)
				CHECK(lane[i].to[j] == round * 5 + i + j);
		}
	}
	for (int i = 0; i < 3; i++) {
		OK(cuStreamDestroy(lane[i].stream));
		OK(cuMemFree(lane[i].device));
		OK(cuMemFree(lane[i].flag));
		OK(cuMemHostUnregister(lane[i].from));
		OK(cuMemHostUnregister(lane[i].to));
		free(lane[i].from);
		free(lane[i].to);
	}
	OK(cuStreamDestroy(free_stream));
}

/* The context ends while a copy to its memory is pending. */
static void context_ends_before_the_bytes(void)
{
	for (int round = 0; round < 5; round++) {
		CUcontext passing;
		CUstream stream;
		CUdeviceptr device;
		OK(cuCtxCreate(&passing, NULL, 0, 0));
		OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&device, BYTES));
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		OK(cuCtxDestroy(passing));
		OK(cuCtxSetCurrent(context));
		OK(cuCtxSynchronize());
	}
}

/* A copy after a kernel that faults: an error says so, and no byte comes when the memory is the program's again. */
static void fault(void)
{
	CUstream stream;
	CUdeviceptr device;
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemsetD32(device, 5, WORDS));
	OK(cuCtxSynchronize());
	OK(launch("fault", stream, &code, NULL));
	host[0] = 1;
	(void)cuMemcpyDtoHAsync(host, device, BYTES, stream);
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	CHECK(host[0] == 1);
}

/* ---- small copies behind a kernel, whose source the program changes before it lets the kernel end ---- */

enum { SMALL_WORDS = 16, SMALL = SMALL_WORDS * 4, LONGEST = 64 << 10 };

/* A kernel holds the stream until the flag, memory of the device, is set by another stream. */
static void hold_by_kernel(void)
{
	OK(cuMemsetD32Async(up.flag, 0, 1, up.other));
	OK(cuStreamSynchronize(up.other));
	hold(up.held, up.flag);
}

static void end_kernel(void)
{
	OK(cuMemsetD32Async(up.flag, 1, 1, up.other));
	OK(cuStreamSynchronize(up.held));
}

static void expect_words(CUdeviceptr at, uint32_t words, uint32_t value)
{
	uint32_t *back = malloc(words * 4);
	CHECK(back);
	OK(cuMemcpyDtoH(back, at, words * 4));
	for (uint32_t i = 0; i < words; i++)
		CHECK(back[i] == value + i);
	free(back);
}

/* Also what follows a copy in its stream sees the last bytes, however often they change. Beside calls that let nothing go on, and
 * that do. */
static void changed_behind_a_kernel(void)
{
	static const uint32_t words[] = { 1, SMALL_WORDS, SMALL_WORDS + 1, 1000, LONGEST / 4 };
	CUdeviceptr second;
	up_begin();
	OK(cuMemAlloc(&second, BYTES));
	for (uint32_t round = 0; round < 5; round++) {
		uint32_t n = words[round];
		hold_by_kernel();
		write_host(1);
		OK(cuMemcpyHtoDAsync(up.device, host, n * 4, up.held));
		OK(cuMemcpyDtoDAsync(second, up.device, n * 4, up.held));
		write_host(2);
		OK(cuMemsetD8Async(second + BYTES - 4, 0, 4, up.other));
		write_host(3000 * round);
		end_kernel();
		expect_words(up.device, n, 3000 * round);
		expect_words(second, n, 3000 * round);
	}
	OK(cuMemFree(second));
	up_end();
}

/* A copy to the host changes the source, and its own stream lets the kernel end afterwards: no call comes between the two. */
static void changed_by_a_copy(void)
{
	CUdeviceptr from, flag;
	CUstream stream;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR row = { .Width = SMALL_WORDS, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1 };
	up_begin();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&from, SMALL));
	OK(cuMemAlloc(&flag, 4));
	OK(cuArrayCreate(&array, &row));
	for (uint32_t round = 0; round < 4; round++) {
		write_host(100 * round + 7);
		OK(cuMemcpyHtoD(from, host, SMALL));
		OK(cuMemcpyHtoA(array, 0, host, SMALL));
		OK(cuMemsetD32Async(flag, 0, 1, up.other));
		hold_by_kernel();
		write_host(1);
		OK(cuMemcpyHtoDAsync(up.device, host, SMALL, up.held));
		hold(stream, flag);
		if (round % 2)
			OK(cuMemcpyDtoHAsync(host, from, SMALL, stream));
		else
			OK(cuMemcpyAtoHAsync(host, array, 0, SMALL, stream));
		OK(cuMemsetD32Async(up.flag, 1, 1, stream));
		OK(cuMemsetD32Async(flag, 1, 1, up.other));
		OK(cuStreamSynchronize(up.held));
		OK(cuStreamSynchronize(stream));
		expect_words(up.device, SMALL_WORDS, 100 * round + 7);
	}
	OK(cuArrayDestroy(array));
	OK(cuMemFree(flag));
	OK(cuMemFree(from));
	OK(cuStreamDestroy(stream));
	up_end();
}

/* Many copies of three streams with a few sources, which change again and again: copies with one source are compared as one. */
static void sources_shared(void)
{
	enum { COPIES = 300, SOURCES = 3 };
	CUstream third;
	unsigned seed = 11;
	up_begin();
	OK(cuStreamCreate(&third, CU_STREAM_NON_BLOCKING));
	for (uint32_t round = 0; round < 4; round++) {
		CUstream streams[] = { up.held, third, CU_STREAM_PER_THREAD };
		OK(cuMemsetD32Async(up.flag, 0, 1, up.other));
		OK(cuStreamSynchronize(up.other));
		for (int i = 0; i < 3; i++)
			hold(streams[i], up.flag);
		write_host(1);
		for (uint32_t i = 0; i < COPIES; i++) {
			uint32_t source = (uint32_t)rand_r(&seed) % SOURCES;
			if (i % 7 == 3)
				host[source * SMALL_WORDS + i % SMALL_WORDS] = i + round;
			OK(cuMemcpyHtoDAsync(up.device + i * SMALL, host + i % SOURCES * SMALL_WORDS, SMALL,
					     streams[(uint32_t)rand_r(&seed) % 3]));
		}
		for (uint32_t i = 0; i < SOURCES; i++)
			host[i * SMALL_WORDS + round] = 1000 * round + i;
		end_kernel();
		OK(cuCtxSynchronize());
		for (uint32_t i = 0; i < COPIES; i++) {
			uint32_t back[SMALL_WORDS];
			OK(cuMemcpyDtoH(back, up.device + i * SMALL, SMALL));
			CHECK(!memcmp(back, host + i % SOURCES * SMALL_WORDS, SMALL));
		}
	}
	OK(cuStreamDestroy(third));
	up_end();
}

/* Many copies of two streams; each has a source of its own. Some sources do not change. */
static void many_changed(void)
{
	enum { COPIES = 200 };
	up_begin();
	for (uint32_t round = 0; round < 3; round++) {
		hold_by_kernel();
		write_host(1);
		for (uint32_t i = 0; i < COPIES; i++) {
			CUstream stream = i % 2 ? up.held : CU_STREAM_PER_THREAD;
			OK(launch("nothing", stream, NULL, NULL));
			OK(cuMemcpyHtoDAsync(up.device + i * SMALL, host + i * SMALL_WORDS, SMALL, stream));
		}
		for (uint32_t i = 1; i < COPIES; i += 6)
			host[i * SMALL_WORDS + 5] = 7 + round;
		end_kernel();
		OK(cuCtxSynchronize());
		for (uint32_t i = 0; i < COPIES; i++) {
			uint32_t back[SMALL_WORDS];
			OK(cuMemcpyDtoH(back, up.device + i * SMALL, SMALL));
			CHECK(!memcmp(back, host + i * SMALL_WORDS, SMALL));
		}
	}
	up_end();
}

/* The kernel ends by work that was given before the source changed, behind a host function. */
static void await(void *unused)
{
	(void)unused;
	while (sem_wait(&may_go))
		;
}

static void changed_before_a_function_ends(void)
{
	up_begin();
	for (uint32_t round = 0; round < 5; round++) {
		hold_by_kernel();
		write_host(1);
		OK(cuMemcpyHtoDAsync(up.device, host, SMALL, up.held));
		OK(cuLaunchHostFunc(up.other, await, NULL));
		OK(cuMemsetD32Async(up.flag, 1, 1, up.other));
		write_host(50 * round);
		sem_post(&may_go);
		OK(cuStreamSynchronize(up.held));
		expect_words(up.device, SMALL_WORDS, 50 * round);
	}
	up_end();
}

/* Another thread lets the kernel end. */
static void *end_it(void *argument)
{
	(void)argument;
	OK(cuCtxSetCurrent(context));
	OK(cuMemsetD32Async(up.flag, 1, 1, CU_STREAM_PER_THREAD));
	return NULL;
}

static void changed_before_another_thread(void)
{
	up_begin();
	for (uint32_t round = 0; round < 5; round++) {
		pthread_t thread;
		hold_by_kernel();
		write_host(1);
		OK(cuMemcpyHtoDAsync(up.device, host, SMALL, up.held));
		write_host(60 * round);
		CHECK(!pthread_create(&thread, NULL, end_it, NULL));
		OK(cuStreamSynchronize(up.held));
		pthread_join(thread, NULL);
		expect_words(up.device, SMALL_WORDS, 60 * round);
	}
	up_end();
}

/* Rows with gaps on both sides. */
static void changed_rows(void)
{
	enum { WIDTH = 12, HEIGHT = 20, PITCH = 64 };
	uint8_t back[HEIGHT * PITCH];
	up_begin();
	CUDA_MEMCPY2D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = host, .srcPitch = 2 * PITCH,
			       .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = up.device, .dstPitch = PITCH,
			       .WidthInBytes = WIDTH, .Height = HEIGHT };
	for (uint32_t round = 1; round < 4; round++) {
		OK(cuMemsetD8(up.device, 0, sizeof back));
		hold_by_kernel();
		write_host(1);
		OK(cuMemcpy2DAsync(&copy, up.held));
		host[19 * PITCH / 2] = round;
		host[PITCH / 2 + 3] = 99; /* in a gap */
		end_kernel();
		OK(cuMemcpyDtoH(back, up.device, sizeof back));
		for (size_t y = 0; y < HEIGHT; y++)
			CHECK(!memcmp(back + y * PITCH, (uint8_t *)host + y * 2 * PITCH, WIDTH) && !back[y * PITCH + WIDTH]);
	}
	up_end();
}

/* True if the server counts as one of another host, and the bytes of small copies behind a kernel leave with their calls. */
static bool is_far(void)
{
	const char *transport = getenv("HEADRACE_TRANSPORT");
	return transport && !strcmp(transport, "tcp");
}

/* More copies than the client keeps, behind a kernel: no call waits for it. */
static void changed_and_many(void)
{
	enum { COPIES = 4300 };
	if (!is_far())
		return;
	up_begin();
	hold_by_kernel();
	write_host(1);
	for (uint32_t i = 0; i < COPIES; i++)
		OK(cuMemcpyHtoDAsync(up.device + 4 * i, host + i, 4, up.held));
	write_host(5);
	end_kernel();
	expect_words(up.device, COPIES, 5);
	up_end();
}

/* The device completes copies while the program makes more than the client keeps, in two streams. */
static void changed_and_going_on(void)
{
	enum { COPIES = 6000 };
	if (!is_far())
		return;
	up_begin();
	write_host(1);
	for (uint32_t i = 0; i < COPIES; i++) {
		CUstream stream = i % 3 ? up.held : up.other;
		OK(launch("nothing", stream, NULL, NULL));
		OK(cuMemcpyHtoDAsync(up.device + 4 * i, host + i, 4, stream));
	}
	OK(cuCtxSynchronize());
	expect_words(up.device, COPIES, 1);
	up_end();
}

/* The program takes its memory back, and unmaps it: it is not read any more. The stream and its handle end too. On one host the call
 * that takes the memory back waits for the copy, and so for the kernel. */
static void source_ends(void)
{
	if (!is_far())
		return;
	up_begin();
	for (uint32_t round = 1; round < 5; round++) {
		uint32_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CUstream passing;
		CHECK(own != MAP_FAILED);
		OK(cuMemHostRegister(own, 4096, 0));
		own[0] = 70 + round;
		hold_by_kernel();
		OK(cuMemcpyHtoDAsync(up.device, own, 4, up.held));
		OK(cuMemHostUnregister(own));
		CHECK(!munmap(own, 4096));
		OK(cuStreamCreate(&passing, CU_STREAM_NON_BLOCKING));
		hold(passing, up.flag);
		OK(cuMemcpyHtoDAsync(up.device + 4, host, 4, passing));
		OK(cuStreamDestroy(passing));
		host[0] = round;
		end_kernel();
		expect_words(up.device, 1, 70 + round);
		OK(cuCtxSynchronize());
		expect_words(up.device + 4, 1, round);
	}
	up_end();
}

/* A stream is held for long, and the server has much memory for copies behind it. The memory for copies of another stream is used
 * again all the same. */
static void reused_beside_a_held_stream(void)
{
	enum { COPIES = 1400 }; /* of 64 KB: more than the server allocates if HEADRACE_STAGING is 1M */
	if (!is_far() || !few_kept)
		return;
	up_begin();
	hold_by_kernel();
	write_host(1);
	for (int i = 0; i < 12; i++)
		OK(cuMemcpyHtoDAsync(up.device, host, LONGEST, up.held));
	for (int i = 0; i < COPIES; i++) {
		OK(cuMemcpyHtoDAsync(up.device + LONGEST, host, LONGEST, up.other));
		OK(cuStreamSynchronize(up.other));
	}
	host[0] = 2;
	end_kernel();
	write_host(1);
	expect_words(up.device + LONGEST, LONGEST / 4, 1);
	uint32_t first;
	OK(cuMemcpyDtoH(&first, up.device, 4));
	CHECK(first == 2);
	up_end();
}

/* The thread ends, and a copy in its default stream is still held. The copies of later threads, in theirs, do not disturb it. */
static void *copy_and_end(void *source)
{
	OK(cuCtxSetCurrent(context));
	hold(CU_STREAM_PER_THREAD, up.flag);
	OK(cuMemcpyHtoDAsync(up.device, source, 4, CU_STREAM_PER_THREAD));
	return NULL;
}

static void *copy_often(void *source)
{
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 200; i++) {
		OK(cuMemcpyHtoDAsync(up.device + 4, source, 4, CU_STREAM_PER_THREAD));
		OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	}
	return NULL;
}

static void thread_ends(void)
{
	pthread_t thread;
	up_begin();
	write_host(30);
	OK(cuMemsetD32(up.flag, 0, 1));
	CHECK(!pthread_create(&thread, NULL, copy_and_end, host));
	pthread_join(thread, NULL);
	for (int i = 0; i < 10; i++) {
		CHECK(!pthread_create(&thread, NULL, copy_often, host + 5));
		pthread_join(thread, NULL);
	}
	OK(cuMemsetD32Async(up.flag, 1, 1, up.other));
	OK(cuCtxSynchronize());
	expect_words(up.device, 1, 30);
	up_end();
}

/* The context of a copy ends, and the program unmaps memory that was registered there: it is not read any more. */
static void source_ends_with_its_context(void)
{
	CUcontext ending;
	CUstream stream;
	CUdeviceptr device;
	uint32_t *own = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(own != MAP_FAILED);
	up_begin();
	hold_by_kernel();
	OK(cuCtxCreate(&ending, NULL, 0, 0));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, 4096));
	OK(cuMemHostRegister(own, 4096, 0));
	OK(cuMemcpyHtoDAsync(device, own, 4, stream));
	OK(cuCtxDestroy(ending));
	CHECK(!munmap(own, 4096));
	OK(cuCtxSetCurrent(context));
	OK(cuMemsetD32Async(up.device, 1, 1, up.other));
	end_kernel();
	up_end();
}

/* Behind a kernel, a copy in a stream of another device than the current one. */
static void stream_of_another_device(void)
{
	CUcontext second;
	CUstream stream;
	CUdeviceptr device;
	int devices;
	OK(cuDeviceGetCount(&devices));
	if (devices < 2)
		return;
	OK(cuDevicePrimaryCtxRetain(&second, 1));
	OK(cuCtxSetCurrent(second));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuCtxSetCurrent(context));
	up_begin();
	for (uint32_t round = 1; round < 5; round++) {
		hold_by_kernel();
		write_host(round);
		OK(cuMemcpyHtoDAsync(device, host, SMALL, stream));
		OK(cuStreamSynchronize(stream));
		expect_words(device, SMALL_WORDS, round);
		end_kernel();
	}
	up_end();
	OK(cuMemFree(device));
	OK(cuStreamDestroy(stream));
	OK(cuDevicePrimaryCtxRelease(1));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { /* First: after a wait for a value in a process with several contexts, no copy is sent early. */
		      { "changed", changed_behind_a_kernel }, { "many-changed", many_changed },
		      { "by-copy", changed_by_a_copy }, { "shared", sources_shared },
		      { "function-ends", changed_before_a_function_ends }, { "thread", changed_before_another_thread },
		      { "changed-rows", changed_rows }, { "full", changed_and_many }, { "going-on", changed_and_going_on },
		      { "source-ends", source_ends }, { "reused", reused_beside_a_held_stream }, { "thread-ends", thread_ends },
		      { "context-ends", source_ends_with_its_context }, { "device", stream_of_another_device },
		      { "polled", polled }, { "held", beside_a_held_stream }, { "threads", two_threads },
		      { "context", context_ends }, { "behind", behind_a_held_stream },
		      { "function", host_function_waits }, { "pageable", small_pageable_source },
		      { "small", small_behind_a_held_stream }, { "back", there_and_back }, { "rows", rows },
		      { "ways", rows_both_ways }, { "many", many_are_pending },
		      { "three", three_streams }, { "ending", context_ends_before_the_bytes },
		      { "fault", fault } };
	few_kept = getenv("HEADRACE_STAGING");
	CHECK(!sem_init(&may_go, 0, 0));
	context = start();
	kernel("wait"); /* loaded before a stream is held */
	host = calloc(WORDS, 4);
	CHECK(host);
	OK(cuMemHostRegister(host, BYTES, 0));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc < 2 || !strcmp(argv[1], cases[i].name))
			cases[i].run();
	(void)cuMemHostUnregister(host); /* after the fault it returns the context's error */
	free(host);
	return 0;
}
