/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launches by kernels (CUDA C++ Programming Guide, "CUDA Dynamic Parallelism", second version): the functions of the
 * device runtime that nvcc calls. A grid's children, and the copies between them, run one after the other in the order
 * in which the grid's threads launched them. They run after the grid itself and before it counts as finished; work of
 * the tail-launch stream runs last. This satisfies the order of every stream, because a parent cannot wait for its
 * children. Each child's own children are finished before the next child begins.
 */
#include "cuda_remote/softgpu/exec/device_launch.h"

#include "cuda_remote/softgpu/exec/call_frame.h"
#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/warp.h"
#include "cuda_remote/softgpu/memory_map.h"

#include <driver_types.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 24
#define SHARED_MAX (48u << 10)
#define STREAM_TAIL 3 /* cudaStreamTailLaunch */

enum work_kind { WORK_LAUNCH, WORK_COPY, WORK_TEXT };

/* A launch, a copy, or the text of an error that a thread of the grid asked for. */
struct work {
	struct work *next;
	enum work_kind kind;
	uint64_t memory; /* its device memory: parameters or text */
	softgpu_launch_t request;
	uint64_t to, from, bytes; /* of a copy */
};

/* A thread's last error. */
struct thread_error {
	struct thread_error *next;
	uint64_t block;
	uint32_t thread;
	int code;
};

struct work_list {
	struct work *first, **end;
};

struct device_queue {
	struct work *kept;            /* launches that have a parameter buffer but were not launched yet, and texts */
	struct work_list queued, tail;
	struct thread_error *errors;
	uint64_t streams;             /* made so far */
};

/* Protects the queues of all grids. Held for a few instructions only. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- lists; the lock is held */
static struct device_queue *queue_of(struct launch *launch)
{
	if (launch->device)
		return launch->device;
	struct device_queue *queue = calloc(1, sizeof *queue);
	if (!queue)
		return NULL;
	queue->queued.end = &queue->queued.first;
	queue->tail.end = &queue->tail.first;
	launch->device = queue;
	return queue;
}

static void append(struct work_list *list, struct work *work)
{
	work->next = NULL;
	*list->end = work;
	list->end = &work->next;
}

static struct work *take_kept(struct device_queue *queue, uint64_t memory)
{
	for (struct work **at = &queue->kept; *at; at = &(*at)->next) {
		struct work *work = *at;
		if (work->memory != memory || work->kind != WORK_LAUNCH)
			continue;
		*at = work->next;
		return work;
	}
	return NULL;
}

static void work_free(struct work *work)
{
	if (work->memory)
		softgpu_memory_free(work->memory);
	free(work);
}

static void work_free_all(struct work *work)
{
	while (work) {
		struct work *next = work->next;
		work_free(work);
		work = next;
	}
}

/* ---- errors of threads */
static uint32_t thread_number(const struct warp *warp, uint32_t lane)
{
	return warp->index * WARP_LANES + lane;
}

/* Stores the error as the thread's last one, and returns it. If there is no memory to store it, it is lost. */
static uint64_t fail(struct warp *warp, uint32_t lane, int code)
{
	struct thread_error *error = malloc(sizeof *error);
	pthread_mutex_lock(&lock);
	struct device_queue *queue = queue_of(warp->block->launch);
	if (error && queue) {
		*error = (struct thread_error){ queue->errors, warp->block->number, thread_number(warp, lane), code };
		queue->errors = error;
		error = NULL;
	}
	pthread_mutex_unlock(&lock);
	free(error);
	return (uint64_t)code;
}

static uint64_t last_error(struct warp *warp, uint32_t lane, bool clear)
{
	int code = cudaSuccess;
	pthread_mutex_lock(&lock);
	struct device_queue *queue = warp->block->launch->device;
	struct thread_error **at = queue ? &queue->errors : NULL;
	while (at && *at) {
		struct thread_error *error = *at;
		if (error->block != warp->block->number || error->thread != thread_number(warp, lane)) {
			at = &error->next;
			continue;
		}
		code = code ? code : error->code;
		if (!clear)
			break;
		*at = error->next;
		free(error);
	}
	pthread_mutex_unlock(&lock);
	return (uint64_t)code;
}

const struct insn *op_cdp_get_last_error(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask)
		call_set_result(warp, insn, lane, last_error(warp, lane, true));
	return insn + 1;
}

const struct insn *op_cdp_peek_last_error(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask)
		call_set_result(warp, insn, lane, last_error(warp, lane, false));
	return insn + 1;
}

static const char *text_of(int code)
{
	switch (code) {
	case cudaSuccess: return "no error";
	case cudaErrorInvalidValue: return "invalid argument";
	case cudaErrorMemoryAllocation: return "out of memory";
	case cudaErrorInvalidConfiguration: return "invalid configuration argument";
	case cudaErrorInvalidDeviceFunction: return "invalid device function";
	case cudaErrorLaunchMaxDepthExceeded: return "launch would exceed maximum depth of nested launches";
	default: return "unrecognized error code";
	}
}

