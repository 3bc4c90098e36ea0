/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for streams and events of which the client knows whether they are complete. waits CASE: the script counts which of its
 * waits the client has sent. The cases that end with a failure of the context come alone.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

enum { ROUNDS = 40, WORDS = 1000, PEER_ROUNDS = 10 };

static CUdeviceptr device, flag;
static CUstream stream, other, writer;
static CUevent event, second;

static void kernel_in(CUstream in)
{
	OK(launch("nothing", in, NULL, NULL));
}

/* The stream waits until go with the same flag: 0 or 1. */
static void hold_stream(CUstream held, unsigned which)
{
	OK(cuMemsetD32Async(flag + 4 * which, 0, 1, writer));
	OK(cuStreamSynchronize(writer));
	OK(cuStreamWaitValue32(held, flag + 4 * which, 1, CU_STREAM_WAIT_VALUE_EQ));
}

static void go(unsigned which)
{
	OK(cuStreamWriteValue32(writer, flag + 4 * which, 1, 0));
}

static void expect(uint32_t value)
{
	uint32_t back[WORDS];
	OK(cuMemcpyDtoHAsync(back, device, sizeof back, writer));
	for (int i = 0; i < WORDS; i++)
		CHECK(back[i] == value);
}

/* ---- complete ---- */

/* Nothing is under way, so each recording is complete at once. */
static void idle_events(void)
{
	OK(cuCtxSynchronize());
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuEventRecord(event, i % 2 ? stream : NULL));
		OK(cuEventQuery(event));
		OK(cuEventSynchronize(event));
	}
}

/* A program that only asks whether work is done, for at least 1.8 s. */
static void polled(void)
{
	kernel_in(stream);
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < 100; i++) {
		OK(cuStreamQuery(stream));
		usleep(20000);
	}
}

/* The first wait for each kernel is sent, and the others are not. */
static void streams_again(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		kernel_in(stream);
		OK(cuStreamSynchronize(stream));
		OK(cuStreamSynchronize(stream));
		OK(cuStreamQuery(NULL));
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		OK(cuCtxSynchronize());
	}
}

/* The same with a wait for an event, which other streams are under way beside. */
static void events_again(void)
{
	hold_stream(other, 0);
	for (int i = 0; i < ROUNDS; i++) {
		kernel_in(stream);
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		OK(cuEventQuery(event));
		OK(cuEventSynchronize(event));
	}
	go(0);
	OK(cuCtxSynchronize());
}

/* A query does not print what kernels have printed, so the wait after it is sent. The wait after that is not. */
static void after_a_query(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		CUresult result;
		kernel_in(stream);
		OK(cuEventRecord(event, stream));
		while ((result = cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
			;
		OK(result);
		OK(cuEventSynchronize(event));
		OK(cuEventSynchronize(event));
		kernel_in(stream);
		while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
			;
		OK(result);
		OK(cuMemGetInfo(&(size_t){ 0 }, &(size_t){ 0 }));
		OK(cuStreamSynchronize(stream));
		OK(cuStreamSynchronize(stream));
		OK(cuCtxSynchronize());
	}
}

/* The time between two events that only the client knows to be complete: the driver must have recorded them. */
static void elapsed(void)
{
	float ms = -1;
	CUevent of_time[2];
	OK(cuEventCreate(&of_time[0], 0));
	OK(cuEventCreate(&of_time[1], 0));
	OK(cuCtxSynchronize());
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuEventRecord(of_time[0], stream));
		OK(cuEventRecord(of_time[1], stream));
		OK(cuEventSynchronize(of_time[1]));
		OK(cuEventElapsedTime(&ms, of_time[0], of_time[1]));
		CHECK(ms >= 0);
	}
	OK(cuEventDestroy(of_time[0]));
	OK(cuEventDestroy(of_time[1]));
}

static uint32_t bits_of(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/* The time that came with a wait is the driver's, as long as neither event is recorded again. */
static void time_by(void (*wait)(CUevent last))
{
	float ms, again;
	CUevent first, last;
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		OK(cuEventRecord(first, stream));
		OK(cuMemsetD32Async(device, i, WORDS, stream));
		OK(cuEventRecord(last, stream));
		wait(last); /* from the second round on, the time comes with the answer */
		OK(cuEventElapsedTime(&ms, first, last));
		CHECK(ms > 0);
		OK(cuEventElapsedTime(&again, last, last)); /* sent, so that the next one is sent too */
		CHECK(again == 0);
		OK(cuEventElapsedTime(&again, first, last));
		CHECK(bits_of(again) == bits_of(ms));
	}
	OK(cuEventDestroy(first));
	OK(cuEventDestroy(last));
}

