/* SPDX-License-Identifier: BSD-3-Clause */
/* Order within and between streams, events, host functions, and synchronization. */
#include "driver.h"
#include "host_to_host.h"

#include "cuda_remote/call_follows.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

static uint32_t *record, *flag; /* pinned */
static CUdeviceptr log_at, flag_at;

static void fresh(void)
{
	memset(record, 0, 4096);
	*flag = 0;
}

static void expect_record(const uint32_t *wanted, uint32_t count)
{
	CHECK(record[0] == count);
	for (uint32_t i = 0; i < count; i++)
		CHECK(record[1 + i] == wanted[i]);
}

static void a_stream_keeps_its_order(void)
{
	CUstream stream;
	fresh();
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	for (uint32_t i = 0; i < 500; i++)
		append(stream, log_at, i);
	OK(cuStreamSynchronize(stream));
	CHECK(record[0] == 500);
	for (uint32_t i = 0; i < 500; i++)
		CHECK(record[1 + i] == i);
	OK(cuStreamDestroy(stream));
}

static void launches_do_not_wait_and_queries_tell(void)
{
	CUstream stream, other;
	CUevent event;
	fresh();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventQuery(event));
	hold(stream, flag_at);
	append(stream, log_at, 1);
	OK(cuEventRecord(event, stream));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	/* Another stream is not blocked; a stream that waits for the event is. */
	append(other, log_at, 2);
	OK(cuStreamSynchronize(other));
	CHECK(record[0] == 1 && record[1] == 2);
	OK(cuStreamWaitEvent(other, event, 0));
	append(other, log_at, 3);
	EXPECT(cuStreamQuery(other), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(other));
	OK(cuEventQuery(event));
	OK(cuStreamQuery(stream));
	expect_record((uint32_t[]){ 2, 1, 3 }, 3);
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

/* A wait is for the recording at the time of the wait: later recordings do not matter. */
static void a_wait_is_for_the_recording_before_it(void)
{
	CUstream first, second;
	CUevent event;
	fresh();
	OK(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	OK(cuEventRecord(event, first));
	OK(cuStreamWaitEvent(second, event, 0));
	hold(first, flag_at);
	OK(cuEventRecord(event, first));
	append(second, log_at, 1);
	OK(cuStreamSynchronize(second));
	CHECK(record[0] == 1);
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuEventSynchronize(event));
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
	OK(cuEventDestroy(event));
}

/* Recordings complete in any order. A wait for one does not end with a later one, for any kind of event. */
static void recordings_complete_in_any_order(unsigned flags)
{
	enum { MANY = 600 };
	CUstream slow, quick, waits;
	CUevent event;
	fresh();
	OK(cuStreamCreate(&slow, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&quick, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&waits, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, flags));
	hold(slow, flag_at);
	append(slow, log_at, 1);
	OK(cuEventRecord(event, slow));
	OK(cuStreamWaitEvent(waits, event, 0));
	append(waits, log_at, 2);
	OK(cuEventRecord(event, quick));
	OK(cuEventSynchronize(event));
	/* Time in which a wrong step would happen and be recorded. */
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
	CHECK(record[0] == 0);
	EXPECT(cuStreamQuery(waits), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(waits));
	CHECK(record[0] == 2 && record[1] == 1 && record[2] == 2);
	for (int i = 0; i < MANY; i++)
		OK(cuEventRecord(event, i % 2 ? quick : slow));
	OK(cuEventSynchronize(event));
	OK(cuEventQuery(event));
	OK(cuStreamDestroy(slow));
	OK(cuStreamDestroy(quick));
	OK(cuStreamDestroy(waits));
	OK(cuEventDestroy(event));
}

/* Runtime API, "Legacy default stream": k1 in s, k2 in the default stream, k3 in s run one after another. */
static void the_legacy_stream_orders_blocking_streams(void)
{
	CUstream first, second, loose;
	fresh();
	OK(cuStreamCreate(&first, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&second, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&loose, CU_STREAM_NON_BLOCKING));
	hold(first, flag_at);
	append(first, log_at, 1);
	append(NULL, log_at, 2);
	append(second, log_at, 3);
	append(loose, log_at, 4);
	OK(cuStreamSynchronize(loose));
	CHECK(record[0] == 1 && record[1] == 4);
	EXPECT(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(NULL), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuCtxSynchronize());
	expect_record((uint32_t[]){ 4, 1, 2, 3 }, 4);
	/* The thread's own default stream is a blocking one. */
	fresh();
	hold(NULL, flag_at);
	append(CU_STREAM_PER_THREAD, log_at, 1);
	EXPECT(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_NOT_READY);
	let_go(flag);
	OK(cuStreamSynchronize(CU_STREAM_PER_THREAD));
	CHECK(record[0] == 1);
	OK(cuStreamDestroy(first));
	OK(cuStreamDestroy(second));
	OK(cuStreamDestroy(loose));
}

