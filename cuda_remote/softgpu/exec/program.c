/* SPDX-License-Identifier: BSD-3-Clause */
/* A program: PTX text to kernels that can be launched, with their variables in device memory. */
#include "cuda_remote/softgpu/memory_map.h"

#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"
#include "cuda_remote/softgpu/exec/device_launch.h"
#include "cuda_remote/softgpu/texture.h"

#include <fenv.h>
#include <stdlib.h>
#include <string.h>

#define PARAMETER_BYTES_MAX 32764
#define LOCAL_BYTES_MAX (16u << 20) /* a thread's; CUDA's own bound is 512 KiB */

static uint64_t aligned(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

/* Variables of this size or more are aligned to it: programs pass arrays of smaller alignment to cuTensorMapEncodeTiled, or load
 * vectors from them. */
#define VECTOR_BYTES 16

/* ---- variables */
static uint64_t lay_out_variables(struct ptx_module *module, enum ptx_space space, uint64_t base)
{
	uint64_t at = 0;
	for (struct ptx_symbol *v = module->variables; v; v = v->next) {
		if (v->space != space || v->opaque || (v->is_extern && space != PTX_SHARED))
			continue;
		if (v->unsized && space != PTX_SHARED)
			ptx_unsupported(module->context, v->line, "%.*s: an array of unknown size", (int)v->name.length,
					v->name.at);
		at = aligned(at, v->align ? v->align : 1);
		if (space != PTX_SHARED && v->size >= VECTOR_BYTES)
			at = aligned(at, VECTOR_BYTES);
		if (space == PTX_SHARED)
			v->offset = at;
		else if (base)
			v->address = base + at;
		at += v->size;
		if (at > 1ull << 36)
			ptx_unsupported(module->context, v->line, "more than 64 GiB of variables");
		/* Each has an address of its own, also when it is empty. */
		at += v->size == 0 && space != PTX_SHARED;
	}
	return at;
}

static uint64_t allocate_variables(struct softgpu_program *program, enum ptx_space space, uint64_t *size)
{
	*size = lay_out_variables(program->module, space, 0);
	if (!*size)
		return 0;
	uint64_t base = softgpu_memory_alloc(aligned(*size, 256), 4096);
	if (!base)
		ptx_fail(&program->context, CUDA_ERROR_OUT_OF_MEMORY, 0, "out of device memory for variables");
	program->allocations[program->allocation_count++] = base;
	lay_out_variables(program->module, space, base);
	return base;
}

/* ---- references to textures and surfaces */
static void create_references(struct softgpu_program *program)
{
	for (struct ptx_symbol *v = program->module->variables; v; v = v->next) {
		if (!v->opaque || v->is_extern)
			continue;
		v->address = softgpu_texture_create(v->opaque == PTX_TEXREF ? SOFTGPU_TEXTURE_REFERENCE
									    : SOFTGPU_SURFACE_REFERENCE, NULL);
		if (!v->address)
			ptx_fail(&program->context, CUDA_ERROR_OUT_OF_MEMORY, v->line, "too many textures");
	}
}

static void destroy_references(struct softgpu_program *program)
{
	for (struct ptx_symbol *v = program->module ? program->module->variables : NULL; v; v = v->next)
		if (v->opaque && v->address)
			softgpu_texture_destroy(v->address);
}

static uint64_t address_of(struct softgpu_program *program, const struct ptx_relocation *relocation)
{
	uint32_t unused;
	const struct ptx_symbol *symbol = ptx_lookup(relocation->scope, relocation->name, &unused);
	if (!symbol)
		ptx_invalid(&program->context, relocation->line, "%.*s is not declared", (int)relocation->name.length,
			    relocation->name.at);
	if (symbol->definition)
		symbol = symbol->definition;
	if (symbol->kind == PTX_SYMBOL_FUNCTION) {
		struct code *code = symbol->function->code;
		if (!code)
			ptx_unsupported(&program->context, relocation->line, "the address of an external function");
		if (relocation->addend)
			ptx_invalid(&program->context, relocation->line, "nothing can be added to a function's address");
		code->address_taken = !symbol->function->is_kernel;
		return (uint64_t)(uintptr_t)code;
	}
	if (symbol->kind != PTX_SYMBOL_VARIABLE || !symbol->address)
		ptx_unsupported(&program->context, relocation->line,
				"the address of something that is neither a .global nor a .const variable");
	return symbol->address + (uint64_t)relocation->addend;
}

static void initialise_variables(struct softgpu_program *program)
{
	for (struct ptx_symbol *v = program->module->variables; v; v = v->next) {
		if (!v->init || !v->size)
			continue;
		char *memory = (char *)(uintptr_t)v->address;
		memcpy(memory, v->init, v->size);
		program->context.unit = v->unit;
		for (const struct ptx_relocation *r = v->relocations; r; r = r->next) {
			uint64_t address = address_of(program, r) >> r->shift;
			memcpy(memory + r->offset, &address, r->size);
		}
	}
}

/* ---- shared memory: variables of the module and of functions, then each kernel's own, then what the launch adds */
static uint32_t lay_out_shared(struct ptx_context *context, struct ptx_symbol *symbols, uint64_t at, uint32_t *align)
{
	for (struct ptx_symbol *s = symbols; s; s = s->next) {
		if (s->space != PTX_SHARED)
			continue;
		if (s->align > *align)
			*align = s->align;
		if (s->unsized)
			continue;
		s->offset = at = aligned(at, s->align ? s->align : 1);
		at += s->size;
		if (at > 16u << 20)
			ptx_unsupported(context, s->line, "more than 16 MiB of shared memory");
	}
	return (uint32_t)at;
}

/* ---- code */
static struct code *new_code(struct softgpu_program *program, struct ptx_function *function)
{
	struct code *code = ptx_alloc(&program->context, sizeof *code);
	code->program = program;
	code->function = function;
	code->name = ptx_copy_text(&program->context, function->name.at, function->name.length);
	function->code = code;
	code->next = program->codes;
	program->codes = code;
	return code;
}

/* Which calls there are in the call graph below a function. */
struct depth {
	bool indirect, recursive;
	bool prints, launches; /* calls of vprintf; of the device runtime's launch */
};

#define MARK_OPEN 1
#define MARK_DONE 2

static void clear_marks(struct softgpu_program *program)
{
	for (struct code *code = program->codes; code; code = code->next)
		code->mark = 0;
}

/* Whether code calls a function that may be recursive. pointed: the address of such a function is taken. */
static bool calls_recursive(const struct code *code, bool pointed)
{
	bool any = code->calls_indirect && pointed;
	for (uint32_t n = 0; n < code->call_count && !any; n++)
		any = code->calls[n]->callee && code->calls[n]->callee->recursive;
	return any;
}

/* Marks the functions that possibly recursive functions call by name; true if one of the callers calls through
 * pointers. */
static bool mark_called(struct softgpu_program *program)
{
	bool indirect = false;
	clear_marks(program);
	for (struct code *code = program->codes; code; code = code->next) {
		indirect |= code->recursive && code->calls_indirect;
		for (uint32_t n = 0; n < code->call_count && code->recursive; n++)
			if (code->calls[n]->callee)
				code->calls[n]->callee->mark = MARK_DONE;
	}
	return indirect;
}

/* The program's functions in the order in which they were added; *count: how many. */
static struct code **in_order(struct softgpu_program *program, uint32_t *count)
{
	uint32_t n = 0;
	for (struct code *code = program->codes; code; code = code->next)
		n++;
	struct code **codes = ptx_alloc(&program->context, (n + 1) * sizeof *codes);
	*count = n;
	for (struct code *code = program->codes; code; code = code->next)
		codes[--n] = code;
	return codes;
}

/* True if the function counts as recursive no longer. */
static bool remove_from_cycles(struct code *code, bool pointed, bool indirect)
{
	bool called = code->mark == MARK_DONE || (code->address_taken && indirect);
	if (!code->recursive || (called && calls_recursive(code, pointed)))
		return false;
	code->recursive = false;
	return true;
}

/*
 * A function is recursive if it is on a cycle of calls. A call through a pointer may reach every function whose address
 * is taken. First all functions count as possibly recursive. A function that calls none of these, or that none of these
 * calls, is on no cycle and is removed, until there is no such function. The functions on cycles remain, and those
 * between two cycles, for which the mark does no harm. The passes change direction: a chain of functions is removed in
 * one pass if each is looked at after the one that it calls.
 */
static void find_recursion(struct softgpu_program *program)
{
	uint32_t count;
	struct code **codes = in_order(program, &count);
	for (uint32_t i = 0; i < count; i++)
		codes[i]->recursive = !codes[i]->function->is_kernel;
	for (bool changed = true, forward = true; changed; forward = !forward) {
		bool pointed = false, indirect = mark_called(program);
		changed = false;
		for (uint32_t i = 0; i < count; i++)
			pointed |= codes[i]->recursive && codes[i]->address_taken;
		for (uint32_t i = 0; i < count; i++)
			changed |= remove_from_cycles(codes[forward ? i : count - 1 - i], pointed, indirect);
	}
	for (uint32_t i = 0; i < count; i++)
		program->has_recursion |= codes[i]->recursive;
}

/* A walk over the call graph enters a function from caller; NULL: it begins there. Walks do not recurse, as a chain of calls may be
 * long. */
static struct code *enter(struct code *code, struct code *caller)
{
	code->mark = MARK_OPEN;
	code->walk_from = caller;
	code->walk_next = 0;
	return code;
}

/* Bytes of local memory that the deepest chain of calls needs, from this function on. A cycle counts once. */
static uint64_t local_depth(struct code *root)
{
	struct code *code = root->local_depth_known ? NULL : enter(root, NULL);
	while (code) {
		struct code *callee = code->walk_next < code->call_count ? code->calls[code->walk_next]->callee : NULL;
		if (code->walk_next == code->call_count) {
			/* Until now local_depth was that of the deepest callee. */
			code->local_depth += code->frame_size;
			code->local_depth_known = true;
			code->mark = MARK_DONE;
			code = code->walk_from;
		} else if (callee && !callee->local_depth_known && callee->mark != MARK_OPEN) {
			code = enter(callee, code);
		} else {
			uint64_t below = callee && callee->local_depth_known ? callee->local_depth : 0;
			code->local_depth = below > code->local_depth ? below : code->local_depth;
			code->walk_next++;
		}
	}
	return root->local_depth;
}

/* The most local memory that a call through a pointer needs. It accounts for one such call in a chain. */
static uint64_t deepest_pointed(struct softgpu_program *program)
{
	uint64_t deepest = 0;
	for (struct code *code = program->codes; code; code = code->next) {
		uint64_t bytes = code->address_taken ? local_depth(code) : 0;
		deepest = bytes > deepest ? bytes : deepest;
	}
	return deepest;
}

static void flags_below(struct code *root, struct depth *depth)
{
	struct code *next = root->mark == MARK_OPEN ? NULL : enter(root, NULL);
	while (next) {
		struct code *code = next;
		next = code->walk_from;
		depth->indirect |= code->calls_indirect;
		depth->recursive |= code->recursive;
		for (uint32_t n = 0; n < code->call_count; n++) {
			struct code *callee = code->calls[n]->callee;
			depth->prints |= code->calls[n]->builtin == op_vprintf;
			depth->launches |= code->calls[n]->builtin == op_cdp_launch_device;
			if (callee && callee->mark != MARK_OPEN)
				next = enter(callee, next);
		}
	}
}

/* Functions that can be reached through pointers count too. */
static struct depth flags_of(struct softgpu_program *program, struct code *kernel)
{
	struct depth depth = { 0 };
	clear_marks(program);
	flags_below(kernel, &depth);
	for (struct code *code = program->codes; code && depth.indirect; code = code->next)
		if (code->address_taken)
			flags_below(code, &depth);
	return depth;
}

static void decode_functions(struct decoder *decoder, struct softgpu_program *program, uint32_t *shared)
{
	uint32_t align = 1;
	for (struct code *code = program->codes; code; code = code->next) {
		program->context.unit = code->function->unit;
		decode_layout_frame(decoder, code);
		if (!code->function->is_kernel)
			*shared = lay_out_shared(&program->context, code->function->locals, *shared, &align);
	}
	for (struct code *code = program->codes; code; code = code->next) {
		if (code->function->is_kernel)
			continue;
		code->register_base = program->register_bytes;
		program->context.unit = code->function->unit;
		decode_function(decoder, code);
		program->register_bytes += code->register_bytes;
		if (program->register_bytes > 1u << 28)
			ptx_unsupported(&program->context, code->function->line,
					"more registers than this engine has room for");
	}
}

static void fill_info(struct softgpu_program *program, struct softgpu_kernel *kernel, uint32_t functions_shared)
{
	const struct ptx_function *function = kernel->code->function;
	softgpu_kernel_info_t *info = &kernel->info;
	info->name = kernel->code->name;
	for (const struct ptx_symbol *s = function->parameters; s; s = s->next)
		info->parameters++;
	info->parameter_bytes = kernel->code->parameter_bytes;
	if (info->parameter_bytes > PARAMETER_BYTES_MAX)
		ptx_invalid(&program->context, function->line, "more than %d bytes of parameters", PARAMETER_BYTES_MAX);
	info->static_shared = kernel->shared_bytes - functions_shared;
	if (kernel->code->call_count)
		info->static_shared = kernel->shared_bytes;
	info->constant_bytes = (uint32_t)program->const_size;
	info->local_bytes = kernel->local_bytes;
	uint32_t registers = (kernel->code->register_bytes - kernel->code->constant_bytes + 127) / 128;
	info->registers = registers > 255 ? 255 : registers < 8 ? 8 : registers;
	info->max_threads = function->max_threads ? function->max_threads : 1024;
	memcpy(info->required_block, function->required_block, sizeof info->required_block);
	memcpy(info->required_cluster, function->required_cluster, sizeof info->required_cluster);
	info->max_cluster = function->max_cluster;
	info->explicit_cluster = function->explicit_cluster;
	info->ptx_version = program->module->target;
}

static bool names_reserved_shared(const struct ptx_operand *operand)
{
	for (; operand; operand = operand->next)
		if (operand->kind == PTX_OPERAND_NAME && ptx_text_is(operand->name, RESERVED_SHARED_NAME))
			return true;
	return false;
}

/*
 * The shared memory that is reserved for the system, which cooperative groups use. Here it follows the static memory of
 * each kernel that names it. at: the end of the static memory; returns the new end.
 */
static uint64_t reserve_shared(struct decoder *decoder, const struct ptx_function *function, uint64_t at)
{
	decoder->reserved_shared = 0;
	for (const struct ptx_statement *s = function->statements; s; s = s->next) {
		if (!names_reserved_shared(s->operands))
			continue;
		at = aligned(at, 16);
		decoder->reserved_shared = 1 + (uint32_t)at;
		return at + RESERVED_SHARED_BYTES;
	}
	return at;
}

static void decode_kernel(struct decoder *decoder, struct softgpu_program *program, struct softgpu_kernel *kernel,
			  struct code *code, uint32_t functions_shared)
{
	uint32_t align = 16;
	kernel->code = code;
	program->context.unit = code->function->unit;
	uint64_t at = lay_out_shared(&program->context, code->function->locals, functions_shared, &align);
	lay_out_shared(&program->context, program->module->variables, 0, &align);
	code->shared_bytes = (uint32_t)aligned(reserve_shared(decoder, code->function, at), 16);
	kernel->shared_bytes = code->shared_bytes;
	kernel->reserved_shared = decoder->reserved_shared;
	kernel->shared_align = align;
	code->register_base = program->register_bytes;
	decode_function(decoder, code);
	kernel->warp_bytes = program->register_bytes + code->register_bytes;
}

/* Whether any function of the program prints. */
static bool some_print(const struct softgpu_program *program)
{
	for (const struct code *code = program->codes; code; code = code->next)
		for (uint32_t n = 0; n < code->call_count; n++)
			if (code->calls[n]->builtin == op_vprintf)
				return true;
	return false;
}

/* Comes after all functions and kernels are decoded, when it is known which functions' addresses are taken. */
static void finish_kernel(struct softgpu_program *program, struct softgpu_kernel *kernel, uint32_t functions_shared)
{
	program->context.unit = kernel->code->function->unit;
	struct depth depth = flags_of(program, kernel->code);
	clear_marks(program);
	uint64_t local = local_depth(kernel->code);
	if (depth.indirect)
		local += deepest_pointed(program);
	kernel->open_stack = depth.indirect || depth.recursive;
	if (local > LOCAL_BYTES_MAX)
		ptx_unsupported(&program->context, kernel->code->function->line, "more than 16 MiB of local memory");
	kernel->local_bytes = (uint32_t)aligned(local, 16);
	fill_info(program, kernel, functions_shared);
	kernel->info.prints = depth.prints || (depth.launches && some_print(program));
}

static void decode_all(struct softgpu_program *program)
{
	struct decoder *decoder = ptx_alloc(&program->context, sizeof *decoder);
	uint32_t align = 1, shared;
	int checks = check_wanted();
	if (checks < 0)
		ptx_fail(&program->context, CUDA_ERROR_INVALID_VALUE, 0, "HEADRACE_SOFTGPU_CHECK has an invalid value");
	program->checks = (uint8_t)checks;
	decoder->context = &program->context;
	decoder->program = program;
	decoder->ops = program->ops = lane_ops_choose();
	for (struct ptx_function *f = program->module->functions; f; f = f->next) {
		if (f->has_body)
			new_code(program, f);
		program->kernel_count += f->is_kernel && f->has_body;
	}
	initialise_variables(program);
	shared = lay_out_shared(&program->context, program->module->variables, 0, &align);
	decode_functions(decoder, program, &shared);
	program->kernels = ptx_alloc(&program->context, (program->kernel_count + 1) * sizeof *program->kernels);
	size_t n = 0;
	for (struct ptx_function *f = program->module->functions; f; f = f->next)
		if (f->is_kernel && f->has_body)
			decode_kernel(decoder, program, &program->kernels[n++], f->code, shared);
	find_recursion(program);
	for (n = 0; n < program->kernel_count; n++)
		finish_kernel(program, &program->kernels[n], shared);
}

/* Parses and links the units. Texts and names are copied, because symbols point into them. */
static struct ptx_module *link_units(struct softgpu_program *program, const softgpu_unit_t *units, size_t count)
{
	struct ptx_context *context = &program->context;
	struct ptx_module **modules = ptx_alloc(context, (count + 1) * sizeof *modules);
	for (size_t n = 0; n < count; n++) {
		const char *name = units[n].name;
		if (name)
			name = ptx_copy_text(context, name, strlen(name));
		char *text = ptx_copy_text(context, units[n].text, units[n].length);
		modules[n] = ptx_parse(context, name, text, units[n].length);
		modules[n]->on_demand = units[n].on_demand;
	}
	context->unit = NULL;
	if (!count)
		ptx_invalid(context, 0, "nothing to link");
	return ptx_link(context, modules, count, decode_is_builtin);
}

static void load(struct softgpu_program *program, const softgpu_unit_t *units, size_t count)
{
	uint64_t size;
	program->module = link_units(program, units, count);
	program->allocations = ptx_alloc(&program->context, 2 * sizeof *program->allocations);
	allocate_variables(program, PTX_GLOBAL, &size);
	create_references(program);
	program->const_base = allocate_variables(program, PTX_CONST, &program->const_size);
	decode_all(program);
}

/* ---- engine.h */
CUresult softgpu_program_load(const char *ptx, size_t length, softgpu_log_t *log, softgpu_program_t **result)
{
	const softgpu_unit_t unit = { NULL, ptx, length, false };
	return softgpu_program_link(&unit, 1, log, result);
}

CUresult softgpu_program_link(const softgpu_unit_t *units, size_t count, softgpu_log_t *log, softgpu_program_t **result)
{
	struct softgpu_program *program = calloc(1, sizeof *program);
	if (!program)
		return CUDA_ERROR_OUT_OF_MEMORY;
	program->context.log = log;
	/* Constants are rounded to nearest, whatever the host's mode is. */
	fenv_t host;
	fegetenv(&host);
	fesetenv(FE_DFL_ENV);
	if (setjmp(program->context.give_up)) {
		CUresult why = program->context.result;
		softgpu_program_unload(program);
		fesetenv(&host);
		return why;
	}
	load(program, units, count);
	program->context.log = NULL;
	*result = program;
	fesetenv(&host);
	return CUDA_SUCCESS;
}

CUresult softgpu_program_check(const softgpu_unit_t *unit, softgpu_log_t *log)
{
	struct ptx_context *context = calloc(1, sizeof *context);
	if (!context)
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->log = log;
	if (!setjmp(context->give_up))
		ptx_parse(context, unit->name, unit->text, unit->length);
	CUresult result = context->result;
	ptx_arena_free(&context->arena);
	free(context);
	return result;
}

void softgpu_program_unload(softgpu_program_t *program)
{
	for (size_t n = 0; n < program->allocation_count; n++)
		softgpu_memory_free(program->allocations[n]);
	destroy_references(program);
	ptx_arena_free(&program->context.arena);
	free(program);
}

softgpu_kernel_t *softgpu_program_kernel(softgpu_program_t *program, size_t index)
{
	return index < program->kernel_count ? &program->kernels[index] : NULL;
}

softgpu_kernel_t *softgpu_program_find(softgpu_program_t *program, const char *name)
{
	for (size_t n = 0; n < program->kernel_count; n++)
		if (!strcmp(program->kernels[n].info.name, name))
			return &program->kernels[n];
	return NULL;
}

CUresult softgpu_program_variable(softgpu_program_t *program, const char *name, uint64_t *address, uint64_t *size)
{
	/* Several units may have a local variable of this name; a variable that is not local is preferred. */
	const struct ptx_symbol *found = NULL;
	for (const struct ptx_symbol *v = program->module->variables; v; v = v->next)
		if (v->address && !v->opaque && (!found || (found->linkage == PTX_LOCAL_LINKAGE && v->linkage != PTX_LOCAL_LINKAGE)) &&
		    ptx_text_is(v->name, name))
			found = v;
	if (!found)
		return CUDA_ERROR_NOT_FOUND;
	*address = found->address;
	*size = found->size;
	return CUDA_SUCCESS;
}

CUresult softgpu_program_reference(softgpu_program_t *program, const char *name, enum softgpu_texture_kind kind,
				   uint64_t *handle)
{
	for (const struct ptx_symbol *v = program->module->variables; v; v = v->next) {
		if (!v->opaque || !ptx_text_is(v->name, name) || softgpu_texture_kind(v->address) != kind)
			continue;
		*handle = v->address;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

void softgpu_kernel_info(const softgpu_kernel_t *kernel, softgpu_kernel_info_t *info)
{
	*info = kernel->info;
}

CUresult softgpu_kernel_parameter(const softgpu_kernel_t *kernel, size_t index, size_t *offset, size_t *size)
{
	const struct ptx_symbol *s = kernel->code->function->parameters;
	while (s && index-- > 0)
		s = s->next;
	if (!s)
		return CUDA_ERROR_INVALID_VALUE;
	*offset = s->offset;
	*size = s->size;
	return CUDA_SUCCESS;
}
