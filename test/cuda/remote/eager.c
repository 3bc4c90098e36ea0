/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous copies to the device of 128 KB from memory that the worker has not mapped. eager CASE: makes COPIES of them after
 * work that has ended, or while a stream may be held. The script counts how many of them the client has sent during the call.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>

enum { WORDS = 32 << 10, BYTES = WORDS * 4, LONG_BYTES = 4 << 20, COPIES = 40 };

static uint32_t *host;
static CUdeviceptr device, flag;
static CUstream stream, other;

static void write_host(uint32_t value)
{
	for (uint32_t i = 0; i < WORDS; i++)
		host[i] = value + i;
}

static void expect(uint32_t value)
{
	static uint32_t back[WORDS];
	OK(cuMemcpyDtoHAsync(back, device, BYTES, stream));
	for (uint32_t i = 0; i < WORDS; i++)
		CHECK(back[i] == value + i);
}

/* Copies these words in the stream. */
static void copy_value(uint32_t value, CUstream in)
{
	write_host(value);
	OK(cuMemcpyHtoDAsync(device, host, BYTES, in));
}

static void kernel_in(CUstream in)
{
	OK(launch("nothing", in, NULL, NULL));
}

/* The stream waits until go. */
static void hold_stream(CUstream held)
{
	OK(cuMemsetD32Async(flag, 0, 1, other));
	OK(cuStreamSynchronize(other));
	OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void go(void)
{
	OK(cuStreamWriteValue32(other, flag, 1, 0));
}

/* ---- sent during the call ---- */

static void after_a_stream(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		copy_value(i, stream);
		kernel_in(stream);
		OK(cuStreamSynchronize(stream));
	}
	expect(COPIES - 1);
}

static void after_the_context(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		copy_value(i, NULL);
		kernel_in(stream);
		kernel_in(other);
		OK(cuCtxSynchronize());
	}
	expect(COPIES - 1);
}

/* The copy back waits for the stream. */
static void after_a_copy_back(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		copy_value(i, stream);
		kernel_in(stream);
		expect(i);
	}
}

/* Several copies in a row, with fills between them. Neither copies nor fills hold a stream. */
static void several(void)
{
	write_host(5);
	for (uint32_t i = 0; i < COPIES / 4; i++) {
		for (int each = 0; each < 4; each++) {
			OK(cuMemsetD8Async(device, 0, BYTES, stream));
			OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		}
		OK(cuStreamSynchronize(stream));
	}
	expect(5);
}

/* ---- read when the stream gets there ---- */

static void behind_a_kernel(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		kernel_in(stream);
		copy_value(i, stream);
		OK(cuStreamSynchronize(stream));
	}
	expect(COPIES - 1);
}

/* The program writes the source after the call. */
static void behind_a_wait(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		hold_stream(stream);
		copy_value(1, stream);
		write_host(i * 3);
		go();
		OK(cuStreamSynchronize(stream));
		expect(i * 3);
	}
}

/* One stream is held, the program waits for another one, and the copy's stream waits for the first by an event. */
static void behind_another_stream(void)
{
	CUstream held;
	CUevent event;
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	for (uint32_t i = 0; i < COPIES; i++) {
		hold_stream(held);
		OK(cuEventRecord(event, held));
		kernel_in(other);
		OK(cuStreamSynchronize(other));
		OK(cuStreamWaitEvent(stream, event, 0));
		copy_value(1, stream);
		write_host(i * 3);
		go();
		OK(cuStreamSynchronize(stream));
		expect(i * 3);
	}
	OK(cuStreamDestroy(held));
	OK(cuEventDestroy(event));
}

/* The same with the legacy default stream, which waits for the held stream by itself. */
static void in_the_default_stream(void)
{
	CUstream blocking;
	OK(cuStreamCreate(&blocking, 0));
	for (uint32_t i = 0; i < COPIES; i++) {
		hold_stream(blocking);
		copy_value(1, NULL);
		write_host(i * 3);
		go();
		OK(cuStreamSynchronize(NULL));
		expect(i * 3);
	}
	OK(cuStreamDestroy(blocking));
}

