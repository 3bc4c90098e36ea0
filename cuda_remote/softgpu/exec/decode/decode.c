/* SPDX-License-Identifier: BSD-3-Clause */
/* The decoder: PTX statements to instructions, by the tables of operations or by a function for the opcode. */
#include "cuda_remote/softgpu/exec/decode/decode.h"

#include "cuda_remote/softgpu/exec/special.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *opcode;
	void (*decode)(struct decoder *);
	bool whole_path; /* not to run under op_guard: branch around it instead */
} by_opcode[] = {
	{ "mov", decode_mov, false },
	{ "cvt", decode_cvt, false },
	{ "cvta", decode_cvta, false },
	{ "setp", decode_setp, false },
	{ "set", decode_set, false },
	{ "min", decode_extremum, false },
	{ "max", decode_extremum, false },
	{ "lop3", decode_lop3, false },
	{ "addc", decode_carry, false },
	{ "subc", decode_carry, false },
	{ "madc", decode_carry, false },
	{ "isspacep", decode_isspacep, false },
	{ "ld", decode_load, false },
	{ "ldu", decode_load, false },
	{ "st", decode_store, false },
	{ "atom", decode_atom, false },
	{ "red", decode_atom, false },
	{ "prefetch", decode_nothing, false },
	{ "prefetchu", decode_nothing, false },
	{ "discard", decode_nothing, false },
	{ "applypriority", decode_nothing, false },
	{ "pmevent", decode_nothing, false },
	{ "bra", decode_branch, true },
	{ "brx", decode_brx, true },
	{ "call", decode_call, true },
	{ "ret", decode_return, true },
	{ "exit", decode_exit, true },
	{ "trap", decode_trap, false },
	{ "brkpt", decode_trap, false },
	{ "bar", decode_barrier, true },
	{ "barrier", decode_barrier, true },
	{ "membar", decode_fence, false },
	{ "fence", decode_fence, false },
	{ "nanosleep", decode_nanosleep, true },
	{ "shfl", decode_shfl, true },
	{ "vote", decode_vote, true },
	{ "match", decode_match, true },
	{ "activemask", decode_activemask, false },
	{ "redux", decode_redux, true },
	{ "tex", decode_tex, false },
	{ "tld4", decode_tld4, false },
	{ "txq", decode_texture_query, false },
	{ "suq", decode_texture_query, false },
	{ "suld", decode_suld, false },
	{ "sust", decode_sust, false },
	{ "sured", decode_sured, false },
	{ "istypep", decode_istypep, false },
	{ "vadd", decode_video, false },
	{ "vsub", decode_video, false },
	{ "vabsdiff", decode_video, false },
	{ "vmin", decode_video, false },
	{ "vmax", decode_video, false },
	{ "vset", decode_video, false },
	{ "vshl", decode_video, false },
	{ "vshr", decode_video, false },
	{ "vmad", decode_video, false },
	{ "vadd2", decode_video, false },
	{ "vadd4", decode_video, false },
	{ "vsub2", decode_video, false },
	{ "vsub4", decode_video, false },
	{ "vavrg2", decode_video, false },
	{ "vavrg4", decode_video, false },
	{ "vabsdiff2", decode_video, false },
	{ "vabsdiff4", decode_video, false },
	{ "vmin2", decode_video, false },
	{ "vmin4", decode_video, false },
	{ "vmax2", decode_video, false },
	{ "vmax4", decode_video, false },
	{ "vset2", decode_video, false },
	{ "vset4", decode_video, false },
	{ "elect", decode_elect, true },
	{ "griddepcontrol", decode_griddepcontrol, false },
	{ "setmaxnreg", decode_setmaxnreg, false },
	{ "createpolicy", decode_createpolicy, false },
	{ "mapa", decode_mapa, false },
	{ "getctarank", decode_getctarank, false },
	{ "cp", decode_cp, false },
	{ "tensormap", decode_tensormap, false },
	{ "mbarrier", decode_mbarrier, true },
	{ "mma", decode_mma, true },
	{ "wmma", decode_wmma, true },
	{ "wgmma", decode_wgmma, true },
	{ "ldmatrix", decode_ldmatrix, true },
	{ "stmatrix", decode_stmatrix, true },
	{ "movmatrix", decode_movmatrix, true },
};

