/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mixed SEED SEQUENCES STEPS [THREADS]: sequences of work, drawn from the seed, in the streams of all GPUs: fills, copies in all
 * directions by all kinds of calls, small kernels, host functions, graphs with nodes of several GPUs that are launched and updated,
 * and memory, streams and modules that end and begin. Where two pieces of work access the same bytes, the program makes one wait
 * for the other: by an event, a value in memory, or a wait or query of the host. So all contents are
 * known, and are compared. Several threads have a sequence each at a time. With HEADRACE_TEST_VERBOSE=1 each step is written to
 * stderr.
 */
#include "test/cuda/mixed/mixed.h"

#include <pthread.h>
#include <stdarg.h>

CUcontext mixed_contexts[MAX_DEVICES];

static int devices;
static uint64_t seed;
static unsigned steps, sequences;
static bool verbose, several_servers, remote_driver;
/* A capture forbids other threads' calls that wait for its streams, or for all. */
static pthread_rwlock_t captures = PTHREAD_RWLOCK_INITIALIZER;

uint32_t mixed_draw(struct world *world, uint32_t below)
{
	world->random = world->random * 6364136223846793005u + 1442695040888963407u;
	return below ? (uint32_t)((world->random >> 32) * below >> 32) : 0;
}

void mixed_note(struct world *world, const char *format, ...)
{
	va_list arguments;
	char line[300];
	if (!world->verbose)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof line, format, arguments);
	va_end(arguments);
	fprintf(stderr, "thread %u: %s\n", world->thread, line);
}

void mixed_keep(struct world *world, void *memory)
{
	world->kept = realloc(world->kept, (world->keeps + 1) * sizeof *world->kept);
	CHECK(world->kept);
	world->kept[world->keeps++] = memory;
}

static int draw_stream(struct world *world, int device)
{
	int within = (int)mixed_draw(world, STREAMS_PER_DEVICE);
	return 1 + (device < 0 ? (int)mixed_draw(world, (uint32_t)world->devices) : device) * STREAMS_PER_DEVICE + within;
}

static struct area whole(struct world *world, int block)
{
	size_t size = world->blocks[block].size;
	return (struct area){ block, 0, size, 1, size };
}

/* ---- blocks ---- */

static void work(struct world *world, const struct operation *operation)
{
	order_operation(world, operation);
	operation_note(world, operation);
	operation_issue(world, operation);
	order_issued(world, operation);
	operation_apply(world, operation);
}

/* Managed memory may be used by the host only while no device works. */
static void host_enters(struct world *world, const struct area *area, bool write)
{
	if (world->blocks[area->block].kind == MANAGED)
		order_all(world);
	order_before(world, HOST, area, write, false);
}

static void host_writes(struct world *world, const struct area *area)
{
	struct block *block = &world->blocks[area->block];
	host_enters(world, area, true);
	mixed_note(world, "the host writes %d+%zu, %zu", area->block, area->offset, area->width);
	for (size_t i = area->offset; i < area->offset + area->width; i++)
		block->model[i] = (uint8_t)mixed_draw(world, 256);
	memcpy((uint8_t *)(uintptr_t)block->at + area->offset, block->model + area->offset, area->width);
	order_host(world, area, true);
}

