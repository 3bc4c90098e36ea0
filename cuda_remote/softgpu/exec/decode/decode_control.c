/* SPDX-License-Identifier: BSD-3-Clause */
/* Branches, calls, barriers, and instructions that act on the lanes of a warp together. */
#include "cuda_remote/softgpu/exec/collective.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/device_launch.h"

#include <string.h>

/* ---- branches */
static bool is_spin_access(const struct ptx_statement *statement)
{
	static const char *const words[] = { ".volatile", ".acquire", ".relaxed", ".acq_rel", ".mmio", ".cv" };
	const char *opcode = statement->opcode;
	if (!strcmp(opcode, "atom") || !strcmp(opcode, "nanosleep") || !strcmp(opcode, "call") ||
	    !strcmp(opcode, "mbarrier") || !strcmp(opcode, "fence") || !strcmp(opcode, "membar"))
		return true;
	for (uint32_t i = 0; !strcmp(opcode, "ld") && i < statement->modifiers; i++)
		for (size_t n = 0; n < sizeof words / sizeof *words; n++)
			if (ptx_text_is(statement->modifier[i], words[n]))
				return true;
	return false;
}

/* The fuel that an iteration of the loop costs: SPIN_COST if the loop may wait for another thread. */
static uint8_t loop_cost(struct decoder *decoder, uint32_t from, uint32_t to)
{
	for (const struct ptx_statement *s = decoder->function->statements; s && s->position <= to; s = s->next)
		if (s->position >= from && is_spin_access(s))
			return SPIN_COST;
	return 1;
}

void decode_branch(struct decoder *decoder)
{
	struct ptx_statement *statement = decoder->statement;
	decode_operand_count(decoder, 1, 1);
	struct ptx_operand *operand = decode_operand(decoder, 0);
	if (operand->kind != PTX_OPERAND_NAME)
		decode_invalid(decoder, "the target is not a label");
	uint32_t target = decode_symbol(decoder, operand)->position;
	bool back = target <= statement->position;
	struct draft *draft = decode_emit(decoder, statement->guard ? (back ? op_branch_back : op_branch)
								    : (back ? op_bra_back : op_bra));
	if (statement->guard) {
		decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)statement->guard->number });
		draft->insn.flags = statement->guard->negated ? INSN_NEGATE : 0;
	}
	draft->ends_path = !statement->guard;
	draft->target_kind = TARGET_STATEMENT;
	draft->target = target;
	draft->insn.count = back ? loop_cost(decoder, target, statement->position) : 1;
}

void decode_brx(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 2);
	if (!decode_has(decoder, ".idx"))
		decode_unsupported(decoder, "this kind of branch");
	const struct ptx_symbol *list = decode_symbol(decoder, decode_operand(decoder, 1));
	struct value index = decode_source(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_brx);
	if (list->kind != PTX_SYMBOL_LIST)
		decode_invalid(decoder, "expected a list of .branchtargets");
	decode_use(draft, 1, index);
	draft->ends_path = true;
	draft->target_kind = TARGET_LIST;
	draft->targets = list->list;
}

void decode_return(struct decoder *decoder)
{
	decode_operand_count(decoder, 0, 0);
	struct draft *draft = decode_emit(decoder, decoder->function->is_kernel ? op_exit : op_return);
	draft->ends_path = true;
}

void decode_exit(struct decoder *decoder)
{
	decode_operand_count(decoder, 0, 0);
	decode_emit(decoder, op_exit)->ends_path = true;
}

void decode_trap(struct decoder *decoder)
{
	decode_operand_count(decoder, 0, 0);
	decode_emit(decoder, strcmp(decoder->statement->opcode, "trap") ? op_brkpt : op_trap);
}

/* ---- frames and calls: results, then parameters, from the start of the callee's frame */
static uint64_t place(struct ptx_symbol *symbol, uint64_t at)
{
	uint64_t align = symbol->align ? symbol->align : 1;
	symbol->offset = (at + align - 1) & ~(align - 1);
	return symbol->offset + symbol->size;
}

