/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of a stream: drawn, issued by one of the calls that there are, and applied to what the blocks must contain. */
#include "test/cuda/mixed/mixed.h"

#include <unistd.h>

#define FORMS 5     /* of a copy: typed, of kind "default", peer, as a box, a batch */
#define MAX_ROWS 7u /* of a copy */

size_t area_end(const struct area *area)
{
	return area->offset + (area->rows - 1) * area->pitch + area->width;
}

bool mixed_on_host(const struct block *block)
{
	return block->kind == PINNED || block->kind == MAPPED || block->kind == REGISTERED || block->kind == PAGEABLE;
}

static struct block *block_of(struct world *world, const struct area *area)
{
	return &world->blocks[area->block];
}

/* ---- drawing ---- */

static bool fits(struct world *world, int actor, enum what what, const struct block *block, bool source)
{
	bool own = block->device == world->streams[actor].device;
	if (!block->live)
		return false;
	switch (what) {
	case FILL:
	case INCREASE:
	case WRITE:
		return own && (!mixed_on_host(block) || block->kind == MAPPED);
	case FUNCTION:
		return mixed_on_host(block);
	default:
		(void)source;
		return own || block->kind == DEVICE || mixed_on_host(block);
	}
}

static int draw_block(struct world *world, int actor, enum what what, bool source, int except)
{
	int found = -1, count = 0;
	for (int i = 0; i < MAX_BLOCKS; i++)
		if (i != except && fits(world, actor, what, &world->blocks[i], source) && mixed_draw(world, (uint32_t)++count) == 0)
			found = i;
	return found;
}

/* Sizes of all magnitudes. */
static size_t draw_size(struct world *world, size_t most)
{
	size_t size = 1 + mixed_draw(world, mixed_draw(world, 2) ? (uint32_t)most : 200);
	return size < most ? size : most;
}

static void draw_area(struct world *world, struct area *area, int block, size_t align)
{
	size_t size = world->blocks[block].size / align, width = draw_size(world, size);
	size_t offset = mixed_draw(world, 4) ? mixed_draw(world, (uint32_t)(size - width + 1)) : 0;
	*area = (struct area){ block, offset * align, width * align, 1, width * align };
}

/* Several rows, if there is room. */
static void draw_rows(struct world *world, struct area *area, size_t align, size_t rows)
{
	size_t left = world->blocks[area->block].size - area->offset, most = left / rows / align * align;
	if (most < area->width)
		return;
	area->rows = rows;
	area->pitch = area->width + mixed_draw(world, (uint32_t)((most - area->width) / align + 1)) * align;
}

static void draw_copy(struct world *world, struct operation *operation)
{
	struct area *to = &operation->to, *from = &operation->from;
	draw_area(world, to, to->block, 1);
	draw_area(world, from, from->block, 1);
	if (from->width > to->width)
		from->width = from->pitch = to->width;
	else
		to->width = to->pitch = from->width;
	if (mixed_draw(world, 4) == 0) {
		size_t rows = 2 + mixed_draw(world, MAX_ROWS - 1);
		to->width = from->width = from->width / rows + 1;
		to->pitch = from->pitch = to->width;
		draw_rows(world, to, 1, rows);
		draw_rows(world, from, 1, rows);
		if (to->rows != from->rows) {
			to->rows = from->rows = 1;
			to->pitch = from->pitch = to->width;
		}
	}
}

bool operation_draw(struct world *world, int actor, struct operation *operation)
{
	static const enum what whats[] = { COPY, COPY, COPY, COPY, COPY, COPY, FILL, FILL, INCREASE, WRITE, FUNCTION, FUNCTION,
					   PAUSE };
	enum what what = whats[mixed_draw(world, sizeof whats / sizeof *whats)];
	*operation = (struct operation){ .what = what, .to = { .block = -1 }, .from = { .block = -1 }, .actor = actor, .element = 1,
					 .value = mixed_draw(world, 0xffffffff), .form = (int)mixed_draw(world, 2 * FORMS) };
	if (what == PAUSE)
		return true;
	operation->to.block = draw_block(world, actor, what, false, -1);
	if (operation->to.block < 0)
		return false;
	if (what == COPY || (what == FUNCTION && mixed_draw(world, 2))) {
		operation->from.block = draw_block(world, actor, what, true, operation->to.block);
		if (operation->from.block < 0)
			return false;
		draw_copy(world, operation);
	} else if (what == INCREASE) {
		size_t words = world->blocks[operation->to.block].size / 4;
		operation->to = (struct area){ operation->to.block, 4 * mixed_draw(world, (uint32_t)words), 4, 1, 4 };
	} else {
		operation->element = what == FILL ? 1 << mixed_draw(world, 3) : 1;
		draw_area(world, &operation->to, operation->to.block, (size_t)operation->element);
		if (what == FILL && mixed_draw(world, 3) == 0)
			draw_rows(world, &operation->to, (size_t)operation->element, 2 + mixed_draw(world, 5));
	}
	return true;
}

