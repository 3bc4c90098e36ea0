/* SPDX-License-Identifier: BSD-3-Clause */
/* Emits the instructions of HEADRACE_SOFTGPU_CHECK before and after the accesses that they check. Without the setting
 * there are none. */
#include "cuda_remote/softgpu/exec/decode/decode_check.h"

/* The order of an access, from the modifiers of ld, st, atom and red. */
uint8_t decode_check_order(const struct decoder *decoder, bool atomic)
{
	static const char *const strong[] = { ".volatile", ".relaxed", ".acquire", ".release", ".acq_rel", ".mmio" };
	uint8_t kind = atomic ? CHECK_STRONG : 0;
	for (size_t n = 0; n < sizeof strong / sizeof *strong; n++)
		if (decode_has(decoder, strong[n]))
			kind |= CHECK_STRONG;
	if (decode_has(decoder, ".release") || decode_has(decoder, ".acq_rel"))
		kind |= CHECK_RELEASE;
	return kind;
}

static bool wanted(const struct decoder *decoder, enum access_space space)
{
	return decoder->program->checks && space != ACCESS_LOCAL;
}

static struct draft *emit(struct decoder *decoder, insn_handler *handler, const struct address *address,
			  enum access_space space, uint8_t kind)
{
	struct draft *draft = decode_emit(decoder, handler);
	decode_use(draft, 4, address->row);
	draft->insn.imm = address->offset;
	draft->insn.flags = address->flags;
	draft->insn.slot = (uint8_t)space;
	draft->insn.size = kind;
	draft->insn.r[1] = WARP_LANES;
	draft->insn.r[2] = draft->insn.r[3] = -1;
	return draft;
}

void decode_check_access(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t bytes,
			 uint8_t kind)
{
	if (wanted(decoder, space))
		emit(decoder, op_check_access, address, space, kind)->insn.count = (uint8_t)bytes;
}

void decode_check_rows(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t rows,
		       uint8_t kind)
{
	if (!wanted(decoder, space))
		return;
	struct draft *draft = emit(decoder, op_check_access, address, space, kind);
	draft->insn.count = 16;
	draft->insn.r[1] = (int32_t)rows;
}

void decode_check_copy(struct decoder *decoder, struct value address, enum access_space space, struct value bytes,
		       uint32_t most, uint8_t kind)
{
	if (!wanted(decoder, space))
		return;
	struct draft *draft = emit(decoder, op_check_access, &(struct address){ .row = address }, space, kind);
	draft->insn.count = (uint8_t)most;
	if (bytes.role != ROLE_NONE)
		decode_use(draft, 2, bytes);
}

void decode_check_unless(struct decoder *decoder, struct value ignored, bool negated)
{
	struct draft *draft = &decoder->drafts[decoder->draft_count - 1];
	if (!decoder->program->checks || ignored.role == ROLE_NONE)
		return;
	decode_use(draft, 3, ignored);
	draft->insn.size |= CHECK_CARRIES;
	draft->insn.flags |= negated ? INSN_NEGATE : 0;
}

void decode_check_tile(struct decoder *decoder, const struct address *address, enum access_space space,
		       struct value stride, const uint32_t extent[3], uint8_t kind)
{
	if (!wanted(decoder, space))
		return;
	struct draft *draft = emit(decoder, op_check_tile, address, space, kind);
	draft->insn.r[1] = (int32_t)extent[0];
	draft->insn.r[2] = (int32_t)extent[1];
	draft->insn.count = (uint8_t)extent[2];
	if (stride.role != ROLE_NONE)
		decode_use(draft, 3, stride);
}

void decode_check_learned(struct decoder *decoder, enum access_space space, uint8_t kind)
{
	if (decoder->program->checks & CHECK_RACES && kind & CHECK_STRONG &&
	    (space == ACCESS_GLOBAL || space == ACCESS_GENERIC))
		decode_emit(decoder, op_check_acquired);
}

void decode_check_fence(struct decoder *decoder)
{
	if (decoder->program->checks & CHECK_RACES)
		decode_emit(decoder, op_check_fence);
}