static uint32_t signature_of(const struct ptx_function *function)
{
	uint32_t hash = 2166136261u;
	for (const struct ptx_symbol *s = function->results; s; s = s->next)
		hash = (hash ^ ((uint32_t)s->size * 31 + s->align)) * 16777619u;
	hash = (hash ^ 0x5a5a) * 16777619u;
	for (const struct ptx_symbol *s = function->parameters; s; s = s->next)
		hash = (hash ^ ((uint32_t)s->size * 31 + s->align)) * 16777619u;
	return hash;
}

static uint64_t layout_formals(struct ptx_function *function)
{
	uint64_t at = 0;
	for (struct ptx_symbol *s = function->results; s; s = s->next)
		at = place(s, at);
	for (struct ptx_symbol *s = function->parameters; s; s = s->next)
		at = place(s, at);
	return at;
}

#define FRAME_BYTES_MAX (512u << 10)

void decode_layout_frame(struct decoder *decoder, struct code *code)
{
	struct ptx_function *function = code->function;
	uint64_t at = layout_formals(function);
	if (at > FRAME_BYTES_MAX)
		ptx_invalid(decoder->context, function->line, "more than %u KiB of parameters", FRAME_BYTES_MAX >> 10);
	code->signature = signature_of(function);
	if (function->is_kernel) {
		for (struct ptx_symbol *s = function->parameters; s; s = s->next)
			s->position = 1;
		code->parameter_bytes = (uint32_t)at;
		at = 0;
	}
	for (struct ptx_symbol *s = function->locals; s; s = s->next) {
		if (s->space == PTX_SHARED)
			continue;
		if (s->unsized)
			ptx_unsupported(decoder->context, s->line, "a local array of unknown size");
		at = place(s, at);
		if (at > FRAME_BYTES_MAX)
			ptx_unsupported(decoder->context, s->line, "more than %u KiB of local memory",
					FRAME_BYTES_MAX >> 10);
	}
	code->frame_size = (uint32_t)(at + 15) & ~15u;
}

/* The sizes of the arguments and of the result, bytes; 0 ends the list, or says that there is no result. */
static const struct {
	const char *name;
	insn_handler *const handler;
	uint8_t arguments[6], result;
} builtins[] = {
	{ "vprintf", op_vprintf, { 8, 8 }, 4 },
	{ "malloc", op_malloc, { 8 }, 8 },
	{ "free", op_free, { 8 }, 0 },
	{ "__assertfail", op_assertfail, { 8, 8, 4, 8, 8 }, 0 },
	{ "cudaGraphSetConditional", op_set_conditional, { 8, 4 }, 0 },
	{ "__cudaCDP2GetParameterBufferV2", op_cdp_get_parameter_buffer, { 8, 12, 12, 4 }, 8 },
	{ "__cudaCDP2LaunchDeviceV2", op_cdp_launch_device, { 8, 8 }, 4 },
	{ "__cudaCDP2MemcpyAsync", op_cdp_memcpy_async, { 8, 8, 8, 4, 8 }, 4 },
	{ "__cudaCDP2GetLastError", op_cdp_get_last_error, { 0 }, 4 },
	{ "__cudaCDP2PeekAtLastError", op_cdp_peek_last_error, { 0 }, 4 },
	{ "__cudaCDP2GetErrorString", op_cdp_get_error_string, { 4 }, 8 },
	{ "__cudaCDP2StreamCreateWithFlags", op_cdp_stream_create, { 8, 4 }, 4 },
	{ "__cudaCDP2StreamDestroy", op_cdp_stream_destroy, { 8 }, 4 },
	{ "__cudaCDP2Malloc", op_cdp_malloc, { 8, 8 }, 4 },
	{ "__cudaCDP2Free", op_cdp_free, { 8 }, 4 },
};

