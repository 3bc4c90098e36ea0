/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Graphs of several threads: one thread launches, one captures and updates, one disables and enables nodes, one instantiates and
 * destroys. Each thread has a stream and executable graphs of its own, as CUDA wants it. Also under ThreadSanitizer.
 */
#include "test/cuda/softgpu/driver.h"

#include <pthread.h>

enum { ROUNDS = 60, WORDS = 64 };

static CUcontext context;
static CUfunction increase;

/* What a thread's graphs use: a word that a kernel increases, and words that are copied up and down. */
struct own {
	CUstream stream;
	CUdeviceptr memory; /* WORDS words */
	uint32_t up[WORDS], down[WORDS];
	uint32_t called; /* of the host function */
};

static void call(void *argument)
{
	struct own *own = argument;
	own->called++;
}

static void capture(struct own *own, uint32_t by, CUgraph *graph)
{
	void *parameters[] = { &own->memory, &by };
	CUdeviceptr behind = own->memory + 4;
	OK(cuStreamBeginCapture(own->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
	OK(cuLaunchKernel(increase, 1, 1, 1, 1, 1, 1, 0, own->stream, parameters, NULL));
	OK(cuMemcpyHtoDAsync(behind, own->up, sizeof own->up - 4, own->stream));
	OK(cuMemcpyDtoHAsync(own->down, own->memory, sizeof own->down, own->stream));
	OK(cuLaunchHostFunc(own->stream, call, own));
	OK(cuStreamEndCapture(own->stream, graph));
}

/* The device's word, and the rows that went up, came down. */
static void expect(struct own *own, uint32_t sum, uint32_t copied, uint32_t called)
{
	OK(cuStreamSynchronize(own->stream));
	CHECK(own->down[0] == sum && own->down[1] == copied && own->down[WORDS - 1] == copied && own->called == called);
}

static void write_up(struct own *own, uint32_t value)
{
	for (int i = 0; i < WORDS; i++)
		own->up[i] = value;
}

static void *launches(void *argument)
{
	struct own *own = argument;
	CUgraph graph;
	CUgraphExec exec;
	OK(cuCtxSetCurrent(context));
	capture(own, 1, &graph);
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(cuGraphDestroy(graph));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		write_up(own, round);
		for (int i = 0; i < 5; i++)
			OK(cuGraphLaunch(exec, own->stream));
		expect(own, 5 * round, round, 5 * round);
	}
	OK(cuGraphExecDestroy(exec));
	return NULL;
}

static void *updates(void *argument)
{
	struct own *own = argument;
	CUgraph graph;
	CUgraphExec exec = NULL;
	CUgraphExecUpdateResultInfo info;
	uint32_t sum = 0;
	OK(cuCtxSetCurrent(context));
	write_up(own, 7);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		capture(own, round, &graph);
		if (exec)
			OK(cuGraphExecUpdate(exec, graph, &info)); /* while the launch before it may be pending */
		else
			OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		OK(cuGraphDestroy(graph));
		OK(cuGraphLaunch(exec, own->stream));
		sum += round;
		if (round % 4 == 0)
			expect(own, sum, 7, round);
	}
	expect(own, sum, 7, ROUNDS);
	OK(cuGraphExecDestroy(exec));
	return NULL;
}

/* The first node is the kernel. */
static void *switches(void *argument)
{
	struct own *own = argument;
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode first;
	size_t one = 1;
	OK(cuCtxSetCurrent(context));
	write_up(own, 3);
	capture(own, 2, &graph);
	OK(cuGraphGetRootNodes(graph, &first, &one));
	OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		OK(cuGraphNodeSetEnabled(exec, first, 0));
		OK(cuGraphLaunch(exec, own->stream));
		OK(cuGraphNodeSetEnabled(exec, first, 1));
		OK(cuGraphLaunch(exec, own->stream));
		if (round % 8 == 0)
			expect(own, 2 * round, 3, 2 * round);
	}
	expect(own, 2 * ROUNDS, 3, 2 * ROUNDS);
	OK(cuGraphExecDestroy(exec));
	OK(cuGraphDestroy(graph));
	return NULL;
}

static void *makes(void *argument)
{
	struct own *own = argument;
	OK(cuCtxSetCurrent(context));
	write_up(own, 9);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		CUgraph graph;
		CUgraphExec exec;
		capture(own, 1, &graph);
		OK(cuGraphInstantiateWithFlags(&exec, graph, 0));
		OK(cuGraphLaunch(exec, own->stream));
		OK(cuGraphExecDestroy(exec)); /* the launch completes */
		OK(cuGraphDestroy(graph));
		if (round % 2)
			expect(own, round, 9, round);
	}
	expect(own, ROUNDS, 9, ROUNDS);
	return NULL;
}

int main(void)
{
	void *(*const work[])(void *) = { launches, updates, switches, makes };
	enum { THREADS = sizeof work / sizeof *work };
	static struct own own[THREADS];
	pthread_t threads[THREADS];
	context = start();
	increase = kernel("increase");
	for (int i = 0; i < THREADS; i++) {
		OK(cuStreamCreate(&own[i].stream, CU_STREAM_NON_BLOCKING));
		OK(cuMemAlloc(&own[i].memory, sizeof own[i].up));
		OK(cuMemsetD32(own[i].memory, 0, WORDS));
	}
	OK(cuCtxSynchronize());
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, work[i], &own[i]));
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (int i = 0; i < THREADS; i++) {
		OK(cuStreamDestroy(own[i].stream));
		OK(cuMemFree(own[i].memory));
	}
	return 0;
}
