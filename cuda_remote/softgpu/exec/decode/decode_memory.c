/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads, stores and atomics (PTX ISA, "Data Movement and Conversion Instructions", "Parallel Synchronization"). */
#include "cuda_remote/softgpu/exec/atomic.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/decode/decode_check.h"
#include "cuda_remote/softgpu/exec/strong.h"

#include <string.h>

/* What an access's modifiers say. */
struct access_words {
	enum ptx_space space;
	bool shared_cluster;
	enum ptx_type type;
	uint32_t count;
};

static bool is_hint(struct ptx_text word)
{
	static const char *const hints[] = {
		".weak",    ".relaxed", ".acquire", ".release", ".acq_rel", ".volatile", ".mmio", ".cta",
		".cluster", ".gpu",	".sys",	    ".ca",	".cg",	    ".cs",	 ".lu",	  ".cv",
		".wb",	    ".wt",	".nc",	    ".unified", ".noftz",   ".sc",
	};
	for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
		if (ptx_text_is(word, hints[i]))
			return true;
	return word.length > 4 && (!memcmp(word.at, ".L1::", 5) || !memcmp(word.at, ".L2::", 5));
}

static struct access_words read_words(struct decoder *decoder)
{
	const struct ptx_statement *statement = decoder->statement;
	struct access_words words = { .count = 1 };
	for (uint32_t i = 0; i < statement->modifiers; i++) {
		struct ptx_text word = statement->modifier[i];
		enum ptx_type type = ptx_type_of(word);
		enum ptx_space space = ptx_space_of(word);
		if (ptx_text_is(word, ".shared::cta") || ptx_text_is(word, ".shared::cluster"))
			words.space = PTX_SHARED;
		else if (ptx_text_is(word, ".param::entry") || ptx_text_is(word, ".param::func"))
			words.space = PTX_PARAM;
		else if (ptx_text_is(word, ".v2") || ptx_text_is(word, ".v4"))
			words.count = word.at[2] == '2' ? 2 : 4;
		else if (type != PTX_NO_TYPE)
			words.type = type;
		else if (space != PTX_NO_SPACE && space != PTX_REG)
			words.space = space;
		else if (!is_hint(word))
			decode_unsupported(decoder, "a modifier of this access");
	}
	if (words.type == PTX_NO_TYPE || words.type == PTX_PRED)
		decode_invalid(decoder, "expected a type");
	return words;
}

static enum access_space access_space_of(const struct access_words *words)
{
	switch (words->space) {
	case PTX_GLOBAL:
	case PTX_CONST: return ACCESS_GLOBAL;
	case PTX_SHARED: return ACCESS_SHARED;
	case PTX_LOCAL: return ACCESS_LOCAL;
	default: return ACCESS_GENERIC;
	}
}

struct address decode_address(struct decoder *decoder, struct ptx_operand *operand, enum access_space space)
{
	struct address address = { .offset = operand->value };
	if (operand->kind != PTX_OPERAND_ADDRESS)
		decode_invalid(decoder, "expected an address in brackets");
	struct ptx_operand *base = operand->first;
	if (base && base->kind == PTX_OPERAND_REGISTER) {
		uint32_t size = decode_register_size(decoder, base->number);
		bool window = space == ACCESS_SHARED || space == ACCESS_LOCAL;
		if (size != 8 && !(size == 4 && window))
			decode_invalid(decoder, "the address register is not as wide as an address");
		address.row = (struct value){ ROLE_USE, (int32_t)base->number };
		address.flags = size == 4 ? INSN_NARROW : 0;
	} else if (base && base->kind == PTX_OPERAND_NAME) {
		const struct ptx_symbol *symbol = decode_symbol(decoder, base);
		if (symbol->kind != PTX_SYMBOL_VARIABLE)
			decode_invalid(decoder, "the address is neither a register nor a variable");
		address.row = decode_address_of(decoder, symbol, 0);
	} else {
		address.row = decode_constant(decoder, operand->value, 8);
		address.offset = 0;
	}
	if (base && base->next)
		decode_invalid(decoder, "more than an address in the brackets");
	return address;
}

void decode_put_address(struct decoder *decoder, struct draft *draft, const struct address *address)
{
	decode_use(draft, 4, address->row);
	draft->insn.imm = address->offset;
	draft->insn.flags |= address->flags;
	draft->insn.slot = (uint8_t)(decoder->spans++ % SPAN_SLOTS);
}

