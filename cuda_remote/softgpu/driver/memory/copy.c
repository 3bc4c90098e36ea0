/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies and fills of linear memory: checks, submission, and the work itself. */
#include "cuda_remote/softgpu/driver/memory/copy.h"

#include "cuda_remote/fill_way.h"
#include "cuda_remote/softgpu/driver/texture/array.h"
#include "cuda_remote/graph/capture.h"
#include "cuda_remote/softgpu/driver/stream/stream.h"
#include "cuda_remote/softgpu/driver/memory/copy_order.h"
#include "cuda_remote/softgpu/driver/memory/copy_pace.h"
#include "cuda_remote/softgpu/driver/memory/virtual.h"
#include "cuda_remote/softgpu/space/space.h"
#include "rdma_channel/base/copy_rows.h"
#include "rdma_channel/base/stream_copy.h"
#include "rdma_channel/clock.h"

#include <stdlib.h>
#include <string.h>

/* If the stream is idle, the calling thread does work up to this size itself: a hand-over would cost more. */
#define INLINE_BYTES (32u << 10)
#define INLINE_COPY (256u << 10)
/* A copy of one row up to this size takes less time than claiming the stream. */
#define SHORT_BYTES 4096
/* A pageable source up to this size is copied aside; for a larger one, the call waits. */
#define STAGE_BYTES (64u << 10)
/*
 * Larger than a processor's own cache: the destination is written past the cache. For copies to the device that follow each
 * other without a gap, their sum counts: a worker copies what its client sends in such parts.
 */
#define STREAM_BYTES (8u << 20)
#define STREAM_RUN (1u << 20)
#define STREAM_PART (64u << 10)
/* Copies of one row of this size, as a worker makes them, to memory that another process reads: WAY_FASTER. */
#define GIVEN_PART (256u << 10)
#define MAX_PITCH UINT64_C(2147483647)

/* How a destination is written. WAY_FASTER: through the cache or past it, as is measured to be faster. */
enum way { WAY_CACHED, WAY_STREAMING, WAY_FASTER };

/* SIDE_KEPT: pinned memory of a worker (kept_memory.h). SIDE_SYNC: device memory, but a synchronous call waits for the copy
 * (CU_POINTER_ATTRIBUTE_SYNC_MEMOPS). */
enum side_memory { SIDE_PAGEABLE, SIDE_PINNED, SIDE_KEPT, SIDE_SYNC, SIDE_DEVICE };

typedef struct copy_command {
	command_t command;
	copy_box_t box;
	enum way way;
	unsigned char staged[]; /* the source, packed, if box.from says so */
} copy_command_t;

typedef struct fill_command {
	command_t command;
	fill_t fill;
} fill_command_t;

/* Bytes from the first to the last one of a side. False: the range wraps around the address space. */
static bool side_extent(const copy_side_t *side, const copy_box_t *box, uint64_t *extent)
{
	uint64_t slices, rows;
	if (__builtin_mul_overflow(box->depth - 1, side->slice, &slices) ||
	    __builtin_mul_overflow(box->height - 1, side->pitch, &rows) ||
	    __builtin_add_overflow(slices, rows, extent) || __builtin_add_overflow(*extent, box->width, extent))
		return false;
	uint64_t end;
	return !__builtin_add_overflow(side->address, *extent, &end);
}

/* Outputs the kind of memory of a side. False: the range is not valid memory of the kind that the caller named. */
static bool side_check(const copy_side_t *side, const copy_box_t *box, bool write, enum side_memory *memory)
{
	uint64_t extent;
	softgpu_allocation_t found;
	if (!side->address || !side_extent(side, box, &extent))
		return false;
	if (!softgpu_space_holds(side->address))
		softgpu_space_verify_registered_at(side->address);
	if (!softgpu_space_find(side->address, &found)) {
		*memory = SIDE_PAGEABLE;
		return side->kind != COPY_DEVICE && !softgpu_space_holds(side->address);
	}
	if (found.kind == SOFTGPU_SPACE_MAPPED) {
		*memory = found.sync_memops ? SIDE_SYNC : SIDE_DEVICE;
		return side->kind != COPY_HOST && virtual_covers(side->address, extent, write);
	}
	bool inside = extent <= found.size - (side->address - found.base);
	bool host = found.kind == SOFTGPU_SPACE_HOST || found.kind == SOFTGPU_SPACE_REGISTERED;
	*memory = host && found.kept ? SIDE_KEPT : host ? SIDE_PINNED : found.sync_memops ? SIDE_SYNC : SIDE_DEVICE;
	if (found.kind == SOFTGPU_SPACE_REGISTERED && !inside && side->kind != COPY_DEVICE) {
		*memory = SIDE_PAGEABLE; /* begins in registered memory and ends outside of it */
		return true;
	}
	if (side->kind == COPY_HOST && !host && found.kind != SOFTGPU_SPACE_MANAGED)
		return false;
	return inside;
}