static void allocate(struct world *world, int number)
{
	static const enum kind kinds[] = { DEVICE, DEVICE, DEVICE, DEVICE, POOL, PINNED, PINNED, MAPPED, REGISTERED, PAGEABLE,
					   MANAGED };
	struct block *block = &world->blocks[number];
	int actor = draw_stream(world, -1);
	void *host = NULL;
	*block = (struct block){ .live = true, .kind = kinds[mixed_draw(world, sizeof kinds / sizeof *kinds)],
				 .device = world->streams[actor].device };
	static const uint32_t sizes[] = { 64, 1000, 5000, 70000, 70000, 300000, 1500000 };
	block->size = 16 + mixed_draw(world, sizes[mixed_draw(world, sizeof sizes / sizeof *sizes)]);
	block->model = malloc(block->size);
	CHECK(block->model);
	OK(cuCtxSetCurrent(mixed_contexts[block->device]));
	mixed_note(world, "block %d: kind %d, device %d, %zu bytes, in stream %d", number, block->kind, block->device, block->size,
		   actor);
	switch (block->kind) {
	case DEVICE:
		OK(cuMemAlloc(&block->at, block->size));
		break;
	case POOL:
		OK(cuMemAllocAsync(&block->at, block->size, world->streams[actor].handle));
		break;
	case MANAGED:
		if (cuMemAllocManaged(&block->at, block->size, CU_MEM_ATTACH_GLOBAL) == CUDA_SUCCESS)
			break;
		block->kind = DEVICE;
		OK(cuMemAlloc(&block->at, block->size)); /* the worker may map no host memory */
		break;
	case PINNED:
		OK(cuMemHostAlloc(&host, block->size, CU_MEMHOSTALLOC_PORTABLE));
		break;
	case MAPPED: {
		CUresult result = cuMemHostAlloc(&host, block->size, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
		if (result == CUDA_ERROR_NOT_SUPPORTED) { /* the worker may map no pinned memory */
			block->kind = PINNED;
			result = cuMemHostAlloc(&host, block->size, CU_MEMHOSTALLOC_PORTABLE);
		}
		OK(result);
		break;
	}
	default:
		CHECK((host = malloc(block->size)));
		if (block->kind == REGISTERED)
			OK(cuMemHostRegister(host, block->size, CU_MEMHOSTREGISTER_PORTABLE));
	}
	if (mixed_on_host(block)) {
		block->at = (CUdeviceptr)(uintptr_t)host;
		struct area all = whole(world, number);
		host_writes(world, &all);
	} else {
		struct operation first = { .what = FILL, .to = whole(world, number), .from = { .block = -1 }, .element = 1,
					   .value = mixed_draw(world, 256), .actor = actor };
		work(world, &first);
	}
}

static void end_graphs(struct world *world, int block)
{
	for (int i = 0; i < MAX_GRAPHS; i++) {
		struct graph *graph = &world->graphs[i];
		bool uses = false;
		for (int n = 0; graph->exec && n < graph->nodes; n++)
			uses |= block < 0 || graph->node[n].to.block == block || graph->node[n].from.block == block;
		if (!uses)
			continue;
		mixed_note(world, "graph %d ends", i);
		OK(cuGraphExecDestroy(graph->exec));
		graph->exec = NULL;
	}
}

/* Some kinds wait themselves for the work that uses the memory. */
static void release(struct world *world, int number)
{
	struct block *block = &world->blocks[number];
	struct area all = whole(world, number);
	void *host = (void *)(uintptr_t)block->at;
	end_graphs(world, number);
	if (block->kind == POOL) {
		int actor = draw_stream(world, block->device);
		order_before(world, actor, &all, true, false);
		mixed_note(world, "block %d ends in stream %d", number, actor);
		OK(cuCtxSetCurrent(mixed_contexts[block->device]));
		OK(cuMemFreeAsync(block->at, world->streams[actor].handle));
		order_step(world, actor);
	} else {
		bool waits = (block->kind == DEVICE && world->several_servers) ||
			     (world->remote && (block->kind == PINNED || block->kind == REGISTERED));
		order_before(world, HOST, &all, true, waits && mixed_draw(world, 2));
		mixed_note(world, "block %d ends", number);
		OK(cuCtxSetCurrent(mixed_contexts[block->device]));
		if (block->kind == DEVICE || block->kind == MANAGED) {
			OK(cuMemFree(block->at));
		} else if (block->kind == PINNED || block->kind == MAPPED) {
			OK(cuMemFreeHost(host));
		} else {
			if (block->kind == REGISTERED)
				OK(cuMemHostUnregister(host));
			free(host);
		}
	}
	free(block->model);
	block->live = false;
	order_forget(world, number);
}

static void compare(struct world *world, int number)
{
	struct block *block = &world->blocks[number];
	struct area all = whole(world, number);
	uint8_t *found = (uint8_t *)(uintptr_t)block->at, *read = NULL;
	if (mixed_on_host(block) || (block->kind == MANAGED && mixed_draw(world, 2))) {
		host_enters(world, &all, false);
		order_host(world, &all, false);
	} else {
		int actor = 1 + block->device * STREAMS_PER_DEVICE;
		CHECK((found = read = malloc(block->size)));
		order_before(world, actor, &all, false, false);
		OK(cuCtxSetCurrent(mixed_contexts[block->device]));
		OK(cuMemcpyDtoH(found, block->at, block->size));
		order_step(world, actor);
		struct clock done = world->clocks[actor];
		order_join(world, HOST, &done);
	}
	mixed_note(world, "block %d is compared", number);
	for (size_t i = 0; i < block->size; i++)
		if (found[i] != block->model[i]) {
			fprintf(stderr, "thread %u: block %d, kind %d of device %d, byte %zu of %zu: %#x, want %#x\n",
				world->thread, number, block->kind, block->device, i, block->size, found[i], block->model[i]);
			exit(1);
		}
	free(read);
}

/* ---- graphs ---- */

static const int wanted[] = { 2, 3 }; /* streams of a device that do not wait for the default stream */

static int draw_wanted(struct world *world)
{
	int device = (int)mixed_draw(world, (uint32_t)world->devices);
	return 1 + device * STREAMS_PER_DEVICE + wanted[mixed_draw(world, 2)];
}

static void capture_node(struct world *inner, const struct operation *node)
{
	order_operation(inner, node);
	operation_note(inner, node);
	operation_issue(inner, node);
	order_issued(inner, node);
}

static void capture_nodes(struct world *inner, struct graph *graph)
{
	graph->nodes = 0;
	int nodes = 1 + (int)mixed_draw(inner, MAX_NODES);
	for (int n = 0; n < nodes; n++)
		if (operation_draw(inner, draw_wanted(inner), &graph->node[graph->nodes]))
			capture_node(inner, &graph->node[graph->nodes++]);
}

/* The same nodes with other values. An update changes no fill of several rows (cuGraphExecUpdate). */
static void capture_again(struct world *inner, struct graph *graph)
{
	for (int n = 0; n < graph->nodes; n++) {
		struct operation *node = &graph->node[n];
		if (node->what != COPY && !(node->what == FILL && node->to.rows > 1))
			node->value = mixed_draw(inner, 0xffffffff);
		capture_node(inner, node);
	}
}

/* Operations of several streams, captured. Their order among themselves is kept in a world of their own. */
static CUgraph capture(struct world *world, struct graph *graph, bool again)
{
	struct world *inner = malloc(sizeof *inner);
	CUgraph captured;
	CHECK(inner);
	*inner = *world;
	inner->capturing = true;
	inner->accesses = 0;
	memset(inner->clocks, 0, sizeof inner->clocks);
	memset(inner->events, 0, sizeof inner->events);
	int origin = graph->origin = again ? graph->origin : draw_wanted(inner);
	pthread_rwlock_wrlock(&captures);
	for (int i = 0; i < world->devices; i++) {
		OK(cuCtxSetCurrent(mixed_contexts[i]));
		inner->events[i].device = i;
		OK(cuEventCreate(&inner->events[i].handle, CU_EVENT_DISABLE_TIMING));
	}
	mixed_note(inner, "a capture begins in stream %d", origin);
	OK(cuStreamBeginCapture(inner->streams[origin].handle, CU_STREAM_CAPTURE_MODE_RELAXED));
	order_record(inner, inner->streams[origin].device, origin);
	for (int i = 0; i < world->devices; i++)
		for (int k = 0; k < 2; k++)
			if (1 + i * STREAMS_PER_DEVICE + wanted[k] != origin)
				order_wait(inner, inner->streams[origin].device, 1 + i * STREAMS_PER_DEVICE + wanted[k]);
	(again ? capture_again : capture_nodes)(inner, graph);
	for (int i = 0; i < world->devices; i++)
		for (int k = 0; k < 2; k++)
			if (1 + i * STREAMS_PER_DEVICE + wanted[k] != origin) {
				order_record(inner, i, 1 + i * STREAMS_PER_DEVICE + wanted[k]);
				order_wait(inner, i, origin);
			}
	OK(cuCtxSetCurrent(mixed_contexts[inner->streams[origin].device]));
	OK(cuStreamEndCapture(inner->streams[origin].handle, &captured));
	mixed_note(inner, "the capture ends");
	pthread_rwlock_unlock(&captures);
	for (int i = 0; i < world->devices; i++)
		OK(cuEventDestroy(inner->events[i].handle));
	world->random = inner->random;
	world->kept = inner->kept;
	world->keeps = inner->keeps;
	free(inner);
	return captured;
}

static void make_graph(struct world *world, struct graph *graph)
{
	CUgraph captured = capture(world, graph, false);
	OK(cuGraphInstantiateWithFlags(&graph->exec, captured, 0));
	OK(cuGraphDestroy(captured));
	memset(&graph->launched, 0, sizeof graph->launched);
}

/* Earlier launches may be pending. */
static void update_graph(struct world *world, struct graph *graph)
{
	CUgraphExecUpdateResultInfo info;
	CUgraph captured = capture(world, graph, true);
	mixed_note(world, "graph %d is updated", (int)(graph - world->graphs));
	OK(cuGraphExecUpdate(graph->exec, captured, &info));
	OK(cuGraphDestroy(captured));
}

static void launch_graph(struct world *world, struct graph *graph)
{
	int actor = draw_stream(world, -1);
	for (int n = 0; n < graph->nodes; n++) {
		order_join(world, actor, &graph->launched); /* a launch comes behind the one before it */
		if (graph->node[n].from.block >= 0)
			order_before(world, actor, &graph->node[n].from, false, false);
		if (graph->node[n].to.block >= 0)
			order_before(world, actor, &graph->node[n].to, true, false);
	}
	mixed_note(world, "graph %d is launched in stream %d", (int)(graph - world->graphs), actor);
	OK(cuCtxSetCurrent(mixed_contexts[world->streams[actor].device]));
	OK(cuGraphLaunch(graph->exec, world->streams[actor].handle));
	for (int n = 0; n < graph->nodes; n++) {
		order_launched(world, actor, &graph->node[n]);
		operation_apply(world, &graph->node[n]);
	}
	graph->launched = world->clocks[actor];
}

static void graph_step(struct world *world)
{
	struct graph *graph = &world->graphs[mixed_draw(world, MAX_GRAPHS)];
	if (graph->exec && mixed_draw(world, 6) == 0) {
		mixed_note(world, "graph %d ends", (int)(graph - world->graphs));
		OK(cuGraphExecDestroy(graph->exec));
		graph->exec = NULL;
	}
	if (!graph->exec)
		make_graph(world, graph);
	else if (mixed_draw(world, 3) == 0)
		update_graph(world, graph);
	for (uint32_t i = mixed_draw(world, 3); i > 0; i--) {
		pthread_rwlock_rdlock(&captures);
		launch_graph(world, graph);
		pthread_rwlock_unlock(&captures);
	}
}

/* ---- streams and modules ---- */

/* The old stream's work may be pending when the stream ends. The new stream waits for the old one's work. */
static void replace_stream(struct world *world, int actor)
{
	struct stream *stream = &world->streams[actor];
	int event = (int)mixed_draw(world, EVENTS);
	if (stream->legacy)
		return;
	order_record(world, event, actor);
	mixed_note(world, "stream %d ends, and another begins", actor);
	OK(cuStreamDestroy(stream->handle));
	OK(cuStreamCreate(&stream->handle, stream->blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
	order_wait(world, event, actor);
}

static void load(struct world *world, int device)
{
	struct code *code = &world->code[device];
	OK(cuCtxSetCurrent(mixed_contexts[device]));
	OK(cuModuleLoadData(&code->module, test_program("double\nwrite increase\n")));
	OK(cuModuleGetFunction(&code->increase, code->module, "increase"));
	OK(cuModuleGetFunction(&code->write, code->module, "write"));
}

/* Kernels of the old module may be pending when the new one is loaded. */
static void replace_module(struct world *world, int device)
{
	CUmodule old = world->code[device].module;
	mixed_note(world, "a module of device %d ends, and another begins", device);
	load(world, device);
	end_graphs(world, -1);
	order_device(world, device);
	OK(cuModuleUnload(old));
}

/* ---- sequences ---- */

/* Changes no contents. */
static void prefetch(struct world *world, const struct block *block)
{
	CUmemLocation to = { .type = mixed_draw(world, 2) ? CU_MEM_LOCATION_TYPE_DEVICE : CU_MEM_LOCATION_TYPE_HOST,
			     .id = block->device };
	int actor = draw_stream(world, block->device);
	mixed_note(world, "stream %d prefetches block %d", actor, (int)(block - world->blocks));
	OK(cuCtxSetCurrent(mixed_contexts[block->device]));
	OK(cuMemPrefetchAsync(block->at, block->size, to, 0, world->streams[actor].handle));
}

static void other_step(struct world *world)
{
	struct operation operation;
	int number = (int)mixed_draw(world, MAX_BLOCKS);
	struct block *block = &world->blocks[number];
	switch (mixed_draw(world, 30)) {
	case 0:
	case 1:
		if (block->live)
			release(world, number);
		else
			allocate(world, number);
		break;
	case 2:
		if (block->live)
			compare(world, number);
		break;
	case 3:
		if (block->live && (mixed_on_host(block) || (block->kind == MANAGED && mixed_draw(world, 3) == 0))) {
			struct area area = whole(world, number);
			area.offset = mixed_draw(world, (uint32_t)area.width);
			area.width = 1 + mixed_draw(world, (uint32_t)(area.width - area.offset));
			host_writes(world, &area);
		}
		break;
	case 4:
		order_record(world, (int)mixed_draw(world, EVENTS), draw_stream(world, -1));
		break;
	case 5: {
		int event = (int)mixed_draw(world, EVENTS);
		if (world->events[event].recorded)
			order_wait(world, event, draw_stream(world, -1));
		break;
	}
	case 6:
		replace_stream(world, draw_stream(world, -1));
		break;
	case 7:
		if (mixed_draw(world, 4) == 0)
			replace_module(world, (int)mixed_draw(world, (uint32_t)world->devices));
		break;
	case 8:
		if (block->live && block->kind == MANAGED)
			prefetch(world, block);
		break;
	default:
		if (operation_draw(world, draw_stream(world, -1), &operation))
			work(world, &operation);
	}
}

static void one_sequence(struct world *world)
{
	pthread_rwlock_rdlock(&captures);
	for (int i = 0; i < world->devices; i++) {
		OK(cuCtxSetCurrent(mixed_contexts[i]));
		for (int k = 0; k < STREAMS_PER_DEVICE; k++) {
			struct stream *stream = &world->streams[1 + i * STREAMS_PER_DEVICE + k];
			*stream = (struct stream){ .device = i, .legacy = k == 0, .blocking = k == 1 };
			if (k > 0)
				OK(cuStreamCreate(&stream->handle, k == 1 ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING));
		}
		load(world, i);
		OK(cuMemAlloc(&world->flags[i], 4 * ACTORS));
		OK(cuMemsetD32(world->flags[i], 0, ACTORS));
		OK(cuCtxSynchronize());
	}
	for (int i = 0; i < MAX_BLOCKS / 2; i++)
		allocate(world, i);
	pthread_rwlock_unlock(&captures);
	for (unsigned step = 0; step < steps; step++) {
		if (mixed_draw(world, 20) == 0) {
			graph_step(world);
			continue;
		}
		pthread_rwlock_rdlock(&captures);
		other_step(world);
		pthread_rwlock_unlock(&captures);
	}
	pthread_rwlock_rdlock(&captures);
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (world->blocks[i].live)
			compare(world, i);
	end_graphs(world, -1);
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (world->blocks[i].live)
			release(world, i);
	order_all(world);
	for (int i = 0; i < world->devices; i++) {
		OK(cuCtxSetCurrent(mixed_contexts[i]));
		for (int k = 1; k < STREAMS_PER_DEVICE; k++)
			OK(cuStreamDestroy(world->streams[1 + i * STREAMS_PER_DEVICE + k].handle));
		OK(cuMemFree(world->flags[i]));
		OK(cuModuleUnload(world->code[i].module));
	}
	pthread_rwlock_unlock(&captures);
	for (int i = 0; i < EVENTS; i++)
		if (world->events[i].handle)
			OK(cuEventDestroy(world->events[i].handle));
	for (size_t i = 0; i < world->keeps; i++)
		free(world->kept[i]);
	free(world->kept);
}

static void *thread(void *argument)
{
	struct world *world = malloc(sizeof *world);
	uint64_t number = (uintptr_t)argument;
	CHECK(world);
	for (unsigned i = 0; i < sequences; i++) {
		memset(world, 0, sizeof *world);
		world->random = (seed + i + 1000000 * number) * 0x9E3779B97F4A7C15u;
		world->thread = (unsigned)number;
		world->devices = devices;
		world->verbose = verbose;
		world->several_servers = several_servers;
		world->remote = remote_driver;
		for (int k = 0; k < EVENTS; k++)
			world->events[k].device = -1;
		one_sequence(world);
	}
	free(world);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *servers = getenv("HEADRACE_SERVER");
	pthread_t threads[8];
	if (argc < 4)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	sequences = (unsigned)atoi(argv[2]);
	steps = (unsigned)atoi(argv[3]);
	int count = argc > 4 ? atoi(argv[4]) : 1;
	CHECK(count >= 1 && count <= 8);
	verbose = getenv("HEADRACE_TEST_VERBOSE");
	remote_driver = servers;
	several_servers = servers && strchr(servers, ',');
	OK(cuInit(0));
	OK(cuDeviceGetCount(&devices));
	devices = devices < MAX_DEVICES ? devices : MAX_DEVICES;
	for (int i = 0; i < devices; i++) {
		OK(cuDevicePrimaryCtxRetain(&mixed_contexts[i], i));
		OK(cuCtxSetCurrent(mixed_contexts[i]));
	}
	for (int i = 0; i < count; i++)
		CHECK(!pthread_create(&threads[i], NULL, thread, (void *)(uintptr_t)i));
	for (int i = 0; i < count; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < devices; i++)
		OK(cuDevicePrimaryCtxRelease(i));
	return 0;
}
