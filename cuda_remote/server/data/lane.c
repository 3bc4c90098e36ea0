/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: the pinned memory through which the copies of one stream go that the data connection carries in windows. A lane has two
 * halves, and a window takes one of them: while the device copies one window, the connection transfers the next.
 *
 * All work of the device is issued by the call. Between a stream's wait at a gate and the opening of the gate nobody calls the
 * driver: while a driver loads code, it holds a lock and waits for the device, and the device waits for the gate.
 */
#include "cuda_remote/server/data/data.h"

#include <stdlib.h>
#include <sys/mman.h>

/* Chunks of a half, if the lanes have few bytes, and if they have many. */
#define HALF_LARGE (RC_WINDOW / 2)
#define HALF_SMALL 1
/* Bytes of lanes beside those of HEADRACE_STAGING. */
#define LANES_LEAST (64ull << 20)
/* Windows of a copy: more than any GPU's memory makes. */
#define WINDOWS_MAX (1u << 22)

struct server_lane {
	struct server_slot area; /* both halves */
	struct server_lane *next;
	CUcontext context;
	uint64_t stream; /* the client's handle */
	const struct server_thread *thread; /* of a stream of each thread (CU_STREAM_PER_THREAD); else NULL */
	size_t half;     /* chunks */
	unsigned copies; /* that use the lane; 0: any stream of the context may have it */
	void *newest;    /* server_lane_newest */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct server_lane *lanes;
static uint64_t allocated; /* bytes of all lanes */

static size_t lane_bytes(size_t half)
{
	return 2 * half * RC_CHUNK_MAX;
}

static bool is_ending(struct server_lane *lane)
{
	return __atomic_load_n(&lane->area.pin_gone, __ATOMIC_RELAXED) || __atomic_load_n(&lane->area.pin_ends, __ATOMIC_RELAXED);
}

/* Takes lanes that no copy uses out of the list: all whose context has ended, and, if asked for, others. Under the lock. */
static struct server_lane *take_unused(bool others)
{
	struct server_lane **at = &lanes, *taken = NULL;
	while (*at) {
		struct server_lane *lane = *at;
		bool ended = __atomic_load_n(&lane->area.pin_gone, __ATOMIC_RELAXED);
		if (lane->copies || !(ended || (others && !is_ending(lane)))) {
			at = &lane->next;
			continue;
		}
		*at = lane->next;
		lane->next = taken;
		taken = lane;
		allocated -= lane->area.size;
	}
	return taken;
}

/* Not under the lock, which the thread of the data connection takes: the driver is called. */
static void drop(struct server_lane *list)
{
	for (struct server_lane *next; list; list = next) {
		next = list->next;
		server_slot_unlist(&list->area);
		munmap(list->area.memory, list->area.size);
		free(list);
	}
}

/* A lane of the stream, or one that no stream uses. Under the lock. */
static struct server_lane *find(CUcontext context, uint64_t stream, const struct server_thread *thread)
{
	struct server_lane *unused = NULL;
	for (struct server_lane *lane = lanes; lane; lane = lane->next) {
		if (lane->context != context || is_ending(lane))
			continue;
		if (lane->copies && lane->stream == stream && lane->thread == thread)
			return lane;
		if (!lane->copies && (!unused || unused->half < lane->half))
			unused = lane;
	}
	return unused;
}

/* Reserves the bytes of one more lane. Returns the chunks of its halves; 0: the lanes have as many bytes as they may. Under the
 * lock. */
static size_t reserve(void)
{
	size_t half = allocated + lane_bytes(HALF_LARGE) <= worker.staging ? HALF_LARGE : HALF_SMALL;
	if (allocated + lane_bytes(half) > 2 * worker.staging + LANES_LEAST)
		return 0;
	allocated += lane_bytes(half);
	return half;
}

/* The device reads and writes a lane after the call that issues the copy, so the memory must be pinned. */
static CUresult make(CUcontext context, size_t half, struct server_lane **made)
{
	size_t size = lane_bytes(half);
	struct server_lane *lane = calloc(1, sizeof *lane);
	void *memory = lane ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) : MAP_FAILED;
	CUresult result = memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : server_slot_list(&lane->area, memory, size);
	if (result != CUDA_SUCCESS) {
		if (memory != MAP_FAILED)
			munmap(memory, size);
		free(lane);
		return result;
	}
	lane->context = context;
	lane->half = half;
	*made = lane;
	return CUDA_SUCCESS;
}

