/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies data between memory, as a layout describes it, and packed data. The inner loops are made for the size of their blocks:
 * a block of 5 to 7 bytes, for example, is two copies of 4 bytes that overlap, without a branch.
 */
#include "adi/datatype/build.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

INLINE void copy(bool unpack, char *memory, char *data, size_t bytes)
{
	if (unpack)
		memcpy(memory, data, bytes);
	else
		memcpy(data, memory, bytes);
}

/* A block of part to 2 * part bytes. part is a constant. */
INLINE void copy_block(bool unpack, char *memory, char *data, size_t block, size_t part)
{
	copy(unpack, memory, data, part);
	if (block != part)
		copy(unpack, memory + block - part, data + block - part, part);
}

/* n blocks, whose data are step bytes apart; in memory at offsets, or with a stride if offset is NULL. part: see copy_block; 0:
 * blocks of any size. part is a constant, and block if it is a power of two. */
INLINE void copy_blocks(bool unpack, char *memory, char *data, size_t n, MPI_Count stride, const MPI_Count *offset, size_t step,
			size_t block, size_t part)
{
	size_t i = 0;
	for (; part && part <= 16 && i + 4 <= n; i += 4, data += 4 * step) {
		copy_block(unpack, offset ? memory + offset[i] : memory, data, block, part);
		copy_block(unpack, offset ? memory + offset[i + 1] : memory + stride, data + step, block, part);
		copy_block(unpack, offset ? memory + offset[i + 2] : memory + 2 * stride, data + 2 * step, block, part);
		copy_block(unpack, offset ? memory + offset[i + 3] : memory + 3 * stride, data + 3 * step, block, part);
		memory += offset ? 0 : 4 * stride;
	}
	for (; i < n; i++, data += step) {
		if (part)
			copy_block(unpack, offset ? memory + offset[i] : memory, data, block, part);
		else
			copy(unpack, offset ? memory + offset[i] : memory, data, block);
		memory += offset ? 0 : stride;
	}
}

/* step 0: the data of blocks lie one behind the other. */
INLINE void choose(bool unpack, char *memory, char *data, size_t n, MPI_Count stride, const MPI_Count *offset, size_t step,
		   size_t block)
{
	switch (block) {
	case 1:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 1, 1, 1);
		return;
	case 2:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 2, 2, 2);
		return;
	case 4:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 4, 4, 4);
		return;
	case 8:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 8, 8, 8);
		return;
	case 16:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 16, 16, 16);
		return;
	case 32:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 32, 32, 32);
		return;
	case 64:
		copy_blocks(unpack, memory, data, n, stride, offset, step ? step : 64, 64, 64);
		return;
	}
	step = step ? step : block;
	if (block < 4)
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 2);
	else if (block < 8)
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 4);
	else if (block < 16)
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 8);
	else if (block < 32)
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 16);
	else if (block < 64)
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 32);
	else
		copy_blocks(unpack, memory, data, n, stride, offset, step, block, 0);
}

/* Data of blocks one behind the other. */
static void strided(bool unpack, char *memory, char *data, size_t n, MPI_Count stride, size_t block)
{
	if (unpack)
		choose(true, memory, data, n, stride, NULL, 0, block);
	else
		choose(false, memory, data, n, stride, NULL, 0, block);
}

static void spread(bool unpack, char *memory, char *data, size_t n, MPI_Count stride, size_t step, size_t block)
{
	if (unpack)
		choose(true, memory, data, n, stride, NULL, step, block);
	else
		choose(false, memory, data, n, stride, NULL, step, block);
}

static void listed(bool unpack, char *memory, char *data, size_t n, const MPI_Count *offset, size_t block)
{
	if (unpack)
		choose(true, memory, data, n, 0, offset, 0, block);
	else
		choose(false, memory, data, n, 0, offset, 0, block);
}

/* One run of any size, which is often small. */
INLINE void copy_run(bool unpack, char *memory, char *data, size_t bytes)
{
	char *from = unpack ? data : memory, *to = unpack ? memory : data;
	if (bytes > 64)
		memcpy(to, from, bytes);
	else if (bytes > 32)
		copy_block(true, to, from, bytes, 32);
	else if (bytes > 16)
		copy_block(true, to, from, bytes, 16);
	else if (bytes >= 8)
		copy_block(true, to, from, bytes, 8);
	else if (bytes >= 4)
		copy_block(true, to, from, bytes, 4);
	else if (bytes >= 2)
		copy_block(true, to, from, bytes, 2);
	else if (bytes)
		*to = *from;
}

static size_t bytes_of(const struct adi_layout *layout, size_t i)
{
	return layout->start ? layout->start[i + 1] - layout->start[i] : layout->block;
}

