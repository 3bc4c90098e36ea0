/* SPDX-License-Identifier: BSD-3-Clause */
/* Special registers, moves, conversions, address conversions and carries: an instruction may become several lane
 * operations. */
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/special.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 192

/* ---- special registers */
static const struct {
	const char *name;
	uint8_t x, y, z, size; /* y 0: no components */
} specials[] = {
	{ "%tid", SPECIAL_TID_X, SPECIAL_TID_Y, SPECIAL_TID_Z, 4 },
	{ "%ntid", SPECIAL_NTID_X, SPECIAL_NTID_Y, SPECIAL_NTID_Z, 4 },
	{ "%ctaid", SPECIAL_CTAID_X, SPECIAL_CTAID_Y, SPECIAL_CTAID_Z, 4 },
	{ "%nctaid", SPECIAL_NCTAID_X, SPECIAL_NCTAID_Y, SPECIAL_NCTAID_Z, 4 },
	{ "%clusterid", SPECIAL_CLUSTERID_X, SPECIAL_CLUSTERID_Y, SPECIAL_CLUSTERID_Z, 4 },
	{ "%nclusterid", SPECIAL_NCLUSTERID_X, SPECIAL_NCLUSTERID_Y, SPECIAL_NCLUSTERID_Z, 4 },
	{ "%cluster_ctaid", SPECIAL_CLUSTER_CTAID_X, SPECIAL_CLUSTER_CTAID_Y, SPECIAL_CLUSTER_CTAID_Z, 4 },
	{ "%cluster_nctaid", SPECIAL_CLUSTER_NCTAID_X, SPECIAL_CLUSTER_NCTAID_Y, SPECIAL_CLUSTER_NCTAID_Z, 4 },
	{ "%cluster_ctarank", SPECIAL_CLUSTER_CTARANK, 0, 0, 4 },
	{ "%cluster_nctarank", SPECIAL_CLUSTER_NCTARANK, 0, 0, 4 },
	{ "%laneid", SPECIAL_LANEID, 0, 0, 4 },
	{ "%warpid", SPECIAL_WARPID, 0, 0, 4 },
	{ "%nwarpid", SPECIAL_NWARPID, 0, 0, 4 },
	{ "%smid", SPECIAL_SMID, 0, 0, 4 },
	{ "%nsmid", SPECIAL_NSMID, 0, 0, 4 },
	{ "%gridid", SPECIAL_GRIDID, 0, 0, 8 },
	{ "%lanemask_eq", SPECIAL_LANEMASK_EQ, 0, 0, 4 },
	{ "%lanemask_le", SPECIAL_LANEMASK_LE, 0, 0, 4 },
	{ "%lanemask_lt", SPECIAL_LANEMASK_LT, 0, 0, 4 },
	{ "%lanemask_ge", SPECIAL_LANEMASK_GE, 0, 0, 4 },
	{ "%lanemask_gt", SPECIAL_LANEMASK_GT, 0, 0, 4 },
	{ "%clock", SPECIAL_CLOCK, 0, 0, 4 },
	{ "%clock_hi", SPECIAL_CLOCK_HI, 0, 0, 4 },
	{ "%clock64", SPECIAL_CLOCK, 0, 0, 8 },
	{ "%globaltimer", SPECIAL_GLOBALTIMER, 0, 0, 8 },
	{ "%globaltimer_lo", SPECIAL_GLOBALTIMER_LO, 0, 0, 4 },
	{ "%globaltimer_hi", SPECIAL_GLOBALTIMER_HI, 0, 0, 4 },
	{ "%pm0", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm1", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm2", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm3", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm4", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm5", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm6", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm7", SPECIAL_ZERO, 0, 0, 4 },
	{ "%pm0_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm1_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm2_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm3_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm4_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm5_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm6_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%pm7_64", SPECIAL_ZERO, 0, 0, 8 },
	{ "%current_graph_exec", SPECIAL_ZERO, 0, 0, 8 },
	{ "%envreg1", SPECIAL_ENVREG1, 0, 0, 4 },
	{ "%envreg2", SPECIAL_ENVREG2, 0, 0, 4 },
	{ "%dynamic_smem_size", SPECIAL_DYNAMIC_SHARED, 0, 0, 4 },
	{ "%total_smem_size", SPECIAL_TOTAL_SHARED, 0, 0, 4 },
	{ "%aggr_smem_size", SPECIAL_TOTAL_SHARED, 0, 0, 4 },
};

/* %envreg0 and %envreg3 … %envreg31: the driver sets these; here they are 0. */
static bool is_other_envreg(struct ptx_text name)
{
	static const char prefix[] = "%envreg";
	size_t length = sizeof prefix - 1;
	if (name.length <= length || name.length > length + 2 || memcmp(name.at, prefix, length))
		return false;
	uint32_t number = 0;
	for (const char *at = name.at + length; at < name.at + name.length; at++) {
		if (*at < '0' || *at > '9')
			return false;
		number = number * 10 + (uint32_t)(*at - '0');
	}
	bool leading_zero = name.length == length + 2 && name.at[length] == '0';
	return number != 1 && number != 2 && number < 32 && !leading_zero;
}

bool decode_is_special(struct ptx_text name, char component, uint32_t *id, uint32_t *size)
{
	if (!component && is_other_envreg(name)) {
		*id = SPECIAL_ZERO;
		*size = 4;
		return true;
	}
	for (size_t i = 0; i < sizeof specials / sizeof *specials; i++) {
		if (!ptx_text_is(name, specials[i].name))
			continue;
		*size = specials[i].size;
		*id = component == 'y' ? specials[i].y : component == 'z' ? specials[i].z : specials[i].x;
		if (component == 'w')
			*id = SPECIAL_ZERO;
		return component ? specials[i].y != 0 : specials[i].y == 0;
	}
	return false;
}

struct value decode_special(struct decoder *decoder, uint32_t id, uint32_t size)
{
	if (size == 4 && id <= SPECIAL_LAST_OF_LAUNCH)
		return decode_launch_row(decoder, &(struct launch_row){ .special = (uint16_t)id, .width = 4 });
	uint32_t number = decode_temporary(decoder, size);
	decoder->program->reads_smid |= id == SPECIAL_SMID;
	struct draft *draft = decode_emit(decoder, op_special);
	decode_define(draft, 0, number);
	draft->insn.count = (uint8_t)id;
	draft->insn.size = (uint8_t)size;
	return (struct value){ ROLE_USE, (int32_t)number };
}

/* ---- mov */
static uint32_t element_count(const struct ptx_operand *vector)
{
	uint32_t count = 0;
	for (const struct ptx_operand *each = vector->first; each; each = each->next)
		count++;
	return count;
}

/* The tables' operations that pack the count elements of { } into size bytes, and that take one element out. */
static const char *pack_name(uint32_t count, uint32_t size)
{
	if (count == 2 && size == 8)
		return "@pack.2x32";
	if (count == 2 && size == 4)
		return "@pack.2x16";
	if (count == 4 && size == 8)
		return "@pack.4x16";
	if (count == 2 && size == 2)
		return "@pack.2x8";
	return count == 4 && size == 4 ? "@pack.4x8" : NULL;
}

static const char *part_name(uint32_t count, uint32_t size)
{
	if (count == 2 && size == 8)
		return "@part.32of64";
	if (count == 2 && size == 4)
		return "@part.16of32";
	if (count == 4 && size == 8)
		return "@part.16of64";
	if (count == 2 && size == 2)
		return "@part.8of16";
	return count == 4 && size == 4 ? "@part.8of32" : NULL;
}

static void decode_pack(struct decoder *decoder, uint32_t size)
{
	struct ptx_operand *vector = decode_operand(decoder, 1);
	uint32_t count = element_count(vector);
	const char *name = pack_name(count, size);
	struct value values[4];
	if (!name)
		decode_invalid(decoder, "a vector that does not fill the type");
	char letter = decode_letter(size / count < 2 ? 2 : size / count);
	struct ptx_operand *each = vector->first;
	for (uint32_t n = 0; n < count; n++, each = each->next)
		values[n] = decode_source(decoder, each, letter);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), decode_letter(size));
	struct draft *draft = decode_emit_op(decoder, name);
	decode_define(draft, 0, result);
	for (uint32_t n = 0; n < count; n++)
		decode_use(draft, (int)n + 1, values[n]);
}

