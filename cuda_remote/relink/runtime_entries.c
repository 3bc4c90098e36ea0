/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the functions of a CUDA runtime in an object's symbol table, and from them its version. */
#include "cuda_remote/relink/runtime_entries.h"

#include <stdlib.h>
#include <string.h>

static const char mark[] = "__cudaRegisterFatBinary";
/* nvcc links this one into every object, also if the object has no kernels to register. */
static const char mark_without_kernels[] = "__cudaUnregisterFatBinary";

/* CUDA 13 has removed these functions. Every earlier runtime has the first, and of these only CUDA 12 has the second. */
static const char removed[] = "cudaThreadExit", added_12[] = "cudaGetDeviceProperties_v2";

/* Functions that later releases of CUDA 12 added to those of 12.0, and the release as CUDART_VERSION. */
static const struct later_name {
	const char *name;
	unsigned version;
} later[] = {
#include "cuda_remote/relink/later_functions.h"
};

static bool is_runtime_name(const char *name)
{
	return !strncmp(name, "cuda", 4) || !strncmp(name, "__cuda", 6);
}

static bool is_defined_function(const Elf64_Sym *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF && symbol->st_size;
}

static int by_name(const void *left, const void *right)
{
	return strcmp(((const runtime_entry_t *)left)->name, ((const runtime_entry_t *)right)->name);
}

static int name_to_entry(const void *name, const void *entry)
{
	return strcmp(name, ((const runtime_entry_t *)entry)->name);
}

const runtime_entry_t *runtime_entries_find(const runtime_entries_t *entries, const char *name)
{
	return bsearch(name, entries->entry, entries->count, sizeof *entries->entry, name_to_entry);
}

/* All defined functions of a symbol table whose names are a runtime's. False: there are too many. */
static bool collect(const elf_file_t *file, const elf_symbols_t *symbols, runtime_entries_t *entries)
{
	Elf64_Sym symbol;
	const char *name;
	entries->count = 0;
	for (uint64_t i = 0; i < symbols->count; i++) {
		if (!elf_file_symbol(file, symbols, i, &symbol, &name) || !is_defined_function(&symbol) ||
		    !is_runtime_name(name))
			continue;
		if (entries->count == RUNTIME_ENTRIES_MAX)
			return false;
		entries->entry[entries->count++] = (runtime_entry_t){ name, symbol.st_value, symbol.st_size };
	}
	qsort(entries->entry, entries->count, sizeof *entries->entry, by_name);
	return true;
}

bool runtime_entries_exported(const elf_file_t *file, runtime_entries_t *entries)
{
	elf_symbols_t symbols;
	return elf_file_symbols(file, SHT_DYNSYM, &symbols) && collect(file, &symbols, entries) && entries->count;
}

enum marks { MARK_ABSENT, MARK_IMPORTED, MARK_DEFINED };

static enum marks look_for(const elf_file_t *file, uint32_t type, const char *wanted)
{
	elf_symbols_t symbols;
	Elf64_Sym symbol;
	const char *name;
	enum marks found = MARK_ABSENT;
	if (!elf_file_symbols(file, type, &symbols))
		return found;
	for (uint64_t i = 0; i < symbols.count; i++) {
		if (!elf_file_symbol(file, &symbols, i, &symbol, &name) || strcmp(name, wanted))
			continue;
		if (is_defined_function(&symbol))
			return MARK_DEFINED;
		found = MARK_IMPORTED;
	}
	return found;
}

/* An object with a runtime opens the driver. Other objects are not searched, as that takes time. */
static bool has_runtime_text(const elf_file_t *file)
{
	return look_for(file, SHT_DYNSYM, "dlopen") == MARK_IMPORTED &&
	       elf_file_section_has(file, ".rodata", "startup failure in cuda runtime");
}

enum runtime_presence runtime_entries_presence(const elf_file_t *file)
{
	if (look_for(file, SHT_SYMTAB, mark) == MARK_DEFINED)
		return RUNTIME_PRESENT;
	if (!elf_file_has_section(file, ".nvFatBinSegment"))
		return has_runtime_text(file) ? RUNTIME_BARE : RUNTIME_ABSENT;
	/* An object that nvcc has linked and that imports neither function has functions of its own. */
	return look_for(file, SHT_DYNSYM, mark) == MARK_IMPORTED ||
			       look_for(file, SHT_DYNSYM, mark_without_kernels) == MARK_IMPORTED ?
		       RUNTIME_ABSENT :
		       RUNTIME_STRIPPED;
}

/*
 * Removes functions that are not the reference's and lie outside the range of the reference's: a program's own function
 * may be named cuda_something. The linker places a runtime, which is one object file, in one piece.
 */
static void keep_runtime(runtime_entries_t *entries, const runtime_entries_t *reference)
{
	uint64_t low = UINT64_MAX, high = 0;
	unsigned kept = 0;
	for (unsigned i = 0; i < entries->count; i++) {
		const runtime_entry_t *entry = &entries->entry[i];
		if (!runtime_entries_find(reference, entry->name))
			continue;
		low = entry->value < low ? entry->value : low;
		high = entry->value > high ? entry->value : high;
	}
	for (unsigned i = 0; i < entries->count; i++) {
		const runtime_entry_t entry = entries->entry[i];
		if (runtime_entries_find(reference, entry.name) || (entry.value > low && entry.value < high))
			entries->entry[kept++] = entry;
	}
	entries->count = kept;
}

bool runtime_entries_static(const elf_file_t *file, runtime_entries_t *entries)
{
	elf_symbols_t symbols;
	return elf_file_symbols(file, SHT_SYMTAB, &symbols) && collect(file, &symbols, entries);
}

enum runtime_major runtime_entries_major(const runtime_entries_t *entries)
{
	if (!runtime_entries_find(entries, removed))
		return RUNTIME_CUDA_13;
	return runtime_entries_find(entries, added_12) ? RUNTIME_CUDA_12 : RUNTIME_OLDER;
}

static bool is_later(const char *name)
{
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		if (!strcmp(name, later[i].name))
			return true;
	return false;
}

unsigned runtime_entries_release_12(const runtime_entries_t *entries)
{
	unsigned version = 12000;
	for (size_t i = 0; i < sizeof later / sizeof *later; i++)
		if (later[i].version > version && runtime_entries_find(entries, later[i].name))
			version = later[i].version;
	return version;
}

enum runtime_match runtime_entries_match(runtime_entries_t *entries, const runtime_entries_t *reference,
					 enum runtime_major major, const char **which)
{
	for (unsigned i = 0; i < reference->count; i++) {
		*which = reference->entry[i].name;
		if (!runtime_entries_find(entries, *which) && !(major == RUNTIME_CUDA_12 && is_later(*which)))
			return RUNTIME_LACKS;
	}
	keep_runtime(entries, reference);
	for (unsigned i = 0; i < entries->count; i++) {
		*which = entries->entry[i].name;
		if (i && !strcmp(*which, entries->entry[i - 1].name))
			return RUNTIME_TWICE;
		if (major == RUNTIME_CUDA_12 && !runtime_entries_find(reference, *which))
			return RUNTIME_UNKNOWN;
	}
	return RUNTIME_SAME;
}
