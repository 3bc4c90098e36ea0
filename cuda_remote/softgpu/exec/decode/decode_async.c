/* SPDX-License-Identifier: BSD-3-Clause */
/* cp.async, cp.async.bulk, cp.reduce.async.bulk, st.async, red.async, mbarrier. */
#include "cuda_remote/softgpu/exec/async/async.h"
#include "cuda_remote/softgpu/exec/atomic.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/decode/decode_check.h"
#include "cuda_remote/softgpu/exec/async/mbarrier.h"

#include <string.h>

#define COMPLETE_TX ".mbarrier::complete_tx::bytes"
#define WORDS_MAX 24

static bool any_of(struct ptx_text word, const char *const *words)
{
	for (; *words; words++)
		if (ptx_text_is(word, *words))
			return true;
	return false;
}

static bool is_cache_hint(struct ptx_text word)
{
	return word.length > 4 && (!memcmp(word.at, ".L1::", 5) || !memcmp(word.at, ".L2::", 5));
}

/* Gives up at a modifier that is neither in words nor a hint for a cache. */
static void expect_words(struct decoder *decoder, const char *const *words)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		if (!any_of(word, words) && !is_cache_hint(word))
			decode_unsupported(decoder, "a modifier of this instruction");
	}
}

static bool is_shared(const struct decoder *decoder)
{
	return decode_has(decoder, ".shared") || decode_has(decoder, ".shared::cta") ||
	       decode_has(decoder, ".shared::cluster");
}

struct value decode_whole_address(struct decoder *decoder, uint32_t n, enum access_space space)
{
	struct address address = decode_address(decoder, decode_operand(decoder, n), space);
	struct value value = address.row;
	if (address.flags & INSN_NARROW) {
		uint32_t wide = decode_temporary(decoder, 8), sum = decode_temporary(decoder, 4);
		struct value offset = decode_constant(decoder, address.offset, 4);
		struct draft *draft = decode_emit_op(decoder, "add.u32");
		decode_define(draft, 0, sum);
		decode_use(draft, 1, value);
		decode_use(draft, 2, offset);
		draft = decode_emit_op(decoder, "cvt.u64.u32");
		decode_define(draft, 0, wide);
		decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)sum });
		return (struct value){ ROLE_USE, (int32_t)wide };
	}
	if (!address.offset)
		return value;
	uint32_t sum = decode_temporary(decoder, 8);
	struct value offset = decode_constant(decoder, address.offset, 8);
	struct draft *draft = decode_emit_op(decoder, "add.u64");
	decode_define(draft, 0, sum);
	decode_use(draft, 1, value);
	decode_use(draft, 2, offset);
	return (struct value){ ROLE_USE, (int32_t)sum };
}

static void use_or_none(struct draft *draft, int n, struct value value)
{
	draft->insn.r[n] = -1;
	if (value.role != ROLE_NONE)
		decode_use(draft, n, value);
}

static const struct value none = { ROLE_NONE, 0 };

/* ---- mbarrier */
static struct draft *emit_mbarrier(struct decoder *decoder, enum mbarrier_op op, const struct address *address,
				   enum access_space space, struct value operand)
{
	bool makes = op == MBARRIER_INIT || op == MBARRIER_INVAL, asks = op >= MBARRIER_TEST_WAIT;
	decode_check_access(decoder, address, space, 8,
			    makes ? CHECK_WRITE : asks ? CHECK_READ | CHECK_STRONG :
						  CHECK_READ | CHECK_WRITE | CHECK_STRONG | CHECK_RELEASE);
	struct draft *draft = decode_emit(decoder, op_mbarrier);
	decode_put_address(decoder, draft, address);
	draft->insn.slot = (uint8_t)space;
	draft->insn.count = (uint8_t)op;
	draft->insn.r[0] = -1;
	use_or_none(draft, 1, operand);
	return draft;
}

/* init, inval, expect_tx, complete_tx: [address]{, operand} */
static void decode_mbarrier_change(struct decoder *decoder, enum mbarrier_op op, enum access_space space)
{
	uint32_t operands = op == MBARRIER_INVAL ? 1 : 2;
	decode_operand_count(decoder, operands, operands);
	struct address address = decode_address(decoder, decode_operand(decoder, 0), space);
	struct value operand = operands == 2 ? decode_source(decoder, decode_operand(decoder, 1), 'w') : none;
	emit_mbarrier(decoder, op, &address, space, operand);
}