static uint32_t row_of(uint32_t size)
{
	return size == 8 ? 3 : size == 4 ? 2 : 1;
}

/* The elements of { } or the one operand; gives up if their number is wrong. */
static struct ptx_operand *elements_of(struct decoder *decoder, struct ptx_operand *operand, uint32_t count)
{
	struct ptx_operand *first = operand->kind == PTX_OPERAND_VECTOR ? operand->first : operand;
	uint32_t have = 1;
	if (operand->kind == PTX_OPERAND_VECTOR)
		for (have = 0, operand = first; operand; operand = operand->next)
			have++;
	if (have != count)
		decode_invalid(decoder, "the number of elements does not fit the vector");
	return first;
}

/* An access of 128 bits becomes a vector of two 64-bit elements. */
static struct ptx_operand *split_wide(struct decoder *decoder, struct access_words *words, struct ptx_operand *operand)
{
	if (words->type != PTX_B128)
		return operand;
	if (words->count != 1)
		decode_unsupported(decoder, "vectors of 128 bits");
	words->type = PTX_B64;
	words->count = 2;
	struct ptx_operand *pair = ptx_alloc(decoder->context, sizeof *pair);
	*pair = (struct ptx_operand){ .kind = PTX_OPERAND_VECTOR, .first = decode_halves(decoder, operand) };
	return pair;
}

static uint32_t width_of_element(struct decoder *decoder, const struct ptx_operand *element, enum ptx_type type)
{
	uint32_t size = ptx_type_size(type);
	if (element->kind != PTX_OPERAND_REGISTER)
		return size < 2 ? 2 : size;
	uint32_t have = decode_register_size(decoder, element->number);
	if (have < size || have == 0)
		decode_invalid(decoder, "a register is narrower than the type");
	return have;
}

/* Whether the operand is a kernel's parameter, which lies in the launch; formals and arguments of calls lie in the
 * frame. */
static bool is_kernel_parameter(struct decoder *decoder, struct ptx_operand *operand)
{
	if (operand->kind != PTX_OPERAND_ADDRESS || !operand->first || operand->first->kind != PTX_OPERAND_NAME)
		return false;
	return decoder->function->is_kernel && decode_symbol(decoder, operand->first)->position == 1 &&
	       operand->first->symbol->kind == PTX_SYMBOL_VARIABLE && operand->first->symbol->space == PTX_PARAM;
}

static void load_parameter(struct decoder *decoder, const struct access_words *words, struct ptx_operand *element)
{
	const struct ptx_operand *address = decode_operand(decoder, 1);
	const struct ptx_symbol *symbol = address->first->symbol;
	uint32_t size = ptx_type_size(words->type);
	for (uint32_t n = 0; n < words->count; n++, element = element->next) {
		uint64_t offset = symbol->offset + address->value + (uint64_t)n * size;
		if (address->value > symbol->size || (uint64_t)(n + 1) * size > symbol->size - address->value)
			decode_invalid(decoder, "the access is outside the parameter");
		if (element->kind == PTX_OPERAND_SINK)
			continue;
		uint32_t width = width_of_element(decoder, element, words->type);
		uint32_t result = decode_result(decoder, element, decode_letter(width));
		struct value row =
			decode_launch_row(decoder, &(struct launch_row){ .special = LAUNCH_PARAMETER,
									 .bytes = (uint8_t)size,
									 .width = (uint8_t)width,
									 .offset = (uint32_t)offset,
									 .is_signed = ptx_type_signed(words->type) });
		struct draft *draft = decode_emit_op(decoder, width == 8   ? "mov.b64"
							      : width == 4 ? "mov.b32"
									   : "mov.b16");
		decode_define(draft, 0, result);
		decode_use(draft, 1, row);
	}
}

/* .param by name is in this function's frame. Through a register it is in the frame too, but generic in a kernel. */
static enum access_space space_of_address(struct decoder *decoder, const struct access_words *words,
					  struct ptx_operand *operand)
{
	enum access_space space = access_space_of(words);
	if (words->space == PTX_PARAM && operand->kind == PTX_OPERAND_ADDRESS && operand->first &&
	    operand->first->kind == PTX_OPERAND_NAME)
		return ACCESS_LOCAL;
	if (words->space == PTX_PARAM && !decoder->function->is_kernel)
		return ACCESS_LOCAL;
	return space;
}

/* Whether the access must be atomic and ordered for other threads of the engine and the host. Shared and local memory
 * needs neither: only the thread that runs the block accesses it. */