/* How the actual arguments (or results) are copied to (from) the formals; gives up if they do not match. */
static uint32_t copies_of(struct decoder *decoder, struct ptx_operand *actuals, const struct ptx_symbol *formals,
			  bool is_result, struct call_copy **copies)
{
	uint32_t count = 0;
	for (const struct ptx_symbol *s = formals; s; s = s->next)
		count++;
	*copies = ptx_alloc(decoder->context, (count + 1) * sizeof **copies);
	struct ptx_operand *actual = actuals;
	for (uint32_t n = 0; n < count; n++, formals = formals->next, actual = actual->next) {
		if (!actual)
			decode_invalid(decoder, "fewer arguments than the function has");
		if (actual->kind != PTX_OPERAND_NAME)
			decode_unsupported(decoder, "arguments in registers");
		const struct ptx_symbol *symbol = decode_symbol(decoder, actual);
		if (symbol->kind != PTX_SYMBOL_VARIABLE || symbol->space != PTX_PARAM || symbol->position == 1)
			decode_unsupported(decoder, "an argument that is not a .param variable of this function");
		if (symbol->size < formals->size)
			decode_invalid(decoder, "an argument is smaller than the function's parameter");
		(*copies)[n].size = (uint32_t)formals->size;
		(*copies)[n].from = (uint32_t)(is_result ? formals->offset : symbol->offset);
		(*copies)[n].to = (uint32_t)(is_result ? symbol->offset : formals->offset);
	}
	if (actual)
		decode_invalid(decoder, "more arguments than the function has");
	return count;
}

static void remember_call(struct decoder *decoder, struct call_site *site)
{
	struct code *code = decoder->code;
	if ((code->call_count & (code->call_count - 1)) == 0) {
		struct call_site **grown =
			ptx_alloc(decoder->context, (code->call_count ? code->call_count * 2 : 1) * sizeof *grown);
		if (code->call_count)
			memcpy(grown, code->calls, code->call_count * sizeof *grown);
		code->calls = grown;
	}
	code->calls[code->call_count++] = site;
}

/* The parts of "call (result), callee, (arguments), prototype". */
struct call_parts {
	struct ptx_operand *results, *callee, *arguments, *prototype;
};

static struct call_parts split_call(struct decoder *decoder)
{
	struct call_parts parts = { 0 };
	struct ptx_operand *operand = decode_operand(decoder, 0);
	if (operand->kind == PTX_OPERAND_LIST) {
		parts.results = operand->first;
		operand = operand->next;
	}
	if (!operand)
		decode_invalid(decoder, "no function to call");
	parts.callee = operand;
	operand = operand->next;
	if (operand && operand->kind == PTX_OPERAND_LIST) {
		parts.arguments = operand->first;
		operand = operand->next;
	}
	parts.prototype = operand;
	if (operand && operand->next)
		decode_invalid(decoder, "too many operands");
	return parts;
}

bool decode_is_builtin(struct ptx_text name)
{
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++)
		if (ptx_text_is(name, builtins[i].name))
			return true;
	return false;
}

/* Whether the parameters of a declaration have these sizes; 0 ends the list. */
static bool are_sized(const struct ptx_symbol *formals, const uint8_t *sizes)
{
	for (; formals; formals = formals->next)
		if (!*sizes || formals->size != *sizes++)
			return false;
	return !*sizes;
}

static bool call_builtin(struct decoder *decoder, const struct ptx_function *function, struct call_site *site)
{
	for (size_t i = 0; i < sizeof builtins / sizeof *builtins; i++) {
		if (!ptx_text_is(function->name, builtins[i].name))
			continue;
		const uint8_t result[] = { builtins[i].result, 0 };
		if (!are_sized(function->parameters, builtins[i].arguments) || !are_sized(function->results, result))
			decode_invalid(decoder, "the parameters are not those of this function");
		site->builtin = builtins[i].handler;
		return true;
	}
	return false;
}