_Noreturn void decode_unsupported(struct decoder *decoder, const char *what)
{
	ptx_unsupported(decoder->context, decoder->statement->line, "%s: %s (in %.*s)", decoder->statement->mnemonic,
			what, (int)decoder->function->name.length, decoder->function->name.at);
}

_Noreturn void decode_invalid(struct decoder *decoder, const char *what)
{
	ptx_invalid(decoder->context, decoder->statement->line, "%s: %s (in %.*s)", decoder->statement->mnemonic, what,
		    (int)decoder->function->name.length, decoder->function->name.at);
}

bool decode_has(const struct decoder *decoder, const char *modifier)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++)
		if (ptx_text_is(decoder->statement->modifier[i], modifier))
			return true;
	return false;
}

struct draft *decode_emit(struct decoder *decoder, insn_handler *handler)
{
	if (decoder->draft_count == decoder->draft_room) {
		uint32_t room = decoder->draft_room ? decoder->draft_room * 2 : 256;
		struct draft *grown = ptx_alloc(decoder->context, room * sizeof *grown);
		if (decoder->draft_count)
			memcpy(grown, decoder->drafts, decoder->draft_count * sizeof *grown);
		decoder->drafts = grown;
		decoder->draft_room = room;
	}
	struct draft *draft = &decoder->drafts[decoder->draft_count++];
	memset(draft, 0, sizeof *draft);
	draft->insn.handler = handler;
	draft->insn.line = decoder->statement ? decoder->statement->line : decoder->function->line;
	return draft;
}

void decode_use(struct draft *draft, int n, struct value value)
{
	draft->role[n] = (uint8_t)value.role;
	draft->insn.r[n] = value.number;
}

void decode_define(struct draft *draft, int n, uint32_t number)
{
	draft->role[n] = ROLE_DEFINE;
	draft->insn.r[n] = (int32_t)number;
}

static uint32_t constant_append(struct decoder *decoder, uint64_t bits, uint32_t size)
{
	if (decoder->constant_count == decoder->constant_room) {
		uint32_t room = decoder->constant_room ? decoder->constant_room * 2 : 32;
		struct constant *grown = ptx_alloc(decoder->context, room * sizeof *grown);
		if (decoder->constant_count)
			memcpy(grown, decoder->constants, decoder->constant_count * sizeof *grown);
		decoder->constants = grown;
		decoder->constant_room = room;
	}
	decoder->constants[decoder->constant_count] = (struct constant){ .bits = bits, .size = size };
	return decoder->constant_count++;
}

struct value decode_constant(struct decoder *decoder, uint64_t bits, uint32_t size)
{
	if (size < 8)
		bits &= (1ull << (size * 8)) - 1;
	uint64_t hash = (bits * 0x9e3779b97f4a7c15ull) >> 40;
	uint32_t *slot = &decoder->constant_slots[(hash + size) % CONSTANT_SLOTS];
	const struct constant *known = *slot ? &decoder->constants[*slot - 1] : NULL;
	if (!known || known->size != size || known->bits != bits)
		*slot = constant_append(decoder, bits, size) + 1;
	return (struct value){ ROLE_CONSTANT, (int32_t)*slot - 1 };
}

struct value decode_launch_row(struct decoder *decoder, const struct launch_row *launch)
{
	for (uint32_t n = 0; n < decoder->constant_count; n++) {
		const struct launch_row *known = &decoder->constants[n].launch;
		if (decoder->constants[n].of_launch && known->special == launch->special &&
		    known->offset == launch->offset && known->bytes == launch->bytes && known->width == launch->width &&
		    known->is_signed == launch->is_signed)
			return (struct value){ ROLE_CONSTANT, (int32_t)n };
	}
	uint32_t number = constant_append(decoder, 0, launch->width);
	decoder->constants[number].of_launch = true;
	decoder->constants[number].launch = *launch;
	return (struct value){ ROLE_CONSTANT, (int32_t)number };
}

uint32_t decode_temporary(struct decoder *decoder, uint32_t size)
{
	enum ptx_type type = size == 8 ? PTX_B64 : size == 4 ? PTX_B32 : size == 2 ? PTX_B16 : PTX_PRED;
	return ptx_new_register(decoder->context, decoder->function, type);
}

struct ptx_operand *decode_operand(struct decoder *decoder, uint32_t n)
{
	struct ptx_operand *operand = decoder->statement->operands;
	while (operand && n > 0) {
		operand = operand->next;
		n--;
	}
	if (!operand)
		decode_invalid(decoder, "too few operands");
	return operand;
}