static bool is_strong(struct decoder *decoder, enum access_space space)
{
	static const char *const words[] = { ".volatile", ".relaxed", ".acquire", ".release", ".mmio", ".cv", ".wt" };
	for (size_t n = 0; n < sizeof words / sizeof *words; n++)
		if (decode_has(decoder, words[n]))
			return space == ACCESS_GLOBAL || space == ACCESS_GENERIC;
	return false;
}

static struct draft *emit_strong(struct decoder *decoder, insn_handler *handler, enum access_space space,
				 uint32_t width, enum ptx_type type)
{
	struct draft *draft = decode_emit(decoder, handler);
	draft->insn.r[5] = STRONG_OPERAND(space, width);
	draft->insn.flags = ptx_type_signed(type) ? INSN_SIGNED : 0;
	return draft;
}

void decode_load(struct decoder *decoder)
{
	struct access_words words = read_words(decoder);
	decode_operand_count(decoder, 2, 3); /* the third: a cache policy */
	struct ptx_operand *element = split_wide(decoder, &words, decode_operand(decoder, 0));
	element = elements_of(decoder, element, words.count);
	struct ptx_operand *where = decode_operand(decoder, 1);
	if (words.space == PTX_PARAM && is_kernel_parameter(decoder, where)) {
		load_parameter(decoder, &words, element);
		return;
	}
	enum access_space space = space_of_address(decoder, &words, where);
	struct address address = decode_address(decoder, where, space);
	uint32_t size = ptx_type_size(words.type), width = 0;
	uint32_t results[4] = { 0 };
	bool sunk[4] = { false };
	for (uint32_t n = 0; n < words.count; n++, element = element->next) {
		sunk[n] = element->kind == PTX_OPERAND_SINK;
		uint32_t have = sunk[n] ? width : width_of_element(decoder, element, words.type);
		if (width && have != width)
			decode_unsupported(decoder, "elements in registers of different sizes");
		width = have;
		if (!sunk[n])
			results[n] = decode_result(decoder, element, decode_letter(have));
	}
	if (width == 0 || sunk[0])
		decode_unsupported(decoder, "a load that discards its first element");
	uint8_t kind = CHECK_READ | decode_check_order(decoder, false);
	if (words.space != PTX_CONST)
		decode_check_access(decoder, &address, space, size * words.count, kind);
	insn_handler *const(*table)[4][4] =
		ptx_type_signed(words.type) ? decoder->ops->signed_loads : decoder->ops->loads;
	struct draft *draft = is_strong(decoder, space) ?
				      emit_strong(decoder, op_strong_load, space, width, words.type) :
				      decode_emit(decoder, table[space][__builtin_ctz(size)][row_of(width)]);
	for (uint32_t n = 0; n < words.count; n++) {
		if (sunk[n])
			draft->insn.r[n] = -1;
		else
			decode_define(draft, (int)n, results[n]);
	}
	decode_put_address(decoder, draft, &address);
	draft->insn.count = (uint8_t)words.count;
	draft->insn.size = (uint8_t)size;
	decode_check_learned(decoder, space, kind);
}

static void decode_plain_store(struct decoder *decoder)
{
	struct access_words words = read_words(decoder);
	decode_operand_count(decoder, 2, 3);
	struct ptx_operand *where = decode_operand(decoder, 0);
	struct ptx_operand *element = split_wide(decoder, &words, decode_operand(decoder, 1));
	element = elements_of(decoder, element, words.count);
	if (words.space == PTX_CONST || (words.space == PTX_PARAM && is_kernel_parameter(decoder, where)))
		decode_invalid(decoder, "this state space cannot be written");
	enum access_space space = space_of_address(decoder, &words, where);
	struct address address = decode_address(decoder, where, space);
	uint32_t size = ptx_type_size(words.type), width = 0;
	struct value values[4];
	struct ptx_operand *first = element;
	for (; element; element = words.count > 1 ? element->next : NULL)
		if (element->kind == PTX_OPERAND_REGISTER)
			width = width_of_element(decoder, element, words.type);
	if (width == 0)
		width = size < 2 ? 2 : size;
	element = first;
	for (uint32_t n = 0; n < words.count; n++, element = element->next)
		values[n] = decode_source(decoder, element, decode_letter(width));
	decode_check_access(decoder, &address, space, size * words.count,
			    CHECK_WRITE | decode_check_order(decoder, false));
	struct draft *draft = is_strong(decoder, space) ?
				      emit_strong(decoder, op_strong_store, space, width, words.type) :
				      decode_emit(decoder, decoder->ops->stores[space][__builtin_ctz(size)][row_of(width)]);
	for (uint32_t n = 0; n < words.count; n++)
		decode_use(draft, (int)n, values[n]);
	decode_put_address(decoder, draft, &address);
	draft->insn.count = (uint8_t)words.count;
	draft->insn.size = (uint8_t)size;
}