static void emit_call(struct decoder *decoder, struct call_site *site, insn_handler *handler, struct value target)
{
	bool in_kernel = decoder->function->is_kernel;
	struct value frame = in_kernel ? decode_constant(decoder, 0, 8) :
					 (struct value){ ROLE_USE, (int32_t)decoder->frame_register };
	struct draft *draft = decode_emit(decoder, handler);
	decode_use(draft, 1, target);
	decode_use(draft, 2, frame);
	draft->insn.call = site;
	if (site->builtin)
		return;
	draft = decode_emit(decoder, op_call_return);
	decode_use(draft, 2, frame);
	draft->insn.call = site;
}

/* The function whose formals an indirect call has: the prototype, or the first of the list of targets. */
static struct ptx_function *signature_for(struct decoder *decoder, struct ptx_operand *operand)
{
	const struct ptx_symbol *symbol = operand ? decode_symbol(decoder, operand) : NULL;
	if (symbol && symbol->kind == PTX_SYMBOL_LIST && symbol->list)
		symbol = decode_symbol(decoder, symbol->list);
	if (!symbol || (symbol->kind != PTX_SYMBOL_PROTOTYPE && symbol->kind != PTX_SYMBOL_FUNCTION))
		decode_invalid(decoder, "an indirect call needs a .callprototype or .calltargets");
	return symbol->function;
}

void decode_call(struct decoder *decoder)
{
	struct call_parts parts = split_call(decoder);
	struct call_site *site = ptx_alloc(decoder->context, sizeof *site);
	struct ptx_function *function;
	struct value target = { ROLE_NONE, 0 };
	bool indirect = parts.callee->kind == PTX_OPERAND_REGISTER;
	if (indirect) {
		function = signature_for(decoder, parts.prototype);
		layout_formals(function);
		target = decode_source(decoder, parts.callee, 'l');
		decoder->code->calls_indirect = true;
	} else {
		const struct ptx_symbol *symbol = decode_symbol(decoder, parts.callee);
		if (symbol->kind != PTX_SYMBOL_FUNCTION || symbol->function->is_kernel)
			decode_unsupported(decoder, "this is not a function that can be called");
		function = symbol->function;
		site->callee = function->code;
	}
	if (!indirect && !function->has_body)
		layout_formals(function);
	site->signature = signature_of(function);
	site->frame_size = decoder->code->frame_size;
	site->argument_count = copies_of(decoder, parts.arguments, function->parameters, false, &site->arguments);
	site->result_count = copies_of(decoder, parts.results, function->results, true, &site->results);
	if (!indirect && !function->has_body && !call_builtin(decoder, function, site))
		ptx_unsupported(decoder->context, decoder->statement->line,
				"call of %.*s, which this module does not define", (int)function->name.length,
				function->name.at);
	remember_call(decoder, site);
	emit_call(decoder, site, site->builtin ? site->builtin : indirect ? op_call_indirect : op_call, target);
}

/* ---- barriers and fences */
static void decode_warp_barrier(struct decoder *decoder)
{
	decode_operand_count(decoder, 1, 1);
	struct value mask = decode_source(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_warp_sync);
	decode_use(draft, 1, mask);
}

/* The operands barrier and thread count; insn->size: both are constants, so the same for all lanes. */
static void use_barrier(struct draft *draft, struct value barrier, struct value threads)
{
	decode_use(draft, 1, barrier);
	decode_use(draft, 2, threads);
	draft->insn.size = barrier.role == ROLE_CONSTANT && threads.role == ROLE_CONSTANT;
}