static void wait_by_event(CUevent last)
{
	OK(cuEventSynchronize(last));
}

static void timed(void)
{
	time_by(wait_by_event);
}

static void wait_by_stream(CUevent last)
{
	(void)last;
	OK(cuStreamSynchronize(stream));
}

static void timed_by_stream(void)
{
	time_by(wait_by_stream);
}

static void wait_by_context(CUevent last)
{
	(void)last;
	OK(cuCtxSynchronize());
}

static void timed_by_context(void)
{
	time_by(wait_by_context);
}

static void come_late(void *argument)
{
	usleep(5000);
	__atomic_store_n((bool *)argument, true, __ATOMIC_RELEASE);
}

/* A wait for the context waits for another stream too, although the event has been reached. */
static void timed_beside_work(void)
{
	float ms;
	CUevent first, last;
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		bool come = false;
		OK(cuLaunchHostFunc(other, come_late, &come));
		OK(cuEventRecord(first, stream));
		OK(cuMemsetD32Async(device, i, WORDS, stream));
		OK(cuEventRecord(last, stream));
		OK(cuCtxSynchronize());
		CHECK(__atomic_load_n(&come, __ATOMIC_ACQUIRE));
		OK(cuEventElapsedTime(&ms, first, last));
		CHECK(ms >= 0);
	}
	OK(cuEventDestroy(first));
	OK(cuEventDestroy(last));
}

/* The event that the program asks for is not the last work of the session, or not of the stream that it waits for. */
static void timed_before_work(void)
{
	float ms;
	CUevent first, last;
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		bool behind = i % 2;
		OK(cuEventRecord(first, stream));
		if (behind)
			OK(cuEventRecord(last, stream));
		OK(cuMemsetD32Async(device, i, WORDS, behind ? stream : other));
		if (!behind)
			OK(cuEventRecord(last, stream));
		OK(cuStreamSynchronize(behind ? stream : other));
		expect(i);
		if (!behind)
			OK(cuStreamSynchronize(stream));
		OK(cuEventElapsedTime(&ms, first, last));
	}
	OK(cuEventDestroy(first));
	OK(cuEventDestroy(last));
}

/* After a wait that has brought the time, one of the events is recorded again. */
static void timed_again(void)
{
	float ms, second_ms;
	CUevent first, last;
	OK(cuEventCreate(&first, 0));
	OK(cuEventCreate(&last, 0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		OK(cuEventRecord(first, stream));
		OK(cuMemsetD32Async(device, i, WORDS, stream));
		OK(cuEventRecord(last, stream));
		OK(cuEventSynchronize(last));
		OK(cuEventElapsedTime(&ms, first, last));
		CHECK(ms > 0);
		OK(cuEventRecord(first, stream));
		OK(cuStreamSynchronize(stream));
		OK(cuEventElapsedTime(&second_ms, first, last)); /* the first event is later now */
		CHECK(second_ms < 0);
		hold_stream(stream, 0);
		OK(cuEventRecord(first, stream));
		OK(cuEventRecord(last, other));
		OK(cuEventSynchronize(last));
		EXPECT(cuEventElapsedTime(&ms, first, last), CUDA_ERROR_NOT_READY);
		go(0);
		OK(cuStreamSynchronize(stream));
		OK(cuEventElapsedTime(&ms, first, last));
		CHECK(ms < 0);
	}
	OK(cuEventDestroy(first)); /* the next wait is for the other one alone */
	OK(cuMemsetD32Async(device, 1, WORDS, stream));
	OK(cuEventRecord(last, stream));
	OK(cuEventSynchronize(last));
	OK(cuEventDestroy(last));
}

/* ---- not complete ---- */

/* event is not complete before go, and what its stream does before it is done when a wait for it returns. */
static void expect_pending(CUevent of, unsigned which)
{
	EXPECT(cuEventQuery(of), CUDA_ERROR_NOT_READY);
	go(which);
	OK(cuEventSynchronize(of));
	OK(cuEventQuery(of));
}

static void held_stream(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		OK(cuCtxSynchronize());
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event)); /* the recording before is complete */
		hold_stream(stream, 0);
		OK(cuMemsetD32Async(device, i, WORDS, stream));
		OK(cuEventRecord(event, stream));
		EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		expect_pending(event, 0);
		expect(i);
	}
}

