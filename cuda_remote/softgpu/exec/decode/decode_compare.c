/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparisons (set, setp), lop3 with its predicate, and the minimum and maximum of three. */
#include "cuda_remote/softgpu/exec/decode/decode.h"

#include <stdio.h>
#include <string.h>

#define KEY_MAX 192

static int boolean_of(struct ptx_text word)
{
	return ptx_text_is(word, ".and") ? 1 : ptx_text_is(word, ".or") ? 2 : ptx_text_is(word, ".xor") ? 3 : 0;
}

/* A comparison of set or setp. */
struct comparison {
	char key[KEY_MAX]; /* the tables' mnemonic: "setp" and the modifiers that read_comparison keeps */
	int boolean;       /* 1 .and, 2 .or, 3 .xor; 0: no third source */
	bool halves;       /* of two 16-bit floats in a register; the key is for one */
};

/* The key leaves out .and .or .xor and, for set, the result's type. */
static struct comparison read_comparison(struct decoder *decoder, bool is_set)
{
	const struct ptx_statement *statement = decoder->statement;
	struct comparison c = { .halves = decode_has(decoder, ".f16x2") || decode_has(decoder, ".bf16x2") };
	int used = snprintf(c.key, KEY_MAX, "setp");
	for (uint32_t i = 0; i < statement->modifiers; i++) {
		struct ptx_text word = statement->modifier[i];
		bool last = i + 1 == statement->modifiers;
		if (boolean_of(word))
			c.boolean = boolean_of(word);
		else if (!is_set || i + 2 != statement->modifiers)
			used += snprintf(c.key + used, (size_t)(KEY_MAX - used), "%.*s",
					 (int)(word.length - (last && c.halves ? 2 : 0)), word.at);
	}
	decode_operand_count(decoder, c.boolean ? 4 : 3, c.boolean ? 4 : 3);
	return c;
}

static struct value half_of_pair(struct decoder *decoder, struct value pair, uint32_t half)
{
	uint32_t number = decode_temporary(decoder, 2);
	struct draft *draft = decode_emit_op(decoder, "@part.16of32");
	decode_define(draft, 0, number);
	decode_use(draft, 1, pair);
	draft->insn.imm = half * 16;
	return (struct value){ ROLE_USE, (int32_t)number };
}

/* Emits the comparison into a predicate. half: which halves of the sources it compares, if c->halves. */
static uint32_t emit_comparison(struct decoder *decoder, const struct comparison *c, uint32_t half, uint32_t result)
{
	const struct op_form *form = op_find(c->key);
	if (!form)
		decode_unsupported(decoder, "no such comparison");
	struct value a = decode_source(decoder, decode_operand(decoder, 1), c->halves ? 'w' : form->operands[1]);
	struct value b = decode_source(decoder, decode_operand(decoder, 2), c->halves ? 'w' : form->operands[2]);
	if (c->halves) {
		a = half_of_pair(decoder, a, half);
		b = half_of_pair(decoder, b, half);
	}
	struct draft *draft = decode_emit_op(decoder, c->key);
	decode_define(draft, 0, result);
	decode_use(draft, 1, a);
	decode_use(draft, 2, b);
	return result;
}

/* p = truth op c, q = !truth op c; q may be missing. */
static void emit_combine(struct decoder *decoder, int boolean, uint32_t truth, struct ptx_operand *p,
			 struct ptx_operand *q, struct ptx_operand *c)
{
	struct value other = { 0 };
	if (boolean && (c->kind != PTX_OPERAND_REGISTER || decode_register_size(decoder, c->number)))
		decode_invalid(decoder, "the third source is not a predicate");
	if (boolean)
		other = (struct value){ ROLE_USE, (int32_t)c->number };
	uint32_t first = decode_result(decoder, p, 'p');
	uint32_t second = q ? decode_result(decoder, q, 'p') : 0;
	struct draft *draft = decode_emit(decoder, op_setp_combine);
	decode_define(draft, 0, first);
	if (q)
		decode_define(draft, 1, second);
	else
		draft->insn.r[1] = -1;
	decode_use(draft, 2, (struct value){ ROLE_USE, (int32_t)truth });
	if (boolean)
		decode_use(draft, 3, other);
	draft->insn.count = (uint8_t)boolean;
	draft->insn.flags = boolean && c->negated ? INSN_NEGATE : 0;
}

/* setp of two halves has a result for each. Both are computed before one is written, because it may be a source of the
 * other. */
static void decode_setp_halves(struct decoder *decoder, const struct comparison *c)
{
	struct ptx_operand *target = decode_operand(decoder, 0),
			   *other = c->boolean ? decode_operand(decoder, 3) : NULL;
	if (target->kind != PTX_OPERAND_PAIR)
		decode_invalid(decoder, "expected two results");
	uint32_t truths[2], combined[2];
	for (uint32_t half = 0; half < 2; half++) {
		truths[half] = emit_comparison(decoder, c, half, decode_temporary(decoder, 0));
		struct ptx_operand result = { .kind = PTX_OPERAND_REGISTER, .number = decode_temporary(decoder, 0) };
		combined[half] = result.number;
		emit_combine(decoder, c->boolean, truths[half], &result, NULL, other);
	}
	struct ptx_operand *each = target->first;
	for (uint32_t half = 0; half < 2; half++, each = each->next) {
		uint32_t result = decode_result(decoder, each, 'p');
		struct draft *draft = decode_emit_op(decoder, "mov.pred");
		decode_define(draft, 0, result);
		decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)combined[half] });
	}
}