/* Adds work with zeroed device memory to the grid's kept work; NULL if there is no memory. */
static struct work *keep(struct launch *launch, enum work_kind kind, uint64_t bytes)
{
	struct work *work = calloc(1, sizeof *work);
	if (!work)
		return NULL;
	work->kind = kind;
	work->memory = softgpu_memory_alloc(bytes, 64);
	pthread_mutex_lock(&lock);
	struct device_queue *queue = work->memory ? queue_of(launch) : NULL;
	if (queue) {
		work->next = queue->kept;
		queue->kept = work;
	}
	pthread_mutex_unlock(&lock);
	if (queue)
		return work;
	work_free(work);
	return NULL;
}

/* The text lives until the grid ends. */
const struct insn *op_cdp_get_error_string(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		const char *text = text_of((int)call_argument(warp, insn, lane, 0));
		struct work *work = keep(warp->block->launch, WORK_TEXT, strlen(text) + 1);
		if (work)
			memcpy((void *)(uintptr_t)work->memory, text, strlen(text) + 1);
		call_set_result(warp, insn, lane, work ? work->memory : 0);
	}
	return insn + 1;
}

/* ---- launches */
static const struct softgpu_kernel *kernel_at(const struct softgpu_program *program, uint64_t address)
{
	for (size_t n = 0; n < program->kernel_count; n++)
		if ((uint64_t)(uintptr_t)program->kernels[n].code == address)
			return &program->kernels[n];
	return NULL;
}

static int check_request(const softgpu_launch_t *request, uint32_t depth)
{
	const softgpu_kernel_info_t *info = &request->kernel->info;
	const uint32_t *grid = request->grid, *block = request->block, *want = info->required_block;
	const uint32_t *cluster = info->required_cluster;
	uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
	if (depth >= DEPTH_MAX)
		return cudaErrorLaunchMaxDepthExceeded;
	for (int i = 0; i < 3; i++)
		if (!grid[i] || grid[i] > (i ? 65535u : 0x7fffffffu) || !block[i] || block[i] > (i < 2 ? 1024u : 64u) ||
		    (want[0] && block[i] != want[i]) || (cluster[0] && grid[i] % cluster[i]))
			return cudaErrorInvalidConfiguration;
	if (threads > info->max_threads || (info->explicit_cluster && !cluster[0]) ||
	    (uint64_t)request->kernel->shared_bytes + request->dynamic_shared > SHARED_MAX)
		return cudaErrorInvalidConfiguration;
	return cudaSuccess;
}

/* GetParameterBuffer(kernel, grid, block, shared bytes): where the caller is to write the parameters; 0 on failure. */
static uint64_t parameter_buffer(struct warp *warp, const struct insn *insn, uint32_t lane)
{
	struct launch *launch = warp->block->launch;
	softgpu_launch_t request = { .kernel = kernel_at(launch->program, call_argument(warp, insn, lane, 0)),
				     .limits = launch->request->limits };
	if (!request.kernel) {
		fail(warp, lane, cudaErrorInvalidDeviceFunction);
		return 0;
	}
	memcpy(request.grid, call_argument_at(warp, insn, lane, 1), sizeof request.grid);
	memcpy(request.block, call_argument_at(warp, insn, lane, 2), sizeof request.block);
	request.dynamic_shared = (uint32_t)call_argument(warp, insn, lane, 3);
	int error = check_request(&request, launch->depth);
	struct work *work = error ? NULL : keep(launch, WORK_LAUNCH, request.kernel->info.parameter_bytes + 16);
	if (!work) {
		fail(warp, lane, error ? error : cudaErrorMemoryAllocation);
		return 0;
	}
	request.parameters = (const void *)(uintptr_t)work->memory;
	work->request = request;
	return work->memory;
}

const struct insn *op_cdp_get_parameter_buffer(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask)
		call_set_result(warp, insn, lane, parameter_buffer(warp, insn, lane));
	return insn + 1;
}

/* LaunchDevice(parameters, stream) */
const struct insn *op_cdp_launch_device(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		struct work *work = NULL;
		pthread_mutex_lock(&lock);
		struct device_queue *queue = warp->block->launch->device;
		if (queue)
			work = take_kept(queue, call_argument(warp, insn, lane, 0));
		if (work)
			append(call_argument(warp, insn, lane, 1) == STREAM_TAIL ? &queue->tail : &queue->queued, work);
		pthread_mutex_unlock(&lock);
		call_set_result(warp, insn, lane, work ? cudaSuccess : fail(warp, lane, cudaErrorInvalidValue));
	}
	return insn + 1;
}

