/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream memory operations: checks, execution, and submission in batches. */
#include "cuda_remote/softgpu/driver/stream/memop.h"

#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/memory/virtual.h"
#include "cuda_remote/softgpu/space/space.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between two looks at a word, if nobody calls memop_look: an eighth of the time waited so far, within these limits. A short wait ends soon, and a long one takes
 * little of a processor. */
#define LOOK_AGAIN_NS 20000
#define LOOK_AGAIN_MOST_NS 500000
#define LOOK_AGAIN_PART 8

typedef struct memop_command {
	command_t command;
	CUcontext context;
	unsigned count;
	CUstreamBatchMemOpParams operations[];
} memop_command_t;

/* True if the device can access this memory, and it is aligned for one access. */
static bool reachable(CUdeviceptr address, unsigned bytes, bool write)
{
	softgpu_allocation_t found;
	if (address % bytes)
		return false;
	if (!softgpu_space_holds(address))
		softgpu_space_verify_registered();
	if (!softgpu_space_find(address, &found))
		return false;
	if (found.kind == SOFTGPU_SPACE_MAPPED)
		return virtual_covers(address, bytes, write);
	return found.kind != SOFTGPU_SPACE_MANAGED && found.size - (address - found.base) >= bytes &&
	       !(write && found.read_only);
}

static bool is_64(CUstreamBatchMemOpType operation)
{
	return operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || operation == CU_STREAM_MEM_OP_WRITE_VALUE_64;
}