/* ---- calls ---- */

/* Not asynchronous; only in the default stream. */
static bool waiting_form(const struct world *world, const struct operation *operation)
{
	return world->streams[operation->actor].legacy && operation->form >= FORMS && !world->capturing;
}

bool operation_waits(const struct world *world, const struct operation *operation)
{
	if (operation->what != COPY)
		return false;
	const struct block *to = &world->blocks[operation->to.block], *from = &world->blocks[operation->from.block];
	/* The software GPU copies from pinned memory to pinned memory asynchronously. CUDA and the remote driver do not. */
	if (to->kind == PAGEABLE || (world->remote && mixed_on_host(to) && mixed_on_host(from)))
		return true;
	return waiting_form(world, operation) && (mixed_on_host(to) || mixed_on_host(from));
}

static CUdeviceptr at(struct world *world, const struct area *area)
{
	return block_of(world, area)->at + area->offset;
}

static void fill(struct world *world, const struct operation *operation)
{
	CUstream stream = world->streams[operation->actor].handle;
	const struct area *to = &operation->to;
	CUdeviceptr where = at(world, to);
	size_t count = to->width / (size_t)operation->element;
	bool waits = waiting_form(world, operation);
	uint32_t value = operation->value;
	if (to->rows > 1) {
		if (operation->element == 1)
			OK(cuMemsetD2D8Async(where, to->pitch, (uint8_t)value, count, to->rows, stream));
		else if (operation->element == 2)
			OK(cuMemsetD2D16Async(where, to->pitch, (uint16_t)value, count, to->rows, stream));
		else
			OK(cuMemsetD2D32Async(where, to->pitch, value, count, to->rows, stream));
	} else if (operation->element == 1) {
		OK(waits ? cuMemsetD8(where, (uint8_t)value, count) : cuMemsetD8Async(where, (uint8_t)value, count, stream));
	} else if (operation->element == 2) {
		OK(waits ? cuMemsetD16(where, (uint16_t)value, count) : cuMemsetD16Async(where, (uint16_t)value, count, stream));
	} else {
		OK(waits ? cuMemsetD32(where, value, count) : cuMemsetD32Async(where, value, count, stream));
	}
}

/* The same bytes as a box of two slices. */
static void copy_slices(const CUDA_MEMCPY2D *box, bool waits, CUstream stream)
{
	CUDA_MEMCPY3D slices = { .srcMemoryType = box->srcMemoryType, .srcHost = box->srcHost, .srcDevice = box->srcDevice,
				 .srcPitch = box->srcPitch, .srcHeight = box->Height / 2, .dstMemoryType = box->dstMemoryType,
				 .dstHost = box->dstHost, .dstDevice = box->dstDevice, .dstPitch = box->dstPitch,
				 .dstHeight = box->Height / 2, .WidthInBytes = box->WidthInBytes, .Height = box->Height / 2,
				 .Depth = 2 };
	OK(waits ? cuMemcpy3D(&slices) : cuMemcpy3DAsync(&slices, stream));
}

