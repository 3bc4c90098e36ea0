/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of whole contexts, device resources and green contexts, on four multiprocessors. */
#include "driver.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/*
 * Whether the program has an argument, which means that it runs behind a worker. There a handle that has ended is not used
 * again, and the worker keeps the primary context of each device.
 */
static bool remote;

/* Time in which a stream that does not wait, but should, would show it. */
static void give_time(void)
{
	nanosleep(&(struct timespec){ 0, 50000000 }, NULL);
}

static uint32_t *mapped(CUdeviceptr *address)
{
	void *host;
	OK(cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(host, 0, 4096);
	OK(cuMemHostGetDevicePointer_v2(address, host, 0));
	return host;
}

static CUstream stream_new(void)
{
	CUstream stream;
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

static CUevent event_new(void)
{
	CUevent event;
	OK(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	return event;
}

/* An event of a context is complete when the work of every stream is, and not before. */
static void a_contexts_event_waits_for_all_its_streams(CUcontext context)
{
	CUdeviceptr flags;
	uint32_t *flag = mapped(&flags);
	CUstream streams[2] = { stream_new(), stream_new() };
	CUevent event = event_new();
	hold(streams[0], flags);
	hold(streams[1], flags + 4);
	OK(cuCtxRecordEvent(context, event));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&flag[0]);
	OK(cuStreamSynchronize(streams[0]));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&flag[1]);
	OK(cuEventSynchronize(event));
	OK(cuStreamQuery(streams[1]));
	/* Later work is not part of the event. */
	flag[0] = 0;
	hold(streams[0], flags);
	OK(cuEventQuery(event));
	let_go(&flag[0]);
	OK(cuCtxSynchronize());
	EXPECT(cuCtxRecordEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuCtxRecordEvent((CUcontext)(void *)event, event), CUDA_ERROR_INVALID_CONTEXT);
	for (int i = 0; i < 2; i++)
		OK(cuStreamDestroy(streams[i]));
	OK(cuEventDestroy(event));
	OK(cuMemFreeHost(flag));
}

/* Streams that were there, the default stream, and one made after the call. */
static void all_streams_of_a_context_wait_for_an_event(CUcontext context)
{
	CUdeviceptr flags, log;
	uint32_t *flag = mapped(&flags), *list = mapped(&log);
	CUstream before = stream_new(), held = stream_new(), after;
	CUevent event = event_new();
	hold(held, flags);
	OK(cuEventRecord(event, held));
	OK(cuCtxWaitEvent(context, event));
	after = stream_new();
	append(before, log, 1);
	append(after, log, 2);
	append(CU_STREAM_LEGACY, log, 3);
	give_time();
	EXPECT(cuStreamQuery(before), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(after), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
	CHECK(list[0] == 0);
	let_go(&flag[0]);
	OK(cuCtxSynchronize());
	CHECK(list[0] == 3);
	EXPECT(cuCtxWaitEvent(context, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamDestroy(before));
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(after));
	OK(cuEventDestroy(event));
	OK(cuMemFreeHost(flag));
	OK(cuMemFreeHost(list));
}

static void a_capture_refuses_its_contexts_events_and_is_lost(CUcontext context)
{
	CUstream stream = stream_new();
	CUevent event = event_new(), captured = event_new();
	CUgraph graph;
	for (int i = 0; i < 3; i++) {
		OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
		OK(cuEventRecord(captured, stream));
		EXPECT(i == 0 ? cuCtxRecordEvent(context, event)
		       : i == 1 ? cuCtxWaitEvent(context, event) : cuCtxWaitEvent(context, captured),
		       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	}
	OK(cuStreamDestroy(stream));
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(captured));
}

/* The capture is another context's. */
static void an_event_of_a_capture_is_refused_and_the_capture_lost(CUcontext context)
{
	CUcontext second;
	CUgraph graph;
	OK(cuCtxCreate(&second, NULL, 0, 1));
	CUstream stream = stream_new();
	CUevent captured = event_new();
	OK(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(cuEventRecord(captured, stream));
	EXPECT(cuCtxWaitEvent(context, captured), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuCtxDestroy(second));
}

static CUdevResource all_of_them(void)
{
	CUdevResource all;
	OK(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(all.type == CU_DEV_RESOURCE_TYPE_SM && all.sm.smCount == 4);
	return all;
}

static void multiprocessors_are_split(void)
{
	CUdevResource all = all_of_them(), parts[4], rest, none = { 0 };
	unsigned groups = 0;
	CHECK(all.sm.minSmPartitionSize == 1 && all.sm.smCoscheduledAlignment == 1);
	OK(cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 3));
	CHECK(groups == 1);
	OK(cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 0));
	CHECK(groups == 4);
	groups = 4;
	OK(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 2));
	CHECK(groups == 2 && parts[0].sm.smCount == 2 && parts[1].sm.smCount == 2);
	CHECK(rest.type == CU_DEV_RESOURCE_TYPE_INVALID);
	groups = 1;
	OK(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING,
				       1));
	CHECK(groups == 1 && parts[0].sm.smCount == 1 && rest.sm.smCount == 3 && rest.type == CU_DEV_RESOURCE_TYPE_SM);
	groups = 1;
	EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 5), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 8, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDevSmResourceSplitByCount(parts, NULL, &all, &rest, 0, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDevSmResourceSplitByCount(parts, &groups, NULL, &rest, 0, 1), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDevSmResourceSplitByCount(parts, &groups, &none, NULL, 0, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	EXPECT(cuDevSmResourceSplitByCount(parts + 1, &groups, parts, NULL, 0, 1),
	       CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

static void descriptors_take_parts_of_one_split(void)
{
	CUdevResource all = all_of_them(), first[2], second[2], mixed[2];
	CUdevResourceDesc descriptor;
	unsigned groups = 2;
	OK(cuDevSmResourceSplitByCount(first, &groups, &all, NULL, 0, 2));
	OK(cuDevSmResourceSplitByCount(second, &groups, &all, NULL, 0, 2));
	OK(cuDevResourceGenerateDesc(&descriptor, first, 2));
	mixed[0] = first[0];
	mixed[1] = second[1];
	EXPECT(cuDevResourceGenerateDesc(&descriptor, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	mixed[1] = first[0];
	EXPECT(cuDevResourceGenerateDesc(&descriptor, mixed, 2), CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
	memset(mixed, 0, sizeof mixed);
	EXPECT(cuDevResourceGenerateDesc(&descriptor, mixed, 1), CUDA_ERROR_INVALID_RESOURCE_TYPE);
	EXPECT(cuDevResourceGenerateDesc(&descriptor, first, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuDevResourceGenerateDesc(NULL, first, 1), CUDA_ERROR_INVALID_VALUE);
}

/* A server keeps 16,384 of them. */
static void resources_may_be_divided_without_end(void)
{
	CUdevResource all = all_of_them(), first[4], parts[4];
	CUdevResourceDesc descriptor;
	unsigned groups = 4;
	OK(cuDevSmResourceSplitByCount(first, &groups, &all, NULL, 0, 1));
	for (int i = 0; i < 16384 / 4 + 10; i++) {
		OK(cuDevSmResourceSplitByCount(parts, &groups, &all, NULL, 0, 1));
		CHECK(groups == 4);
	}
	OK(cuDevResourceGenerateDesc(&descriptor, parts, 4));
	EXPECT(cuDevResourceGenerateDesc(&descriptor, first, 4), remote ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS);
}

/* A green context of this many multiprocessors. */
static CUgreenCtx green_new(unsigned multiprocessors)
{
	CUdevResource all = all_of_them(), part;
	CUdevResourceDesc descriptor;
	CUgreenCtx green;
	unsigned groups = 1;
	OK(cuDevSmResourceSplitByCount(&part, &groups, &all, NULL, 0, multiprocessors));
	OK(cuDevResourceGenerateDesc(&descriptor, &part, 1));
	OK(cuGreenCtxCreate(&green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	EXPECT(cuGreenCtxCreate(&green, descriptor, 0, 0), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGreenCtxCreate(&green, descriptor, 9, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_DEVICE);
	EXPECT(cuGreenCtxCreate(&green, descriptor, 1, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuGreenCtxCreate(&green, NULL, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_ERROR_INVALID_VALUE);
	return green;
}

static void a_green_context_is_the_primary_one_with_fewer_multiprocessors(CUcontext primary)
{
	CUgreenCtx green = green_new(1), found;
	CUcontext context, now;
	CUdevice device;
	CUdevResource resource, half;
	CUdeviceptr memory, base;
	CUstream own, other, ordinary = stream_new();
	unsigned long long id, primary_id, green_id;
	unsigned groups = 1;
	OK(cuMemAlloc_v2(&memory, 4096));
	OK(cuCtxFromGreenCtx(&context, green));
	CHECK(context != primary);
	OK(cuCtxSetCurrent(context));
	OK(cuCtxGetCurrent(&now));
	CHECK(now == context);
	OK(cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(cuCtxGetDevResource(context, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(resource.sm.smCount == 1);
	OK(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(resource.sm.smCount == 1);
	/* With a green context in between, a part may be split again. */
	OK(cuDevSmResourceSplitByCount(&half, &groups, &resource, NULL, 0, 1));
	OK(cuCtxGetDevResource(primary, &resource, CU_DEV_RESOURCE_TYPE_SM));
	CHECK(resource.sm.smCount == 4);
	EXPECT(cuGreenCtxGetDevResource(green, &resource, CU_DEV_RESOURCE_TYPE_INVALID),
	       CUDA_ERROR_INVALID_RESOURCE_TYPE);
	OK(cuCtxGetId(context, &id));
	OK(cuCtxGetId(primary, &primary_id));
	CHECK(id == primary_id);
	OK(cuGreenCtxGetId(NULL, &green_id));
	OK(cuGreenCtxGetId(green, &id));
	CHECK(id == green_id);
	/* Memory, modules and events are shared. */
	OK(cuMemGetAddressRange_v2(&base, NULL, memory));
	CHECK(base == memory);
	OK(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0));
	EXPECT(cuGreenCtxStreamCreate(&other, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	uint32_t zero = 0, got;
	OK(cuMemcpyHtoD_v2(memory, &zero, 4));
	OK(cuCtxSynchronize()); /* the stream does not wait for the copy */
	append(own, memory, 7);
	OK(cuStreamSynchronize(own));
	append(NULL, memory, 8);
	OK(cuMemcpyDtoH_v2(&got, memory, 4));
	CHECK(got == 2);
	/* Whose stream is it? */
	OK(cuStreamGetGreenCtx(own, &found));
	CHECK(found == green);
	OK(cuStreamGetGreenCtx(other, &found));
	CHECK(found == green);
	OK(cuStreamGetGreenCtx(ordinary, &found));
	CHECK(!found);
	OK(cuStreamGetGreenCtx(NULL, &found));
	CHECK(found == green);
	OK(cuStreamGetCtx(own, &now));
	CHECK(now == context);
	OK(cuStreamGetCtx_v2(own, &now, &found));
	CHECK(now == primary && found == green);
	OK(cuStreamGetCtx_v2(ordinary, &now, &found));
	CHECK(now == primary && !found);
	EXPECT(cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &now, &found), CUDA_ERROR_INVALID_HANDLE);
	OK(cuCtxSetCurrent(primary));
	OK(cuStreamGetCtx_v2(NULL, &now, &found));
	CHECK(now == primary && !found);
	EXPECT(cuGreenCtxGetId(NULL, &id), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuStreamDestroy(own));
	OK(cuStreamDestroy(ordinary));
	/* other was not destroyed, but can no longer be used. */
	OK(cuCtxSetCurrent(context));
	OK(cuGreenCtxDestroy(green));
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuCtxSetCurrent(primary));
	EXPECT(cuStreamQuery(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EXPECT(cuStreamDestroy(other), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	EXPECT(cuGreenCtxDestroy(green), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuCtxFromGreenCtx(&now, green), CUDA_ERROR_INVALID_CONTEXT);
	OK(cuMemFree_v2(memory));
}

/* As many blocks as the green context's one multiprocessor holds, and one more. */
static void a_cooperative_launch_has_the_green_contexts_multiprocessors(void)
{
	CUgreenCtx green = green_new(1);
	CUstream own, ordinary = stream_new();
	int blocks;
	OK(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0));
	OK(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel("nothing"), 1, 0));
	unsigned most = (unsigned)blocks;
	OK(cuLaunchCooperativeKernel(kernel("nothing"), most, 1, 1, 1, 1, 1, 0, own, NULL));
	EXPECT(cuLaunchCooperativeKernel(kernel("nothing"), most + 1, 1, 1, 1, 1, 1, 0, own, NULL),
	       CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE);
	OK(cuLaunchCooperativeKernel(kernel("nothing"), 4 * most, 1, 1, 1, 1, 1, 0, ordinary, NULL));
	OK(cuStreamDestroy(own));
	OK(cuStreamDestroy(ordinary));
	OK(cuGreenCtxDestroy(green));
}

static void a_green_contexts_events_are_of_its_streams_alone(void)
{
	CUdeviceptr flags;
	uint32_t *flag = mapped(&flags);
	CUgreenCtx green = green_new(2);
	CUstream own, later, ordinary = stream_new();
	CUevent event = event_new(), held = event_new();
	OK(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0));
	hold(ordinary, flags);
	OK(cuGreenCtxRecordEvent(green, event));
	OK(cuEventQuery(event));
	hold(own, flags + 4);
	OK(cuGreenCtxRecordEvent(green, event));
	EXPECT(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	let_go(&flag[1]);
	OK(cuEventSynchronize(event));
	/* Its streams wait, those made later too, and others do not. */
	OK(cuEventRecord(held, ordinary));
	OK(cuGreenCtxWaitEvent(green, held));
	OK(cuGreenCtxStreamCreate(&later, green, CU_STREAM_NON_BLOCKING, 0));
	CUstream free = stream_new();
	OK(launch("nothing", own, NULL, NULL));
	OK(launch("nothing", later, NULL, NULL));
	OK(launch("nothing", free, NULL, NULL));
	OK(cuStreamSynchronize(free));
	give_time();
	EXPECT(cuStreamQuery(own), CUDA_ERROR_NOT_READY);
	EXPECT(cuStreamQuery(later), CUDA_ERROR_NOT_READY);
	let_go(&flag[0]);
	OK(cuStreamSynchronize(own));
	OK(cuStreamSynchronize(later));
	EXPECT(cuGreenCtxRecordEvent(NULL, event), CUDA_ERROR_INVALID_CONTEXT);
	EXPECT(cuGreenCtxWaitEvent(green, NULL), CUDA_ERROR_INVALID_HANDLE);
	CUstream streams[] = { own, later, ordinary, free };
	for (int i = 0; i < 4; i++)
		OK(cuStreamDestroy(streams[i]));
	OK(cuEventDestroy(event));
	OK(cuEventDestroy(held));
	OK(cuGreenCtxDestroy(green));
	OK(cuMemFreeHost(flag));
}

/* Every capture in one of its streams is lost, as cuda.h says, and none elsewhere. */
static void a_green_contexts_events_end_all_captures_in_it(void)
{
	CUgreenCtx green = green_new(2);
	CUstream own[2], ordinary = stream_new();
	CUevent event = event_new();
	CUgraph graph;
	for (int i = 0; i < 2; i++)
		OK(cuGreenCtxStreamCreate(&own[i], green, CU_STREAM_NON_BLOCKING, 0));
	for (int round = 0; round < 2; round++) {
		OK(cuStreamBeginCapture_v2(ordinary, CU_STREAM_CAPTURE_MODE_RELAXED));
		for (int i = 0; i < 2; i++)
			OK(cuStreamBeginCapture_v2(own[i], CU_STREAM_CAPTURE_MODE_RELAXED));
		EXPECT(round ? cuGreenCtxRecordEvent(green, event) : cuGreenCtxWaitEvent(green, event),
		       CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
		for (int i = 0; i < 2; i++)
			EXPECT(cuStreamEndCapture(own[i], &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
		OK(cuStreamEndCapture(ordinary, &graph));
		OK(cuGraphDestroy(graph));
	}
	for (int i = 0; i < 2; i++)
		OK(cuStreamDestroy(own[i]));
	OK(cuStreamDestroy(ordinary));
	OK(cuEventDestroy(event));
	OK(cuGreenCtxDestroy(green));
}

/* No call can end the capture any more: what it forbade is allowed again, and its graph belongs to the program. */
static void a_capture_ends_with_its_green_context(void)
{
	CUgreenCtx green = green_new(1);
	CUstream own;
	CUgraph graph;
	CUdeviceptr memory;
	OK(cuGraphCreate(&graph, 0));
	OK(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0));
	OK(cuStreamBeginCaptureToGraph(own, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuGraphDestroy(graph), CUDA_ERROR_INVALID_VALUE);
	OK(cuGreenCtxDestroy(green));
	EXPECT(cuStreamEndCapture(own, &graph), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuMemAlloc_v2(&memory, 64));
	OK(cuMemFree_v2(memory));
	OK(cuGraphDestroy(graph));
}

static void *make_streams(void *context)
{
	OK(cuCtxSetCurrent(context));
	for (int i = 0; i < 5000; i++)
		OK(cuStreamDestroy(stream_new()));
	return NULL;
}

/* What another thread does in the primary context; a thread sanitizer looks on. */
static void streams_are_made_beside_a_green_contexts_calls(CUcontext primary)
{
	pthread_t thread;
	CUgreenCtx green = green_new(1);
	CUevent event = event_new();
	CHECK(!pthread_create(&thread, NULL, make_streams, primary));
	for (int i = 0; i < 5000; i++)
		OK(cuGreenCtxRecordEvent(green, event));
	CHECK(!pthread_join(thread, NULL));
	OK(cuEventSynchronize(event));
	OK(cuEventDestroy(event));
	OK(cuGreenCtxDestroy(green));
}

/*
 * A handle that is used after its end may mean something new in its place, and never a stream that the driver made for
 * itself: a thread's own, or what later streams wait for.
 */
static void no_handle_means_a_stream_of_the_drivers(CUcontext primary)
{
	enum { GONE = 64, MOST = 100000 };
	static CUevent events[MOST];
	CUstream gone[GONE];
	CUcontext second;
	unsigned count = 0;
	bool again = false;
	for (int i = 0; i < GONE; i++)
		gone[i] = stream_new();
	for (int i = 0; i < GONE; i++)
		OK(cuStreamDestroy(gone[i]));
	/* Places are used again oldest first: from here on theirs come. */
	while (!again && count < MOST) {
		events[count] = event_new();
		again = (void *)events[count++] == (void *)gone[0];
	}
	CHECK(again);
	CUgreenCtx green = green_new(1);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuStreamQuery(CU_STREAM_PER_THREAD));
	OK(cuCtxWaitEvent(second, events[0]));
	for (int i = 0; i < GONE; i++)
		EXPECT(cuStreamDestroy(gone[i]), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamQuery(CU_STREAM_PER_THREAD));
	OK(cuCtxWaitEvent(second, events[0]));
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	OK(cuGreenCtxWaitEvent(green, events[0]));
	OK(cuGreenCtxDestroy(green));
	while (count)
		OK(cuEventDestroy(events[--count]));
}

/* It retains the primary context, and a reset takes it all away. */
static void a_green_context_keeps_the_primary_one(CUcontext primary)
{
	unsigned flags;
	int active;
	CUcontext context;
	CUgreenCtx green = green_new(1);
	OK(cuDevicePrimaryCtxRelease_v2(0));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active);
	OK(cuCtxFromGreenCtx(&context, green));
	OK(cuGreenCtxDestroy(green));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(!active);
	if (!remote)
		EXPECT(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuCtxSetCurrent(primary));
	green = green_new(1);
	OK(cuDevicePrimaryCtxReset_v2(0));
	EXPECT(cuCtxFromGreenCtx(&context, green), CUDA_ERROR_CONTEXT_IS_DESTROYED);
	OK(cuDevicePrimaryCtxRetain(&primary, 0));
	OK(cuGreenCtxDestroy(green));
	OK(cuDevicePrimaryCtxGetState(0, &flags, &active));
	CHECK(active); /* the reference is not the green context's, which is older */
}

int main(int argc, char **argv)
{
	(void)argv;
	remote = argc > 1;
	setenv("HEADRACE_SOFTGPU_DEVICES", "2", 1);
	setenv("SOFTGPU_DOUBLE_THREADS", "4", 1);
	CUcontext context = start();
	a_contexts_event_waits_for_all_its_streams(context);
	all_streams_of_a_context_wait_for_an_event(context);
	a_capture_refuses_its_contexts_events_and_is_lost(context);
	an_event_of_a_capture_is_refused_and_the_capture_lost(context);
	multiprocessors_are_split();
	descriptors_take_parts_of_one_split();
	resources_may_be_divided_without_end();
	a_green_context_is_the_primary_one_with_fewer_multiprocessors(context);
	a_cooperative_launch_has_the_green_contexts_multiprocessors();
	a_green_contexts_events_are_of_its_streams_alone();
	a_green_contexts_events_end_all_captures_in_it();
	a_capture_ends_with_its_green_context();
	streams_are_made_beside_a_green_contexts_calls(context);
	if (!remote)
		no_handle_means_a_stream_of_the_drivers(context);
	a_green_context_keeps_the_primary_one(context);
	return 0;
}
