/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Launches: the threads of one pool and the launching thread run the blocks. A block's memory stays in the pool's free
 * list from launch to launch, so that a small kernel causes no page faults.
 */
#define _GNU_SOURCE
#include "cuda_remote/softgpu/memory_map.h"

#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/device_launch.h"
#include "cuda_remote/softgpu/exec/output.h"
#include "cuda_remote/softgpu/exec/residency.h"
#include "cuda_remote/softgpu/exec/warp.h"

#include "rdma_channel/base/log.h"
#include "rdma_channel/base/setting.h"

#include <fenv.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

HR_SETTING(threads_setting, "HEADRACE_SOFTGPU_THREADS", "0", 0, 1024,
	   "threads that run the software GPU's blocks, the launching one included; 0: one a core");

HR_SETTING(count_setting, "HEADRACE_SOFTGPU_COUNT", "0", 0, 1,
	   "1: the software GPU counts the instructions of each launch and logs the numbers (HEADRACE_LOG=info)");

HR_SETTING(schedule_setting, "HEADRACE_SOFTGPU_SCHEDULE", "warp", 0, 0,
	   "warp: a warp of the software GPU runs on to its next barrier; lockstep: a block's warps advance together");

#define THREADS_MAX 1024
#define IDLE_BYTES_MAX ((size_t)1 << 30) /* of blocks that are kept for later launches */
#define STACK_BYTES 1024u /* CUDA's default */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t work;     /* a launch has blocks left */
	pthread_cond_t finished; /* a helper left a launch */
	pthread_once_t once;
	struct launch *launches;
	struct block *idle_blocks;
	size_t idle_bytes;       /* of their memory */
	uint32_t threads;        /* with the launching one */
	bool counting, lockstep;
	uint64_t launch_count;
} pool = { .lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .finished = PTHREAD_COND_INITIALIZER,
	   .once = PTHREAD_ONCE_INIT };

/* ---- blocks and their memory */
static struct block *block_take(void)
{
	pthread_mutex_lock(&pool.lock);
	struct block *block = pool.idle_blocks;
	if (block) {
		pool.idle_blocks = block->next;
		pool.idle_bytes -= block_bytes(block, SOFTGPU_CLUSTER_MAX);
	}
	pthread_mutex_unlock(&pool.lock);
	return block ? block : calloc(1, sizeof *block);
}

static void block_give_back(struct block *block)
{
	size_t bytes = block_bytes(block, SOFTGPU_CLUSTER_MAX);
	pthread_mutex_lock(&pool.lock);
	bool keep = bytes <= IDLE_BYTES_MAX - pool.idle_bytes;
	if (keep) {
		block->next = pool.idle_blocks;
		pool.idle_blocks = block;
		pool.idle_bytes += bytes;
	}
	pthread_mutex_unlock(&pool.lock);
	if (!keep)
		block_free(block);
}