static void copy_box(struct world *world, const struct operation *operation, bool waits, CUstream stream)
{
	const struct area *to = &operation->to, *from = &operation->from;
	struct block *target = block_of(world, to), *source = block_of(world, from);
	bool host_to = mixed_on_host(target), host_from = mixed_on_host(source);
	CUDA_MEMCPY2D box = { .WidthInBytes = to->width, .Height = to->rows, .srcPitch = from->pitch, .dstPitch = to->pitch };
	box.srcMemoryType = host_from ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	box.dstMemoryType = host_to ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	box.srcDevice = host_from ? 0 : at(world, from);
	box.srcHost = host_from ? (void *)(uintptr_t)at(world, from) : NULL;
	box.dstDevice = host_to ? 0 : at(world, to);
	box.dstHost = host_to ? (void *)(uintptr_t)at(world, to) : NULL;
	if (to->rows % 2 == 0 && operation->value % 3 == 0) {
		copy_slices(&box, waits, stream);
		return;
	}
	if (host_to || host_from || operation->value % 2) {
		OK(waits ? cuMemcpy2D(&box) : cuMemcpy2DAsync(&box, stream));
		return;
	}
	CUDA_MEMCPY3D_PEER peer = { .srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = box.srcDevice, .srcPitch = box.srcPitch,
				    .srcHeight = to->rows, .srcContext = mixed_contexts[source->device],
				    .dstMemoryType = CU_MEMORYTYPE_DEVICE, .dstDevice = box.dstDevice, .dstPitch = box.dstPitch,
				    .dstHeight = to->rows, .dstContext = mixed_contexts[target->device],
				    .WidthInBytes = to->width, .Height = to->rows, .Depth = 1 };
	OK(waits ? cuMemcpy3DPeer(&peer) : cuMemcpy3DPeerAsync(&peer, stream));
}

/* CUDA refuses batches in the legacy stream, and the source of a batch is not read during the call. */
static bool may_be_batch(const struct world *world, const struct operation *operation)
{
	const struct block *to = &world->blocks[operation->to.block], *from = &world->blocks[operation->from.block];
	return !world->streams[operation->actor].legacy && to->kind != PAGEABLE && from->kind != PAGEABLE &&
	       !(mixed_on_host(to) && mixed_on_host(from));
}

/* Each row is a copy of its own. */
static void copy_batch(struct world *world, const struct operation *operation, CUstream stream)
{
	CUmemcpyAttributes attributes = { .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM };
	CUdeviceptr to[MAX_ROWS], from[MAX_ROWS];
	size_t sizes[MAX_ROWS], first = 0, rows = operation->to.rows;
	CHECK(rows <= MAX_ROWS);
	for (size_t y = 0; y < rows; y++) {
		to[y] = at(world, &operation->to) + y * operation->to.pitch;
		from[y] = at(world, &operation->from) + y * operation->from.pitch;
		sizes[y] = operation->to.width;
	}
	OK(cuMemcpyBatchAsync(to, from, sizes, rows, &attributes, &first, 1, stream));
}

static void copy(struct world *world, const struct operation *operation)
{
	CUstream stream = world->streams[operation->actor].handle;
	const struct area *to = &operation->to, *from = &operation->from;
	struct block *target = block_of(world, to), *source = block_of(world, from);
	bool host_to = mixed_on_host(target), host_from = mixed_on_host(source), waits = waiting_form(world, operation);
	int form = operation->form % FORMS;
	CUdeviceptr there = at(world, to), here = at(world, from);
	CUcontext into = mixed_contexts[target->device], out_of = mixed_contexts[source->device];
	size_t size = to->width;
	if (form == 4 && may_be_batch(world, operation))
		copy_batch(world, operation, stream);
	else if (to->rows > 1 || form == 3)
		copy_box(world, operation, waits, stream);
	else if (form == 2 && !host_to && !host_from)
		OK(waits ? cuMemcpyPeer(there, into, here, out_of, size) :
			   cuMemcpyPeerAsync(there, into, here, out_of, size, stream));
	else if (form == 1 || (host_to && host_from))
		OK(waits ? cuMemcpy(there, here, size) : cuMemcpyAsync(there, here, size, stream));
	else if (host_to)
		OK(waits ? cuMemcpyDtoH((void *)(uintptr_t)there, here, size) :
			   cuMemcpyDtoHAsync((void *)(uintptr_t)there, here, size, stream));
	else if (host_from)
		OK(waits ? cuMemcpyHtoD(there, (void *)(uintptr_t)here, size) :
			   cuMemcpyHtoDAsync(there, (void *)(uintptr_t)here, size, stream));
	else
		OK(waits ? cuMemcpyDtoD(there, here, size) : cuMemcpyDtoDAsync(there, here, size, stream));
}