static void decode_unpack(struct decoder *decoder, uint32_t size)
{
	struct ptx_operand *vector = decode_operand(decoder, 0);
	uint32_t count = element_count(vector);
	const char *name = part_name(count, size);
	if (!name)
		decode_invalid(decoder, "a vector that does not fill the type");
	struct value source = decode_source(decoder, decode_operand(decoder, 1), decode_letter(size));
	/* The source may be one of the elements, so it is copied before the first element is written. */
	uint32_t kept = decode_temporary(decoder, size);
	struct draft *draft = decode_emit_op(decoder, size == 8 ? "mov.b64" : size == 4 ? "mov.b32" : "mov.b16");
	decode_define(draft, 0, kept);
	decode_use(draft, 1, source);
	source = (struct value){ ROLE_USE, (int32_t)kept };
	char letter = decode_letter(size / count < 2 ? 2 : size / count);
	struct ptx_operand *each = vector->first;
	for (uint32_t n = 0; n < count; n++, each = each->next) {
		if (each->kind == PTX_OPERAND_SINK)
			continue;
		uint32_t result = decode_result(decoder, each, letter);
		draft = decode_emit_op(decoder, name);
		decode_define(draft, 0, result);
		decode_use(draft, 1, source);
		draft->insn.imm = n * (size / count) * 8;
	}
}