/* ---- one worker's part of a launch; a cluster is treated as one block, its block of rank 0 */
static void launch_fail(struct launch *launch, CUresult result)
{
	int none = 0;
	/* Only which fault came first matters. */
	__atomic_compare_exchange_n(&launch->fault, &none, (int)result, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void keep_output(struct launch *launch, struct block *block)
{
	if (!block->print.used)
		return;
	pthread_mutex_lock(&pool.lock);
	output_keep(launch, block);
	pthread_mutex_unlock(&pool.lock);
}

/* The next block of the launch, in the memory of *spare if that is not NULL. NULL: none is left, or none may begin
 * now. */
static struct block *begin_block(struct launch *launch, struct block **spare)
{
	uint64_t number;
	if (__atomic_load_n(&launch->fault, __ATOMIC_RELAXED) || !residency_begin(launch, &number))
		return NULL;
	struct block *block = *spare ? *spare : block_take();
	*spare = NULL;
	if (!block || !block_prepare(block, launch, number)) {
		hr_log(HR_LOG_ERROR, "softgpu: kernel %s: no memory for a block", launch->kernel->info.name);
		launch_fail(launch, CUDA_ERROR_OUT_OF_MEMORY);
		*spare = block;
		residency_abandon(launch);
		return NULL;
	}
	residency_place(block);
	return block;
}

static void count_block(struct launch *launch, const struct block *block)
{
	uint64_t executed = 0, lanes = 0;
	for (uint32_t n = 0; n < block->warp_count; n++) {
		executed += block->warps[n].executed;
		lanes += block->warps[n].executed_lanes;
	}
	/* Relaxed: the sums are read when the helpers have left, which the pool's lock orders. */
	__atomic_fetch_add(&launch->executed, executed, __ATOMIC_RELAXED);
	__atomic_fetch_add(&launch->executed_lanes, lanes, __ATOMIC_RELAXED);
}

/* The block's memory becomes the worker's spare. */
static void finish_block(struct launch *launch, struct block *block, struct block **spare)
{
	for (uint32_t rank = 0; rank < launch->cluster_size; rank++) {
		keep_output(launch, block->members[rank]);
		if (launch->counting)
			count_block(launch, block->members[rank]);
	}
	residency_end(block);
	if (*spare)
		block_give_back(block);
	else
		*spare = block;
}

/*
 * After suspending a block, the worker begins a new one if it may, so that all blocks that others may wait for are soon
 * resident. After a block has ended, the worker resumes the block that has been suspended longest.
 */
static void launch_work(struct launch *launch)
{
	struct block *spare = NULL, *block = begin_block(launch, &spare);
	uint32_t turns = 0; /* since a block ended or began */
	if (!block)
		block = residency_resume(launch);
	while (block) {
		if (residency_run(block) != BLOCK_STALLED) {
			finish_block(launch, block, &spare);
			turns = 0;
			block = residency_resume(launch);
			if (!block)
				block = begin_block(launch, &spare);
			continue;
		}
		residency_suspend(block);
		if ((block = begin_block(launch, &spare))) {
			turns = 0;
			continue;
		}
		if (++turns > residency_suspended(launch)) {
			turns = 0;
			sched_yield();
		}
		block = residency_resume(launch);
	}
	if (spare)
		block_give_back(spare);
}

/* ---- the pool */
static struct launch *launch_with_work(void)
{
	for (struct launch *launch = pool.launches; launch; launch = launch->next)
		if (launch->helpers < launch->helpers_max && !__atomic_load_n(&launch->fault, __ATOMIC_RELAXED) &&
		    (__atomic_load_n(&launch->next_cluster, __ATOMIC_RELAXED) < launch->cluster_count ||
		     residency_suspended(launch) > 1))
			return launch;
	return NULL;
}

static void *pool_thread(void *unused)
{
	(void)unused;
	fesetenv(FE_DFL_ENV); /* a new thread has the floating-point environment of its creator */
	pthread_mutex_lock(&pool.lock);
	for (;;) {
		struct launch *launch = launch_with_work();
		if (!launch) {
			pthread_cond_wait(&pool.work, &pool.lock);
			continue;
		}
		launch->helpers++;
		pthread_mutex_unlock(&pool.lock);
		launch_work(launch);
		pthread_mutex_lock(&pool.lock);
		launch->helpers--;
		pthread_cond_broadcast(&pool.finished);
	}
	return NULL;
}

unsigned softgpu_threads(void)
{
	uint64_t wanted = 0;
	if (hr_setting_u64(&threads_setting, &wanted) || wanted == 0) {
		cpu_set_t cpus;
		long cores =
			sched_getaffinity(0, sizeof cpus, &cpus) ? sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&cpus);
		wanted = cores < 1 ? 1 : (uint64_t)cores;
	}
	return wanted > THREADS_MAX ? THREADS_MAX : (unsigned)wanted;
}

static bool wants_lockstep(void)
{
	const char *schedule = hr_setting_text(&schedule_setting);
	if (strcmp(schedule, "warp") && strcmp(schedule, "lockstep"))
		hr_log(HR_LOG_ERROR, "softgpu: HEADRACE_SOFTGPU_SCHEDULE=%s is neither warp nor lockstep: using warp", schedule);
	return !strcmp(schedule, "lockstep");
}

static void pool_start(void)
{
	unsigned wanted = softgpu_threads();
	uint64_t count;
	pool.counting = !hr_setting_u64(&count_setting, &count) && count;
	pool.lockstep = wants_lockstep();
	pool.threads = 1;
	for (unsigned n = 1; n < wanted; n++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, pool_thread, NULL))
			break;
		pthread_detach(thread);
		pool.threads++;
	}
}