void decode_store(struct decoder *decoder)
{
	if (decode_has(decoder, ".async"))
		decode_async_access(decoder, decode_plain_store);
	else
		decode_plain_store(decoder);
}

enum atomic_op atomic_op_of(struct decoder *decoder)
{
	static const struct {
		const char *word;
		enum atomic_op op;
	} ops[] = {
		{ ".add", ATOMIC_ADD }, { ".min", ATOMIC_MIN }, { ".max", ATOMIC_MAX }, { ".and", ATOMIC_AND },
		{ ".or", ATOMIC_OR }, { ".xor", ATOMIC_XOR }, { ".inc", ATOMIC_INC }, { ".dec", ATOMIC_DEC },
		{ ".exch", ATOMIC_EXCHANGE }, { ".cas", ATOMIC_CAS },
	};
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (decode_has(decoder, ops[i].word))
			return ops[i].op;
	decode_unsupported(decoder, "this atomic operation");
}

static struct access_words read_atomic_words(struct decoder *decoder)
{
	bool eight = decode_has(decoder, ".v8");
	static const char *const ops[] = { ".add", ".min", ".max", ".and",  ".or",
					   ".xor", ".inc", ".dec", ".exch", ".cas" };
	struct ptx_statement *statement = decoder->statement, plain = *statement;
	struct ptx_text kept[32];
	uint32_t count = 0;
	for (uint32_t i = 0; i < statement->modifiers; i++) {
		bool is_op = ptx_text_is(statement->modifier[i], ".v8");
		for (size_t n = 0; n < sizeof ops / sizeof *ops; n++)
			is_op |= ptx_text_is(statement->modifier[i], ops[n]);
		if (!is_op && count < 32)
			kept[count++] = statement->modifier[i];
	}
	plain.modifier = kept;
	plain.modifiers = count;
	decoder->statement = &plain;
	struct access_words words = read_words(decoder);
	decoder->statement = statement;
	words.count = eight ? 8 : words.count;
	return words;
}

/* An atomic access; of a vector, each element is atomic by itself. */
struct atomic_access {
	enum access_space space;
	enum ptx_type type;
	uint32_t variant;
	bool is_red;
};

static void emit_atomic(struct decoder *decoder, const struct atomic_access *access, struct address address,
			uint32_t result, const struct value values[2], uint32_t n)
{
	uint32_t size = ptx_type_size(access->type);
	uint8_t kind = CHECK_READ | CHECK_WRITE | decode_check_order(decoder, true);
	address.offset += (uint64_t)n * size;
	decode_check_access(decoder, &address, access->space, size, kind);
	struct draft *draft = decode_emit(decoder, op_atom);
	if (access->is_red)
		draft->insn.flags |= INSN_NO_RESULT;
	else
		decode_define(draft, 0, result);
	decode_use(draft, 1, values[0]);
	decode_use(draft, 2, values[1]);
	decode_put_address(decoder, draft, &address);
	draft->insn.count = (uint8_t)access->variant;
	draft->insn.size = (uint8_t)size;
	draft->insn.r[3] = (int32_t)access->space;
	decode_check_learned(decoder, access->space, kind);
}

/* .v2 .v4 .v8: only add, min and max of floats in global memory. */
static void decode_atomic_vector(struct decoder *decoder, const struct atomic_access *access, uint32_t count)
{
	uint32_t first = access->is_red ? 0 : 1, size = ptx_type_size(access->type);
	uint32_t results[8] = { 0 };
	struct value values[8][2] = { { { ROLE_NONE, 0 } } };
	if (access->space == ACCESS_SHARED || !ptx_type_float(access->type) || size == 8 || size * count > 16)
		decode_unsupported(decoder, "an atomic vector of this type, length or state space");
	decode_operand_count(decoder, first + 2, first + 3);
	struct address address = decode_address(decoder, decode_operand(decoder, first), access->space);
	struct ptx_operand *each = elements_of(decoder, decode_operand(decoder, first + 1), count);
	for (uint32_t n = 0; n < count; n++, each = each->next)
		values[n][0] = decode_source(decoder, each, decode_letter(size));
	each = access->is_red ? NULL : elements_of(decoder, decode_operand(decoder, 0), count);
	/* A result's row may hold a later element's source or the address, so results are written after all
	 * elements. */
	for (uint32_t n = 0; n < count; n++) {
		results[n] = access->is_red ? 0 : decode_temporary(decoder, size);
		emit_atomic(decoder, access, address, results[n], values[n], n);
	}
	for (uint32_t n = 0; each; n++, each = each->next) {
		uint32_t result = decode_result(decoder, each, decode_letter(size));
		struct draft *draft = decode_emit_op(decoder, size == 4 ? "mov.b32" : "mov.b16");
		decode_define(draft, 0, result);
		decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)results[n] });
	}
}