void decode_operand_count(struct decoder *decoder, uint32_t least, uint32_t most)
{
	if (decoder->statement->operand_count < least)
		decode_invalid(decoder, "too few operands");
	if (decoder->statement->operand_count > most)
		decode_invalid(decoder, "too many operands");
}

uint32_t decode_register_size(struct decoder *decoder, uint32_t number)
{
	enum ptx_type type = (enum ptx_type)decoder->function->register_types[number];
	uint32_t size = ptx_type_size(type);
	return size == 1 ? 2 : size;
}

struct ptx_operand *decode_halves(struct decoder *decoder, const struct ptx_operand *operand)
{
	struct ptx_function *function = decoder->function;
	if (operand->kind != PTX_OPERAND_REGISTER || function->register_types[operand->number] != PTX_B128)
		decode_invalid(decoder, "expected a register of 128 bits");
	if (!decoder->pair_of) /* registers that the decoder adds from now on have at most 64 bits */
		decoder->pair_of = ptx_alloc(decoder->context, function->register_count * sizeof(uint32_t));
	uint32_t *pair = &decoder->pair_of[operand->number];
	if (!*pair) {
		*pair = decode_temporary(decoder, 8) + 1;
		decode_temporary(decoder, 8);
	}
	struct ptx_operand *halves = ptx_alloc(decoder->context, 2 * sizeof *halves);
	halves[0] = (struct ptx_operand){ .kind = PTX_OPERAND_REGISTER, .number = *pair - 1, .next = &halves[1] };
	halves[1] = (struct ptx_operand){ .kind = PTX_OPERAND_REGISTER, .number = *pair };
	return halves;
}

char decode_letter(uint32_t size)
{
	return size == 8 ? 'l' : size == 4 ? 'w' : size == 2 ? 'h' : 'p';
}

static uint32_t size_of_letter(char letter)
{
	switch (letter) {
	case 'p': return 0;
	case 'h': case 'e': return 2;
	case 'w': case 'f': return 4;
	default: return 8;
	}
}

uint32_t decode_result(struct decoder *decoder, struct ptx_operand *operand, char letter)
{
	if (operand->kind == PTX_OPERAND_SINK)
		return decode_temporary(decoder, size_of_letter(letter));
	if (operand->kind != PTX_OPERAND_REGISTER || operand->negated)
		decode_invalid(decoder, "the result is not a register");
	if (decode_register_size(decoder, operand->number) != size_of_letter(letter))
		decode_invalid(decoder, "the result register's size does not fit the type");
	return operand->number;
}

struct ptx_symbol *decode_symbol(struct decoder *decoder, struct ptx_operand *operand)
{
	if (!operand->symbol)
		operand->symbol = ptx_lookup(decoder->statement->scope, operand->name, &operand->number);
	if (!operand->symbol)
		ptx_invalid(decoder->context, decoder->statement->line, "%.*s is not declared",
			    (int)operand->name.length, operand->name.at);
	return operand->symbol->definition ? operand->symbol->definition : operand->symbol;
}

struct value decode_address_of(struct decoder *decoder, const struct ptx_symbol *symbol, uint64_t offset)
{
	bool in_kernel = decoder->function->is_kernel;
	switch (symbol->space) {
	case PTX_GLOBAL:
	case PTX_CONST:
		if (!symbol->address)
			decode_unsupported(decoder, "an external variable that no module defines");
		return decode_constant(decoder, symbol->address + offset, 8);
	case PTX_SHARED:
		if (symbol->unsized && !in_kernel) {
			uint32_t number = decode_temporary(decoder, 8);
			struct draft *draft = decode_emit(decoder, op_special);
			decode_define(draft, 0, number);
			draft->insn.count = 255;
			draft->insn.size = 8;
			draft->insn.imm = offset;
			return (struct value){ ROLE_USE, (int32_t)number };
		}
		return decode_constant(decoder,
				       (symbol->unsized ? decoder->code->shared_bytes : symbol->offset) + offset, 8);
	case PTX_PARAM:
	case PTX_LOCAL:
		if (in_kernel && symbol->position == 1)
			return decode_constant(decoder, WINDOW_BASE(WINDOW_PARAM) + symbol->offset + offset, 8);
		if (in_kernel)
			return decode_constant(decoder, symbol->offset + offset, 8);
		uint32_t number = decode_temporary(decoder, 8);
		struct value frame = { ROLE_USE, (int32_t)decoder->frame_register };
		struct value distance = decode_constant(decoder, symbol->offset + offset, 8);
		struct draft *draft = decode_emit_op(decoder, "add.u64");
		decode_define(draft, 0, number);
		decode_use(draft, 1, frame);
		decode_use(draft, 2, distance);
		return (struct value){ ROLE_USE, (int32_t)number };
	default:
		decode_invalid(decoder, "a register has no address");
	}
}

