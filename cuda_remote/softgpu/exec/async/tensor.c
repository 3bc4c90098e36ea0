/* SPDX-License-Identifier: BSD-3-Clause */
/* Tensor copies: tiles of a tensor map to and from shared memory, and reductions into global memory. */
#include "cuda_remote/softgpu/exec/async/tensor.h"

#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/atomic.h"
#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/async/mbarrier.h"
#include "cuda_remote/softgpu/tensor_map.h"

#include <stddef.h>
#include <string.h>

#define CHUNK 16
#define MAP_ALIGN 64
#define ROW_MAX (256 * 8)
#define SHARED_ALIGN 128

/* One copy by one lane. */
struct tile {
	struct warp *warp;
	const struct insn *insn;
	uint32_t lane;
	softgpu_tensor_map_t map;
	int64_t at[TENSOR_RANK_MAX]; /* coordinates of the row under way */
	uint64_t shared, barrier;    /* addresses of the tile and of the mbarrier that counts its bytes */
	char *memory;                /* host address of the tile */
	uint32_t row;                /* bytes */
	uint32_t variant;            /* of the reduction */
};

static bool fault(const struct tile *tile, CUresult result, const char *what, uint64_t address)
{
	warp_fault(tile->warp, tile->insn, (int)tile->lane, result, what, address);
	return false;
}

/* The map is in memory that the program can write, so all of it is checked. If a row is as long as its swizzle, no chunk moves
 * out of the tile. */
static bool map_valid(const softgpu_tensor_map_t *map, uint32_t rank)
{
	if (map->swizzle && (uint32_t)map->box[0] * map->element != (uint32_t)CHUNK << (map->swizzle & 3))
		return false;
	if (map->magic != TENSOR_MAP_MAGIC || map->rank != rank || map->swizzle > 3 || !map->element ||
	    map->element != tensor_type_bytes((CUtensorMapDataType)map->type) || map->box[0] * map->element % CHUNK)
		return false;
	for (uint32_t i = 0; i < rank; i++)
		if (!map->box[i] || map->box[i] > 256 || !map->steps[i] || (i && map->strides[i - 1] % CHUNK))
			return false;
	return map->address % CHUNK == 0;
}

static bool reduction_of(const struct tile *tile, enum atomic_op op, uint32_t *variant)
{
	static const uint8_t types[] = {
		[CU_TENSOR_MAP_DATA_TYPE_UINT32] = PTX_U32,   [CU_TENSOR_MAP_DATA_TYPE_INT32] = PTX_S32,
		[CU_TENSOR_MAP_DATA_TYPE_UINT64] = PTX_U64,   [CU_TENSOR_MAP_DATA_TYPE_INT64] = PTX_S64,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT16] = PTX_F16,  [CU_TENSOR_MAP_DATA_TYPE_FLOAT32] = PTX_F32,
		[CU_TENSOR_MAP_DATA_TYPE_FLOAT64] = PTX_F64,  [CU_TENSOR_MAP_DATA_TYPE_BFLOAT16] = PTX_BF16,
	};
	enum ptx_type type = tile->map.type < sizeof types ? (enum ptx_type)types[tile->map.type] : PTX_NO_TYPE;
	bool bits = op == ATOMIC_AND || op == ATOMIC_OR || op == ATOMIC_XOR;
	if (bits && type != PTX_NO_TYPE && !ptx_type_float(type))
		type = tile->map.element == 8 ? PTX_B64 : PTX_B32;
	return type != PTX_NO_TYPE && atomic_find(op, type, variant);
}

/* Where a chunk of the tile lies. */
static char *chunk(const struct tile *tile, uint64_t offset)
{
	uint64_t address = tile->shared + offset, rows = (address >> 7) & ((1u << tile->map.swizzle) - 1);
	return tile->memory + ((address ^ rows << 4) - tile->shared);
}

/* The part of a row that is in the tensor: from element *first to before *end. */
static void clip(const struct tile *tile, uint32_t *first, uint32_t *end)
{
	const softgpu_tensor_map_t *map = &tile->map;
	int64_t from = tile->at[0] < 0 ? -tile->at[0] : 0, to = (int64_t)map->last[0] + 1 - tile->at[0];
	for (uint32_t i = 1; i < map->rank; i++)
		if (tile->at[i] < 0 || tile->at[i] > (int64_t)map->last[i])
			to = 0;
	*end = to < 0 ? 0 : to > map->box[0] ? map->box[0] : (uint32_t)to;
	*first = from > *end ? *end : (uint32_t)from;
}