/* The default stream comes after the blocking streams. */
static void behind_a_blocking_stream(void)
{
	CUstream blocking;
	OK(cuStreamCreate(&blocking, 0));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		OK(cuCtxSynchronize());
		hold_stream(blocking, 0);
		OK(cuEventRecord(event, NULL));
		expect_pending(event, 0);
	}
	OK(cuStreamDestroy(blocking));
}

/* A stream that is waited for beside one that is held. */
static void beside_a_held_stream(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		hold_stream(stream, 0);
		OK(cuMemsetD32Async(device, i, WORDS, stream));
		kernel_in(other);
		OK(cuStreamSynchronize(other));
		OK(cuEventRecord(second, other));
		OK(cuEventSynchronize(second));
		OK(cuEventRecord(event, stream));
		EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		expect_pending(event, 0);
		expect(i);
	}
}

static void *wait_for_event(void *context)
{
	OK(cuCtxSetCurrent(context));
	OK(cuEventSynchronize(event));
	return NULL;
}

/* One thread waits for the event, and another records it again meanwhile. */
static void recorded_again(void)
{
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	for (uint32_t i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		hold_stream(stream, 0);
		hold_stream(other, 1);
		OK(cuEventRecord(event, stream));
		CHECK(!pthread_create(&thread, NULL, wait_for_event, context));
		if (i % 2)
			go(0);
		OK(cuEventRecord(event, other));
		EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		go(0);
		OK(cuStreamSynchronize(stream));
		EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
		go(1);
		pthread_join(thread, NULL);
		OK(cuEventSynchronize(event));
	}
}

static void *record_event(void *context)
{
	OK(cuCtxSetCurrent(context));
	hold_stream(stream, 0);
	OK(cuMemsetD32Async(device, 77, WORDS, stream));
	OK(cuEventRecord(event, stream));
	return NULL;
}

static void of_another_thread(void)
{
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t thread;
		OK(cuMemsetD32Async(device, 1, WORDS, stream));
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		CHECK(!pthread_create(&thread, NULL, record_event, context));
		pthread_join(thread, NULL);
		EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		expect_pending(event, 0);
		expect(77);
	}
}

/* A stream is destroyed before its work is done. */
static void destroyed_stream(void)
{
	for (uint32_t i = 0; i < ROUNDS; i++) {
		CUstream short_lived;
		OK(cuStreamCreate(&short_lived, CU_STREAM_NON_BLOCKING));
		OK(cuCtxSynchronize());
		hold_stream(short_lived, 0);
		OK(cuMemsetD32Async(device, i, WORDS, short_lived));
		OK(cuEventRecord(event, short_lived));
		OK(cuStreamDestroy(short_lived));
		kernel_in(other);
		OK(cuStreamSynchronize(other));
		expect_pending(event, 0);
		expect(i);
		hold_stream(other, 1);
		OK(cuMemsetD32Async(device, i + 1, WORDS, other));
		go(1);
		OK(cuCtxSynchronize());
		expect(i + 1);
	}
}

/* A launch of a graph records the event. */
static void in_a_graph(void)
{
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddEventRecordNode(&node, graph, NULL, 0, event));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuCtxSynchronize());
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		hold_stream(stream, 0);
		OK(cuGraphLaunch(exec, stream));
		expect_pending(event, 0);
	}
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* Two contexts: a wait for one says nothing of the other. */
static void in_two_contexts(void)
{
	CUcontext context, apart;
	CUdevice number;
	CUstream there;
	CUevent of_there;
	CUdeviceptr cell;
	OK(cuCtxGetCurrent(&context));
	OK(cuCtxGetDevice(&number));
	OK(cuCtxCreate(&apart, NULL, 0, number));
	OK(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&of_there, CU_EVENT_DISABLE_TIMING));
	OK(cuMemAlloc(&cell, 4));
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuCtxSetCurrent(context));
		hold_stream(stream, 0);
		OK(cuEventRecord(event, stream));
		OK(cuCtxSetCurrent(apart));
		OK(cuMemsetD32Async(cell, 1, 1, there));
		OK(cuCtxSynchronize());
		OK(cuStreamQuery(there));
		OK(cuEventRecord(of_there, there));
		OK(cuEventSynchronize(of_there));
		OK(cuCtxSetCurrent(context));
		EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
		expect_pending(event, 0);
	}
	OK(cuCtxDestroy(apart));
	OK(cuCtxSetCurrent(context));
}