/*
 * The lower 16 bits of an index or extent, which is what it was before PTX 2.0: "16-bit mov and cvt instructions may be
 * used to read the lower 16-bits" (PTX ISA, "Special Registers").
 */
static struct value decode_half_special(struct decoder *decoder, uint32_t id)
{
	bool index = id <= SPECIAL_TID_Z || (id >= SPECIAL_CTAID_X && id <= SPECIAL_NCTAID_Z);
	if (!index || (strcmp(decoder->statement->opcode, "mov") && strcmp(decoder->statement->opcode, "cvt")))
		decode_invalid(decoder, "the special register's size does not fit the type");
	struct value whole = decode_special(decoder, id, 4);
	uint32_t number = decode_temporary(decoder, 2);
	struct draft *draft = decode_emit_op(decoder, "@part.16of32");
	decode_define(draft, 0, number);
	decode_use(draft, 1, whole);
	return (struct value){ ROLE_USE, (int32_t)number };
}

static struct value decode_name(struct decoder *decoder, struct ptx_operand *operand, char letter)
{
	uint32_t id, size, number = 0;
	if (decoder->reserved_shared && letter == 'w' && ptx_text_is(operand->name, RESERVED_SHARED_NAME))
		return decode_constant(decoder, decoder->reserved_shared - 1, 4);
	if (letter == 'p' && ptx_text_is(operand->name, "%is_explicit_cluster"))
		return decode_explicit_cluster(decoder);
	if (decode_is_special(operand->name, operand->component, &id, &size)) {
		if (letter == 'h')
			return decode_half_special(decoder, id);
		if (size_of_letter(letter) != size && !(size == 8 && size_of_letter(letter) == 4))
			decode_invalid(decoder, "the special register's size does not fit the type");
		if (operand->value)
			decode_invalid(decoder, "nothing can be added to a special register");
		return decode_special(decoder, id, size_of_letter(letter));
	}
	const struct ptx_symbol *symbol = decode_symbol(decoder, operand);
	if (symbol->kind == PTX_SYMBOL_FUNCTION && letter == 'l') {
		struct code *code = symbol->function->code;
		if (!code)
			decode_unsupported(decoder, "the address of an external function");
		if (operand->value)
			decode_invalid(decoder, "nothing can be added to a function's address");
		/* A kernel's address is for launches by the device; no instruction can call it. */
		code->address_taken = !symbol->function->is_kernel;
		return decode_constant(decoder, (uint64_t)(uintptr_t)code, 8);
	}
	if (symbol->kind != PTX_SYMBOL_VARIABLE)
		decode_invalid(decoder, "this name cannot be an operand here");
	struct value value = decode_address_of(decoder, symbol, operand->value);
	if (letter == 'l')
		return value;
	if (letter != 'w' || symbol->space == PTX_GLOBAL || symbol->space == PTX_CONST)
		decode_invalid(decoder, "an address does not fit the type");
	number = decode_temporary(decoder, 4);
	struct draft *draft = decode_emit_op(decoder, "@part.32of64");
	decode_define(draft, 0, number);
	decode_use(draft, 1, value);
	return (struct value){ ROLE_USE, (int32_t)number };
}

static struct value decode_literal(struct decoder *decoder, const struct ptx_operand *operand, char letter)
{
	uint64_t bits = operand->value;
	bool single = letter == 'w' || letter == 'f';
	if (operand->kind == PTX_OPERAND_DOUBLE && single) {
		double wide;
		memcpy(&wide, &bits, sizeof wide);
		float narrow = (float)wide;
		bits = 0;
		memcpy(&bits, &narrow, sizeof narrow);
	} else if (operand->kind == PTX_OPERAND_FLOAT && (letter == 'd' || letter == 'l')) {
		float narrow;
		memcpy(&narrow, &bits, sizeof narrow);
		double wide = (double)narrow;
		memcpy(&bits, &wide, sizeof bits);
	} else if (operand->kind != PTX_OPERAND_INTEGER && (letter == 'h' || letter == 'e')) {
		decode_invalid(decoder, "a float literal does not fit the type");
	} else if (operand->kind == PTX_OPERAND_INTEGER && (letter == 'f' || letter == 'd')) {
		decode_invalid(decoder, "an integer literal where a float is wanted");
	}
	return decode_constant(decoder, bits, size_of_letter(letter));
}

