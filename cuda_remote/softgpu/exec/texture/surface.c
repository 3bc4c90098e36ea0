/* SPDX-License-Identifier: BSD-3-Clause */
/* suld, sust and sured: texels of a surface by byte offset or number, with a check of every coordinate's bounds. */
#include "cuda_remote/softgpu/exec/texture/texel.h"
#include "cuda_remote/softgpu/exec/texture/texture.h"
#include "cuda_remote/softgpu/exec/texture/texture_table.h"

#include <string.h>

/* The result of one lane's access: it can be made, it is outside and dropped, or it faults. */
enum access { ACCESS_OK, ACCESS_DROPPED, ACCESS_FAULT };

/* Keeps at within 0 … limit - 1; false if it was not. */
static bool keep(int64_t *at, int64_t limit)
{
	bool inside = *at >= 0 && *at < limit;
	if (!inside)
		*at = *at < 0 ? 0 : limit - 1;
	return inside;
}

/* The host address of the lane's coordinates, x in bytes, clamped to the surface; *inside: none had to be clamped. */
static char *locate(const softgpu_image_t *image, const struct texture_form *form, uint32_t lane, uint32_t bytes,
		    bool *inside)
{
	const softgpu_level_t *level = &image->level[0];
	enum geometry geometry = (enum geometry)form->geometry;
	uint32_t axes = geometry_coordinates(geometry);
	int64_t at[3] = { (int32_t)texture_staged[SLOT_AT][lane], 0, 0 };
	int64_t row = (int64_t)level->width * image->texel;
	at[1] = axes > 1 ? (int32_t)texture_staged[SLOT_AT + 1][lane] : 0;
	at[2] = axes > 2		      ? (int32_t)texture_staged[SLOT_AT + 2][lane]
		: geometry_layered(geometry) ? (int64_t)texture_staged[SLOT_LAYER][lane]
					      : 0;
	at[0] *= form->formatted ? image->texel : 1;
	*inside = keep(&at[1], level->height);
	*inside &= keep(&at[2], level->depth);
	if (at[0] < 0 || at[0] > row - (int64_t)bytes) {
		*inside = false;
		at[0] = at[0] < 0 || row < (int64_t)bytes ? 0 : (row - bytes) / bytes * bytes;
	}
	return (char *)(uintptr_t)level->base + (uint64_t)at[2] * level->slice + (uint64_t)at[1] * level->pitch + at[0];
}

static enum access access_lane(struct warp *warp, const struct insn *insn, const struct texture *surface, uint32_t lane,
			       uint32_t bytes, char **pointer)
{
	struct texture_form form = texture_form_of(insn);
	uint64_t x = texture_staged[SLOT_AT][lane], handle = SOURCE(uint64_t, 4)[lane];
	bool inside;
	if (!form.formatted && x % bytes) {
		warp_fault(warp, insn, (int)lane, CUDA_ERROR_MISALIGNED_ADDRESS, "misaligned access to a surface", x);
		return ACCESS_FAULT;
	}
	*pointer = locate(&surface->image, &form, lane, bytes, &inside);
	/* If a row is shorter than the access, no position in it can be clamped to. */
	bool fits = (uint64_t)surface->image.level[0].width * surface->image.texel >= bytes;
	if (inside || (fits && form.clamp == SURFACE_CLAMP))
		return ACCESS_OK;
	if (form.clamp == SURFACE_ZERO)
		return ACCESS_DROPPED;
	warp_fault(warp, insn, (int)lane, CUDA_ERROR_LAUNCH_FAILED, "outside of a surface", handle);
	return ACCESS_FAULT;
}

/* An element of a row of any width, the low bytes first. */
static uint64_t get_element(const struct warp *warp, const struct insn *insn, int n, uint32_t lane)
{
	switch (insn->slot) {
	case 2: return SOURCE(uint16_t, n)[lane];
	case 4: return SOURCE(uint32_t, n)[lane];
	default: return SOURCE(uint64_t, n)[lane];
	}
}

static void put_element(struct warp *warp, const struct insn *insn, int n, uint32_t lane, uint64_t value)
{
	if (insn->r[n] < 0)
		return;
	switch (insn->slot) {
	case 2: RESULT(uint16_t, n)[lane] = (uint16_t)value; break;
	case 4: RESULT(uint32_t, n)[lane] = (uint32_t)value; break;
	default: RESULT(uint64_t, n)[lane] = value; break;
	}
}

