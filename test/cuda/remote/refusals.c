/* SPDX-License-Identifier: BSD-3-Clause */
/* A driver that refuses single calls (refusing.c): what the worker and the client hold afterwards. refusals CONTROL-FILE. */
#include "test/cuda/remote/refusing.h"
#include "test/cuda/softgpu/driver.h"

#include <fcntl.h>
#include <sys/mman.h>

/* Three groups of four chunks (server/copy_to_host.c). The worker's slots have 4 * HEADRACE_STAGING + 64 MiB = 128 MiB. */
enum { BYTES = 3 << 20, COPIES = 60 };

static struct refusing *refusing;
static CUcontext primary;
static uint8_t *host;

static void refuse(uint32_t *count, uint32_t call)
{
	__atomic_store_n(count, call, __ATOMIC_RELEASE);
}

/* The callback of one of the copy's groups is refused. The worker uses the slots again, and the client forgets the copy. */
static void callback_of_group(uint32_t group)
{
	CUdeviceptr device;
	OK(cuMemAlloc(&device, BYTES));
	for (int i = 0; i < COPIES; i++) {
		refuse(&refusing->callback, group);
		OK(cuMemHostRegister(host, BYTES, 0));
		OK(cuMemcpyDtoHAsync(host, device, BYTES, NULL));
		EXPECT(cuStreamSynchronize(NULL), REFUSED);
		OK(cuStreamSynchronize(NULL));
		OK(cuMemHostUnregister(host));
	}
	CHECK(!refusing->callback);
	OK(cuMemHostRegister(host, BYTES, 0));
	OK(cuMemsetD8(device, (unsigned char)group, BYTES));
	OK(cuMemcpyDtoHAsync(host, device, BYTES, NULL));
	OK(cuStreamSynchronize(NULL));
	CHECK(host[0] == group && host[BYTES - 1] == group);
	OK(cuMemHostUnregister(host));
	OK(cuMemFree(device));
}

/* A callback of a copy to the device is refused. The client forgets the copy: its memory is the program's again, although a stream
 * of the context is held. */
static void callback_of_copy_up(uint32_t callback)
{
	CUdeviceptr device, flag;
	CUstream held, stream;
	OK(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuMemAlloc(&device, BYTES));
	OK(cuMemAlloc(&flag, 4));
	for (int i = 0; i < 5; i++) {
		OK(cuMemsetD32(flag, 0, 1));
		OK(cuCtxSynchronize());
		OK(cuStreamWaitValue32(held, flag, 1, CU_STREAM_WAIT_VALUE_EQ));
		OK(cuMemHostRegister(host, BYTES, 0));
		refuse(&refusing->callback, callback);
		OK(cuMemcpyHtoDAsync(device, host, BYTES, stream));
		EXPECT(cuStreamSynchronize(stream), REFUSED);
		OK(cuStreamSynchronize(stream));
		OK(cuMemHostUnregister(host));
		OK(cuStreamWriteValue32(stream, flag, 1, 0));
		OK(cuStreamSynchronize(held));
	}
	CHECK(!refusing->callback);
	OK(cuStreamDestroy(held));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
	OK(cuMemFree(flag));
}

static void check_gone(CUcontext context, CUstream stream, CUdeviceptr memory)
{
	size_t size;
	EXPECT(cuStreamQuery(stream), CUDA_ERROR_INVALID_HANDLE);
	EXPECT(cuMemGetAddressRange(NULL, &size, memory), CUDA_ERROR_NOT_FOUND);
	if (context)
		EXPECT(cuCtxSetCurrent(context), CUDA_ERROR_INVALID_CONTEXT);
}

/* The worker has ended the objects of the context before the driver refuses. So has the client. */
static void context(void)
{
	CUcontext made;
	CUstream stream;
	CUdeviceptr memory;
	OK(cuCtxCreate(&made, NULL, 0, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc(&memory, 4096));
	refuse(&refusing->context, 1);
	EXPECT(cuCtxDestroy(made), REFUSED);
	OK(cuCtxSetCurrent(primary));
	check_gone(made, stream, memory);
	OK(cuCtxCreate(&made, NULL, 0, 0));
	OK(cuCtxDestroy(made));
	OK(cuCtxSetCurrent(primary));
}

static void reset(void)
{
	CUstream stream;
	CUdeviceptr memory;
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc(&memory, 4096));
	refuse(&refusing->reset, 1);
	EXPECT(cuDevicePrimaryCtxReset(0), REFUSED);
	check_gone(NULL, stream, memory);
	OK(cuStreamCreate(&stream, 0));
	OK(cuStreamDestroy(stream));
}

/* A context ends in spite of the failure of an earlier call, which ends with it. */
static void earlier_failure(void)
{
	CUcontext made;
	CUstream stream;
	CUdeviceptr memory;
	OK(cuMemHostRegister(host, BYTES, 0));
	OK(cuCtxCreate(&made, NULL, 0, 0));
	OK(cuStreamCreate(&stream, 0));
	OK(cuMemAlloc(&memory, BYTES));
	refuse(&refusing->callback, 1);
	OK(cuMemcpyDtoHAsync(host, memory, BYTES, stream));
	OK(cuCtxDestroy(made));
	OK(cuCtxSetCurrent(primary));
	check_gone(made, stream, memory);
	OK(cuCtxSynchronize());
	OK(cuMemHostUnregister(host));
}