static void decode_wide_atom(struct decoder *decoder, enum atomic_op op, enum access_space space)
{
	uint32_t sources = op == ATOMIC_CAS ? 2 : 1;
	if (strcmp(decoder->statement->opcode, "atom") || (op != ATOMIC_CAS && op != ATOMIC_EXCHANGE) ||
	    !atomic_has_wide())
		decode_unsupported(decoder, "this type for this atomic operation");
	decode_operand_count(decoder, 2 + sources, 3 + sources);
	struct address address = decode_address(decoder, decode_operand(decoder, 1), space);
	const struct ptx_operand *result = decode_halves(decoder, decode_operand(decoder, 0));
	const struct ptx_operand *wanted = decode_halves(decoder, decode_operand(decoder, 1 + sources));
	const struct ptx_operand *expected = decode_halves(decoder, decode_operand(decoder, 2));
	uint8_t kind = CHECK_READ | CHECK_WRITE | decode_check_order(decoder, true);
	decode_check_access(decoder, &address, space, 16, kind);
	struct draft *draft = decode_emit(decoder, op_atom_wide);
	decode_put_address(decoder, draft, &address);
	draft->insn.count = (uint8_t)op;
	draft->insn.size = (uint8_t)space;
	decode_define(draft, 0, result->number);
	decode_define(draft, 1, result->next->number);
	decode_use(draft, 2, (struct value){ ROLE_USE, (int32_t)wanted->number });
	decode_use(draft, 3, (struct value){ ROLE_USE, (int32_t)wanted->next->number });
	draft = decode_emit(decoder, op_nop);
	decode_use(draft, 0, (struct value){ ROLE_USE, (int32_t)expected->number });
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)expected->next->number });
	decode_check_learned(decoder, space, kind);
}

static void decode_plain_atom(struct decoder *decoder)
{
	enum atomic_op op = atomic_op_of(decoder);
	struct access_words words = read_atomic_words(decoder);
	if (words.type == PTX_B128 && words.count == 1) {
		decode_wide_atom(decoder, op, access_space_of(&words));
		return;
	}
	struct atomic_access access = { .type = words.type, .is_red = !strcmp(decoder->statement->opcode, "red") };
	uint32_t first = access.is_red ? 0 : 1, sources = op == ATOMIC_CAS ? 2 : 1;
	if (!atomic_find(op, words.type, &access.variant))
		decode_unsupported(decoder, "this type for this atomic operation");
	access.space = access_space_of(&words);
	if (access.space == ACCESS_LOCAL || words.space == PTX_CONST || words.space == PTX_PARAM)
		decode_invalid(decoder, "atomics are for global and shared memory");
	if (words.count != 1) {
		decode_atomic_vector(decoder, &access, words.count);
		return;
	}
	decode_operand_count(decoder, first + 1 + sources, first + 2 + sources);
	struct address address = decode_address(decoder, decode_operand(decoder, first), access.space);
	char letter = decode_letter(ptx_type_size(words.type));
	struct value values[2] = { { ROLE_NONE, 0 }, { ROLE_NONE, 0 } };
	for (uint32_t n = 0; n < sources; n++)
		values[n] = decode_source(decoder, decode_operand(decoder, first + 1 + n), letter);
	uint32_t result = access.is_red ? 0 : decode_result(decoder, decode_operand(decoder, 0), letter);
	emit_atomic(decoder, &access, address, result, values, 0);
}

void decode_atom(struct decoder *decoder)
{
	if (decode_has(decoder, ".async"))
		decode_async_access(decoder, decode_plain_atom);
	else
		decode_plain_atom(decoder);
}

void decode_nothing(struct decoder *decoder)
{
	decode_emit(decoder, op_nop);
}
