/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream capture over a worker: several streams, all captured calls, what captures forbid. */
#include "test/cuda/softgpu/driver.h"

static CUdeviceptr device;
static CUstream stream, other;
static CUevent fork_event, join_event;

static uint32_t result_of(CUgraph graph, uint32_t *result)
{
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	return *result;
}

static void increase(CUstream in, CUdeviceptr address, uint32_t by)
{
	OK(launch("increase", in, &address, &by));
}

static void add_one(void *argument)
{
	++*(uint32_t *)argument;
}

/* Two streams, copies from and to pinned memory, fills, a host function. */
static void two_streams(void)
{
	uint32_t *pinned;
	CUgraph graph;
	size_t nodes;
	OK(cuMemAllocHost((void **)&pinned, 64));
	memset(pinned, 0, 64);
	CUdeviceptr second = device + 4;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuMemcpyHtoDAsync(device, pinned, 4, stream));
	OK(cuEventRecord(fork_event, stream));
	OK(cuStreamWaitEvent(other, fork_event, 0));
	OK(cuMemsetD32Async(second, 500, 1, other));
	increase(other, second, 3);
	OK(cuEventRecord(join_event, other));
	increase(stream, device, 20);
	OK(cuStreamWaitEvent(stream, join_event, 0));
	OK(cuMemcpyDtoDAsync(device + 8, second, 4, stream));
	OK(cuMemcpyDtoHAsync(&pinned[1], device, 12, stream));
	OK(cuLaunchHostFunc(stream, add_one, &pinned[4]));
	CUstreamCaptureStatus status;
	OK(cuStreamIsCapturing(other, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuStreamIsCapturing(other, &status));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 7 && !pinned[4]);
	pinned[0] = 7; /* read at the launch, not at the capture */
	CHECK(result_of(graph, &pinned[1]) == 27 && pinned[2] == 503 && pinned[3] == 503 && pinned[4] == 1);
	OK(cuGraphDestroy(graph));
	OK(cuMemFreeHost(pinned));
}

/* A launch of a graph in a capture becomes a child. */
static void launch_in_capture(void)
{
	static uint32_t result;
	CUgraph graph, outer;
	CUgraphExec exec;
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuMemsetD32Async(device, 40, 1, stream));
	increase(stream, device, 2);
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuGraphLaunch(exec, stream));
	OK(cuMemcpyDtoHAsync(&result, device, 4, stream));
	OK(cuStreamEndCapture(stream, &outer));
	CHECK(result_of(outer, &result) == 42);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuGraphDestroy(outer));
}