/* Each context has a default stream of its own: a wait for the one says nothing of the other. */
static void in_two_default_streams(void)
{
	CUcontext context, second;
	CUdevice number;
	OK(cuCtxGetCurrent(&context));
	OK(cuCtxGetDevice(&number));
	OK(cuCtxCreate(&second, NULL, 0, number));
	for (uint32_t i = 0; i < COPIES; i++) {
		OK(cuCtxSetCurrent(context));
		hold_stream(NULL);
		OK(cuCtxSetCurrent(second));
		OK(cuStreamSynchronize(NULL));
		OK(cuCtxSetCurrent(context));
		copy_value(1, NULL);
		write_host(i * 3);
		go();
		OK(cuStreamSynchronize(NULL));
		expect(i * 3);
	}
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(context));
}

static void write_host_function(void *argument)
{
	write_host((uint32_t)(uintptr_t)argument);
}

static void behind_a_function(void)
{
	for (uint32_t i = 0; i < COPIES; i++) {
		hold_stream(stream);
		OK(cuLaunchHostFunc(stream, write_host_function, (void *)(uintptr_t)i));
		copy_value(9999, stream);
		go();
		OK(cuStreamSynchronize(stream));
		expect(i);
	}
}

/* The source is what an earlier copy of the stream writes. Every other copy is small. */
static void behind_a_copy(void)
{
	CUdeviceptr from;
	OK(cuMemAlloc(&from, BYTES));
	for (uint32_t i = 0; i < COPIES; i++) {
		size_t bytes = i % 2 ? BYTES : 4096;
		uint32_t back;
		OK(cuMemsetD32(from, 100 + i, WORDS));
		OK(cuCtxSynchronize());
		hold_stream(stream);
		write_host(0);
		OK(cuMemcpyDtoHAsync(host, from, BYTES, stream));
		OK(cuMemcpyHtoDAsync(device, host, bytes, stream));
		go();
		OK(cuStreamSynchronize(stream));
		OK(cuMemcpyDtoH(&back, device + bytes - 4, 4));
		CHECK(back == 100 + i);
	}
	OK(cuMemFree(from));
}

static void large(void)
{
	CUdeviceptr to;
	OK(cuMemAlloc(&to, LONG_BYTES));
	for (uint32_t i = 0; i < COPIES; i++) {
		OK(cuMemcpyHtoDAsync(to, host, LONG_BYTES, stream));
		OK(cuStreamSynchronize(stream));
	}
	OK(cuMemFree(to));
}

/* Another thread's kernel, in a stream that this thread does not wait for. */
static void *launcher(void *context)
{
	OK(cuCtxSetCurrent(context));
	hold_stream(other);
	return NULL;
}

static void behind_a_thread(void)
{
	CUstream writer;
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
	for (uint32_t i = 0; i < COPIES; i++) {
		pthread_t thread;
		kernel_in(stream);
		CHECK(!pthread_create(&thread, NULL, launcher, context));
		pthread_join(thread, NULL);
		OK(cuStreamSynchronize(stream));
		copy_value(1, other);
		write_host(i * 3);
		OK(cuStreamWriteValue32(writer, flag, 1, 0));
		OK(cuStreamSynchronize(other));
		expect(i * 3);
	}
	OK(cuStreamDestroy(writer));
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "stream", after_a_stream }, { "context", after_the_context }, { "back", after_a_copy_back },
		      { "several", several }, { "kernel", behind_a_kernel }, { "wait", behind_a_wait },
		      { "another", behind_another_stream }, { "default", in_the_default_stream },
		      { "defaults", in_two_default_streams },
		      { "function", behind_a_function }, { "copy", behind_a_copy }, { "large", large },
		      { "thread", behind_a_thread } };
	bool found = false;
	start();
	kernel("nothing"); /* loaded before a stream is held */
	host = calloc(1, LONG_BYTES);
	CHECK(host && argc == 2);
	OK(cuMemHostRegister(host, LONG_BYTES, 0));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemAlloc(&flag, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (!strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			found = true;
		}
	CHECK(found);
	OK(cuMemHostUnregister(host));
	free(host);
	return 0;
}