const struct insn *op_suld(struct warp *warp, const struct insn *insn)
{
	uint32_t bytes = (uint32_t)insn->size * insn->count;
	uint64_t values[4][WARP_LANES];
	for_each_lane(lane, warp->mask) {
		const struct texture *surface = texture_of_lane(warp, insn, lane, true);
		char *at;
		enum access access = surface ? access_lane(warp, insn, surface, lane, bytes, &at) : ACCESS_FAULT;
		if (access == ACCESS_FAULT)
			return NULL;
		for (int n = 0; n < insn->count; n++) {
			values[n][lane] = 0;
			if (access == ACCESS_OK)
				memcpy(&values[n][lane], at + n * insn->size, insn->size);
		}
	}
	for (int n = 0; n < insn->count; n++)
		for_each_lane(lane, warp->mask)
			put_element(warp, insn, n, lane, values[n][lane]);
	return insn + 1;
}

const struct insn *op_sust(struct warp *warp, const struct insn *insn)
{
	struct texture_form form = texture_form_of(insn);
	for_each_lane(lane, warp->mask) {
		const struct texture *surface = texture_of_lane(warp, insn, lane, true);
		if (!surface)
			return NULL;
		uint32_t bytes = form.formatted ? surface->image.texel : (uint32_t)insn->size * insn->count;
		uint32_t channels[4];
		char *at;
		enum access access = access_lane(warp, insn, surface, lane, bytes, &at);
		if (access == ACCESS_FAULT)
			return NULL;
		for (int n = 0; n < insn->count && access == ACCESS_OK; n++) {
			uint64_t value = get_element(warp, insn, n, lane);
			channels[n] = (uint32_t)value;
			if (!form.formatted)
				memcpy(at + n * insn->size, &value, insn->size);
		}
		if (form.formatted && access == ACCESS_OK)
			texel_write(&surface->image, at, channels, insn->count);
	}
	return insn + 1;
}

/* ---- reductions: as red does them, each an atomic of the host; their order is undefined */
static uint64_t reduced(const struct insn *insn, bool is_signed, uint64_t old, uint64_t b)
{
	bool less = !is_signed ? old < b : insn->size == 4 ? (int32_t)old < (int32_t)b : (int64_t)old < (int64_t)b;
	switch (insn->count) {
	case SURFACE_ADD: return old + b;
	case SURFACE_MIN: return less ? old : b;
	case SURFACE_MAX: return less ? b : old;
	case SURFACE_AND: return old & b;
	default: return old | b;
	}
}

static void reduce_at(const struct insn *insn, bool is_signed, void *at, uint64_t b)
{
	if (insn->size == 4) {
		uint32_t old = __atomic_load_n((uint32_t *)at, __ATOMIC_RELAXED), next;
		/* Only the attempt that succeeds is sequentially consistent; a failed one needs no order. */
		do
			next = (uint32_t)reduced(insn, is_signed, old, (uint32_t)b);
		while (!__atomic_compare_exchange_n((uint32_t *)at, &old, next, true, __ATOMIC_SEQ_CST,
						    __ATOMIC_RELAXED));
		return;
	}
	uint64_t old = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED), next;
	do
		next = reduced(insn, is_signed, old, b);
	while (!__atomic_compare_exchange_n((uint64_t *)at, &old, next, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* For sured.p, the surface's format says whether numbers are signed, and its texels must have the operand's size. */
static bool format_fits(const struct insn *insn, const softgpu_image_t *image, bool *is_signed)
{
	*is_signed = image->channel == SOFTGPU_CHANNEL_S32;
	return (image->channel == SOFTGPU_CHANNEL_S32 || image->channel == SOFTGPU_CHANNEL_U32) &&
	       image->texel == insn->size;
}

const struct insn *op_sured(struct warp *warp, const struct insn *insn)
{
	struct texture_form form = texture_form_of(insn);
	for_each_lane(lane, warp->mask) {
		const struct texture *surface = texture_of_lane(warp, insn, lane, true);
		bool is_signed = insn->flags & INSN_SIGNED;
		char *at;
		if (!surface)
			return NULL;
		if (form.formatted && !format_fits(insn, &surface->image, &is_signed))
			return warp_fault(warp, insn, (int)lane, CUDA_ERROR_LAUNCH_FAILED,
					  "a surface of another format", SOURCE(uint64_t, 4)[lane]);
		enum access access = access_lane(warp, insn, surface, lane, insn->size, &at);
		if (access == ACCESS_FAULT)
			return NULL;
		if (access == ACCESS_OK)
			reduce_at(insn, is_signed, at,
				  insn->size == 4 ? SOURCE(uint32_t, 0)[lane] : SOURCE(uint64_t, 0)[lane]);
	}
	return insn + 1;
}
