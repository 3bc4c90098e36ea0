/* SPDX-License-Identifier: BSD-3-Clause */
/* tex, tld4, txq and suq: a warp's lanes one by one, through sample.h. */
#include "cuda_remote/softgpu/exec/texture/texture.h"

#include "cuda_remote/softgpu/exec/lanes/lane_float.h"
#include "cuda_remote/softgpu/exec/texture/texture_table.h"
#include "cuda_remote/softgpu/memory_map.h"

__thread uint32_t texture_staged[TEXTURE_SLOTS][WARP_LANES];

const struct insn *op_texture_stage(struct warp *warp, const struct insn *insn)
{
	for (int n = 0; n < insn->size; n++)
		__builtin_memcpy(texture_staged[insn->imm >> 8 * n & 255], SOURCE(uint32_t, n),
				 sizeof *texture_staged);
	return insn + 1;
}

/* Whether all of the image's memory is allocated; looked up again only after some memory was freed. */
static bool memory_is_there(struct texture *texture)
{
	uint64_t generation = softgpu_memory_generation();
	softgpu_span_t span;
	/* Relaxed: no other data depends on the generation. */
	if (__atomic_load_n(&texture->generation, __ATOMIC_RELAXED) == generation)
		return true;
	uint64_t memory = texture->image.memory, bytes = texture->image.bytes;
	if (!softgpu_memory_find(memory, &span) || bytes > span.size - (memory - span.base))
		return false;
	__atomic_store_n(&texture->generation, generation, __ATOMIC_RELAXED);
	return true;
}

const struct texture *texture_of_lane(struct warp *warp, const struct insn *insn, uint32_t lane, bool surface)
{
	uint64_t handle = SOURCE(uint64_t, 4)[lane];
	struct texture *texture = texture_find(handle);
	bool is_surface = texture && (texture->kind == SOFTGPU_SURFACE_OBJECT ||
				      texture->kind == SOFTGPU_SURFACE_REFERENCE);
	const char *fault = !texture ? "no such texture or surface, or nothing is bound to it"
			    : is_surface != surface ? (surface ? "a texture is no surface" : "a surface is no texture")
			    : !memory_is_there(texture) ? "the memory behind a texture was freed"
							: NULL;
	if (fault) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_ILLEGAL_ADDRESS, fault, handle);
		return NULL;
	}
	return texture;
}

static void staged_fetch(const struct texture_form *form, uint32_t lane, struct fetch *fetch)
{
	*fetch = (struct fetch){ .geometry = (enum geometry)form->geometry, .lod_mode = (enum lod_mode)form->lod_mode,
				 .integer = form->integer, .layer = texture_staged[SLOT_LAYER][lane] };
	uint32_t axes = geometry_coordinates(fetch->geometry);
	for (uint32_t n = 0; n < axes; n++) {
		fetch->at_integer[n] = (int32_t)texture_staged[SLOT_AT + n][lane];
		fetch->at[n] = f32_of_bits(texture_staged[SLOT_AT + n][lane]);
		if (form->offsets)
			fetch->offset[n] = (int32_t)texture_staged[SLOT_OFFSET + n][lane];
		if (fetch->lod_mode != LOD_GRADIENT)
			continue;
		fetch->dx[n] = f32_of_bits(texture_staged[SLOT_DX + n][lane]);
		fetch->dy[n] = f32_of_bits(texture_staged[SLOT_DY + n][lane]);
	}
	if (fetch->lod_mode == LOD_LEVEL) {
		uint32_t lod = texture_staged[SLOT_LOD][lane];
		fetch->lod = form->integer ? (float)(int32_t)lod : f32_of_bits(lod);
	}
}

static void put_results(struct warp *warp, const struct insn *insn, enum texture_result result,
			uint32_t (*values)[WARP_LANES])
{
	int rows = result == RESULT_HALF_PAIRS ? 2 : 4;
	for (int n = 0; n < rows; n++) {
		if (insn->r[n] < 0)
			continue;
		for_each_lane(lane, warp->mask) {
			if (result == RESULT_WORDS)
				RESULT(uint32_t, n)[lane] = values[n][lane];
			else if (result == RESULT_HALVES)
				RESULT(uint16_t, n)[lane] = half_of(f32_of_bits(values[n][lane]));
			else
				RESULT(uint32_t, n)[lane] = both(half_of(f32_of_bits(values[2 * n][lane])),
								 half_of(f32_of_bits(values[2 * n + 1][lane])));
		}
	}
	/* All of a texture's memory is resident. */
	if (insn->r[5] >= 0)
		predicate_set(warp, insn->r[5], warp->mask);
}