static struct value decode_register(struct decoder *decoder, const struct ptx_operand *operand, char letter)
{
	struct value value = { ROLE_USE, (int32_t)operand->number };
	if (decode_register_size(decoder, operand->number) != size_of_letter(letter))
		decode_invalid(decoder, "a register's size does not fit the type");
	if (!operand->negated)
		return value;
	if (letter != 'p')
		decode_invalid(decoder, "only predicates can be negated");
	uint32_t number = decode_temporary(decoder, 0);
	struct draft *draft = decode_emit_op(decoder, "not.pred");
	decode_define(draft, 0, number);
	decode_use(draft, 1, value);
	return (struct value){ ROLE_USE, (int32_t)number };
}

struct value decode_source(struct decoder *decoder, struct ptx_operand *operand, char letter)
{
	switch (operand->kind) {
	case PTX_OPERAND_REGISTER:
		return decode_register(decoder, operand, letter);
	case PTX_OPERAND_INTEGER:
	case PTX_OPERAND_FLOAT:
	case PTX_OPERAND_DOUBLE:
		/* A predicate's row is one 32-bit mask: the first word of a row of 32-bit constants can be one. */
		if (letter == 'p')
			return decode_constant(decoder, operand->value ? UINT32_MAX : 0, 4);
		return decode_literal(decoder, operand, letter);
	case PTX_OPERAND_NAME:
		if (operand->negated)
			decode_invalid(decoder, "this operand cannot be negated");
		return decode_name(decoder, operand, letter);
	default:
		decode_invalid(decoder, "an operand is not a register or a constant");
	}
}

static insn_handler *const roundings[] = { NULL, op_rounded_zero, op_rounded_down, op_rounded_up };

static struct draft *emit_form(struct decoder *decoder, const struct op_form *form)
{
	insn_handler *handler = decoder->ops->ops[form->table][form->op];
	struct draft *draft = decode_emit(decoder, form->rounding ? roundings[form->rounding] : handler);
	if (form->rounding)
		draft->insn.inner = handler;
	return draft;
}

struct draft *decode_emit_op(struct decoder *decoder, const char *mnemonic)
{
	const struct op_form *form = op_find(mnemonic);
	if (!form)
		decode_unsupported(decoder, mnemonic);
	return emit_form(decoder, form);
}

bool decode_by_table(struct decoder *decoder, const char *mnemonic)
{
	const struct op_form *form = op_find(mnemonic);
	struct value values[OPERANDS] = { 0 };
	uint64_t immediate = 0;
	if (!form)
		return false;
	uint32_t count = (uint32_t)strlen(form->operands);
	decode_operand_count(decoder, count, count);
	for (uint32_t n = 1; n < count; n++) {
		struct ptx_operand *operand = decode_operand(decoder, n);
		if (form->operands[n] != 'i') {
			values[n] = decode_source(decoder, operand, form->operands[n]);
			continue;
		}
		if (operand->kind != PTX_OPERAND_INTEGER)
			decode_invalid(decoder, "expected a constant");
		immediate = operand->value;
	}
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), form->operands[0]);
	struct draft *draft = emit_form(decoder, form);
	decode_define(draft, 0, result);
	for (uint32_t n = 1; n < count; n++)
		decode_use(draft, (int)n, values[n]);
	if (strchr(form->operands, 'i'))
		draft->insn.imm = immediate;
	return true;
}

static bool decode_one(struct decoder *decoder)
{
	struct ptx_statement *statement = decoder->statement;
	if (decode_has(decoder, ".cc") && strncmp(statement->opcode, "set", 3)) {
		decode_carry(decoder);
		return false;
	}
	for (size_t i = 0; i < sizeof by_opcode / sizeof *by_opcode; i++) {
		if (strcmp(statement->opcode, by_opcode[i].opcode))
			continue;
		by_opcode[i].decode(decoder);
		return by_opcode[i].whole_path;
	}
	if (!decode_by_table(decoder, statement->mnemonic))
		ptx_unsupported(decoder->context, statement->line, "%s is not supported (in %.*s)", statement->mnemonic,
				(int)decoder->function->name.length, decoder->function->name.at);
	return false;
}