static void decode_barrier_reduction(struct decoder *decoder)
{
	bool popc = decode_has(decoder, ".popc");
	decode_operand_count(decoder, 3, 4);
	uint32_t last = decoder->statement->operand_count - 1;
	struct ptx_operand *truth = decode_operand(decoder, last);
	if (truth->kind != PTX_OPERAND_REGISTER || decode_register_size(decoder, truth->number))
		decode_invalid(decoder, "the last operand is not a predicate");
	struct value barrier = decode_source(decoder, decode_operand(decoder, 1), 'w');
	struct value threads =
		last == 3 ? decode_source(decoder, decode_operand(decoder, 2), 'w') : decode_constant(decoder, 0, 4);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), popc ? 'w' : 'p');
	if (!popc && decode_has(decoder, ".and") == decode_has(decoder, ".or"))
		decode_invalid(decoder, "expected .popc, .and or .or");
	struct draft *draft = decode_emit(decoder, op_bar_red);
	decode_define(draft, 0, result);
	use_barrier(draft, barrier, threads);
	decode_use(draft, 3, (struct value){ ROLE_USE, (int32_t)truth->number });
	draft->insn.flags = truth->negated ? INSN_NEGATE : 0;
	draft->insn.count = popc ? BARRIER_POPC : decode_has(decoder, ".and") ? BARRIER_AND : BARRIER_OR;
}

void decode_barrier(struct decoder *decoder)
{
	if (decode_has(decoder, ".cluster")) {
		decode_cluster_barrier(decoder);
		return;
	}
	if (decode_has(decoder, ".warp")) {
		decode_warp_barrier(decoder);
		return;
	}
	if (decode_has(decoder, ".red")) {
		decode_barrier_reduction(decoder);
		return;
	}
	bool arrive = decode_has(decoder, ".arrive");
	if (!arrive && !decode_has(decoder, ".sync"))
		decode_unsupported(decoder, "this kind of barrier");
	decode_operand_count(decoder, arrive ? 2 : 1, 2);
	struct value barrier = decode_source(decoder, decode_operand(decoder, 0), 'w');
	struct value threads = decoder->statement->operand_count > 1
				       ? decode_source(decoder, decode_operand(decoder, 1), 'w')
				       : decode_constant(decoder, 0, 4);
	struct draft *draft = decode_emit(decoder, arrive ? op_bar_arrive : op_bar_sync);
	use_barrier(draft, barrier, threads);
}

void decode_nanosleep(struct decoder *decoder)
{
	decode_operand_count(decoder, 1, 1);
	struct value duration = decode_source(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_nanosleep);
	decode_use(draft, 1, duration);
}

/* ---- collectives */

/* The operand with the members of a .sync form. Before sm_70 there are forms without one: the running lanes take part. */
static struct value member_mask(struct decoder *decoder, uint32_t n)
{
	bool sync = decode_has(decoder, ".sync");
	if (!sync && decoder->program->module->target >= 70)
		decode_invalid(decoder, "from sm_70 on, expected .sync and a member mask");
	decode_operand_count(decoder, n + sync, n + sync);
	return sync ? decode_source(decoder, decode_operand(decoder, n), 'w') : (struct value){ ROLE_NONE, -1 };
}

void decode_shfl(struct decoder *decoder)
{
	static const struct {
		const char *word;
		enum shuffle mode;
	} modes[] = { { ".up", SHUFFLE_UP },
		      { ".down", SHUFFLE_DOWN },
		      { ".bfly", SHUFFLE_BUTTERFLY },
		      { ".idx", SHUFFLE_INDEX } };
	decode_operand_count(decoder, 4, 5);
	struct ptx_operand *target = decode_operand(decoder, 0), *p = NULL;
	if (target->kind == PTX_OPERAND_PAIR) {
		p = target->first->next;
		target = target->first;
	}
	struct value source = decode_source(decoder, decode_operand(decoder, 1), 'w');
	struct value lane = decode_source(decoder, decode_operand(decoder, 2), 'w');
	struct value clamp = decode_source(decoder, decode_operand(decoder, 3), 'w');
	struct value members = member_mask(decoder, 4);
	uint32_t result = decode_result(decoder, target, 'w'), valid = p ? decode_result(decoder, p, 'p') : 0;
	struct draft *draft = decode_emit(decoder, op_shfl);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	decode_use(draft, 2, lane);
	decode_use(draft, 3, clamp);
	decode_use(draft, 4, members);
	draft->insn.r[5] = -1;
	if (p)
		decode_define(draft, 5, valid);
	draft->insn.count = 255;
	for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
		if (decode_has(decoder, modes[i].word))
			draft->insn.count = (uint8_t)modes[i].mode;
	if (draft->insn.count == 255)
		decode_invalid(decoder, "expected .up, .down, .bfly or .idx");
}