void decode_setp(struct decoder *decoder)
{
	struct comparison c = read_comparison(decoder, false);
	struct ptx_operand *target = decode_operand(decoder, 0);
	if (c.halves) {
		decode_setp_halves(decoder, &c);
		return;
	}
	if (!c.boolean && target->kind != PTX_OPERAND_PAIR) {
		emit_comparison(decoder, &c, 0, decode_result(decoder, target, 'p'));
		return;
	}
	uint32_t truth = emit_comparison(decoder, &c, 0, decode_temporary(decoder, 0));
	bool pair = target->kind == PTX_OPERAND_PAIR;
	emit_combine(decoder, c.boolean, truth, pair ? target->first : target, pair ? target->first->next : NULL,
		     c.boolean ? decode_operand(decoder, 3) : NULL);
}

/* The value that set writes for true, and the result's size in bytes; gives up if set has no such type of result. */
static uint64_t true_value(struct decoder *decoder, enum ptx_type type, uint32_t *size)
{
	*size = ptx_type_size(type);
	switch (type) {
	case PTX_U32: case PTX_S32: return UINT32_MAX;
	case PTX_U16: case PTX_S16: return UINT16_MAX;
	case PTX_F32: return 0x3f800000;
	case PTX_F16: case PTX_F16X2: return 0x3c00;
	case PTX_BF16: case PTX_BF16X2: return 0x3f80;
	default: decode_unsupported(decoder, "this type of result");
	}
}

/* The comparison's value, combined with the third source, as yes or 0 in a new register. */
static uint32_t emit_set(struct decoder *decoder, const struct comparison *c, uint32_t half, uint64_t yes,
			 uint32_t size)
{
	uint32_t truth = emit_comparison(decoder, c, half, decode_temporary(decoder, 0));
	if (c->boolean) {
		struct ptx_operand combined = { .kind = PTX_OPERAND_REGISTER, .number = decode_temporary(decoder, 0) };
		emit_combine(decoder, c->boolean, truth, &combined, NULL, decode_operand(decoder, 3));
		truth = combined.number;
	}
	struct value ones = decode_constant(decoder, yes, size), zero = decode_constant(decoder, 0, size);
	uint32_t number = decode_temporary(decoder, size);
	struct draft *draft = decode_emit_op(decoder, size == 4 ? "selp.b32" : "selp.b16");
	decode_define(draft, 0, number);
	decode_use(draft, 1, ones);
	decode_use(draft, 2, zero);
	decode_use(draft, 3, (struct value){ ROLE_USE, (int32_t)truth });
	return number;
}

void decode_set(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	struct comparison c = read_comparison(decoder, true);
	enum ptx_type type =
		statement->modifiers >= 3 ? ptx_type_of(statement->modifier[statement->modifiers - 2]) : PTX_NO_TYPE;
	uint32_t size, parts[2];
	uint64_t yes = true_value(decoder, type, &size);
	if (c.halves && size != 4)
		decode_unsupported(decoder, "this type of result");
	uint32_t part_size = c.halves ? 2 : size;
	for (uint32_t half = 0; half < (c.halves ? 2 : 1); half++)
		parts[half] = emit_set(decoder, &c, half, yes & (part_size == 2 ? UINT16_MAX : UINT32_MAX), part_size);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), decode_letter(size));
	struct draft *draft = decode_emit_op(decoder, c.halves ? "@pack.2x16" : size == 4 ? "mov.b32" : "mov.b16");
	decode_define(draft, 0, result);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)parts[0] });
	if (c.halves)
		decode_use(draft, 2, (struct value){ ROLE_USE, (int32_t)parts[1] });
}

/* lop3.and.b32 d|p, a, b, c, table, q: p = (d != 0) op q */
static void decode_lop3_predicate(struct decoder *decoder)
{
	struct ptx_operand *target = decode_operand(decoder, 0), *table = decode_operand(decoder, 4);
	struct value sources[3];
	decode_operand_count(decoder, 6, 6);
	if (decoder->statement->modifiers != 2 || !boolean_of(decoder->statement->modifier[0]) ||
	    !decode_has(decoder, ".b32") || target->kind != PTX_OPERAND_PAIR || table->kind != PTX_OPERAND_INTEGER)
		decode_invalid(decoder, "expected .and or .or, d|p and a table");
	for (uint32_t n = 0; n < 3; n++)
		sources[n] = decode_source(decoder, decode_operand(decoder, n + 1), 'w');
	uint32_t value = decode_temporary(decoder, 4), truth = decode_temporary(decoder, 0);
	struct draft *draft = decode_emit_op(decoder, "lop3.b32");
	decode_define(draft, 0, value);
	for (int n = 0; n < 3; n++)
		decode_use(draft, n + 1, sources[n]);
	draft->insn.imm = table->value;
	struct value zero = decode_constant(decoder, 0, 4);
	draft = decode_emit_op(decoder, "setp.ne.b32");
	decode_define(draft, 0, truth);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)value });
	decode_use(draft, 2, zero);
	uint32_t result = decode_result(decoder, target->first, 'w');
	draft = decode_emit_op(decoder, "mov.b32");
	decode_define(draft, 0, result);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)value });
	emit_combine(decoder, boolean_of(decoder->statement->modifier[0]), truth, target->first->next, NULL,
		     decode_operand(decoder, 5));
}

void decode_lop3(struct decoder *decoder)
{
	if (decoder->statement->operand_count == 6)
		decode_lop3_predicate(decoder);
	else if (!decode_by_table(decoder, decoder->statement->mnemonic))
		decode_unsupported(decoder, "no such form");
}

/* min and max; in the tables the forms with three sources are @min3 and @max3. */
void decode_extremum(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	char key[KEY_MAX];
	snprintf(key, sizeof key, "@%s3%s", statement->opcode, statement->mnemonic + strlen(statement->opcode));
	if (!decode_by_table(decoder, statement->operand_count == 4 ? key : statement->mnemonic))
		decode_unsupported(decoder, "no such form");
}
