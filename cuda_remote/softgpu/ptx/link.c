/* SPDX-License-Identifier: BSD-3-Clause */
/* Links modules into one (PTX ISA, "Linking Directives"). The modules keep their scopes, so local names stay apart. */
#include "cuda_remote/softgpu/ptx/module.h"

#include <stdio.h>
#include <string.h>

#define BUCKETS 1024

/* A name that modules share, and the definition of it that is chosen so far. */
struct shared_name {
	struct shared_name *next;
	struct ptx_symbol *symbol;
};

struct linker {
	struct ptx_context *context;
	struct ptx_module **modules;
	size_t count;
	bool (*supplied)(struct ptx_text name);
	struct shared_name *buckets[BUCKETS];
	char missing[384]; /* the names that no unit defines */
	const struct ptx_symbol *first_missing;
	size_t missing_length;
};

static struct shared_name **slot_of(struct linker *linker, struct ptx_text name)
{
	uint32_t hash = 2166136261u;
	for (uint32_t i = 0; i < name.length; i++)
		hash = (hash ^ (uint8_t)name.at[i]) * 16777619u;
	struct shared_name **at = &linker->buckets[(hash ^ hash >> 16) % BUCKETS];
	while (*at && ((*at)->symbol->name.length != name.length ||
		       memcmp((*at)->symbol->name.at, name.at, name.length)))
		at = &(*at)->next;
	return at;
}

static struct ptx_symbol *find(struct linker *linker, struct ptx_text name)
{
	struct shared_name *shared = *slot_of(linker, name);
	return shared ? shared->symbol : NULL;
}

static bool defines(const struct ptx_symbol *symbol)
{
	return symbol->kind == PTX_SYMBOL_FUNCTION ? symbol->function->has_body : !symbol->is_extern;
}

/* Shared memory whose size the launch gives is one array for all modules; no unit defines it. */
static bool is_dynamic_shared(const struct ptx_symbol *symbol)
{
	return symbol->kind == PTX_SYMBOL_VARIABLE && symbol->space == PTX_SHARED && symbol->unsized;
}

static const char *unit_of(const struct ptx_symbol *symbol)
{
	return symbol->unit ? symbol->unit : "the same text";
}

static _Noreturn void differ(struct linker *linker, const struct ptx_symbol *symbol, const struct ptx_symbol *first,
			     const char *what)
{
	linker->context->unit = symbol->unit;
	ptx_fail(linker->context, CUDA_ERROR_INVALID_SOURCE, symbol->line,
		 "%.*s: its %s is not that of %s, line %u", (int)symbol->name.length, symbol->name.at, what,
		 unit_of(first), first->line);
}

static bool same_parameters(const struct ptx_symbol *a, const struct ptx_symbol *b)
{
	for (; a && b; a = a->next, b = b->next)
		if (a->size != b->size || a->space != b->space || a->unsized != b->unsized)
			return false;
	return !a && !b;
}

/* Gives up if two declarations of one name differ in kind, parameters, state space or size. */
static void check_alike(struct linker *linker, const struct ptx_symbol *symbol, const struct ptx_symbol *first)
{
	if (symbol->kind != first->kind)
		differ(linker, symbol, first, "kind (variable or function)");
	if (symbol->kind == PTX_SYMBOL_FUNCTION) {
		if (symbol->function->is_kernel != first->function->is_kernel)
			differ(linker, symbol, first, "kind (kernel or function)");
		if (!same_parameters(symbol->function->parameters, first->function->parameters) ||
		    !same_parameters(symbol->function->results, first->function->results))
			differ(linker, symbol, first, "list of parameters");
		return;
	}
	if (symbol->space != first->space)
		differ(linker, symbol, first, "state space");
	bool common = symbol->linkage == PTX_COMMON || first->linkage == PTX_COMMON;
	if (symbol->size != first->size && !symbol->unsized && !first->unsized && !common)
		differ(linker, symbol, first, "size");
}

/* Whether definition symbol replaces the earlier definition first; gives up if a name must not have both. */
static bool displaces(struct linker *linker, const struct ptx_symbol *symbol, const struct ptx_symbol *first)
{
	bool both_common = symbol->linkage == PTX_COMMON && first->linkage == PTX_COMMON;
	if ((symbol->linkage == PTX_VISIBLE && first->linkage == PTX_VISIBLE) ||
	    (both_common && symbol->init && first->init)) {
		linker->context->unit = symbol->unit;
		ptx_fail(linker->context, CUDA_ERROR_INVALID_SOURCE, symbol->line,
			 "multiple definition of %.*s, first defined in %s, line %u", (int)symbol->name.length,
			 symbol->name.at, unit_of(first), first->line);
	}
	if (!both_common)
		return symbol->linkage > first->linkage;
	const struct ptx_symbol *initialised = symbol->init ? symbol : first->init ? first : NULL;
	const struct ptx_symbol *other = initialised == symbol ? first : symbol;
	if (initialised && initialised->size < other->size)
		differ(linker, initialised, other, "size (an initialised .common variable must be the largest)");
	return initialised ? initialised == symbol : symbol->size > first->size;
}