/* Values that the stream waits for and writes, and copies with an array, become nodes. */
static void values_and_arrays(void)
{
	static uint32_t result, source = 30;
	CUDA_ARRAY_DESCRIPTOR like = { .Width = 4, .Height = 0, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1 };
	CUarray array;
	CUgraph graph;
	size_t nodes;
	OK(cuArrayCreate(&array, &like));
	OK(cuMemsetD32(device, 0, 2));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuStreamWaitValue32(stream, device, 0, CU_STREAM_WAIT_VALUE_EQ));
	OK(cuStreamWriteValue32(stream, device, 12, 0));
	OK(cuMemcpyHtoAAsync(array, 4, &source, 4, stream));
	OK(cuMemcpyAtoHAsync(&result, array, 4, 4, stream));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, NULL, &nodes));
	CHECK(nodes == 4);
	uint32_t word;
	OK(cuMemcpyDtoH(&word, device, 4));
	CHECK(!word && !result);
	source = 31;
	CHECK(result_of(graph, &result) == 31);
	OK(cuMemcpyDtoH(&word, device, 4));
	CHECK(word == 12);
	OK(cuGraphDestroy(graph));
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	EXPECT(cuMemcpyHtoA(array, 0, &source, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(cuArrayDestroy(array));
}

static void begin(void)
{
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
}

/* The capture is invalid after the call before. */
static void is_invalid(void)
{
	CUgraph graph;
	EXPECT(launch("nothing", stream, NULL, NULL), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	CHECK(!graph);
}

/* A captured launch keeps the attributes that nodes have. */
static void launches_keep_attributes(void)
{
	CUgraph graph;
	CUgraphNode node;
	size_t nodes = 1;
	CUlaunchAttribute attributes[] = {
		{ .id = CU_LAUNCH_ATTRIBUTE_PRIORITY, .value.priority = -3 },
		{ .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, .value.programmaticStreamSerializationAllowed = 1 },
		{ .id = CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, .value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE },
	};
	CUlaunchConfig config = { .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1,
				  .hStream = stream, .attrs = attributes, .numAttrs = 3 };
	OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(cuLaunchKernelEx(&config, kernel("nothing"), NULL, NULL));
	OK(cuStreamEndCapture(stream, &graph));
	OK(cuGraphGetNodes(graph, &node, &nodes));
	CUlaunchAttributeValue value;
	OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value));
	CHECK(nodes == 1 && value.priority == -3);
	OK(cuGraphKernelNodeGetAttribute(node, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, &value));
	CHECK(value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
	CUgraphExec exec;
	OK(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
	OK(cuGraphLaunch(exec, stream));
	OK(cuStreamSynchronize(stream));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

/* Registered memory is released while a copy into it is under way; the capture does not notice. */
static void unregistered_in_a_capture(void)
{
	static uint32_t result, here[1024];
	CUgraph graph;
	OK(cuMemsetD32Async(device, 9, 1, other));
	OK(cuMemHostRegister(here, sizeof here, 0));
	OK(cuMemcpyDtoHAsync(here, device, 4, other));
	begin();
	increase(stream, device, 1);
	OK(cuMemHostUnregister(here));
	CHECK(here[0] == 9);
	OK(cuMemcpyDtoHAsync(&result, device, 4, stream));
	OK(cuStreamEndCapture(stream, &graph));
	CHECK(result_of(graph, &result) == 10);
	OK(cuGraphDestroy(graph));
}

static void forbidden(void)
{
	CUdeviceptr address;
	uint32_t here = 0;
	CUgraph graph;
	begin();
	EXPECT(cuStreamSynchronize(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_invalid();
	begin();
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_invalid();
	begin();
	EXPECT(cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_invalid();
	begin();
	EXPECT(cuMemAlloc(&address, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_invalid();
	begin();
	EXPECT(cuMemFree(device), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	is_invalid();
	begin();
	EXPECT(cuMemcpyHtoD(device, &here, 4), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	is_invalid();
	begin();
	EXPECT(cuMemsetD32(device, 0, 1), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	is_invalid();
	begin();
	EXPECT(cuEventRecord(fork_event, NULL), CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
	is_invalid();
	begin();
	OK(cuEventRecord(fork_event, stream));
	EXPECT(cuEventQuery(fork_event), CUDA_ERROR_CAPTURED_EVENT);
	is_invalid();
	begin();
	OK(cuEventRecord(fork_event, stream));
	OK(cuStreamWaitEvent(other, fork_event, 0));
	increase(other, device, 1);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	EXPECT(cuStreamEndCapture(stream, &graph), CUDA_ERROR_ILLEGAL_STATE);
	EXPECT(cuStreamBeginCapture(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	OK(cuEventRecord(fork_event, stream)); /* outside of a capture again */
	OK(cuEventSynchronize(fork_event));
}

/* A stream that captures may be destroyed. */
static void destroyed(void)
{
	CUstream gone;
	OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
	OK(cuStreamBeginCapture(gone, CU_STREAM_CAPTURE_MODE_GLOBAL));
	increase(gone, device, 1);
	OK(cuStreamDestroy(gone));
	OK(cuCtxSynchronize());
}

int main(void)
{
	start();
	OK(cuMemAlloc(&device, 64));
	OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuEventCreate(&fork_event, CU_EVENT_DISABLE_TIMING));
	OK(cuEventCreate(&join_event, CU_EVENT_DISABLE_TIMING));
	two_streams();
	launch_in_capture();
	values_and_arrays();
	launches_keep_attributes();
	unregistered_in_a_capture();
	forbidden();
	destroyed();
	OK(cuMemFree(device));
	return 0;
}