static CUresult check(const CUstreamBatchMemOpParams *operation)
{
	bool good;
	switch (operation->operation) {
	case CU_STREAM_MEM_OP_WAIT_VALUE_32:
	case CU_STREAM_MEM_OP_WAIT_VALUE_64:
		if (operation->waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH)
			return CUDA_ERROR_NOT_SUPPORTED; /* as CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES says */
		good = operation->waitValue.flags <= CU_STREAM_WAIT_VALUE_NOR &&
		       reachable(operation->waitValue.address, is_64(operation->operation) ? 8 : 4, false);
		break;
	case CU_STREAM_MEM_OP_WRITE_VALUE_32:
	case CU_STREAM_MEM_OP_WRITE_VALUE_64:
		good = operation->writeValue.flags <= CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER &&
		       reachable(operation->writeValue.address, is_64(operation->operation) ? 8 : 4, true);
		break;
	case CU_STREAM_MEM_OP_BARRIER:
		good = operation->memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
		break;
	case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		return CUDA_ERROR_NOT_SUPPORTED;
	default:
		good = false;
	}
	return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult memop_check(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned flags)
{
	if (!operations || !count || count > MEMOP_MOST || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		CUresult result = check(&operations[i]);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

/* CUstreamWaitValue_flags in cuda.h. */
static bool reached(uint64_t now, uint64_t value, unsigned flags, bool wide)
{
	switch (flags) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return wide ? (int64_t)(now - value) >= 0 : (int32_t)((uint32_t)now - (uint32_t)value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == value;
	case CU_STREAM_WAIT_VALUE_AND:
		return now & value;
	default:
		return wide ? ~(now | value) != 0 : (uint32_t) ~(now | value) != 0;
	}
}

/* Pairs with the release of the writer (store here, or the host's): what it wrote before is visible. */
static bool load(uint64_t address, unsigned bytes, uint64_t *value)
{
	if (!softgpu_space_holds(address))
		return softgpu_space_load_registered(address, bytes, value);
	if (!reachable(address, bytes, false))
		return false;
	*value = bytes == 8 ? __atomic_load_n((const uint64_t *)(uintptr_t)address, __ATOMIC_ACQUIRE)
			    : __atomic_load_n((const uint32_t *)(uintptr_t)address, __ATOMIC_ACQUIRE);
	return true;
}

/* What the stream wrote before is visible to a thread that sees the value; pairs with the acquire of a wait. */
static bool store(uint64_t address, unsigned bytes, uint64_t value)
{
	if (!softgpu_space_holds(address))
		return softgpu_space_store_registered(address, bytes, value);
	if (!reachable(address, bytes, true))
		return false;
	if (bytes == 8)
		__atomic_store_n((uint64_t *)(uintptr_t)address, value, __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)(uintptr_t)address, (uint32_t)value, __ATOMIC_RELEASE);
	return true;
}

static bool wait_is_over(const CUstreamBatchMemOpParams *operation, CUresult *fault)
{
	bool wide = is_64(operation->operation);
	uint64_t now;
	if (!load(operation->waitValue.address, wide ? 8 : 4, &now)) {
		*fault = CUDA_ERROR_ILLEGAL_ADDRESS;
		return true;
	}
	uint64_t value = wide ? operation->waitValue.value64 : operation->waitValue.value;
	return reached(now, value, operation->waitValue.flags, wide);
}

static void write_value(const CUstreamBatchMemOpParams *operation, CUresult *fault)
{
	bool wide = is_64(operation->operation);
	if (!store(operation->writeValue.address, wide ? 8 : 4, wide ? operation->writeValue.value64 : operation->writeValue.value))
		*fault = CUDA_ERROR_ILLEGAL_ADDRESS;
}

/*
 * Orders all work of the stream before the barrier and after it, for all observers. Every barrier modifies the same
 * word, so that barriers are in one order. A fence would do too, but ThreadSanitizer does not support fences.
 */
static void barrier(void)
{
	static uint32_t barriers;
	__atomic_add_fetch(&barriers, 1, __ATOMIC_SEQ_CST);
}

bool memop_run(const CUstreamBatchMemOpParams *operations, unsigned count, unsigned *next, CUresult *fault)
{
	*fault = CUDA_SUCCESS;
	for (; *next < count; ++*next) {
		const CUstreamBatchMemOpParams *operation = &operations[*next];
		switch (operation->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			if (!wait_is_over(operation, fault))
				return false;
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			write_value(operation, fault);
			break;
		default:
			barrier();
		}
		if (*fault)
			return true;
	}
	return true;
}

static pthread_mutex_t look_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t look = PTHREAD_COND_INITIALIZER;
static unsigned lookers; /* atomic: threads that sleep, or are about to */

void memop_look(void)
{
	/* Sequentially consistent with the count in look_again: either this finds the thread there, or that thread, which looks at
	 * its word after it has counted itself, finds the value. */
	if (!__atomic_fetch_add(&lookers, 0, __ATOMIC_SEQ_CST))
		return;
	pthread_mutex_lock(&look_lock);
	pthread_cond_broadcast(&look);
	pthread_mutex_unlock(&look_lock);
}

/* Sleeps before the next look at a word, for a part of the time that was waited for it already, unless the wait is over or
 * memop_look is called. Returns the nanoseconds. */
static uint64_t look_again(const CUstreamBatchMemOpParams *operation, uint64_t waited, CUresult *fault, bool *over)
{
	struct timespec until;
	uint64_t ns = waited / LOOK_AGAIN_PART;
	ns = ns < LOOK_AGAIN_NS ? LOOK_AGAIN_NS : ns > LOOK_AGAIN_MOST_NS ? LOOK_AGAIN_MOST_NS : ns;
	pthread_mutex_lock(&look_lock);
	__atomic_fetch_add(&lookers, 1, __ATOMIC_SEQ_CST);
	*over = wait_is_over(operation, fault);
	if (!*over) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)ns;
		if (until.tv_nsec >= 1000000000) {
			until.tv_nsec -= 1000000000;
			until.tv_sec++;
		}
		pthread_cond_timedwait(&look, &look_lock, &until);
	}
	__atomic_fetch_sub(&lookers, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_unlock(&look_lock);
	return ns;
}

static CUresult run(command_t *command)
{
	memop_command_t *batch = (memop_command_t *)command;
	unsigned next = 0;
	CUresult fault;
	while (!memop_run(batch->operations, batch->count, &next, &fault)) {
		/* The writer of the value may need queue_alone first. */
		queue_rest_begin();
		uint64_t waited = 0;
		bool over = false;
		while (!over && !context_error(batch->context))
			waited += look_again(&batch->operations[next], waited, &fault, &over);
		queue_rest_end();
		if (context_error(batch->context))
			return CUDA_SUCCESS;
	}
	return fault;
}

CUresult memop_submit(CUstream stream, const CUstreamBatchMemOpParams *operations, unsigned count)
{
	CUgraphNodeParams node = { .type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
				   .memOp = { .ctx = stream->context, .count = count,
					      .paramArray = (CUstreamBatchMemOpParams *)(uintptr_t)operations } };
	bool captured;
	CUresult result = capture_add(stream, &node, NULL, &captured);
	if (result || captured)
		return result;
	memop_command_t *batch = malloc(sizeof *batch + count * sizeof *operations);
	if (!batch)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(&batch->command, 0, sizeof batch->command);
	batch->command.run = run;
	/*
	 * The wait may last until the caller itself writes the value: a thread that waits for other work must not run
	 * it.
	 */
	batch->command.host_code = true;
	batch->context = stream->context;
	batch->count = count;
	memcpy(batch->operations, operations, count * sizeof *operations);
	queue_submit(stream, &batch->command);
	return CUDA_SUCCESS;
}
