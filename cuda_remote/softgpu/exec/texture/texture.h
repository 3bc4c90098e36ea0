/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Texture and surface instructions (PTX ISA, "Texture Instructions", "Surface Instructions") as the decoder writes
 * them. They have more operands than an instruction has rows: one or more op_texture_stage come before them and copy
 * coordinates and the like to texture_staged. The same thread executes the instruction next, because a path does not
 * yield between the two.
 */
#ifndef SOFTGPU_EXEC_TEXTURE_H
#define SOFTGPU_EXEC_TEXTURE_H

#include "cuda_remote/softgpu/exec/texture/sample.h"
#include "cuda_remote/softgpu/exec/warp.h"

/* Rows of texture_staged. */
enum texture_slot {
	SLOT_LAYER, SLOT_AT, SLOT_LOD = SLOT_AT + 3, SLOT_DX, SLOT_DY = SLOT_DX + 3, SLOT_OFFSET = SLOT_DY + 3,
	TEXTURE_SLOTS = SLOT_OFFSET + 3
};

enum texture_result { RESULT_WORDS, RESULT_HALVES, RESULT_HALF_PAIRS };
enum surface_clamp { SURFACE_TRAP, SURFACE_CLAMP, SURFACE_ZERO };
enum surface_reduction { SURFACE_ADD, SURFACE_MIN, SURFACE_MAX, SURFACE_AND, SURFACE_OR };
enum texture_query {
	QUERY_WIDTH, QUERY_HEIGHT, QUERY_DEPTH, QUERY_NORMALIZED, QUERY_ARRAY_SIZE, QUERY_LEVELS, QUERY_SAMPLES,
	QUERY_FILTER, QUERY_ADDRESS_0, QUERY_ADDRESS_1, QUERY_ADDRESS_2, QUERY_LAYOUT
};

/* What the modifiers say; an instruction's imm. */
struct texture_form {
	uint8_t geometry;
	uint8_t lod_mode, integer, offsets, result, component; /* tex, tld4 */
	uint8_t clamp;                                         /* surfaces */
	uint8_t formatted;                                     /* sust.p, sured.p: coordinates are texels */
};
_Static_assert(sizeof(struct texture_form) == sizeof(uint64_t), "a form is an immediate");

/*
 * op_texture_stage: r[0] to r[size - 1] are rows of 32 bits; byte n of imm is the slot of r[n].
 * op_tex, op_tld4: r[0] to r[3] results (-1: not wanted), r[4] the handle (64 bits), r[5] a predicate or -1.
 * op_suld, op_sust: r[0] to r[count - 1] elements of size bytes, in rows of slot bytes; r[4] the handle.
 * op_sured: r[0] the operand, of size bytes; r[4] the handle; count the reduction, INSN_SIGNED.
 * op_texture_query: r[0] the result, r[4] the handle, r[5] the level or -1; count the query, size 1 for a surface.
 * op_istypep: r[0] the predicate, r[4] the value; count the enum softgpu_texture_kind.
 */
insn_handler op_texture_stage, op_tex, op_tld4, op_suld, op_sust, op_sured, op_texture_query, op_istypep;

/* The staged operands of the calling thread's last op_texture_stage, by slot and lane. */
extern __thread uint32_t texture_staged[TEXTURE_SLOTS][WARP_LANES];

/* The texture or surface that a lane's handle names; its memory is still allocated. NULL after a fault. */
struct texture;
const struct texture *texture_of_lane(struct warp *warp, const struct insn *insn, uint32_t lane, bool surface);

static inline struct texture_form texture_form_of(const struct insn *insn)
{
	struct texture_form form;
	__builtin_memcpy(&form, &insn->imm, sizeof form);
	return form;
}

#endif