static void destroyed_streams_finish(void)
{
	CUstream stream;
	CUevent event;
	fresh();
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, 0));
	hold(stream, flag_at);
	append(stream, log_at, 7);
	OK(cuEventRecord(event, stream));
	OK(cuStreamDestroy(stream));
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuStreamDestroy(stream), CUDA_ERROR_INVALID_HANDLE);
	let_go(flag);
	OK(cuEventSynchronize(event));
	expect_record((uint32_t[]){ 7 }, 1);
	OK(cuEventDestroy(event));
	EXPECT(cuEventQuery(event), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuStreamSynchronize((CUstream)(uintptr_t)12345), CUDA_ERROR_INVALID_HANDLE);
}

static void events_tell_the_time_between(void)
{
	CUevent start_event, end, untimed;
	float milliseconds;
	OK(cuEventCreate(&start_event, CU_EVENT_DEFAULT));
	OK(cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC));
	OK(cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	EXPECT(cuEventElapsedTime(&milliseconds, start_event, end), CUDA_ERROR_INVALID_HANDLE);
	fresh();
	OK(cuEventRecord(start_event, NULL));
	hold(NULL, flag_at);
	OK(cuEventRecord(end, NULL));
	OK(cuEventRecord(untimed, NULL));
	EXPECT(cuEventElapsedTime(&milliseconds, start_event, end), CUDA_ERROR_NOT_READY);
	nanosleep(&(struct timespec){ 0, 20000000 }, NULL);
	let_go(flag);
	OK(cuEventSynchronize(end));
	OK(cuEventElapsedTime(&milliseconds, start_event, end));
	CHECK(milliseconds >= 20);
	OK(cuEventSynchronize(untimed));
	EXPECT(cuEventElapsedTime(&milliseconds, start_event, untimed), CUDA_ERROR_INVALID_HANDLE);
	OK(cuEventDestroy(start_event));
	OK(cuEventDestroy(end));
	OK(cuEventDestroy(untimed));
}

static void host_code(void *value)
{
	CUdeviceptr memory;
	EXPECT(cuMemAlloc(&memory, 16), CUDA_ERROR_NOT_PERMITTED);
	record[1 + record[0]] = (uint32_t)(uintptr_t)value;
	record[0]++;
}

static void callback(CUstream stream, CUresult status, void *value)
{
	(void)stream;
	CHECK(status == CUDA_SUCCESS);
	host_code(value);
}

static void host_functions_run_in_order(void)
{
	CUstream stream;
	fresh();
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	append(stream, log_at, 1);
	OK(cuLaunchHostFunc(stream, host_code, (void *)2));
	append(stream, log_at, 3);
	OK(cuStreamAddCallback(stream, callback, (void *)4, 0));
	OK(cuLaunchHostFunc(NULL, host_code, (void *)5));
	EXPECT(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxSynchronize());
	expect_record((uint32_t[]){ 1, 2, 3, 4, 5 }, 5);
	OK(cuStreamDestroy(stream));
}

/* When an asynchronous copy returns, the program may reuse a pageable source, but not a pinned one. */
static void asynchronous_copies_take_pageable_sources_along(void)
{
	CUstream stream;
	CUdeviceptr device;
	static unsigned char pageable[200000], back[200000];
	size_t sizes[] = { 16, 60000, 200000 };
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, sizeof pageable));
	for (int i = 0; i < 3; i++) {
		fresh();
		memset(pageable, 1 + i, sizes[i]);
		/* A copy from a large pageable source waits for the stream, so the stream must not be blocked here. */
		if (i < 2)
			hold(stream, flag_at);
		OK(cuMemcpyHtoDAsync(device, pageable, sizes[i], stream));
		memset(pageable, 99, sizes[i]);
		let_go(flag);
		OK(cuMemcpyDtoHAsync(back, device, sizes[i], stream));
		for (size_t b = 0; b < sizes[i]; b++)
			CHECK(back[b] == 1 + i);
	}
	OK(cuMemFree(device));
	OK(cuStreamDestroy(stream));
}

static void *one_thread(void *context)
{
	CUstream stream;
	CUevent event;
	OK(cuCtxSetCurrent(context));
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(cuEventCreate(&event, 0));
	for (int i = 0; i < 300; i++) {
		CUdeviceptr at;
		OK(cuMemAlloc(&at, 100000));
		OK(cuMemsetD32Async(at, 0, 25000, stream));
		OK(cuEventRecord(event, stream));
		OK(cuStreamWaitEvent(CU_STREAM_PER_THREAD, event, 0));
		append(CU_STREAM_PER_THREAD, at, 77);
		OK(cuEventRecord(event, CU_STREAM_PER_THREAD));
		OK(cuStreamWaitEvent(stream, event, 0));
		append(i % 7 ? stream : NULL, at, 88);
		if (i % 5 == 0)
			OK(cuEventSynchronize(event));
		uint32_t back[3];
		OK(cuMemcpyDtoH(back, at, sizeof back));
		CHECK(back[0] == 2 && back[1] == 77 && back[2] == 88);
		OK(cuMemFree(at));
	}
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(stream));
	return NULL;
}