/* The two halves of { } or of a register of 128 bits. */
static struct ptx_operand *halves_of(struct decoder *decoder, struct ptx_operand *operand)
{
	if (operand->kind != PTX_OPERAND_VECTOR)
		return decode_halves(decoder, operand);
	if (element_count(operand) != 2)
		decode_invalid(decoder, "a vector that does not fill the type");
	return operand->first;
}

static void decode_wide_mov(struct decoder *decoder)
{
	struct ptx_operand *to = halves_of(decoder, decode_operand(decoder, 0));
	struct ptx_operand *from = halves_of(decoder, decode_operand(decoder, 1));
	struct value values[2] = { decode_source(decoder, from, 'l'), decode_source(decoder, from->next, 'l') };
	for (int n = 0; n < 2; n++, to = to->next) {
		if (to->kind == PTX_OPERAND_SINK)
			continue;
		uint32_t result = decode_result(decoder, to, 'l');
		struct draft *draft = decode_emit_op(decoder, "mov.b64");
		decode_define(draft, 0, result);
		decode_use(draft, 1, values[n]);
	}
}

void decode_mov(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	decode_operand_count(decoder, 2, 2);
	enum ptx_type type = statement->modifiers == 1 ? ptx_type_of(statement->modifier[0]) : PTX_NO_TYPE;
	if (type == PTX_NO_TYPE)
		decode_invalid(decoder, "expected one type");
	uint32_t size = ptx_type_size(type);
	if (type == PTX_B128)
		decode_wide_mov(decoder);
	else if (decode_operand(decoder, 1)->kind == PTX_OPERAND_VECTOR)
		decode_pack(decoder, size);
	else if (decode_operand(decoder, 0)->kind == PTX_OPERAND_VECTOR)
		decode_unpack(decoder, size);
	else if (!decode_by_table(decoder, statement->mnemonic))
		decode_unsupported(decoder, "no such move");
}

/* ---- cvt */
static struct value narrowed(struct decoder *decoder, struct ptx_operand *operand, char letter)
{
	if (operand->kind != PTX_OPERAND_REGISTER)
		return decode_source(decoder, operand, letter);
	uint32_t have = decode_register_size(decoder, operand->number), want = letter == 'h' || letter == 'e' ? 2 : 4;
	if (letter == 'l' || letter == 'd' || letter == 'f' || have <= want || have == 0)
		return decode_source(decoder, operand, letter);
	uint32_t number = decode_temporary(decoder, want);
	struct draft *draft = decode_emit_op(decoder, want == 4	  ? "@part.32of64"
						      : have == 8 ? "@part.16of64"
								  : "@part.16of32");
	decode_define(draft, 0, number);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)operand->number });
	return (struct value){ ROLE_USE, (int32_t)number };
}

/* cvt's registers may be wider than its types: only the low part counts, and results are extended. */
void decode_cvt(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	const struct op_form *form = op_find(statement->mnemonic);
	struct value sources[OPERANDS] = { 0 };
	char extend[KEY_MAX];
	if (!form)
		decode_unsupported(decoder, "no such conversion");
	uint32_t count = (uint32_t)strlen(form->operands);
	decode_operand_count(decoder, count, count);
	for (uint32_t n = 1; n < count; n++)
		sources[n] = narrowed(decoder, decode_operand(decoder, n), form->operands[n]);
	struct ptx_operand *target = decode_operand(decoder, 0);
	uint32_t natural = form->operands[0] == 'h' ? 2 : form->operands[0] == 'w' ? 4 : 8;
	enum ptx_type type =
		statement->modifiers >= 2 ? ptx_type_of(statement->modifier[statement->modifiers - 2]) : PTX_NO_TYPE;
	bool wider = target->kind == PTX_OPERAND_REGISTER && !ptx_type_float(type) &&
		     decode_register_size(decoder, target->number) > natural;
	uint32_t result =
		wider ? decode_temporary(decoder, natural) : decode_result(decoder, target, form->operands[0]);
	struct draft *draft = decode_emit_op(decoder, statement->mnemonic);
	decode_define(draft, 0, result);
	for (uint32_t n = 1; n < count; n++)
		decode_use(draft, (int)n, sources[n]);
	if (!wider)
		return;
	struct ptx_text word = statement->modifier[statement->modifiers - 2];
	snprintf(extend, sizeof extend, "cvt.%c%u%.*s", ptx_type_signed(type) ? 's' : 'u',
		 decode_register_size(decoder, target->number) * 8, (int)word.length, word.at);
	draft = decode_emit_op(decoder, extend);
	decode_define(draft, 0, target->number);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)result });
}