static void launch_enqueue(struct launch *launch)
{
	pthread_mutex_lock(&pool.lock);
	struct launch **end = &pool.launches;
	while (*end)
		end = &(*end)->next;
	*end = launch;
	launch->grid_id = ++pool.launch_count;
	if (launch->helpers_max > 1)
		pthread_cond_broadcast(&pool.work);
	else if (launch->helpers_max)
		pthread_cond_signal(&pool.work);
	pthread_mutex_unlock(&pool.lock);
}

/* Waits until the helpers have left; from then on only the caller accesses the launch. */
static void launch_dequeue(struct launch *launch)
{
	pthread_mutex_lock(&pool.lock);
	struct launch **at = &pool.launches;
	while (*at != launch)
		at = &(*at)->next;
	*at = launch->next;
	while (launch->helpers)
		pthread_cond_wait(&pool.finished, &pool.lock);
	pthread_mutex_unlock(&pool.lock);
}

/* ---- a launch as a whole */
static void fill_thread_ids(struct launch *launch)
{
	const uint32_t *size = launch->request->block;
	for (uint32_t thread = 0; thread < launch->warp_count * WARP_LANES; thread++) {
		uint32_t (*ids)[WARP_LANES] = launch->thread_ids[thread / WARP_LANES];
		ids[0][thread % WARP_LANES] = thread % size[0];
		ids[1][thread % WARP_LANES] = thread / size[0] % size[1];
		ids[2][thread % WARP_LANES] = thread / size[0] / size[1];
	}
}

/* The grid barrier of cooperative groups, whose address is in %envreg1:2: { u32 size; u32 barrier; }. */
static bool make_grid_barrier(struct launch *launch)
{
	uint32_t size = 64;
	if (!launch->request->cooperative)
		return true;
	launch->grid_barrier = softgpu_memory_alloc(size, 64);
	if (!launch->grid_barrier)
		return false;
	memcpy((void *)(uintptr_t)launch->grid_barrier, &size, sizeof size);
	return true;
}

/* A kernel that does not fit on the GPU that is modelled runs all the same: one block, or cluster, on each thread. */
static uint64_t most_resident(const struct launch *launch)
{
	uint32_t blocks = softgpu_occupancy(&launch->kernel->info, launch->block_threads,
						launch->request->dynamic_shared);
	if (launch->request->cooperative)
		return launch->cluster_count;
	uint64_t clusters = (uint64_t)blocks * pool.threads / launch->cluster_size;
	return clusters > pool.threads ? clusters : pool.threads;
}

/* False: the grid does not consist of whole clusters of a permitted size. */
static bool fill_clusters(struct launch *launch)
{
	const softgpu_launch_t *request = launch->request;
	const softgpu_kernel_info_t *info = &launch->kernel->info;
	const uint32_t *wanted = request->cluster[0] ? request->cluster : info->required_cluster;
	uint64_t size = 1;
	launch->cluster_count = 1;
	launch->explicit_cluster = wanted[0] != 0;
	for (int i = 0; i < 3; i++) {
		launch->cluster[i] = wanted[0] ? wanted[i] : 1;
		if (!launch->cluster[i] || launch->cluster[i] > SOFTGPU_CLUSTER_MAX || request->grid[i] % launch->cluster[i])
			return false;
		size *= launch->cluster[i];
		launch->cluster_count *= request->grid[i] / launch->cluster[i];
	}
	launch->cluster_size = (uint32_t)size;
	return size <= SOFTGPU_CLUSTER_MAX;
}