static void apply(const struct tile *tile, char *target, const char *source, uint32_t bytes)
{
	for (uint32_t at = 0; at < bytes; at += tile->map.element) {
		uint64_t value = 0;
		memcpy(&value, source + at, tile->map.element);
		atomic_apply(tile->variant, target + at, value, 0);
	}
}

/* One row of the tile, which begins at that offset; false after a fault. */
static bool copy_row(const struct tile *tile, uint64_t offset)
{
	const softgpu_tensor_map_t *map = &tile->map;
	enum tensor_copy kind = (enum tensor_copy)tile->insn->count;
	char row[ROW_MAX], *memory = NULL;
	uint32_t first, end;
	clip(tile, &first, &end);
	uint64_t address = map->address + (uint64_t)(tile->at[0] + first) * map->element;
	for (uint32_t i = 1; i < map->rank; i++)
		address += (uint64_t)tile->at[i] * map->strides[i - 1];
	uint32_t skip = first * map->element, bytes = (end - first) * map->element;
	if (bytes)
		memory = memory_translate_in(tile->warp, tile->lane, ACCESS_GLOBAL, address, bytes,
					     kind != TENSOR_LOAD);
	if (bytes && !memory)
		return fault(tile, CUDA_ERROR_ILLEGAL_ADDRESS, "a tensor's row is outside every allocation", address);
	if (kind == TENSOR_LOAD) {
		memset(row, map->fill, tile->row);
		if (bytes)
			memcpy(row + skip, memory, bytes);
	}
	for (uint32_t at = 0; at < tile->row; at += CHUNK) {
		char *there = chunk(tile, offset + at);
		memcpy(kind == TENSOR_LOAD ? there : row + at, kind == TENSOR_LOAD ? row + at : there, CHUNK);
	}
	if (kind == TENSOR_STORE && bytes)
		memcpy(memory, row + skip, bytes);
	else if (kind == TENSOR_REDUCE && bytes)
		apply(tile, memory, row + skip, bytes);
	return true;
}

/* All rows, the lower dimensions first. */
static bool copy_rows(struct tile *tile, uint64_t bytes)
{
	const softgpu_tensor_map_t *map = &tile->map;
	uint32_t index[TENSOR_RANK_MAX] = { 0 };
	for (uint64_t offset = 0; offset < bytes; offset += tile->row) {
		if (!copy_row(tile, offset))
			return false;
		for (uint32_t i = 1; i < map->rank; i++) {
			tile->at[i] += map->steps[i];
			if (++index[i] < map->box[i])
				break;
			tile->at[i] -= (int64_t)map->box[i] * map->steps[i];
			index[i] = 0;
		}
	}
	return true;
}

/* The lane's value of an operand of 64 bits. */
static uint64_t operand(const struct tile *tile, int n)
{
	return ((const uint64_t *)operand_row(tile->warp, tile->insn->r[n]))[tile->lane];
}