/* One more lane, in the list, that the caller uses. */
static CUresult add(CUcontext context, uint64_t stream, const struct server_thread *thread, struct server_lane **made)
{
	pthread_mutex_lock(&lock);
	size_t half = reserve();
	struct server_lane *unused = half ? NULL : take_unused(true);
	if (!half)
		half = reserve();
	pthread_mutex_unlock(&lock);
	drop(unused);
	CUresult result = half ? make(context, half, made) : CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	if (result == CUDA_SUCCESS) {
		struct server_lane *lane = *made;
		lane->stream = stream;
		lane->thread = thread;
		lane->copies = 1;
		lane->next = lanes;
		lanes = lane;
	} else if (half) {
		allocated -= lane_bytes(half);
	}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult server_lane_take(const struct server_thread *thread, uint64_t stream, struct server_lane **taken)
{
	CUcontext context;
	const struct server_thread *owner = stream == (uint64_t)(uintptr_t)CU_STREAM_PER_THREAD ? thread : NULL;
	CUresult result = driver.cuCtxGetCurrent(&context);
	if (result != CUDA_SUCCESS)
		return result;
	pthread_mutex_lock(&lock);
	struct server_lane *ended = take_unused(false), *lane = find(context, stream, owner);
	if (lane) {
		lane->stream = stream;
		lane->thread = owner;
		lane->copies++;
		*taken = lane;
	}
	pthread_mutex_unlock(&lock);
	drop(ended);
	return lane ? CUDA_SUCCESS : add(context, stream, owner, taken);
}

void server_lane_put(struct server_lane *lane)
{
	pthread_mutex_lock(&lock);
	lane->copies--;
	pthread_mutex_unlock(&lock);
}

void **server_lane_newest(struct server_lane *lane)
{
	return &lane->newest;
}

uint64_t server_lane_end(const struct server_lane *lane, const struct rc_wire_box *box, uint64_t bytes, uint64_t begin)
{
	uint64_t end = begin;
	for (size_t i = 0; i < lane->half && end < bytes; i++)
		end += rc_box_chunk(box, end);
	return end;
}

/* The rows of a box that overlap are no copy, and could make any number of windows. */
static bool overlaps(const struct rc_wire_box *box)
{
	uint64_t slice = (box->height - 1) * box->pitch + box->width; /* does not overflow: rc_box_extent */
	return (box->height > 1 && box->pitch < box->width) || (box->depth > 1 && box->slice < slice);
}

uint64_t server_lane_windows(const struct server_lane *lane, const struct rc_wire_box *box, uint64_t bytes)
{
	uint64_t n = 0;
	if (overlaps(box))
		return 0;
	for (uint64_t at = 0; at < bytes; n++) {
		if (n == WINDOWS_MAX)
			return 0;
		at = server_lane_end(lane, box, bytes, at);
	}
	return n;
}

uint8_t *server_lane_memory(const struct server_lane *lane, uint64_t window)
{
	return lane->area.memory + window % 2 * lane->half * RC_CHUNK_MAX;
}

static CUresult copy_part(const struct server_lane_side *device, uint64_t offset, uint64_t len, uint8_t *memory, bool up,
			  CUstream stream)
{
	if (device->array)
		return server_part_array(device->array, device->box, offset, len, memory, up, stream);
	return up ? server_part_h2d(device->box, offset, len, memory, stream) :
		    server_part_d2h(device->box, offset, len, memory, stream);
}

static CUresult copy_window(const struct server_lane *lane, const struct server_lane_side *device, uint64_t window,
			    uint64_t begin, uint64_t end, bool up, CUstream stream)
{
	const struct rc_wire_box *box = device->box;
	uint8_t *memory = server_lane_memory(lane, window);
	CUresult result = CUDA_SUCCESS;
	for (uint64_t at = begin, len; at < end && result == CUDA_SUCCESS; at += len) {
		/* The bytes of a window are contiguous in the lane, and those of a box of one row on the device too. */
		len = box->height == 1 && box->depth == 1 ? end - at : rc_box_chunk(box, at);
		result = copy_part(device, at, len, memory + (at - begin), up, stream);
	}
	return result;
}

CUresult server_lane_issue(const struct server_lane *lane, const struct server_lane_side *device, uint64_t bytes,
			   const struct server_lane_gates *gates, bool up, CUstream stream)
{
	CUresult result = CUDA_SUCCESS;
	uint32_t window = 0;
	for (uint64_t begin = 0, end; begin < bytes && result == CUDA_SUCCESS; begin = end, window++) {
		end = server_lane_end(lane, device->box, bytes, begin);
		result = server_gate_hold(stream, &gates->gate, window);
		if (result == CUDA_SUCCESS)
			result = copy_window(lane, device, window, begin, end, up, stream);
		if (result == CUDA_SUCCESS)
			result = server_gate_write(stream, &gates->done, window);
	}
	return result;
}