/* state, [address]{, count or bytes} */
static void decode_mbarrier_arrive(struct decoder *decoder, enum access_space space)
{
	bool expects = decode_has(decoder, ".expect_tx"), drops = decode_has(decoder, ".arrive_drop");
	decode_operand_count(decoder, expects || decode_has(decoder, ".noComplete") ? 3 : 2, 3);
	struct address address = decode_address(decoder, decode_operand(decoder, 1), space);
	struct value operand = decoder->statement->operand_count == 3 ?
				       decode_source(decoder, decode_operand(decoder, 2), 'w') :
				       decode_constant(decoder, 1, 4);
	struct ptx_operand *target = decode_operand(decoder, 0);
	uint32_t result = target->kind == PTX_OPERAND_SINK ? 0 : decode_result(decoder, target, 'l');
	struct draft *draft = emit_mbarrier(decoder, expects ? MBARRIER_ARRIVE_EXPECT_TX : MBARRIER_ARRIVE, &address,
					    space, operand);
	draft->insn.size = (uint8_t)((drops ? MBARRIER_DROP : 0) |
				     (decode_has(decoder, ".noComplete") ? MBARRIER_NO_COMPLETE : 0));
	if (target->kind != PTX_OPERAND_SINK)
		decode_define(draft, 0, result);
}

/* predicate, [address], state or parity{, time} */
static void decode_mbarrier_wait(struct decoder *decoder, enum access_space space)
{
	bool parity = decode_has(decoder, ".parity"), tries = decode_has(decoder, ".try_wait");
	decode_operand_count(decoder, 3, tries ? 4 : 3);
	struct address address = decode_address(decoder, decode_operand(decoder, 1), space);
	struct value operand = decode_source(decoder, decode_operand(decoder, 2), parity ? 'w' : 'l');
	if (decoder->statement->operand_count == 4)
		decode_source(decoder, decode_operand(decoder, 3), 'w'); /* a hint how long to suspend; ignored */
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'p');
	enum mbarrier_op op = parity ? MBARRIER_TEST_PARITY : MBARRIER_TEST_WAIT;
	struct draft *draft = emit_mbarrier(decoder, op, &address, space, operand);
	draft->insn.size = tries ? MBARRIER_SUSPENDS : 0;
	decode_define(draft, 0, result);
}

static void decode_mbarrier_pending(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 2);
	struct value state = decode_source(decoder, decode_operand(decoder, 1), 'l');
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_mbarrier_pending);
	decode_define(draft, 0, result);
	decode_use(draft, 1, state);
}

void decode_mbarrier(struct decoder *decoder)
{
	static const char *const words[] = {
		".init",       ".inval",   ".expect_tx",     ".complete_tx", ".arrive",      ".arrive_drop",
		".noComplete", ".parity",  ".pending_count", ".test_wait",   ".try_wait",    ".b64",
		".cta",        ".cluster", ".release",       ".acquire",     ".relaxed",     ".shared",
		".shared::cta", ".shared::cluster", NULL,
	};
	enum access_space space = is_shared(decoder) ? ACCESS_SHARED : ACCESS_GENERIC;
	expect_words(decoder, words);
	if (!decode_has(decoder, ".b64"))
		decode_invalid(decoder, "expected .b64");
	if (decode_has(decoder, ".init"))
		decode_mbarrier_change(decoder, MBARRIER_INIT, space);
	else if (decode_has(decoder, ".inval"))
		decode_mbarrier_change(decoder, MBARRIER_INVAL, space);
	else if (decode_has(decoder, ".arrive") || decode_has(decoder, ".arrive_drop"))
		decode_mbarrier_arrive(decoder, space);
	else if (decode_has(decoder, ".expect_tx"))
		decode_mbarrier_change(decoder, MBARRIER_EXPECT_TX, space);
	else if (decode_has(decoder, ".complete_tx"))
		decode_mbarrier_change(decoder, MBARRIER_COMPLETE_TX, space);
	else if (decode_has(decoder, ".test_wait") || decode_has(decoder, ".try_wait"))
		decode_mbarrier_wait(decoder, space);
	else if (decode_has(decoder, ".pending_count"))
		decode_mbarrier_pending(decoder);
	else
		decode_invalid(decoder, "no such operation of an mbarrier");
}

/* ---- cp.async */

/* Copies are complete when they are issued, so the thread arrives for them at once. */
static void decode_copies_arrive(struct decoder *decoder)
{
	decode_operand_count(decoder, 1, 1);
	/* libcu++ names no state space and gives the address in shared memory, in 32 bits, which ptxas takes. */
	const struct ptx_operand *operand = decode_operand(decoder, 0), *base = operand->first;
	bool narrow = operand->kind == PTX_OPERAND_ADDRESS && base && base->kind == PTX_OPERAND_REGISTER &&
		      decode_register_size(decoder, base->number) == 4;
	enum access_space space = is_shared(decoder) || narrow ? ACCESS_SHARED : ACCESS_GENERIC;
	struct address address = decode_address(decoder, decode_operand(decoder, 0), space);
	/* Without .noinc, PTX increments the pending count first, so the arrival changes nothing; but the object must
	 * exist. */
	bool counted = decode_has(decoder, ".noinc");
	emit_mbarrier(decoder, MBARRIER_ARRIVE, &address, space, decode_constant(decoder, counted, 4))->insn.size =
		counted ? 0 : MBARRIER_NO_COMPLETE;
}