static MPI_Count offset_of(const struct adi_layout *layout, size_t i)
{
	return layout->offset ? layout->offset[i] : (MPI_Count)i * layout->stride;
}

/* A layout of few runs is copied many times by run: all first runs, all second runs, and so on. A group of this many bytes of data
 * stays in the first-level cache meanwhile. */
#define FEW_RUNS 16
#define GROUP 8192

static bool is_few_runs(const struct adi_layout *layout)
{
	return layout->count <= FEW_RUNS && layout->bytes <= GROUP / 4 && !layout->child && !layout->children;
}

/* n times a layout of few runs. */
static void copy_by_run(bool unpack, const struct adi_layout *few, char *memory, size_t n, MPI_Count stride, char *data)
{
	size_t most = GROUP / few->bytes;
	while (n) {
		size_t group = n < most ? n : most, begin = 0;
		for (size_t i = 0; i < few->count; i++) {
			size_t bytes = bytes_of(few, i);
			spread(unpack, memory + offset_of(few, i), data + begin, group, stride, few->bytes, bytes);
			begin += bytes;
		}
		memory += (MPI_Count)group * stride;
		data += group * few->bytes;
		n -= group;
	}
}

/* Children from .. to - 1 of a list of different children, whole. */
static void copy_different(bool unpack, const struct adi_layout *layout, char *memory, size_t from, size_t to, char *data)
{
	for (size_t i = from; i < to; i++) {
		struct adi_layout *child = layout->children ? layout->children[i] : NULL;
		size_t bytes = layout->start[i + 1] - layout->start[i];
		if (child)
			adi_layout_copy(unpack, child, memory + layout->offset[i], 0, bytes, data);
		else
			copy_run(unpack, memory + layout->offset[i], data, bytes);
		data += bytes;
	}
}

/* Children from .. to - 1 of a layout, whole. */
static void copy_whole(bool unpack, const struct adi_layout *layout, char *memory, size_t from, size_t to, char *data)
{
	const struct adi_layout *child = layout->child;
	size_t n = to - from;
	if (layout->start) {
		copy_different(unpack, layout, memory, from, to, data);
	} else if (child && !layout->offset && n >= 4 && is_few_runs(child)) {
		copy_by_run(unpack, child, memory + (MPI_Count)from * layout->stride, n, layout->stride, data);
	} else if (child) {
		for (size_t i = from; i < to; i++, data += layout->block)
			copy_whole(unpack, child, memory + offset_of(layout, i), 0, child->count, data);
	} else if (layout->offset) {
		listed(unpack, memory, data, n, layout->offset + from, layout->block);
	} else {
		strided(unpack, memory + (MPI_Count)from * layout->stride, data, n, layout->stride, layout->block);
	}
}

size_t adi_layout_child(const struct adi_layout *layout, size_t skip, size_t *begin)
{
	if (!layout->start) {
		size_t i = skip < layout->block ? 0 : skip / layout->block;
		*begin = i * layout->block;
		return i;
	}
	size_t low = 0, high = layout->count; /* start[low] <= skip < start[high] */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (layout->start[middle] <= skip)
			low = middle;
		else
			high = middle;
	}
	*begin = layout->start[low];
	return low;
}

/* A part of child i. */
static void copy_part(bool unpack, const struct adi_layout *layout, size_t i, char *memory, size_t skip, size_t len, char *data)
{
	const struct adi_layout *child = layout->children ? layout->children[i] : layout->child;
	char *at = memory + offset_of(layout, i);
	if (child)
		adi_layout_copy(unpack, child, at, skip, len, data);
	else
		copy_run(unpack, at + skip, data, len);
}

void adi_layout_copy(bool unpack, const struct adi_layout *layout, char *memory, size_t skip, size_t len, char *data)
{
	size_t begin, end = skip + len;
	if (!len)
		return;
	if (!skip && len == layout->bytes) {
		copy_whole(unpack, layout, memory, 0, layout->count, data);
		return;
	}
	size_t i = adi_layout_child(layout, skip, &begin), bytes = bytes_of(layout, i);
	if (begin != skip || bytes > len) { /* the first child in part */
		size_t part = begin + bytes - skip < len ? begin + bytes - skip : len;
		copy_part(unpack, layout, i, memory, skip - begin, part, data);
		data += part;
		begin += bytes;
		i++;
	}
	if (begin >= end)
		return;
	size_t last_begin = 0, last = end == layout->bytes ? layout->count : adi_layout_child(layout, end, &last_begin);
	copy_whole(unpack, layout, memory, i, last, data);
	if (last < layout->count && last_begin < end) /* the last child in part */
		copy_part(unpack, layout, last, memory, 0, end - last_begin, data + (last_begin - begin));
}