void decode_vote(struct decoder *decoder)
{
	decode_operand_count(decoder, 2, 3);
	bool ballot = decode_has(decoder, ".ballot");
	struct ptx_operand *truth = decode_operand(decoder, 1);
	if (truth->kind != PTX_OPERAND_REGISTER || decode_register_size(decoder, truth->number))
		decode_unsupported(decoder, "a source that is not a predicate register");
	struct value members = member_mask(decoder, 2);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), ballot ? 'w' : 'p');
	struct draft *draft = decode_emit(decoder, op_vote);
	decode_define(draft, 0, result);
	decode_use(draft, 1, (struct value){ ROLE_USE, (int32_t)truth->number });
	decode_use(draft, 2, members);
	draft->insn.flags = truth->negated ? INSN_NEGATE : 0;
	draft->insn.count = ballot ? VOTE_BALLOT : decode_has(decoder, ".all") ? VOTE_ALL :
			    decode_has(decoder, ".any") ? VOTE_ANY : VOTE_UNI;
	if (draft->insn.count == VOTE_UNI && !decode_has(decoder, ".uni"))
		decode_invalid(decoder, "expected .all, .any, .uni or .ballot");
}

void decode_match(struct decoder *decoder)
{
	decode_operand_count(decoder, 3, 3);
	bool all = decode_has(decoder, ".all"), wide = decode_has(decoder, ".b64");
	struct ptx_operand *target = decode_operand(decoder, 0), *p = NULL;
	if (target->kind == PTX_OPERAND_PAIR) {
		p = target->first->next;
		target = target->first;
	}
	if ((p && !all) || (!all && !decode_has(decoder, ".any")))
		decode_invalid(decoder, "expected .all, or .any without a predicate");
	struct value source = decode_source(decoder, decode_operand(decoder, 1), wide ? 'l' : 'w');
	struct value members = member_mask(decoder, 2);
	uint32_t result = decode_result(decoder, target, 'w'), same = p ? decode_result(decoder, p, 'p') : 0;
	struct draft *draft = decode_emit(decoder, op_match);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	decode_use(draft, 2, members);
	draft->insn.r[5] = -1;
	if (p)
		decode_define(draft, 5, same);
	draft->insn.size = wide ? 8 : 4;
	draft->insn.count = all;
}

void decode_activemask(struct decoder *decoder)
{
	decode_operand_count(decoder, 1, 1);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	decode_define(decode_emit(decoder, op_activemask), 0, result);
}

void decode_redux(struct decoder *decoder)
{
	static const struct {
		const char *word;
		enum reduction op;
	} ops[] = { { ".add", REDUCE_ADD }, { ".min", REDUCE_MIN }, { ".max", REDUCE_MAX }, { ".and", REDUCE_AND },
		    { ".or", REDUCE_OR }, { ".xor", REDUCE_XOR } };
	decode_operand_count(decoder, 3, 3);
	if (decode_has(decoder, ".f32"))
		decode_unsupported(decoder, "reductions of floats");
	struct value source = decode_source(decoder, decode_operand(decoder, 1), 'w');
	struct value members = member_mask(decoder, 2);
	uint32_t result = decode_result(decoder, decode_operand(decoder, 0), 'w');
	struct draft *draft = decode_emit(decoder, op_redux);
	decode_define(draft, 0, result);
	decode_use(draft, 1, source);
	decode_use(draft, 2, members);
	draft->insn.flags = decode_has(decoder, ".s32") ? INSN_SIGNED : 0;
	draft->insn.count = 255;
	for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
		if (decode_has(decoder, ops[i].word))
			draft->insn.count = (uint8_t)ops[i].op;
	if (draft->insn.count == 255)
		decode_invalid(decoder, "no such reduction");
}