static void of_a_context(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuEventRecord(event, other));
		OK(cuEventSynchronize(event));
		hold_stream(stream, 0);
		OK(cuCtxRecordEvent(NULL, event));
		expect_pending(event, 0);
	}
}

/* cuMemcpyPeer within one device may return before the copy is complete. A wait for the context must not. */
static void after_a_peer_copy(void)
{
	enum { BYTES = 16 << 20 };
	CUcontext context;
	CUdeviceptr from, to;
	OK(cuCtxGetCurrent(&context));
	OK(cuMemAlloc(&from, BYTES));
	OK(cuMemAlloc(&to, BYTES));
	for (uint32_t i = 0; i < PEER_ROUNDS; i++) {
		uint32_t back;
		OK(cuMemsetD32(from + BYTES - 4, i, 1));
		OK(cuCtxSynchronize());
		OK(cuMemcpyPeer(to, context, from, context, BYTES));
		OK(cuCtxSynchronize());
		OK(cuMemcpyDtoHAsync(&back, to + BYTES - 4, 4, writer));
		CHECK(back == i);
	}
	OK(cuMemFree(from));
	OK(cuMemFree(to));
}

/* ---- failures ---- */

static void fail_later(void)
{
	OK(launch_of_a_wrong_shape(stream));
}

static void failed_calls(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		OK(cuCtxSynchronize());
		fail_later();
		EXPECT(cuStreamSynchronize(other), CUDA_ERROR_INVALID_VALUE);
		OK(cuStreamSynchronize(other));
		OK(cuCtxSynchronize());
		fail_later();
		OK(cuEventRecord(event, other));
		EXPECT(cuEventSynchronize(event), CUDA_ERROR_INVALID_VALUE);
		OK(cuEventSynchronize(event));
		OK(cuCtxSynchronize());
		fail_later();
		EXPECT(cuCtxSynchronize(), CUDA_ERROR_INVALID_VALUE);
	}
}

/* An error that leaves the context usable. The client does not ask whether the context is usable. */
static void harmless_errors(void)
{
	CUcontext peer;
	OK(cuDevicePrimaryCtxRetain(&peer, 1));
	OK(cuCtxEnablePeerAccess(peer, 0));
	for (int i = 0; i < ROUNDS; i++) {
		EXPECT(cuCtxEnablePeerAccess(peer, 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
		OK(cuMemsetD32Async(device, 1, 1, stream));
	}
	OK(cuCtxSynchronize());
}

/* Once a call has told of the fault, every wait does. */
static void sticky(void)
{
	uint32_t code = CUDA_ERROR_ILLEGAL_ADDRESS;
	CUstream last;
	OK(cuStreamCreate(&last, CU_STREAM_NON_BLOCKING));
	OK(cuCtxSynchronize());
	OK(cuEventRecord(event, stream));
	OK(cuEventSynchronize(event));
	OK(launch("fault", stream, &code, NULL));
	OK(cuEventRecord(second, stream));
	EXPECT(cuEventSynchronize(second), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuEventSynchronize(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuEventQuery(event), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuStreamQuery(last), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = { { "idle", idle_events }, { "streams", streams_again }, { "polled", polled },
		      { "events", events_again }, { "query", after_a_query },
		      { "elapsed", elapsed }, { "timed", timed }, { "timed_again", timed_again },
		      { "timed_by_stream", timed_by_stream }, { "timed_by_context", timed_by_context },
		      { "timed_beside_work", timed_beside_work }, { "timed_before_work", timed_before_work },
		      { "held", held_stream }, { "blocking", behind_a_blocking_stream }, { "beside", beside_a_held_stream },
		      { "again", recorded_again }, { "thread", of_another_thread }, { "destroyed", destroyed_stream },
		      { "graph", in_a_graph }, { "contexts", in_two_contexts }, { "context", of_a_context },
		      { "peer", after_a_peer_copy },
		      { "failed", failed_calls }, { "harmless", harmless_errors }, { "sticky", sticky } };
	bool found = false;
	start();
	kernel("nothing"); /* loaded before a stream is held */
	OK(cuMemAlloc(&device, 4 * WORDS));
	OK(cuMemAlloc(&flag, 8));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&writer, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&second, CU_EVENT_DISABLE_TIMING));
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (argc == 2 && !strcmp(argv[1], cases[i].name)) {
			cases[i].run();
			found = true;
		}
	CHECK(found);
	return 0;
}
