/* SPDX-License-Identifier: BSD-3-Clause */
/* cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and the prefetch, of tiles. */
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/async/tensor.h"
#include "cuda_remote/softgpu/tensor_map.h"

#define COMPLETE_TX ".mbarrier::complete_tx::bytes"

struct words {
	uint32_t rank;
	enum access_space target;
	bool spaces; /* a state space was found */
};

static struct words read_words(struct decoder *decoder)
{
	static const char *const known[] = { ".async", ".bulk", ".tensor", ".reduce", ".prefetch", ".tile", COMPLETE_TX,
					     ".bulk_group", ".multicast::cluster", ".L2::cache_hint", ".L2", ".add",
					     ".min", ".max", ".inc", ".dec", ".and", ".or", ".xor" };
	const struct ptx_statement *statement = decoder->statement;
	struct words words = { 0 };
	for (uint32_t i = 0; i < statement->modifiers; i++) {
		struct ptx_text word = statement->modifier[i];
		bool shared = ptx_text_is(word, ".shared::cluster") || ptx_text_is(word, ".shared::cta");
		bool found = shared || ptx_text_is(word, ".global");
		if (found && !words.spaces)
			words.target = shared ? ACCESS_SHARED : ACCESS_GLOBAL;
		words.spaces |= found;
		if (word.length == 3 && word.at[1] >= '1' && word.at[1] <= '5' && word.at[2] == 'd') {
			words.rank = (uint32_t)(word.at[1] - '0');
			found = true;
		}
		for (size_t n = 0; n < sizeof known / sizeof *known && !found; n++)
			found = ptx_text_is(word, known[n]);
		if (!found)
			decode_unsupported(decoder, "a modifier of this copy by a tensor map");
	}
	if (!words.rank || !words.spaces)
		decode_invalid(decoder, "expected the number of dimensions and the spaces");
	return words;
}

/* [map, {coordinates}] */
static struct value map_of(struct decoder *decoder, const struct ptx_operand *operand, uint32_t rank,
			   struct value *coordinates)
{
	struct ptx_operand *base = operand->kind == PTX_OPERAND_ADDRESS ? operand->first : NULL;
	struct ptx_operand *vector = base ? base->next : NULL;
	uint32_t count = 0;
	if (!vector || vector->next || vector->kind != PTX_OPERAND_VECTOR || operand->value)
		decode_invalid(decoder, "expected a tensor map and its coordinates");
	if (base->kind != PTX_OPERAND_REGISTER)
		decode_unsupported(decoder, "a tensor map by its name");
	for (struct ptx_operand *each = vector->first; each; each = each->next, count++)
		if (count < rank)
			coordinates[count] = decode_source(decoder, each, 'w');
	if (count != rank)
		decode_invalid(decoder, "expected as many coordinates as dimensions");
	return decode_source(decoder, base, 'l');
}

static void emit(struct decoder *decoder, enum tensor_copy kind, uint32_t rank, const struct value *operands,
		 const struct value *coordinates)
{
	uint8_t op = kind == TENSOR_REDUCE ? (uint8_t)atomic_op_of(decoder) : 0;
	struct draft *draft = decode_emit(decoder, op_tensor);
	for (int n = 0; n < 4; n++) {
		draft->insn.r[n] = -1;
		if (operands[n].role != ROLE_NONE)
			decode_use(draft, n, operands[n]);
	}
	draft->insn.count = (uint8_t)kind;
	draft->insn.slot = op;
	draft->insn.size = (uint8_t)rank;
	draft = decode_emit(decoder, op_nop);
	for (uint32_t n = 0; n < rank; n++)
		decode_use(draft, (int)n, coordinates[n]);
}

void decode_tensor(struct decoder *decoder)
{
	struct words words = read_words(decoder);
	struct value coordinates[TENSOR_RANK_MAX], operands[4] = { { ROLE_NONE, 0 } };
	bool hint = decode_has(decoder, ".L2::cache_hint"), multicast = decode_has(decoder, ".multicast::cluster");
	if (decode_has(decoder, ".prefetch")) {
		decode_operand_count(decoder, 1u + hint, 1u + hint);
		map_of(decoder, decode_operand(decoder, 0), words.rank, coordinates);
		decode_emit(decoder, op_nop);
		return;
	}
	bool load = words.target == ACCESS_SHARED, reduce = decode_has(decoder, ".reduce");
	if (load != decode_has(decoder, COMPLETE_TX) || load == decode_has(decoder, ".bulk_group") ||
	    (load && reduce) || (!load && multicast))
		decode_invalid(decoder, "this completion mechanism does not fit the direction");
	uint32_t count = (load ? 3u : 2u) + multicast + hint;
	decode_operand_count(decoder, count, count);
	operands[0] = map_of(decoder, decode_operand(decoder, load ? 1 : 0), words.rank, coordinates);
	operands[1] = decode_whole_address(decoder, load ? 0 : 1, ACCESS_SHARED);
	if (load)
		operands[2] = decode_whole_address(decoder, 2, ACCESS_SHARED);
	if (multicast)
		operands[3] = decode_source(decoder, decode_operand(decoder, 3), 'h');
	emit(decoder, reduce ? TENSOR_REDUCE : load ? TENSOR_LOAD : TENSOR_STORE, words.rank, operands, coordinates);
}
