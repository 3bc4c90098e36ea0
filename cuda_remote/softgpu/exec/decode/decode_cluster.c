/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instructions of compute_90 for clusters, and hints that do not change results. Every instruction that takes an
 * address of shared memory takes one of another block of the cluster too (CLUSTER_SHIFT).
 */
#include "cuda_remote/softgpu/exec/async/cluster.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/decode/decode_check.h"
#include "cuda_remote/softgpu/exec/special.h"

#include <string.h>

void decode_elect(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 2);
	struct ptx_operand *target = decode_operand(decoder, 0);
	if (!decode_has(decoder, ".sync") || target->kind != PTX_OPERAND_PAIR)
		decode_invalid(decoder, "expected .sync and d|p");
	struct value members = decode_source(decoder, decode_operand(decoder, 1), 'w');
	uint32_t leader = decode_result(decoder, target->first, 'w');
	uint32_t is_leader = decode_result(decoder, target->first->next, 'p');
	struct draft *draft = decode_emit(decoder, op_elect);
	decode_define(draft, 0, leader);
	decode_use(draft, 1, members);
	decode_define(draft, 5, is_leader);
}

static bool has_all_of(struct decoder *decoder, const char *const *words, uint32_t count)
{
	for (uint32_t n = 0; n < count; n++)
		if (!decode_has(decoder, words[n]))
			return false;
	return decoder->statement->modifiers == count;
}

/* The grid that a launch depends on has ended before the launch begins, so neither instruction has an effect. */
void decode_griddepcontrol(struct decoder *decoder)
{
	decode_operand_count(decoder, 0, 0);
	if (decoder->statement->modifiers != 1 ||
	    decode_has(decoder, ".wait") == decode_has(decoder, ".launch_dependents"))
		decode_invalid(decoder, "expected .wait or .launch_dependents");
	decode_emit(decoder, op_fence);
}

/* Warps do not share registers here, so setmaxnreg has no effect. */
void decode_setmaxnreg(struct decoder *decoder)
{
	static const char *const up[] = { ".inc", ".sync", ".aligned", ".u32" },
				 *const down[] = { ".dec", ".sync", ".aligned", ".u32" };
	decode_operand_count(decoder, 1, 1);
	const struct ptx_operand *count = decode_operand(decoder, 0);
	if (!has_all_of(decoder, up, 4) && !has_all_of(decoder, down, 4))
		decode_invalid(decoder, "expected .inc or .dec, .sync.aligned.u32");
	if (count->kind != PTX_OPERAND_INTEGER || count->value < 24 || count->value > 256 || count->value % 8)
		decode_invalid(decoder, "expected a multiple of 8 from 24 to 256");
	decode_emit(decoder, op_nop);
}

/* A policy is opaque, and no instruction here uses one: it is 0. */
void decode_createpolicy(struct decoder *decoder)
{
	decode_operand_count(decoder, 1, 4);
	struct value policy = decode_constant(decoder, 0, 8);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'l');
	struct draft *draft = decode_emit_op(decoder, "mov.b64");
	decode_define(draft, 0, result);
	decode_use(draft, 1, policy);
}

/* A predicate. Its row is filled for each launch, as the rows of other special registers are. */
struct value decode_explicit_cluster(struct decoder *decoder)
{
	struct value row = decode_special(decoder, SPECIAL_EXPLICIT_CLUSTER, 4);
	uint32_t truth = decode_temporary(decoder, 0);
	struct draft *draft = decode_emit_op(decoder, "setp.ne.b32");
	decode_define(draft, 0, truth);
	decode_use(draft, 1, row);
	decode_use(draft, 2, decode_constant(decoder, 0, 4));
	return (struct value){ ROLE_USE, (int32_t)truth };
}

/* mapa d, a, rank: the address of a in the block of that rank. */
void decode_mapa(struct decoder *decoder)
{
	bool wide = decode_has(decoder, ".u64");
	decode_operand_count(decoder, 3, 3);
	if (wide == decode_has(decoder, ".u32"))
		decode_invalid(decoder, "expected .u32 or .u64");
	struct ptx_operand *place = decode_operand(decoder, 1);
	bool name = place->kind == PTX_OPERAND_NAME;
	struct value source = decode_source(decoder, place, wide ? 'l' : 'w');
	struct value rank = decode_source(decoder, decode_operand(decoder, 2), 'w');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), wide ? 'l' : 'w');
	if (name && !decode_has(decoder, ".shared::cluster"))
		decode_invalid(decoder, "a variable's address is not generic");
	struct draft *draft = decode_emit(decoder, op_mapa);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	decode_use(draft, 2, rank);
	draft->insn.size = wide ? 8 : 4;
}

void decode_getctarank(struct decoder *decoder)
{
	bool wide = decode_has(decoder, ".u64");
	decode_operand_count(decoder, 2, 2);
	struct value source = decode_source(decoder, decode_operand(decoder, 1), wide ? 'l' : 'w');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_getctarank);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	draft->insn.size = wide ? 8 : 4;
}

/* barrier.cluster.arrive and .wait; .release, .relaxed, .acquire and .aligned are ignored */
void decode_cluster_barrier(struct decoder *decoder)
{
	bool arrives = decode_has(decoder, ".arrive");
	decode_operand_count(decoder, 0, 0);
	if (arrives == decode_has(decoder, ".wait"))
		decode_invalid(decoder, "expected .arrive or .wait");
	decode_emit(decoder, arrives ? op_cluster_arrive : op_cluster_wait);
}

void decode_fence(struct decoder *decoder)
{
	static const char *const words[] = {
		".sc", ".acq_rel", ".acquire", ".release", ".cta", ".cluster", ".gpu", ".sys", ".gl", ".proxy",
		".alias", ".async", ".async.global", ".async::generic", ".global", ".shared::cta", ".shared::cluster",
		".mbarrier_init", ".sync_restrict::shared::cta", ".sync_restrict::shared::cluster",
		".tensormap::generic",
	};
	/* A tensor map is read at each copy that uses it, so its bytes need no fence of their own. */
	uint32_t operands = decode_has(decoder, ".tensormap::generic") && decode_has(decoder, ".acquire") ? 2 : 0;
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		bool known = false;
		for (size_t n = 0; n < sizeof words / sizeof *words; n++)
			known |= ptx_text_is(decoder->statement->modifier[i], words[n]);
		if (!known)
			decode_unsupported(decoder, "this kind of fence");
	}
	decode_operand_count(decoder, operands, operands);
	decode_check_fence(decoder);
	decode_emit(decoder, op_fence);
}