static bool fill_launch(struct launch *launch, const softgpu_launch_t *request)
{
	const struct softgpu_kernel *kernel = request->kernel;
	launch->program = kernel->code->program;
	launch->block_count = (uint64_t)request->grid[0] * request->grid[1] * request->grid[2];
	launch->block_threads = request->block[0] * request->block[1] * request->block[2];
	launch->warp_count = (launch->block_threads + WARP_LANES - 1) / WARP_LANES;
	/* A compiler widens the load of a last, partial vector to 16 bytes (.pragma "used_bytes_mask"), as a GPU gives a block
	 * shared memory in larger units. */
	launch->shared_bytes = (kernel->shared_bytes + request->dynamic_shared + 15) & ~15u;
	launch->local_bytes = kernel->local_bytes;
	uint32_t stack = request->limits.stack_bytes ? request->limits.stack_bytes : STACK_BYTES;
	if (kernel->open_stack)
		launch->local_bytes += (stack + 15) & ~15u;
	launch->workers = pool.threads;
	launch->counting = pool.counting;
	launch->lockstep = pool.lockstep;
	if (!launch->counting && !launch->lockstep)
		launch->single_lane_entry = launch->program->ops->single_lane_entry();
	launch->helpers_max = pool.threads - 1;
	if (launch->cluster_count - 1 < launch->helpers_max)
		launch->helpers_max = (uint32_t)launch->cluster_count - 1;
	if (!residency_init(launch, most_resident(launch)))
		return false;
	size_t bytes = kernel->info.parameter_bytes;
	launch->thread_ids = malloc(launch->warp_count * sizeof *launch->thread_ids);
	launch->parameters = malloc(bytes + 1);
	if (!launch->thread_ids || !launch->parameters)
		return false;
	if (bytes)
		memcpy(launch->parameters, request->parameters, bytes);
	fill_thread_ids(launch);
	return make_grid_barrier(launch);
}

static bool plausible(const softgpu_launch_t *request)
{
	for (int i = 0; i < 3; i++)
		if (request->grid[i] == 0 || request->block[i] == 0 || request->block[i] > 1024)
			return false;
	return request->block[0] * request->block[1] * request->block[2] <= BLOCK_WARPS_MAX * WARP_LANES &&
	       (uint64_t)request->grid[1] * request->grid[2] <= UINT32_MAX;
}

static void open_check(struct launch *launch)
{
	if (launch->cluster_size == 1)
		launch->check = check_launch_open(launch);
	else
		hr_log(HR_LOG_WARN, "softgpu: check: kernel %s: clusters of several blocks are not checked",
		       launch->kernel->info.name);
}

CUresult launch_nested(const softgpu_launch_t *request, uint32_t depth)
{
	struct launch launch = { .depth = depth };
	fenv_t host;
	if (!plausible(request))
		return CUDA_ERROR_INVALID_VALUE;
	launch.request = request;
	launch.kernel = request->kernel;
	if (!fill_clusters(&launch))
		return CUDA_ERROR_INVALID_CLUSTER_SIZE;
	pthread_once(&pool.once, pool_start);
	/* The host's rounding mode, traps and flushing of subnormals do not apply to the device. */
	fegetenv(&host);
	fesetenv(FE_DFL_ENV);
	if (fill_launch(&launch, request)) {
		if (launch.program->checks)
			open_check(&launch);
		launch_enqueue(&launch);
		launch_work(&launch);
		launch_dequeue(&launch);
		output_write(&launch);
		check_launch_close(&launch);
		if (launch.counting)
			hr_log(HR_LOG_INFO, "softgpu: kernel %s executed %" PRIu64 " instructions of warps, %" PRIu64 " of lanes",
			       launch.kernel->info.name, launch.executed, launch.executed_lanes);
		device_queue_finish(&launch);
	} else {
		launch.fault = CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (launch.grid_barrier)
		softgpu_memory_free(launch.grid_barrier);
	residency_finish(&launch.residency);
	free(launch.thread_ids);
	free(launch.parameters);
	fesetenv(&host);
	return (CUresult)launch.fault;
}

CUresult softgpu_launch(const softgpu_launch_t *request)
{
	return launch_nested(request, 0);
}