static void CUDA_CB count(void *counter)
{
	__atomic_add_fetch((uint32_t *)counter, 1, __ATOMIC_SEQ_CST);
}

/* The driver does not clone a graph with conditional handles, so the worker builds executable graphs in that graph,
 * one at a time. A refused one and one that has ended leave it as it was. */
static void conditional_graph(void)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphConditionalHandle handle;
	CUdeviceptr memory;
	uint32_t counter = 0, value;
	CUDA_HOST_NODE_PARAMS counting = { .fn = count, .userData = &counter };
	CUDA_MEMSET_NODE_PARAMS fill = { .value = 7, .elementSize = 4, .width = 1, .height = 1 };
	CUgraphNodeParams condition = { .type = CU_GRAPH_NODE_TYPE_CONDITIONAL };
	CUgraphNode first, node;
	OK(cuMemAlloc(&memory, 4));
	fill.dst = memory;
	refuse(&refusing->clone, 1);
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphConditionalHandleCreate(&handle, graph, primary, 1, CU_GRAPH_COND_ASSIGN_DEFAULT));
	OK(cuGraphAddHostNode(&first, graph, NULL, 0, &counting));
	condition.conditional.handle = handle;
	condition.conditional.type = CU_GRAPH_COND_TYPE_IF;
	condition.conditional.size = 1;
	condition.conditional.ctx = primary;
	OK(cuGraphAddNode(&node, graph, &first, NULL, 1, &condition));
	OK(cuGraphAddMemsetNode(&node, condition.conditional.phGraph_out[0], NULL, 0, &fill, primary));
	refuse(&refusing->instantiate, 1);
	EXPECT(cuGraphInstantiate(&exec, graph, 0), REFUSED);
	for (uint32_t i = 1; i <= 3; i++) {
		OK(cuMemsetD32(memory, 0, 1));
		OK(cuGraphInstantiate(&exec, graph, 0));
		OK(cuGraphLaunch(exec, NULL));
		OK(cuCtxSynchronize());
		OK(cuMemcpyDtoH(&value, memory, 4));
		CHECK(value == 7 && counter == i);
		OK(cuGraphExecDestroy(exec));
	}
	OK(cuGraphDestroy(graph));
	OK(cuMemFree(memory));
	refuse(&refusing->clone, 0);
}

static CUtexObject texture_of(CUdeviceptr memory, size_t bytes)
{
	CUtexObject made;
	CUDA_RESOURCE_DESC resource = { .resType = CU_RESOURCE_TYPE_LINEAR };
	CUDA_TEXTURE_DESC plain = { .flags = CU_TRSF_READ_AS_INTEGER };
	resource.res.linear.devPtr = memory;
	resource.res.linear.format = CU_AD_FORMAT_UNSIGNED_INT8;
	resource.res.linear.numChannels = 1;
	resource.res.linear.sizeInBytes = bytes;
	OK(cuTexObjectCreate(&made, &resource, &plain, NULL));
	return made;
}

static void expect_bytes(CUtexObject texture, size_t bytes)
{
	CUDA_RESOURCE_DESC told;
	OK(cuTexObjectGetResourceDesc(&told, texture));
	CHECK(told.res.linear.sizeInBytes == bytes);
}

/* The driver gives two contexts textures with one number. Each has its own description, and ends by itself. */
static void equal_numbers(void)
{
	CUcontext second;
	CUdeviceptr memory[2];
	CUtexObject texture[2];
	refuse(&refusing->equal, 1);
	OK(cuMemAlloc(&memory[0], 256));
	texture[0] = texture_of(memory[0], 256);
	OK(cuCtxCreate(&second, NULL, 0, 0));
	OK(cuMemAlloc(&memory[1], 512));
	texture[1] = texture_of(memory[1], 512);
	CHECK(texture[0] == EQUAL_NUMBER && texture[1] == EQUAL_NUMBER);
	expect_bytes(texture[1], 512);
	OK(cuCtxSetCurrent(primary));
	expect_bytes(texture[0], 256);
	OK(cuTexObjectDestroy(texture[0]));
	OK(cuCtxSetCurrent(second));
	expect_bytes(texture[1], 512);
	OK(cuTexObjectDestroy(texture[1]));
	EXPECT(cuTexObjectDestroy(texture[1]), CUDA_ERROR_INVALID_VALUE);
	OK(cuCtxDestroy(second));
	OK(cuCtxSetCurrent(primary));
	OK(cuMemFree(memory[0]));
	refuse(&refusing->equal, 0);
}

int main(int argc, char **argv)
{
	int file = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
	refusing = mmap(NULL, sizeof *refusing, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	host = aligned_alloc(4096, BYTES);
	CHECK(refusing != MAP_FAILED && host);
	primary = start();
	conditional_graph();
	equal_numbers();
	earlier_failure();
	context();
	reset();
	for (uint32_t group = 1; group <= 3; group++)
		callback_of_group(group);
	callback_of_copy_up(1);
	callback_of_copy_up(2);
	free(host);
	return 0;
}