static void define(struct linker *linker, struct ptx_symbol *symbol)
{
	if (symbol->linkage == PTX_LOCAL_LINKAGE || !defines(symbol))
		return;
	struct shared_name **slot = slot_of(linker, symbol->name);
	if (!*slot) {
		*slot = ptx_alloc(linker->context, sizeof **slot);
		(*slot)->symbol = symbol;
		return;
	}
	check_alike(linker, symbol, (*slot)->symbol);
	if (displaces(linker, symbol, (*slot)->symbol))
		(*slot)->symbol = symbol;
}

static void resolve_aliases(struct ptx_module *module)
{
	uint32_t unused;
	for (const struct ptx_alias *alias = module->aliases; alias; alias = alias->next) {
		struct ptx_symbol *name = ptx_lookup(&module->scope, alias->name, &unused);
		struct ptx_symbol *target = ptx_lookup(&module->scope, alias->target, &unused);
		if (!name || name->kind != PTX_SYMBOL_FUNCTION || name->function->has_body || !target ||
		    target->kind != PTX_SYMBOL_FUNCTION || !target->function->has_body || target->function->is_kernel)
			ptx_invalid(module->context, alias->line,
				    ".alias needs a function without a body and one with a body");
		if (!same_parameters(name->function->parameters, target->function->parameters) ||
		    !same_parameters(name->function->results, target->function->results))
			ptx_invalid(module->context, alias->line, ".alias: the lists of parameters differ");
		name->function = target->function;
	}
}

/* A name in an initialiser is a reference too. */
static void mark_initialisers(const struct ptx_module *module)
{
	uint32_t unused;
	for (const struct ptx_symbol *v = module->variables; v; v = v->next)
		for (const struct ptx_relocation *r = v->relocations; r; r = r->next) {
			struct ptx_symbol *symbol = ptx_lookup(r->scope, r->name, &unused);
			if (symbol)
				symbol->referenced = true;
		}
}

static void join(struct linker *linker, struct ptx_module *module)
{
	module->joined = true;
	linker->context->unit = module->functions ? module->functions->unit : NULL;
	resolve_aliases(module);
	mark_initialisers(module);
	for (struct ptx_symbol *s = module->variables; s; s = s->next)
		define(linker, s);
	for (struct ptx_symbol *s = module->names; s; s = s->next)
		define(linker, s);
}

static bool is_wanted(struct linker *linker, const struct ptx_module *module, const struct ptx_symbol *symbol)
{
	uint32_t unused;
	if (defines(symbol) || !symbol->referenced || is_dynamic_shared(symbol) || linker->supplied(symbol->name))
		return false;
	const struct ptx_symbol *here = ptx_lookup(&module->scope, symbol->name, &unused);
	if (here && here != symbol && defines(here))
		return false;
	/* A function declared without .extern must be defined in this module. */
	bool own = symbol->kind == PTX_SYMBOL_FUNCTION && symbol->linkage == PTX_LOCAL_LINKAGE;
	return own || !find(linker, symbol->name);
}

/* Joins the first module of a library that defines symbol's name. False: there is none. */
static bool join_definer(struct linker *linker, const struct ptx_symbol *symbol)
{
	uint32_t unused;
	for (size_t n = 0; n < linker->count; n++) {
		struct ptx_module *module = linker->modules[n];
		if (module->joined)
			continue;
		const struct ptx_symbol *found = ptx_lookup(&module->scope, symbol->name, &unused);
		if (!found || found->linkage == PTX_LOCAL_LINKAGE || !defines(found))
			continue;
		join(linker, module);
		return true;
	}
	return false;
}

static bool join_wanted(struct linker *linker, struct ptx_symbol *symbols, const struct ptx_module *module)
{
	bool joined = false;
	for (struct ptx_symbol *s = symbols; s; s = s->next)
		joined |= is_wanted(linker, module, s) && join_definer(linker, s);
	return joined;
}

static void join_libraries(struct linker *linker)
{
	for (bool again = true; again;) {
		again = false;
		for (size_t n = 0; n < linker->count; n++) {
			struct ptx_module *module = linker->modules[n];
			if (!module->joined)
				continue;
			again |= join_wanted(linker, module->variables, module);
			again |= join_wanted(linker, module->names, module);
		}
	}
}

static void note_missing(struct linker *linker, const struct ptx_symbol *symbol)
{
	if (!linker->first_missing)
		linker->first_missing = symbol;
	size_t room = sizeof linker->missing - linker->missing_length;
	int more = snprintf(linker->missing + linker->missing_length, room, "%s%.*s",
			    linker->missing_length ? ", " : "", (int)symbol->name.length, symbol->name.at);
	if (more > 0 && (size_t)more < room)
		linker->missing_length += (size_t)more;
	if (symbol->unit && (size_t)more < room) {
		room = sizeof linker->missing - linker->missing_length;
		more = snprintf(linker->missing + linker->missing_length, room, " (in %s)", symbol->unit);
		if (more > 0 && (size_t)more < room)
			linker->missing_length += (size_t)more;
	}
}