/* ---- addresses */
static uint64_t window_of(struct decoder *decoder)
{
	if (decode_has(decoder, ".shared") || decode_has(decoder, ".shared::cta") ||
	    decode_has(decoder, ".shared::cluster"))
		return WINDOW_SHARED;
	if (decode_has(decoder, ".local"))
		return WINDOW_LOCAL;
	if (decode_has(decoder, ".global") || decode_has(decoder, ".const") || decode_has(decoder, ".param") ||
	    decode_has(decoder, ".param::entry"))
		return 0; /* generic addresses of these are the addresses themselves */
	decode_unsupported(decoder, "this state space");
}

void decode_cvta(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 2);
	if (!decode_has(decoder, ".u64"))
		decode_unsupported(decoder, "addresses of 32 bits");
	uint64_t base = WINDOW_BASE(window_of(decoder));
	struct value source = decode_source(decoder, decode_operand(decoder, 1), 'l');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'l');
	struct value distance = decode_constant(decoder, base, 8);
	struct draft *draft = decode_emit_op(decoder, base == 0			   ? "mov.b64"
						      : decode_has(decoder, ".to") ? "sub.u64"
										   : "add.u64");
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	if (base)
		decode_use(draft, 2, distance);
}

void decode_isspacep(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 2);
	uint64_t window = window_of(decoder);
	if (decode_has(decoder, ".param") || decode_has(decoder, ".param::entry"))
		window = WINDOW_PARAM;
	struct value source = decode_source(decoder, decode_operand(decoder, 1), 'l');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'p');
	struct draft *draft = decode_emit(decoder, op_isspacep);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	draft->insn.count = (uint8_t)window;
	draft->insn.size = decode_has(decoder, ".const") || decode_has(decoder, ".shared") || decode_has(decoder, ".shared::cta");
}

/* ---- extended precision: add.cc, addc{.cc}, sub.cc, subc{.cc}, mad{.lo,.hi}.cc, madc{.lo,.hi}{.cc} */
void decode_carry(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	bool is_mad = !strncmp(statement->opcode, "mad", 3), is_sub = !strncmp(statement->opcode, "sub", 3);
	bool takes = statement->opcode[3] == 'c', wide = decode_has(decoder, ".u64") || decode_has(decoder, ".s64");
	bool narrow = decode_has(decoder, ".u32") || decode_has(decoder, ".s32");
	char letter = wide ? 'l' : 'w';
	uint32_t sources = is_mad ? 3 : 2;
	struct value values[4];
	if (wide == narrow || (strncmp(statement->opcode, "add", 3) && !is_sub && !is_mad))
		decode_unsupported(decoder, "no such carry operation");
	if (is_mad && decode_has(decoder, ".lo") == decode_has(decoder, ".hi"))
		decode_invalid(decoder, "expected .lo or .hi");
	decode_operand_count(decoder, sources + 1, sources + 1);
	for (uint32_t n = 1; n <= sources; n++)
		values[n] = decode_source(decoder, decode_operand(decoder, n), letter);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), letter);
	if (decoder->function->carry_register == 0)
		decoder->function->carry_register = decode_temporary(decoder, 0) + 1;
	struct value carry = { ROLE_USE, (int32_t)decoder->function->carry_register - 1 };
	struct draft *draft = decode_emit(decoder, is_mad ? op_mad_cc : op_add_cc);
	decode_define(draft, 0, result);
	for (uint32_t n = 1; n <= sources; n++)
		decode_use(draft, (int)n, values[n]);
	decode_use(draft, 4, carry);
	if (decode_has(decoder, ".cc"))
		decode_define(draft, 5, decoder->function->carry_register - 1);
	else
		draft->insn.r[5] = -1;
	draft->insn.size = wide ? 8 : 4;
	draft->insn.imm = (takes ? 1u : 0) | (is_sub ? 2u : 0) | (decode_has(decoder, ".hi") ? 4u : 0) |
			  (ptx_type_signed(ptx_type_of(statement->modifier[statement->modifiers - 1])) ? 8u : 0);
}