/* The optional operands after the size: bytes of the source or a predicate, and a cache policy. */
static void decode_source_size(struct decoder *decoder, struct value *bytes, struct value *ignore, bool *negated)
{
	uint32_t count = decoder->statement->operand_count - (decode_has(decoder, ".L2::cache_hint") ? 1 : 0);
	*bytes = *ignore = none;
	*negated = false;
	if (count < 3 || count > 4)
		decode_invalid(decoder, "the wrong number of operands");
	if (count == 3)
		return;
	struct ptx_operand *operand = decode_operand(decoder, 3);
	if (operand->kind == PTX_OPERAND_REGISTER && decode_register_size(decoder, operand->number) == 0) {
		*ignore = (struct value){ ROLE_USE, (int32_t)operand->number };
		*negated = operand->negated;
	} else {
		*bytes = decode_source(decoder, operand, 'w');
	}
}

static void decode_small_copy(struct decoder *decoder)
{
	static const char *const words[] = { ".async", ".ca", ".cg", ".shared", ".shared::cta", ".global", NULL };
	expect_words(decoder, words);
	if (!is_shared(decoder) || !decode_has(decoder, ".global"))
		decode_invalid(decoder, "expected .shared.global");
	const struct ptx_operand *size = decode_operand(decoder, 2);
	if (size->kind != PTX_OPERAND_INTEGER ||
	    !(size->value == 16 || (decode_has(decoder, ".ca") && (size->value == 4 || size->value == 8))))
		decode_invalid(decoder, "expected a size of 16 bytes, or, with .ca, 4 or 8");
	struct value bytes, ignore;
	bool negated;
	decode_source_size(decoder, &bytes, &ignore, &negated);
	struct value target = decode_whole_address(decoder, 0, ACCESS_SHARED);
	struct value source = decode_whole_address(decoder, 1, ACCESS_GLOBAL);
	decode_check_copy(decoder, target, ACCESS_SHARED, none, (uint32_t)size->value, CHECK_WRITE);
	decode_check_copy(decoder, source, ACCESS_GLOBAL, bytes, (uint32_t)size->value, CHECK_READ);
	decode_check_unless(decoder, ignore, negated);
	struct draft *draft = decode_emit(decoder, op_cp_async);
	decode_use(draft, 0, target);
	decode_use(draft, 1, source);
	use_or_none(draft, 2, bytes);
	use_or_none(draft, 3, ignore);
	draft->insn.flags = negated ? INSN_NEGATE : 0;
	draft->insn.count = (uint8_t)size->value;
}

/* ---- cp.async.bulk, cp.reduce.async.bulk */
static void check_bulk_words(struct decoder *decoder)
{
	static const char *const words[] = { ".async", ".bulk", ".reduce", ".shared::cluster", ".shared::cta",
					     ".global", COMPLETE_TX, ".bulk_group", ".multicast::cluster", ".add",
					     ".min", ".max", ".and", ".or", ".xor", ".inc", ".dec", ".noftz", NULL };
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		bool type = decode_has(decoder, ".reduce") && ptx_type_of(word) != PTX_NO_TYPE;
		if (!any_of(word, words) && !is_cache_hint(word) && !type)
			decode_unsupported(decoder, "a modifier of this bulk copy");
	}
}

static enum access_space bulk_space(struct decoder *decoder, uint32_t which)
{
	for (uint32_t i = 0; i < decoder->statement->modifiers; i++) {
		struct ptx_text word = decoder->statement->modifier[i];
		bool shared = ptx_text_is(word, ".shared::cluster") || ptx_text_is(word, ".shared::cta");
		if ((shared || ptx_text_is(word, ".global")) && which-- == 0)
			return shared ? ACCESS_SHARED : ACCESS_GLOBAL;
	}
	decode_invalid(decoder, "expected the spaces of destination and source");
}

static uint8_t bulk_variant(struct decoder *decoder, uint32_t *size)
{
	const struct ptx_statement *statement = decoder->statement;
	enum ptx_type type = ptx_type_of(statement->modifier[statement->modifiers - 1]);
	uint32_t variant;
	*size = 1;
	if (!decode_has(decoder, ".reduce"))
		return BULK_COPY;
	if (type == PTX_NO_TYPE || !atomic_find(atomic_op_of(decoder), type, &variant))
		decode_unsupported(decoder, "this type for this reduction");
	*size = ptx_type_size(type);
	return (uint8_t)variant;
}