/* The definition that symbol, a declaration or a definition, is bound to: symbol itself, or another one of its name. */
static struct ptx_symbol *meaning(struct linker *linker, const struct ptx_module *module, struct ptx_symbol *symbol)
{
	uint32_t unused;
	if (!defines(symbol)) {
		struct ptx_symbol *here = ptx_lookup(&module->scope, symbol->name, &unused);
		if (here && here != symbol && here->kind == symbol->kind && defines(here) &&
		    here->linkage == PTX_LOCAL_LINKAGE)
			return here;
		if (symbol->kind == PTX_SYMBOL_FUNCTION && symbol->linkage == PTX_LOCAL_LINKAGE)
			return symbol;
	} else if (symbol->linkage == PTX_LOCAL_LINKAGE) {
		return symbol;
	}
	struct ptx_symbol *found = find(linker, symbol->name);
	return found ? found : symbol;
}

static void bind(struct linker *linker, const struct ptx_module *module, struct ptx_symbol *symbol)
{
	struct ptx_symbol *found = meaning(linker, module, symbol);
	if (found == symbol) {
		if (is_wanted(linker, module, symbol) &&
		    (linker->count > 1 || symbol->kind == PTX_SYMBOL_FUNCTION || symbol->space != PTX_SHARED))
			note_missing(linker, symbol);
		return;
	}
	check_alike(linker, symbol, found);
	symbol->definition = found;
	if (symbol->kind == PTX_SYMBOL_FUNCTION)
		symbol->function = found->function;
}

/* Appends a module's variables and functions that were not replaced to the result's lists. */
static void append(struct ptx_module *result, struct ptx_symbol ***variables, struct ptx_function ***functions,
		   const struct ptx_module *module)
{
	uint32_t unused;
	for (struct ptx_symbol *next, *v = module->variables; v; v = next) {
		next = v->next;
		v->next = NULL;
		if (v->definition)
			continue;
		**variables = v;
		*variables = &v->next;
	}
	for (struct ptx_function *next, *f = module->functions; f; f = next) {
		next = f->next;
		f->next = NULL;
		const struct ptx_symbol *symbol = ptx_lookup(&module->scope, f->name, &unused);
		if (symbol && symbol->function != f)
			continue;
		**functions = f;
		*functions = &f->next;
	}
	if (module->target > result->target)
		result->target = module->target;
}

static _Noreturn void refuse_missing(struct linker *linker)
{
	linker->context->unit = linker->first_missing->unit;
	ptx_fail(linker->context, linker->first_missing->unit ? CUDA_ERROR_INVALID_SOURCE : CUDA_ERROR_INVALID_PTX,
		 linker->first_missing->line, "undefined reference to %s", linker->missing);
}

/*
 * NVIDIA's library of the functions that device code calls, with which nvcc links every program of several units. The
 * engine has the functions that it supports, so the library is linked only if another one is called.
 */
static bool is_device_runtime(const struct linker *linker, const struct ptx_module *module)
{
	static const char name[] = "__cudaCDP2LaunchDeviceV2";
	uint32_t unused;
	const struct ptx_symbol *symbol =
			ptx_lookup(&module->scope, (struct ptx_text){ name, sizeof name - 1 }, &unused);
	return linker->count > 1 && symbol && defines(symbol);
}

struct ptx_module *ptx_link(struct ptx_context *context, struct ptx_module **modules, size_t count,
			    bool (*supplied)(struct ptx_text name))
{
	struct linker *linker = ptx_alloc(context, sizeof *linker);
	*linker = (struct linker){ .context = context, .modules = modules, .count = count, .supplied = supplied };
	for (size_t n = 0; n < count; n++)
		if (!modules[n]->on_demand && !is_device_runtime(linker, modules[n]))
			join(linker, modules[n]);
	join_libraries(linker);
	for (size_t n = 0; n < count; n++) {
		if (!modules[n]->joined)
			continue;
		for (struct ptx_symbol *s = modules[n]->variables; s; s = s->next)
			bind(linker, modules[n], s);
		for (struct ptx_symbol *s = modules[n]->names; s; s = s->next)
			bind(linker, modules[n], s);
	}
	context->unit = NULL;
	if (linker->first_missing)
		refuse_missing(linker);
	struct ptx_module *result = ptx_alloc(context, sizeof *result);
	struct ptx_symbol **variables = &result->variables;
	struct ptx_function **functions = &result->functions;
	*result = (struct ptx_module){ .context = context, .version = modules[0]->version };
	for (size_t n = 0; n < count; n++)
		if (modules[n]->joined)
			append(result, &variables, &functions, modules[n]);
	return result;
}