/* If the statement becomes one instruction, that runs under op_guard. If it becomes several, or one that moves whole
 * paths, a branch skips them. */
static void decode_guarded(struct decoder *decoder)
{
	struct ptx_operand *guard = decoder->statement->guard;
	uint32_t at = decoder->draft_count;
	struct draft *draft = decode_emit(decoder, op_guard);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)guard->number });
	draft->insn.flags = guard->negated ? INSN_NEGATE : 0;
	bool whole_path = decode_one(decoder);
	uint32_t emitted = decoder->draft_count - at - 1;
	for (uint32_t i = at + 1; i < decoder->draft_count; i++)
		decoder->drafts[i].guarded = true;
	if (emitted == 1 && !whole_path)
		return;
	decode_emit(decoder, op_join);
	draft = &decoder->drafts[at];
	draft->insn.handler = op_branch;
	draft->insn.flags = guard->negated ? 0 : INSN_NEGATE;
	draft->target_kind = TARGET_DRAFT;
	draft->target = decoder->draft_count - 1;
}

static void mark_label(struct decoder *decoder, const struct ptx_symbol *label)
{
	if (label->kind != PTX_SYMBOL_LABEL)
		decode_invalid(decoder, "the target is not a label");
	decoder->is_target[label->position] |= label->position <= decoder->statement->position ? 1 : 2;
}

static void mark_target(struct decoder *decoder, struct ptx_operand *operand)
{
	const struct ptx_symbol *symbol = decode_symbol(decoder, operand);
	if (symbol->kind != PTX_SYMBOL_LIST) {
		mark_label(decoder, symbol);
		return;
	}
	for (struct ptx_operand *each = symbol->list; each; each = each->next)
		mark_label(decoder, decode_symbol(decoder, each));
}

/* Marks the targets of branches. Those of forward branches, where paths can meet, will get an op_join. */
static void mark_targets(struct decoder *decoder)
{
	struct ptx_function *function = decoder->function;
	decoder->is_target = ptx_alloc(decoder->context, function->statement_count + 1u);
	for (struct ptx_statement *s = function->statements; s; s = s->next) {
		decoder->statement = s;
		bool bra = !strcmp(s->opcode, "bra"), brx = !strcmp(s->opcode, "brx");
		if (bra)
			mark_target(decoder, decode_operand(decoder, 0));
		else if (brx)
			mark_target(decoder, decode_operand(decoder, 1));
	}
}

static void decode_statements(struct decoder *decoder)
{
	for (struct ptx_statement *s = decoder->function->statements; s; s = s->next) {
		decoder->statement = s;
		decoder->draft_of_statement[s->position] = decoder->draft_count;
		if (decoder->is_target[s->position] & 2)
			decode_emit(decoder, op_join);
		if (s->guard && strcmp(s->opcode, "bra"))
			decode_guarded(decoder);
		else
			decode_one(decoder);
	}
}

void decode_function(struct decoder *decoder, struct code *code)
{
	struct ptx_function *function = code->function;
	decoder->function = function;
	decoder->code = code;
	decoder->drafts = NULL;
	decoder->draft_count = decoder->draft_room = 0;
	decoder->spans = 0;
	decoder->pair_of = NULL;
	decoder->constants = NULL;
	decoder->constant_count = decoder->constant_room = 0;
	memset(decoder->constant_slots, 0, sizeof decoder->constant_slots);
	decoder->statement = NULL;
	decoder->frame_register = decoder->return_register = UINT32_MAX;
	if (!function->is_kernel) {
		decoder->frame_register = ptx_new_register(decoder->context, function, PTX_B64);
		decoder->return_register = ptx_new_register(decoder->context, function, PTX_B64);
	}
	mark_targets(decoder);
	decoder->draft_of_statement = ptx_alloc(decoder->context, (function->statement_count + 1u) * sizeof(uint32_t));
	decode_statements(decoder);
	/* A label may be at the very end, and a function need not end in ret. */
	decoder->draft_of_statement[function->statement_count] = decoder->draft_count;
	decoder->statement = NULL;
	decode_emit(decoder, op_join);
	decode_emit(decoder, function->is_kernel ? op_exit : op_return)->ends_path = true;
	decode_allocate(decoder);
}