static const struct insn *fetch_lanes(struct warp *warp, const struct insn *insn, bool gather)
{
	struct texture_form form = texture_form_of(insn);
	uint32_t values[4][WARP_LANES];
	const struct texture *texture = NULL;
	uint64_t handle = 0;
	for_each_lane(lane, warp->mask) {
		struct fetch fetch;
		uint32_t value[4];
		if (!texture || SOURCE(uint64_t, 4)[lane] != handle)
			texture = texture_of_lane(warp, insn, lane, false);
		if (!texture)
			return NULL;
		handle = SOURCE(uint64_t, 4)[lane];
		staged_fetch(&form, lane, &fetch);
		if (gather)
			sample_gather(&texture->image, &texture->sampler, &fetch, form.component, value);
		else
			sample_fetch(&texture->image, &texture->sampler, &fetch, value);
		for (int n = 0; n < 4; n++)
			values[n][lane] = value[n];
	}
	put_results(warp, insn, (enum texture_result)form.result, values);
	return insn + 1;
}

const struct insn *op_tex(struct warp *warp, const struct insn *insn)
{
	return fetch_lanes(warp, insn, false);
}

const struct insn *op_tld4(struct warp *warp, const struct insn *insn)
{
	return fetch_lanes(warp, insn, true);
}

/* ---- queries */
static uint32_t layers_of(const softgpu_image_t *image)
{
	return !image->layered ? 0 : image->cube ? image->level[0].depth / 6 : image->level[0].depth;
}

/* PTX's names in their order: wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border. */
static uint32_t address_name(enum softgpu_address mode)
{
	static const uint8_t names[] = { [SOFTGPU_ADDRESS_WRAP] = 0, [SOFTGPU_ADDRESS_MIRROR] = 1,
					 [SOFTGPU_ADDRESS_CLAMP] = 3, [SOFTGPU_ADDRESS_BORDER] = 4 };
	return names[mode];
}

static uint32_t answer(const struct texture *texture, enum texture_query query, uint32_t number)
{
	const softgpu_image_t *image = &texture->image;
	const softgpu_level_t *level = &image->level[number < image->levels ? number : image->levels - 1];
	switch (query) {
	case QUERY_WIDTH: return level->width;
	case QUERY_HEIGHT: return image->dimensions > 1 ? level->height : 0;
	case QUERY_DEPTH: return image->dimensions > 2 ? level->depth : 0;
	case QUERY_NORMALIZED: return texture->sampler.normalized;
	case QUERY_ARRAY_SIZE: return layers_of(image);
	case QUERY_LEVELS: return image->mipmapped ? image->levels : 0;
	case QUERY_FILTER: return texture->sampler.linear;
	case QUERY_ADDRESS_0:
	case QUERY_ADDRESS_1:
	case QUERY_ADDRESS_2: return address_name(texture->sampler.address[query - QUERY_ADDRESS_0]);
	case QUERY_LAYOUT: return image->linear;
	default: return 0; /* no image has samples */
	}
}

const struct insn *op_texture_query(struct warp *warp, const struct insn *insn)
{
	uint32_t values[WARP_LANES];
	for_each_lane(lane, warp->mask) {
		const struct texture *texture = texture_of_lane(warp, insn, lane, insn->size);
		if (!texture)
			return NULL;
		uint32_t level = insn->r[5] >= 0 ? SOURCE(uint32_t, 5)[lane] : 0;
		values[lane] = answer(texture, (enum texture_query)insn->count, level);
	}
	for_each_lane(lane, warp->mask)
		RESULT(uint32_t, 0)[lane] = values[lane];
	return insn + 1;
}

const struct insn *op_istypep(struct warp *warp, const struct insn *insn)
{
	uint32_t truth = 0;
	for_each_lane(lane, warp->mask) {
		enum softgpu_texture_kind kind = softgpu_texture_kind(SOURCE(uint64_t, 4)[lane]);
		truth |= (uint32_t)(kind == (enum softgpu_texture_kind)insn->count) << lane;
	}
	predicate_set(warp, insn->r[0], truth);
	return insn + 1;
}
