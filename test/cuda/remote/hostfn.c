/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Host functions and callbacks run in this process, in the stream's order.
 *	hostfn answers   the answer to a host function needs a connection, and another thread has the last one that the server
 *	                 allows; the thread ends when a line comes from stdin
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static uint32_t *host;
static pid_t seen;
static uint32_t found[3];
static int calls;

static void look(void *argument)
{
	seen = getpid();
	found[(uintptr_t)argument] = host[0];
	calls++;
}

static void write_host(void *argument)
{
	usleep(2000);
	host[0] = (uint32_t)(uintptr_t)argument;
}

static CUstream stream;
static CUresult refused[5];

static void call_cuda(void *argument)
{
	CUdeviceptr *device = argument, other;
	void *memory;
	refused[0] = cuMemAlloc(&other, 4);
	refused[1] = cuStreamSynchronize(stream);
	refused[2] = cuMemsetD32Async(*device, 1, 1, stream);
	refused[3] = cuMemFree(*device);
	refused[4] = cuMemHostAlloc(&memory, 4, 0);
}

static void calls_are_refused(CUdeviceptr device)
{
	uint32_t value;
	OK(cuMemsetD32(device, 7, 1));
	OK(cuLaunchHostFunc(stream, call_cuda, &device));
	OK(cuStreamSynchronize(stream));
	for (int i = 0; i < 5; i++)
		CHECK(refused[i] == CUDA_ERROR_NOT_PERMITTED);
	OK(cuMemcpyDtoH(&value, device, 4));
	CHECK(value == 7);
}

static int inside; /* functions that run now; atomic */
static int most, ran;

static void overlap(void *unused)
{
	(void)unused;
	int now = __atomic_add_fetch(&inside, 1, __ATOMIC_RELAXED);
	most = now > most ? now : most;
	usleep(1000); /* time in which another function would begin */
	ran++;
	__atomic_sub_fetch(&inside, 1, __ATOMIC_RELAXED);
}

/* Functions of several streams and of graphs run one after another; copies of graphs may run beside them. */
static void one_at_a_time(CUdeviceptr device)
{
	static uint32_t word = 5;
	CUstream streams[3];
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	CUDA_HOST_NODE_PARAMS node_params = { .fn = overlap };
	OK(cuGraphCreate(&graph, 0));
	OK(cuGraphAddHostNode(&node, graph, NULL, 0, &node_params));
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &word, .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = device, .WidthInBytes = 4, .Height = 1, .Depth = 1 };
	CUcontext context;
	OK(cuCtxGetCurrent(&context));
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (int i = 0; i < 3; i++)
		OK(cuStreamCreate(&streams[i], CU_STREAM_NON_BLOCKING));
	for (int round = 0; round < 10; round++) {
		for (int i = 0; i < 2; i++)
			OK(cuLaunchHostFunc(streams[i], overlap, NULL));
		OK(cuGraphLaunch(exec, streams[2]));
	}
	for (int i = 0; i < 3; i++) {
		OK(cuStreamSynchronize(streams[i]));
		OK(cuStreamDestroy(streams[i]));
	}
	CHECK(ran == 30 && most == 1);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
}

static void look_with_status(CUstream given, CUresult status, void *argument)
{
	CHECK(given == stream && status == CUDA_SUCCESS);
	look(argument);
}

/* ---- the answer waits for a connection ---- */

static sem_t took, go_on;

static void *take_connection(void *given)
{
	CUdeviceptr memory;
	OK(cuCtxSetCurrent(given));
	OK(cuMemAlloc(&memory, 4));
	OK(cuMemFree(memory));
	sem_post(&took);
	CHECK(getchar() == '\n');
	return NULL;
}

static void wait_for_it(void *semaphore)
{
	sem_wait(semaphore);
}

/* While the host function runs, the other thread of the library has the first connection: it has served the graph. */
static void answers(CUcontext context)
{
	static uint32_t words[2];
	CUdeviceptr device;
	CUstream other;
	CUgraph graph;
	CUgraphNode node;
	CUgraphExec exec;
	pthread_t thread;
	OK(cuMemAlloc(&device, 4));
	OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(cuGraphCreate(&graph, 0));
	CUDA_MEMCPY3D copy = { .srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = &words[0], .dstMemoryType = CU_MEMORYTYPE_DEVICE,
			       .dstDevice = device, .WidthInBytes = 4, .Height = 1, .Depth = 1 };
	OK(cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, context));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	sem_init(&took, 0, 0);
	sem_init(&go_on, 0, 0);
	CHECK(!pthread_create(&thread, NULL, take_connection, context));
	sem_wait(&took);
	OK(cuLaunchHostFunc(stream, wait_for_it, &go_on));
	words[0] = 9;
	OK(cuGraphLaunch(exec, other));
	OK(cuStreamSynchronize(other));
	sem_post(&go_on);
	OK(cuStreamSynchronize(stream));
	OK(cuMemcpyDtoH(&words[1], device, 4));
	CHECK(words[1] == 9 && !pthread_join(thread, NULL));
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	OK(cuStreamDestroy(other));
	OK(cuStreamDestroy(stream));
	OK(cuMemFree(device));
}

int main(int argc, char **argv)
{
	CUdeviceptr device;
	CUcontext context = start();
	if (argc == 2 && !strcmp(argv[1], "answers")) {
		answers(context);
		return 0;
	}
	OK(cuMemHostAlloc((void **)&host, 4, 0));
	OK(cuMemAlloc(&device, 4));
	OK(cuStreamCreate(&stream, 0));
	for (int round = 0; round < 20; round++) {
		uint32_t value = 100 * (uint32_t)round;
		host[0] = 0;
		/* Each function sees what the copy before it brought. */
		OK(cuMemsetD32Async(device, value + 1, 1, stream));
		OK(cuMemcpyDtoHAsync(host, device, 4, stream));
		OK(cuLaunchHostFunc(stream, look, (void *)0));
		OK(cuMemsetD32Async(device, value + 2, 1, stream));
		OK(cuMemcpyDtoHAsync(host, device, 4, stream));
		OK(cuStreamAddCallback(stream, look_with_status, (void *)1, 0));
		OK(cuStreamSynchronize(stream));
		CHECK(seen == getpid() && calls == 2 * (round + 1));
		CHECK(found[0] == value + 1 && found[1] == value + 2);
	}
	/* And a copy behind a function takes what the function wrote. */
	for (uint32_t value = 1; value <= 10; value++) {
		OK(cuLaunchHostFunc(stream, write_host, (void *)(uintptr_t)value));
		OK(cuMemcpyHtoDAsync(device, host, 4, stream));
		OK(cuStreamSynchronize(stream));
		host[0] = 0;
		OK(cuMemcpyDtoH(host, device, 4));
		CHECK(host[0] == value);
	}
	calls_are_refused(device);
	one_at_a_time(device);
	EXPECT(cuLaunchHostFunc(stream, NULL, NULL), CUDA_ERROR_INVALID_VALUE);
	EXPECT(cuLaunchHostFunc((CUstream)0x99, look, NULL), CUDA_ERROR_INVALID_HANDLE);
	OK(cuStreamDestroy(stream));
	return 0;
}