/* True if the two do not overlap, and there are enough bytes. */
static bool may_stream(const uint8_t *to, const uint8_t *from, size_t bytes)
{
	return bytes >= STREAM_PART && (to + bytes <= from || from + bytes <= to);
}

/* Copies one word that a stream or a kernel may write or wait for. Release: what was copied before is visible to who sees the word.
 * Acquire and release pair with those of stream/memop.c. False: the bytes are no word. */
static bool copy_word(uint8_t *to, const uint8_t *from, size_t bytes)
{
	if ((bytes != 4 && bytes != 8) || (uintptr_t)to % bytes || (uintptr_t)from % bytes)
		return false;
	if (bytes == 8)
		__atomic_store_n((uint64_t *)to, __atomic_load_n((const uint64_t *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	else
		__atomic_store_n((uint32_t *)to, __atomic_load_n((const uint32_t *)from, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return true;
}

static void copy_row(uint8_t *to, const uint8_t *from, size_t bytes, bool streaming)
{
	if (copy_word(to, from, bytes))
		return;
	if (streaming && may_stream(to, from, bytes)) {
		hr_copy_streaming(to, from, bytes);
		hr_copy_streamed();
	} else {
		memmove(to, from, bytes);
	}
}

/* True if the slices at these addresses do not overlap. */
static bool do_not_overlap(const copy_box_t *box, const uint8_t *to, const uint8_t *from)
{
	return to + box->height * box->to.pitch <= from || from + box->height * box->from.pitch <= to;
}

static void copy_bytes(const copy_box_t *box, bool streaming)
{
	for (size_t z = 0; z < box->depth; z++) {
		uint8_t *to = (uint8_t *)(uintptr_t)(box->to.address + z * box->to.slice);
		const uint8_t *from = (const uint8_t *)(uintptr_t)(box->from.address + z * box->from.slice);
		if (box->to.pitch == box->width && box->from.pitch == box->width) {
			copy_row(to, from, box->width * box->height, streaming);
			continue;
		}
		if (do_not_overlap(box, to, from) &&
		    hr_copy_close_rows(to, box->to.pitch, from, box->from.pitch, box->width, box->height))
			continue;
		if (hr_copy_short_rows(to, box->to.pitch, from, box->from.pitch, box->width, box->height))
			continue;
		for (size_t y = 0; y < box->height; y++)
			copy_row(to + y * box->to.pitch, from + y * box->from.pitch, box->width, streaming);
	}
}

static void copy_now(const copy_box_t *box, enum way way)
{
	static struct hr_fill_way fill_way;
	uint64_t until = copy_pace_begin(box);
	if (way == WAY_FASTER) {
		bool past = hr_fill_past(&fill_way);
		uint64_t begin = hr_now_ns();
		copy_bytes(box, past);
		hr_fill_took(&fill_way, past, hr_now_ns() - begin);
	} else {
		copy_bytes(box, way == WAY_STREAMING);
	}
	copy_pace_end(until);
}

static void copy_short(const void *argument)
{
	const copy_box_t *box = argument;
	memmove((void *)(uintptr_t)box->to.address, (const void *)(uintptr_t)box->from.address, box->width);
}

/* Copies a short row at once if the stream is idle. Pageable memory may make the thread wait, so it is not copied so. */
static bool did_short(CUstream stream, const copy_box_t *box, enum side_memory to, enum side_memory from)
{
	return box->width <= SHORT_BYTES && box->height == 1 && box->depth == 1 && to != SIDE_PAGEABLE && from != SIDE_PAGEABLE &&
	       !copy_is_paced() && queue_do(stream, copy_short, box);
}

static CUresult copy_run(command_t *command)
{
	copy_command_t *copy = (copy_command_t *)command;
	copy_now(&copy->box, copy->way);
	return CUDA_SUCCESS;
}

/* Copies the source into the command, so that the program may reuse it at once. */
static void stage(copy_command_t *copy)
{
	copy_box_t aside = copy->box;
	aside.to =
		(copy_side_t){ COPY_HOST, (uint64_t)(uintptr_t)copy->staged, aside.width, aside.width * aside.height };
	copy_now(&aside, WAY_CACHED);
	copy->box.from = aside.to;
}

static bool is_given(const copy_box_t *box, size_t bytes, enum side_memory to)
{
	softgpu_allocation_t found;
	return to == SIDE_KEPT && bytes == GIVEN_PART && box->width == bytes && softgpu_space_find(box->to.address, &found) &&
	       found.given;
}

static enum way find_way(CUstream stream, const copy_box_t *box, size_t bytes, enum side_memory to)
{
	uint64_t end = box->to.address + (box->depth - 1) * box->to.slice + box->height * box->to.pitch, run = bytes;
	if (bytes < STREAM_PART || (to != SIDE_DEVICE && to != SIDE_SYNC))
		return bytes >= STREAM_BYTES ? WAY_STREAMING : is_given(box, bytes, to) ? WAY_FASTER : WAY_CACHED;
	if (__atomic_exchange_n(&stream->run_end, end, __ATOMIC_RELAXED) == box->to.address)
		run += __atomic_load_n(&stream->run_bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&stream->run_bytes, run, __ATOMIC_RELAXED);
	return bytes >= STREAM_BYTES || (run > bytes && run >= STREAM_RUN) ? WAY_STREAMING : WAY_CACHED;
}

static CUresult submit_copy(CUstream stream, const copy_box_t *box, size_t bytes, bool staged, bool wait, enum way way)
{
	copy_command_t *copy = malloc(sizeof *copy + (staged ? bytes : 0));
	if (!copy)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(&copy->command, 0, sizeof copy->command);
	copy->command.run = copy_run;
	copy->box = *box;
	copy->way = way;
	if (staged)
		stage(copy);
	uint64_t sequence = queue_submit(stream, &copy->command);
	if (!wait)
		return CUDA_SUCCESS;
	CUcontext context = stream->context;
	queue_wait(stream, sequence);
	return context_error(context);
}

/* Checks a box that is not empty; outputs its bytes and the memory of its sides. */
static CUresult box_check(const copy_box_t *box, size_t *bytes, enum side_memory *to, enum side_memory *from)
{
	if (__builtin_mul_overflow(box->width, box->height, bytes) ||
	    __builtin_mul_overflow(*bytes, box->depth, bytes) || !side_check(&box->to, box, true, to) ||
	    !side_check(&box->from, box, false, from))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult copy_check(const copy_box_t *box)
{
	enum side_memory to, from;
	size_t bytes;
	if (!box->width || !box->height || !box->depth)
		return CUDA_ERROR_INVALID_VALUE;
	return box_check(box, &bytes, &to, &from);
}

/* The rest of copy_submit, for a box that was checked. */
static CUresult copy_checked(CUstream stream, const copy_box_t *box, size_t bytes, enum side_memory to, enum side_memory from,
			     bool synchronous)
{
	bool in_order = box->source == COPY_SOURCE_STREAM, now = box->source == COPY_SOURCE_NOW;
	/* CUDA makes a copy from host to host memory during the call. Not so between memory of workers: that is the client's managed
	 * memory, or the client waits. */
	synchronous |= box->source == COPY_SOURCE_API && to <= SIDE_PINNED && from <= SIDE_PINNED;
	bool staged = from == SIDE_PAGEABLE && !synchronous && !in_order && (now || bytes <= STAGE_BYTES);
	/* If the program may reuse the source after the call, it is read or copied aside before the call returns. */
	staged = staged || (now && (from == SIDE_PINNED || from == SIDE_KEPT));
	bool wait = (synchronous && (to != SIDE_DEVICE || from != SIDE_DEVICE)) || to == SIDE_PAGEABLE ||
		    (from == SIDE_PAGEABLE && !staged && !in_order) || (now && !staged);
	enum way way = find_way(stream, box, bytes, to);
	if (did_short(stream, box, to, from))
		return CUDA_SUCCESS;
	if ((wait || bytes <= INLINE_COPY) && queue_claim(stream)) {
		copy_now(box, way);
		queue_unclaim(stream);
		return CUDA_SUCCESS;
	}
	return submit_copy(stream, box, bytes, staged && (now || to != SIDE_PAGEABLE), wait, way);
}

CUresult copy_submit(CUstream stream, const copy_box_t *box, bool synchronous)
{
	enum side_memory to, from;
	size_t bytes;
	copy_order_t order;
	if (!box->width || !box->height || !box->depth)
		return CUDA_SUCCESS;
	CUresult result = box_check(box, &bytes, &to, &from);
	if (!result)
		result = copy_order_begin(stream, box, &order);
	if (result)
		return result;
	result = copy_checked(stream, box, bytes, to, from, synchronous);
	copy_order_end(stream, &order);
	return result;
}

CUresult copy_linear(CUstream stream, copy_side_t to, copy_side_t from, size_t bytes, bool synchronous)
{
	copy_box_t box = { .to = to, .from = from, .width = bytes, .height = 1, .depth = 1 };
	box.to.pitch = box.to.slice = box.from.pitch = box.from.slice = bytes;
	return copy_submit(stream, &box, synchronous);
}

/* One side of a 2D or 3D copy, as in CUDA's structures. */
typedef struct described_side {
	CUmemorytype type;
	const void *host;
	CUdeviceptr device;
	CUarray array;
	size_t x, y, z, pitch, height;
} described_side_t;

static CUresult describe(const described_side_t *said, const copy_box_t *box, copy_side_t *side)
{
	switch (said->type) {
	case CU_MEMORYTYPE_HOST:
		*side = (copy_side_t){ COPY_HOST, (uint64_t)(uintptr_t)said->host, 0, 0 };
		break;
	case CU_MEMORYTYPE_DEVICE:
		*side = (copy_side_t){ COPY_DEVICE, said->device, 0, 0 };
		break;
	case CU_MEMORYTYPE_UNIFIED:
		*side = (copy_side_t){ COPY_UNIFIED, said->device, 0, 0 };
		break;
	case CU_MEMORYTYPE_ARRAY:
		return array_copy_side(said->array, said->x, said->y, said->z, box, side);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* A pitch of 0 is valid for a single row, a height of 0 for a single slice, of any length. */
	size_t row, rows, offset;
	if (__builtin_add_overflow(said->x, box->width, &row) || __builtin_add_overflow(said->y, box->height, &rows))
		return CUDA_ERROR_INVALID_VALUE;
	bool pitched = said->pitch || rows > 1;
	side->pitch = pitched ? said->pitch : row;
	size_t height = said->height || said->z + box->depth > 1 ? said->height : rows;
	if (side->pitch < row || (pitched && side->pitch > MAX_PITCH) || height < rows ||
	    __builtin_mul_overflow(side->pitch, height, &side->slice) ||
	    __builtin_mul_overflow(said->z, side->slice, &offset) ||
	    __builtin_add_overflow(side->address, offset, &side->address) ||
	    __builtin_mul_overflow(said->y, side->pitch, &offset) ||
	    __builtin_add_overflow(side->address, offset, &side->address) ||
	    __builtin_add_overflow(side->address, said->x, &side->address))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult copy_box_from_2d(const CUDA_MEMCPY2D *c, copy_box_t *box)
{
	if (!c)
		return CUDA_ERROR_INVALID_VALUE;
	*box = (copy_box_t){ .width = c->WidthInBytes, .height = c->Height, .depth = 1 };
	described_side_t to = {
		c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY, 0, c->dstPitch, 0
	};
	described_side_t from = {
		c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY, 0, c->srcPitch, 0
	};
	CUresult result = describe(&to, box, &box->to);
	return result ? result : describe(&from, box, &box->from);
}

CUresult copy_box_from_3d(const CUDA_MEMCPY3D *c, copy_box_t *box)
{
	if (!c || c->srcLOD || c->dstLOD)
		return CUDA_ERROR_INVALID_VALUE;
	*box = (copy_box_t){ .width = c->WidthInBytes, .height = c->Height, .depth = c->Depth };
	described_side_t to = { c->dstMemoryType, c->dstHost, c->dstDevice, c->dstArray, c->dstXInBytes, c->dstY,
				c->dstZ,
				c->dstPitch, c->dstHeight };
	described_side_t from = { c->srcMemoryType, c->srcHost, c->srcDevice, c->srcArray, c->srcXInBytes, c->srcY,
				  c->srcZ,
				  c->srcPitch, c->srcHeight };
	CUresult result = describe(&to, box, &box->to);
	return result ? result : describe(&from, box, &box->from);
}

static CUresult check_3d(const CUDA_MEMCPY3D *copy, copy_box_t *box)
{
	enum side_memory to, from;
	size_t bytes;
	CUresult result = copy_box_from_3d(copy, box);
	if (result || !box->width || !box->height || !box->depth)
		return result;
	return box_check(box, &bytes, &to, &from);
}

CUresult copy_check_3d(const CUDA_MEMCPY3D *copy)
{
	copy_box_t box;
	return check_3d(copy, &box);
}

CUresult copy_run_3d(const CUDA_MEMCPY3D *copy)
{
	copy_box_t box;
	CUresult result = check_3d(copy, &box);
	if (!result)
		copy_now(&box, box.width * box.height * box.depth >= STREAM_BYTES);
	return result;
}

CUresult copy_peer(CUstream handle, CUcontext to, CUcontext from, const copy_box_t *box, bool synchronous)
{
	CUcontext context;
	CUstream stream;
	CUresult result = stream_enter(handle, &context, &stream);
	if (result)
		return result;
	to = context_of(to);
	from = context_of(from);
	if (!to || !from)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!synchronous)
		return copy_submit(stream, box, false);
	result = capture_refuse_stream(stream);
	if (result)
		return result;
	/*
	 * CUDA serializes the copy with all work of both contexts. It is complete before the call returns, so that
	 * later work of both comes after it.
	 */
	CUcontext both[2] = { to, from };
	for (int i = 0; i < 2; i++)
		if (both[i] != context)
			queue_wait_group(&both[i]->group);
	result = copy_submit(stream, box, true);
	if (!result && (to != context || from != context))
		queue_wait(stream, queue_submitted(stream));
	return result ? result : context_error(context);
}

static void fill_now(const fill_t *fill)
{
	for (size_t y = 0; y < fill->height; y++) {
		void *row = (void *)(uintptr_t)(fill->address + y * fill->pitch);
		if (fill->element == 1)
			memset(row, (int)fill->value, fill->count);
		else if (fill->element == 2)
			for (size_t i = 0; i < fill->count; i++)
				((uint16_t *)row)[i] = (uint16_t)fill->value;
		else
			for (size_t i = 0; i < fill->count; i++)
				((uint32_t *)row)[i] = fill->value;
	}
}

static CUresult run_fill(command_t *command)
{
	fill_now(&((fill_command_t *)command)->fill);
	return CUDA_SUCCESS;
}

static CUresult check_fill(const fill_t *fill, size_t *bytes, enum side_memory *memory)
{
	copy_box_t box = { .to = { COPY_DEVICE, fill->address, fill->pitch, 0 }, .height = fill->height, .depth = 1 };
	if (__builtin_mul_overflow(fill->count, fill->element, &box.width) ||
	    (fill->height > 1 && fill->pitch < box.width) || fill->address % fill->element ||
	    (fill->height > 1 && fill->pitch % fill->element) ||
	    __builtin_mul_overflow(box.width, box.height, bytes) || !side_check(&box.to, &box, true, memory))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

CUresult fill_check(const fill_t *fill)
{
	enum side_memory memory;
	size_t bytes;
	return fill->count && fill->height ? check_fill(fill, &bytes, &memory) : CUDA_SUCCESS;
}

CUresult fill_run(const fill_t *fill)
{
	CUresult result = fill_check(fill);
	if (!result)
		fill_now(fill);
	return result;
}

CUresult fill_submit(CUstream stream, const fill_t *fill, bool synchronous)
{
	if (!fill->count || !fill->height)
		return CUDA_SUCCESS;
	enum side_memory memory;
	size_t bytes;
	CUresult result = check_fill(fill, &bytes, &memory);
	if (result)
		return result;
	if (bytes <= INLINE_BYTES && queue_claim(stream)) {
		fill_now(fill);
		queue_unclaim(stream);
		return CUDA_SUCCESS;
	}
	fill_command_t *command = calloc(1, sizeof *command);
	if (!command)
		return CUDA_ERROR_OUT_OF_MEMORY;
	command->command.run = run_fill;
	command->fill = *fill;
	CUcontext context = stream->context;
	uint64_t sequence = queue_submit(stream, &command->command);
	/* A synchronous fill of host memory returns when it is complete. */
	if (synchronous && memory != SIDE_DEVICE)
		queue_wait(stream, sequence);
	return context_error(context);
}