static void threads_share_a_context(CUcontext context)
{
	pthread_t threads[4];
	kernel("append");
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_create(&threads[i], NULL, one_thread, context));
	for (int i = 0; i < 4; i++)
		CHECK(!pthread_join(threads[i], NULL));
}

static void priorities_are_bounded(void)
{
	CUstream stream;
	int least, greatest, priority;
	OK(cuCtxGetStreamPriorityRange(&least, &greatest));
	CHECK(least == 0 && greatest < 0);
	OK(cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -1000));
	OK(cuStreamGetPriority(stream, &priority));
	CHECK(priority == greatest);
	OK(cuStreamDestroy(stream));
}

static void streams_tell_what_they_are(CUcontext context)
{
	CUstream stream;
	unsigned flags;
	unsigned long long id, other;
	CUdevice device = -1;
	CUcontext of = NULL;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamGetFlags(stream, &flags));
	OK(cuStreamGetId(stream, &id));
	OK(cuStreamGetId(NULL, &other));
	OK(cuStreamGetDevice(stream, &device));
	OK(cuStreamGetCtx(stream, &of));
	CHECK(flags == CU_STREAM_NON_BLOCKING && id != other && device == 0 && of == context);
	EXPECT(cuStreamGetPriority(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetFlags(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetId(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetDevice(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetCtx(stream, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuStreamGetCtx_v2(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamDestroy(stream));
	EXPECT(cuStreamGetFlags(stream, NULL), CUDA_ERROR_INVALID_HANDLE);
}

static void complete_without_a_wait(CUstream stream)
{
	CUresult result;
	while ((result = cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
		sched_yield();
	OK(result);
}

/* If a launch that a call was to follow is not run, this does not end. */
static void launches_run_whatever_follows(void)
{
	static const CUuuid id = RC_CALL_FOLLOWS_UUID;
	const void *table;
	CUstream stream, other;
	CUevent event;
	if (cuGetExportTable(&table, &id) != CUDA_SUCCESS)
		return; /* another driver */
	const struct rc_call_follows *call = table;
	CHECK(call->size == sizeof *call);
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < 50; i++) {
		/* No call follows. */
		fresh();
		call->follows(true);
		append(stream, log_at, 1);
		call->follows(false);
		complete_without_a_wait(stream);
		expect_record((uint32_t[]){ 1 }, 1);
		/* The call waits for it. */
		call->follows(true);
		append(stream, log_at, 2);
		OK(cuStreamSynchronize(stream));
		expect_record((uint32_t[]){ 1, 2 }, 2);
		/* The call waits for another stream, or finds that it is complete. */
		call->follows(true);
		append(stream, log_at, 3);
		OK(cuStreamSynchronize(other));
		call->follows(false);
		complete_without_a_wait(stream);
		call->follows(true);
		append(stream, log_at, 4);
		append(other, log_at, 5);
		OK(cuStreamSynchronize(other));
		complete_without_a_wait(stream);
		CHECK(record[0] == 5);
		/* The call waits for an event that other processes may record, and runs nothing itself. */
		call->follows(true);
		append(stream, log_at, 7);
		OK(cuEventRecord(event, stream));
		OK(cuEventSynchronize(event));
		CHECK(record[0] == 6 && record[6] == 7);
		/* Only a thread of the driver runs a host function. */
		call->follows(true);
		OK(cuLaunchHostFunc(stream, host_code, (void *)6));
		OK(cuStreamSynchronize(stream));
		CHECK(record[0] == 7 && record[7] == 6);
	}
	OK(cuEventDestroy(event));
	OK(cuStreamDestroy(stream));
	OK(cuStreamDestroy(other));
}

static void copies_on_the_host_are_complete(void)
{
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	host_to_host(stream);
	OK(cuStreamDestroy(stream));
}

int main(void)
{
	CUcontext context = start();
	void *memory;
	OK(cuMemHostAlloc(&memory, 8192, 0));
	record = memory;
	flag = record + 1024;
	log_at = (CUdeviceptr)(uintptr_t)record;
	flag_at = (CUdeviceptr)(uintptr_t)flag;
	a_stream_keeps_its_order();
	launches_do_not_wait_and_queries_tell();
	a_wait_is_for_the_recording_before_it();
	recordings_complete_in_any_order(CU_EVENT_DEFAULT);
	recordings_complete_in_any_order(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
	the_legacy_stream_orders_blocking_streams();
	destroyed_streams_finish();
	events_tell_the_time_between();
	host_functions_run_in_order();
	launches_run_whatever_follows();
	asynchronous_copies_take_pageable_sources_along();
	threads_share_a_context(context);
	priorities_are_bounded();
	streams_tell_what_they_are(context);
	copies_on_the_host_are_complete();
	OK(cuMemFreeHost(memory));
	OK(cuDevicePrimaryCtxRelease(0));
	return 0;
}