/* What a host function is told. It is kept, as a graph may call the function again. */
struct told {
	uint8_t *to;
	const uint8_t *from;
	struct operation operation;
};

static void compute(const struct operation *operation, uint8_t *to, const uint8_t *from)
{
	for (size_t y = 0; y < operation->to.rows; y++)
		for (size_t x = 0; x < operation->to.width; x++) {
			uint8_t *byte = to + y * operation->to.pitch + x;
			*byte = (uint8_t)((from ? from[y * operation->from.pitch + x] : *byte) * 5 + operation->value);
		}
}

static void function(void *argument)
{
	struct told *told = argument;
	if (told->operation.what == PAUSE)
		usleep(told->operation.value % 400);
	else
		compute(&told->operation, told->to, told->from);
}

static void callback(CUstream stream, CUresult status, void *argument)
{
	(void)stream;
	CHECK(status == CUDA_SUCCESS);
	function(argument);
}

static void call_function(struct world *world, const struct operation *operation)
{
	struct told *told = calloc(1, sizeof *told);
	CHECK(told);
	told->operation = *operation;
	if (operation->to.block >= 0)
		told->to = (uint8_t *)(uintptr_t)at(world, &operation->to);
	if (operation->from.block >= 0)
		told->from = (uint8_t *)(uintptr_t)at(world, &operation->from);
	mixed_keep(world, told);
	CUstream stream = world->streams[operation->actor].handle;
	if (operation->form % 2 && !world->capturing)
		OK(cuStreamAddCallback(stream, callback, told, 0));
	else
		OK(cuLaunchHostFunc(stream, function, told));
}

void operation_issue(struct world *world, const struct operation *operation)
{
	const struct stream *stream = &world->streams[operation->actor];
	OK(cuCtxSetCurrent(mixed_contexts[stream->device]));
	if (operation->what == FILL) {
		fill(world, operation);
	} else if (operation->what == COPY) {
		copy(world, operation);
	} else if (operation->what == FUNCTION || operation->what == PAUSE) {
		call_function(world, operation);
	} else {
		CUdeviceptr where = at(world, &operation->to);
		uint32_t second = operation->what == INCREASE ? operation->value : (uint32_t)operation->to.width;
		void *parameters[] = { &where, &second };
		const struct code *code = &world->code[stream->device];
		CUfunction kernel = operation->what == INCREASE ? code->increase : code->write;
		OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream->handle, parameters, NULL));
	}
}

/* ---- the effect ---- */

static void apply_row(const struct operation *operation, uint8_t *to, const uint8_t *from)
{
	if (operation->what == COPY)
		memcpy(to, from, operation->to.width);
	else if (operation->what == WRITE)
		memset(to, 0xA5, operation->to.width);
	else
		for (size_t x = 0; x < operation->to.width; x++)
			to[x] = (uint8_t)(operation->value >> 8 * (x % (size_t)operation->element));
}

void operation_apply(struct world *world, const struct operation *operation)
{
	const struct area *to = &operation->to, *from = &operation->from;
	uint8_t *target = to->block < 0 ? NULL : block_of(world, to)->model + to->offset;
	const uint8_t *source = from->block < 0 ? NULL : block_of(world, from)->model + from->offset;
	if (operation->what == PAUSE)
		return;
	if (operation->what == FUNCTION) {
		compute(operation, target, source);
	} else if (operation->what == INCREASE) {
		uint32_t word;
		memcpy(&word, target, 4);
		word += operation->value;
		memcpy(target, &word, 4);
	} else {
		for (size_t y = 0; y < to->rows; y++)
			apply_row(operation, target + y * to->pitch, source ? source + y * from->pitch : NULL);
	}
}

void operation_note(struct world *world, const struct operation *operation)
{
	static const char *const names[] = { "fill", "copy", "increase", "write", "function", "pause" };
	const struct area *to = &operation->to, *from = &operation->from;
	mixed_note(world, "stream %d: %s, form %d, element %d, value %#x: to %d+%zu, %zu x %zu / %zu, from %d+%zu / %zu",
		   operation->actor, names[operation->what], operation->form, operation->element, operation->value, to->block,
		   to->offset, to->width, to->rows, to->pitch, from->block, from->offset, from->pitch);
}