static void decode_bulk(struct decoder *decoder)
{
	uint32_t size, next = 3;
	check_bulk_words(decoder);
	uint8_t variant = bulk_variant(decoder, &size);
	enum access_space target_space = bulk_space(decoder, 0), source_space = bulk_space(decoder, 1);
	bool tells = decode_has(decoder, COMPLETE_TX), multicast = decode_has(decoder, ".multicast::cluster");
	if (tells == decode_has(decoder, ".bulk_group") || tells != (target_space == ACCESS_SHARED))
		decode_invalid(decoder, "this completion mechanism does not fit the direction");
	uint32_t operands = 3u + tells + multicast + decode_has(decoder, ".L2::cache_hint");
	decode_operand_count(decoder, operands, operands);
	struct value target = decode_whole_address(decoder, 0, target_space);
	struct value source = decode_whole_address(decoder, 1, source_space);
	struct value bytes = decode_source(decoder, decode_operand(decoder, 2), 'w');
	struct value barrier = tells ? decode_whole_address(decoder, next++, ACCESS_SHARED) : none;
	struct value blocks = multicast ? decode_source(decoder, decode_operand(decoder, next), 'h') : none;
	decode_check_copy(decoder, source, source_space, bytes, 0, CHECK_READ);
	decode_check_copy(decoder, target, target_space, bytes, 0,
			  variant == BULK_COPY ? CHECK_WRITE : CHECK_READ | CHECK_WRITE | CHECK_STRONG);
	if (tells)
		decode_check_copy(decoder, barrier, ACCESS_SHARED, none, 8,
				  CHECK_READ | CHECK_WRITE | CHECK_STRONG | CHECK_RELEASE);
	struct draft *draft = decode_emit(decoder, op_bulk);
	decode_use(draft, 0, target);
	decode_use(draft, 1, source);
	decode_use(draft, 2, bytes);
	use_or_none(draft, 3, barrier);
	use_or_none(draft, 5, blocks);
	draft->insn.slot = (uint8_t)target_space;
	draft->insn.size = (uint8_t)source_space;
	draft->insn.count = variant;
	draft->insn.imm = size;
}

void decode_cp(struct decoder *decoder)
{
	bool bulk = decode_has(decoder, ".bulk");
	if (!decode_has(decoder, ".async"))
		decode_invalid(decoder, "expected .async");
	if (decode_has(decoder, ".tensor"))
		decode_tensor(decoder);
	else if (decode_has(decoder, ".mbarrier") && decode_has(decoder, ".arrive"))
		decode_copies_arrive(decoder);
	else if (decode_has(decoder, ".commit_group") || decode_has(decoder, ".wait_all") ||
		 decode_has(decoder, ".wait_group") || (bulk && decode_has(decoder, ".prefetch")))
		decode_emit(decoder, op_nop);
	else if (bulk)
		decode_bulk(decoder);
	else
		decode_small_copy(decoder);
}

/* ---- st.async, red.async: the access, then the bytes that it completes */
void decode_async_access(struct decoder *decoder, void (*access)(struct decoder *))
{
	struct ptx_statement *statement = decoder->statement, plain = *statement;
	struct ptx_text kept[WORDS_MAX];
	struct ptx_operand first, second;
	uint32_t bytes = 0, count = 1;
	if (!decode_has(decoder, COMPLETE_TX) || !decode_has(decoder, ".shared::cluster"))
		decode_unsupported(decoder, "this kind of asynchronous access");
	decode_operand_count(decoder, 3, 3);
	plain.modifiers = 0;
	for (uint32_t i = 0; i < statement->modifiers && plain.modifiers < WORDS_MAX; i++) {
		struct ptx_text word = statement->modifier[i];
		if (ptx_text_is(word, ".async") || ptx_text_is(word, COMPLETE_TX))
			continue;
		if (ptx_type_of(word) != PTX_NO_TYPE)
			bytes = ptx_type_size(ptx_type_of(word));
		else if (ptx_text_is(word, ".v2") || ptx_text_is(word, ".v4"))
			count = (uint32_t)word.at[2] - '0';
		kept[plain.modifiers++] = word;
	}
	struct address address = decode_address(decoder, decode_operand(decoder, 2), ACCESS_SHARED);
	first = *decode_operand(decoder, 0);
	second = *decode_operand(decoder, 1);
	second.next = NULL;
	first.next = &second;
	plain.modifier = kept;
	plain.operands = &first;
	plain.operand_count = 2;
	decoder->statement = &plain;
	access(decoder);
	decoder->statement = statement;
	emit_mbarrier(decoder, MBARRIER_COMPLETE_TX, &address, ACCESS_SHARED,
		      decode_constant(decoder, (uint64_t)bytes * count, 4));
}