/* MemcpyAsync(to, from, bytes, kind, stream) */
const struct insn *op_cdp_memcpy_async(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		struct work *work = calloc(1, sizeof *work);
		pthread_mutex_lock(&lock);
		struct device_queue *queue = work ? queue_of(warp->block->launch) : NULL;
		if (queue) {
			work->kind = WORK_COPY;
			work->to = call_argument(warp, insn, lane, 0);
			work->from = call_argument(warp, insn, lane, 1);
			work->bytes = call_argument(warp, insn, lane, 2);
			append(call_argument(warp, insn, lane, 4) == STREAM_TAIL ? &queue->tail : &queue->queued, work);
		}
		pthread_mutex_unlock(&lock);
		if (!queue)
			free(work);
		call_set_result(warp, insn, lane, queue ? cudaSuccess : fail(warp, lane, cudaErrorMemoryAllocation));
	}
	return insn + 1;
}

/* ---- streams: only handles, as all work runs in one order */
static bool store_handle(struct warp *warp, const struct insn *insn, uint32_t lane, uint64_t handle)
{
	uint64_t address = call_argument(warp, insn, lane, 0);
	char *at = address & 7 ? NULL : memory_translate(warp, (int)lane, address, sizeof handle, true);
	if (!at)
		return false;
	memcpy(at, &handle, sizeof handle);
	return true;
}

/* StreamCreateWithFlags(stream *, flags) */
const struct insn *op_cdp_stream_create(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		pthread_mutex_lock(&lock);
		struct device_queue *queue = queue_of(warp->block->launch);
		uint64_t stream = queue ? 4096 + ++queue->streams : 0;
		pthread_mutex_unlock(&lock);
		/* A grid's streams do not block the default stream, and no other kind exists on the device. */
		int error = call_argument(warp, insn, lane, 1) != cudaStreamNonBlocking ? cudaErrorInvalidValue :
			    stream ? cudaSuccess : cudaErrorMemoryAllocation;
		if (!error && !store_handle(warp, insn, lane, stream))
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "pointer for a stream's handle outside every allocation",
					  call_argument(warp, insn, lane, 0));
		call_set_result(warp, insn, lane, error ? fail(warp, lane, error) : cudaSuccess);
	}
	return insn + 1;
}

const struct insn *op_cdp_stream_destroy(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask)
		call_set_result(warp, insn, lane, call_argument(warp, insn, lane, 0) > 4096 ? cudaSuccess :
				fail(warp, lane, cudaErrorInvalidValue));
	return insn + 1;
}

/* ---- memory */
const struct insn *op_cdp_malloc(struct warp *warp, const struct insn *insn)
{
	struct softgpu_heap *heap = warp->block->launch->request->limits.heap;
	for_each_lane(lane, warp->mask) {
		uint64_t size = call_argument(warp, insn, lane, 1), address = softgpu_heap_alloc(heap, size);
		check_forget(warp->block->launch, address, size);
		if (size && !address) {
			call_set_result(warp, insn, lane, fail(warp, lane, cudaErrorMemoryAllocation));
			continue;
		}
		if (!store_handle(warp, insn, lane, address))
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS,
					  "pointer for cudaMalloc's result outside every allocation",
					  call_argument(warp, insn, lane, 0));
		call_set_result(warp, insn, lane, cudaSuccess);
	}
	return insn + 1;
}

const struct insn *op_cdp_free(struct warp *warp, const struct insn *insn)
{
	struct softgpu_heap *heap = warp->block->launch->request->limits.heap;
	for_each_lane(lane, warp->mask) {
		uint64_t address = call_argument(warp, insn, lane, 0);
		bool good = !address || softgpu_heap_free(heap, address);
		call_set_result(warp, insn, lane, good ? cudaSuccess : fail(warp, lane, cudaErrorInvalidValue));
	}
	return insn + 1;
}

/* ---- after the grid */
static bool reachable(uint64_t address, uint64_t bytes, bool write)
{
	softgpu_span_t span;
	return softgpu_memory_find(address, &span) && bytes <= span.size && address - span.base <= span.size - bytes &&
	       !(write && span.read_only);
}

static CUresult run_work(const struct launch *launch, const struct work *work)
{
	if (work->kind == WORK_LAUNCH)
		return launch_nested(&work->request, launch->depth + 1);
	if (!work->bytes)
		return CUDA_SUCCESS;
	if (!reachable(work->to, work->bytes, true) || !reachable(work->from, work->bytes, false))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	memmove((void *)(uintptr_t)work->to, (const void *)(uintptr_t)work->from, work->bytes);
	return CUDA_SUCCESS;
}

void device_queue_finish(struct launch *launch)
{
	struct device_queue *queue = launch->device;
	if (!queue)
		return;
	/* The grid has ended, so no other thread uses the queue. */
	*queue->queued.end = queue->tail.first;
	for (struct work *work; (work = queue->queued.first);) {
		queue->queued.first = work->next;
		if (!launch->fault)
			launch->fault = (int)run_work(launch, work);
		work_free(work);
	}
	work_free_all(queue->kept);
	while (queue->errors) {
		struct thread_error *next = queue->errors->next;
		free(queue->errors);
		queue->errors = next;
	}
	free(queue);
	launch->device = NULL;
}