static bool read_map(struct tile *tile)
{
	const struct insn *insn = tile->insn;
	uint64_t where = operand(tile, 0);
	if (where % MAP_ALIGN)
		return fault(tile, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned tensor map", where);
	const char *map = memory_translate(tile->warp, (int)tile->lane, where, sizeof tile->map, false);
	if (!map)
		return fault(tile, CUDA_ERROR_ILLEGAL_ADDRESS, "tensor map outside every allocation", where);
	memcpy(&tile->map, map, sizeof tile->map);
	if (!map_valid(&tile->map, insn->size))
		return fault(tile, CUDA_ERROR_ILLEGAL_INSTRUCTION, "no tensor map, or one of another rank", where);
	if (insn->count == TENSOR_REDUCE && !reduction_of(tile, (enum atomic_op)insn->slot, &tile->variant))
		return fault(tile, CUDA_ERROR_ILLEGAL_INSTRUCTION, "no such reduction of the tensor's type", where);
	return true;
}

/* Checks the access to shared memory, and to the mbarrier that counts its bytes. */
static bool check_tile(const struct tile *tile, uint64_t bytes)
{
	const struct insn *insn = tile->insn;
	return check_touch(tile->warp, insn, tile->lane, ACCESS_SHARED, tile->shared, bytes,
			   insn->count == TENSOR_LOAD ? CHECK_WRITE : CHECK_READ) &&
	       (insn->r[2] < 0 || check_touch(tile->warp, insn, tile->lane, ACCESS_SHARED, tile->barrier, 8,
					      CHECK_READ | CHECK_WRITE | CHECK_STRONG | CHECK_RELEASE));
}

static bool copy_tile(struct tile *tile)
{
	const struct insn *insn = tile->insn;
	if (!read_map(tile))
		return false;
	tile->row = (uint32_t)tile->map.box[0] * tile->map.element;
	uint64_t bytes = tile->row;
	for (uint32_t i = 1; i < tile->map.rank; i++)
		bytes *= tile->map.box[i];
	if (tile->shared % SHARED_ALIGN)
		return fault(tile, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned tile in shared memory", tile->shared);
	tile->memory = memory_translate_in(tile->warp, tile->lane, ACCESS_SHARED, tile->shared, bytes,
					   insn->count == TENSOR_LOAD);
	if (!tile->memory)
		return fault(tile, CUDA_ERROR_ILLEGAL_ADDRESS, "a tile outside of shared memory", tile->shared);
	if ((tile->warp->block->launch->check && !check_tile(tile, bytes)) || !copy_rows(tile, bytes))
		return false;
	return insn->r[2] < 0 ||
	       mbarrier_complete_tx(tile->warp, insn, tile->lane, ACCESS_SHARED, tile->barrier, (uint32_t)bytes);
}

static struct tile tile_of(struct warp *warp, const struct insn *insn, uint32_t lane)
{
	struct tile tile = { .warp = warp, .insn = insn, .lane = lane };
	for (uint32_t i = 0; i < insn->size; i++)
		tile.at[i] = ((const int32_t *)operand_row(warp, insn[1].r[i]))[lane];
	tile.shared = operand(&tile, 1);
	tile.barrier = insn->r[2] < 0 ? 0 : operand(&tile, 2);
	return tile;
}

/* The same tile for each block of the cluster that the mask names: data and mbarrier at the same offsets there. */
static bool copy_to_blocks(const struct tile *tile, uint32_t blocks)
{
	const struct block *block = tile->warp->block;
	if (!cluster_has(tile->warp, tile->insn, tile->lane, blocks))
		return false;
	for_each_lane(rank, blocks) {
		struct tile copy = *tile;
		copy.shared = cluster_map(block, tile->shared, rank);
		copy.barrier = cluster_map(block, tile->barrier, rank);
		if (!copy_tile(&copy))
			return false;
	}
	return true;
}

const struct insn *op_tensor(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		struct tile tile = tile_of(warp, insn, lane);
		if (!(insn->r[3] < 0 ? copy_tile(&tile) : copy_to_blocks(&tile, SOURCE(uint16_t, 3)[lane])))
			return NULL;
	}
	return insn + 2;
}

/* The host address of a map that is changed or copied; NULL after a fault. */
static char *map_memory(const struct tile *tile, enum access_space space, uint64_t where, bool write)
{
	char *map = NULL;
	if (where % MAP_ALIGN)
		fault(tile, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned tensor map", where);
	else if (!(map = memory_translate_in(tile->warp, tile->lane, space, where, sizeof(CUtensorMap), write)))
		fault(tile, CUDA_ERROR_ILLEGAL_ADDRESS, "tensor map outside every allocation", where);
	else if (tile->warp->block->launch->check && !check_touch(tile->warp, tile->insn, tile->lane, space, where,
								  sizeof(CUtensorMap), write ? CHECK_WRITE : CHECK_READ))
		return NULL;
	return map;
}

/* Whether the map is one is checked when a copy uses it, as a program may change its fields in any order. */
static bool change_map(const struct tile *tile)
{
	const struct insn *insn = tile->insn;
	char *map = map_memory(tile, (enum access_space)insn->slot, operand(tile, 0), true);
	if (!map)
		return false;
	if (insn->count == TENSOR_MAP_COPY) {
		const char *from = map_memory(tile, ACCESS_SHARED, operand(tile, 1), false);
		if (from)
			memcpy(map, from, sizeof(CUtensorMap));
		return from;
	}
	if (insn->count == TENSOR_MAP_DIMENSION) {
		uint32_t last = ((const uint32_t *)operand_row(tile->warp, insn->r[1]))[tile->lane] - 1;
		memcpy(map + offsetof(softgpu_tensor_map_t, last) + insn->size * sizeof last, &last, sizeof last);
		return true;
	}
	uint64_t value = operand(tile, 1);
	size_t field = insn->count == TENSOR_MAP_ADDRESS ? offsetof(softgpu_tensor_map_t, address) :
							   offsetof(softgpu_tensor_map_t, strides) + insn->size * sizeof value;
	memcpy(map + field, &value, sizeof value);
	return true;
}

const struct insn *op_tensormap(struct warp *warp, const struct insn *insn)
{
	for_each_lane(lane, warp->mask) {
		const struct tile tile = { .warp = warp, .insn = insn, .lane = lane };
		if (!change_map(&tile))
			return NULL;
	}
	return insn + 1;
}
