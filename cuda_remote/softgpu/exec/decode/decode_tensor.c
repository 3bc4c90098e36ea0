/* SPDX-License-Identifier: BSD-3-Clause */
/* cp.async.bulk.tensor, cp.reduce.async.bulk.tensor and the prefetch, of tiles; tensormap.replace and .cp_fenceproxy. */
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

/* ---- tensormap */

static void check_map_words(struct decoder *decoder, const char *const *known)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		const char *const *word = known;
		while (*word && !ptx_text_is(decoder->statement->modifier[i], *word))
			word++;
		if (!*word)
			decode_unsupported(decoder, "this change of a tensor map");
	}
}

static uint32_t map_number(struct decoder *decoder, uint32_t n, uint32_t least, uint32_t most)
{
	const struct ptx_operand *operand = decode_operand(decoder, n);
	if (operand->kind != PTX_OPERAND_INTEGER || (uint64_t)operand->value < least || (uint64_t)operand->value > most)
		decode_invalid(decoder, "expected another number");
	return (uint32_t)operand->value;
}

static void emit_map_change(struct decoder *decoder, enum tensor_map_change change, enum access_space space,
			    const struct value *operands, uint32_t which)
{
	struct draft *draft = decode_emit(decoder, op_tensormap);
	decode_use(draft, 0, operands[0]);
	decode_use(draft, 1, operands[1]);
	draft->insn.count = (uint8_t)change;
	draft->insn.slot = (uint8_t)space;
	draft->insn.size = (uint8_t)which;
}

/* [map in global memory], [map in shared memory], 128. A map is read at each copy that uses it, so the fence is left out. */
static void decode_map_copy(struct decoder *decoder)
{
	static const char *const words[] = { ".cp_fenceproxy", ".global", ".shared::cta", ".tensormap::generic", ".release",
					     ".cta", ".cluster", ".gpu", ".sys", ".sync", ".aligned", NULL };
	check_map_words(decoder, words);
	if (!decode_has(decoder, ".global") || !decode_has(decoder, ".shared::cta"))
		decode_invalid(decoder, "expected a copy from shared to global memory");
	decode_operand_count(decoder, 3, 3);
	map_number(decoder, 2, sizeof(CUtensorMap), sizeof(CUtensorMap));
	const struct value operands[] = { decode_whole_address(decoder, 0, ACCESS_GLOBAL),
					  decode_whole_address(decoder, 1, ACCESS_SHARED) };
	emit_map_change(decoder, TENSOR_MAP_COPY, ACCESS_GLOBAL, operands, 0);
}

/* [map]{, dimension or stride}, new value */
void decode_tensormap(struct decoder *decoder)
{
	static const char *const words[] = { ".replace", ".tile", ".global_address", ".global_dim", ".global_stride",
					     ".global", ".shared::cta", ".b1024", ".b32", ".b64", NULL };
	if (decode_has(decoder, ".cp_fenceproxy")) {
		decode_map_copy(decoder);
		return;
	}
	check_map_words(decoder, words);
	enum tensor_map_change change = decode_has(decoder, ".global_address") ? TENSOR_MAP_ADDRESS :
					decode_has(decoder, ".global_dim")     ? TENSOR_MAP_DIMENSION :
										 TENSOR_MAP_STRIDE;
	bool narrow = change == TENSOR_MAP_DIMENSION, one = change == TENSOR_MAP_ADDRESS;
	if (!decode_has(decoder, ".replace") || !decode_has(decoder, ".tile") || !decode_has(decoder, ".b1024") ||
	    !decode_has(decoder, narrow ? ".b32" : ".b64") || decode_has(decoder, narrow ? ".b64" : ".b32") ||
	    one + narrow + decode_has(decoder, ".global_stride") != 1)
		decode_invalid(decoder, "expected one field of a tensor map and its type");
	if (decode_has(decoder, ".global") && decode_has(decoder, ".shared::cta"))
		decode_invalid(decoder, "expected one state space");
	enum access_space space = decode_has(decoder, ".global")      ? ACCESS_GLOBAL :
				  decode_has(decoder, ".shared::cta") ? ACCESS_SHARED :
									ACCESS_GENERIC;
	decode_operand_count(decoder, one ? 2 : 3, one ? 2 : 3);
	uint32_t which = one ? 0 : map_number(decoder, 1, 0, TENSOR_RANK_MAX - (narrow ? 1 : 2));
	const struct value operands[] = { decode_whole_address(decoder, 0, space),
					  decode_source(decoder, decode_operand(decoder, one ? 1 : 2), narrow ? 'w' : 'l') };
	emit_map_change(decoder, change, space, operands, which);
}
