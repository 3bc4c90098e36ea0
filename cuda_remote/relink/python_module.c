/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cuda.bindings has NVIDIA's static runtime in two modules without symbols. Its other modules, and those of other
 * packages, get the runtime's functions from these two: when Python executes such a module, Cython's code puts a
 * capsule for each function into the module's dictionary __pyx_capi__, and an importing module reads them afterwards.
 * So the function that executes the module is replaced in the module's table of slots (PEP 489) by one that calls it
 * and then changes the capsules. A capsule has the name of the runtime's function with an underscore before it.
 *
 * Only Python's stable interface is used (PEP 384). Its functions are found by dlsym, as most programs have no Python.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "cuda_remote/relink/python_module.h"
#include "rdma_channel/base/log.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct python_object python_object_t;
typedef int execute_function(python_object_t *module);

/* An entry of a module's table of slots. */
struct slot {
	int number;
	void *value;
};
enum { SLOT_CREATE = 1, SLOT_EXECUTE = 2 };

/* Python's functions. */
static struct {
	python_object_t *(*get_attribute)(python_object_t *, const char *);
	int (*dict_next)(python_object_t *, intptr_t *, python_object_t **, python_object_t **);
	const char *(*text)(python_object_t *, intptr_t *);
	const char *(*capsule_name)(python_object_t *);
	void *(*capsule_pointer)(python_object_t *, const char *);
	int (*capsule_set_pointer)(python_object_t *, void *);
	python_object_t *(*dict_item)(python_object_t *, const char *);
	void (*release)(python_object_t *);
	void (*clear_error)(void);
} python;

/* ---- the functions of an executed module ---- */

static bool find_python(void)
{
	static const struct {
		const char *name;
		void *function;
	} functions[] = {
		{ "PyObject_GetAttrString", &python.get_attribute },
		{ "PyDict_Next", &python.dict_next },
		{ "PyUnicode_AsUTF8AndSize", &python.text },
		{ "PyCapsule_GetName", &python.capsule_name },
		{ "PyCapsule_GetPointer", &python.capsule_pointer },
		{ "PyCapsule_SetPointer", &python.capsule_set_pointer },
		{ "PyDict_GetItemString", &python.dict_item },
		{ "Py_DecRef", &python.release },
		{ "PyErr_Clear", &python.clear_error },
	};
	for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
		void *function = dlsym(RTLD_DEFAULT, functions[i].name);
		if (!function)
			return false;
		memcpy(functions[i].function, &function, sizeof function);
	}
	return true;
}

static int not_supported(void)
{
	enum { ERROR_NOT_SUPPORTED = 801 }; /* cudaErrorNotSupported */
	hr_log_once(HR_LOG_WARN, "Python calls a function of a CUDA runtime later than 13.0, which Headrace's runtime "
				 "lacks: it returns cudaErrorNotSupported");
	return ERROR_NOT_SUPPORTED;
}

/* The version of the module's runtime, such as 13030; 0: unknown. The runtime answers without a driver. */
static int version_of(python_object_t *offered)
{
	int (*ask)(int *), version = 0;
	python_object_t *capsule = python.dict_item(offered, "_cudaRuntimeGetVersion");
	void *function = capsule ? python.capsule_pointer(capsule, python.capsule_name(capsule)) : NULL;
	if (!function)
		return 0;
	memcpy(&ask, &function, sizeof function);
	return ask(&version) ? 0 : version;
}

/* The runtime's function of this name, for the default stream of each thread if there is one and that is wanted. */
static uintptr_t function_of(python_module_find *find, const char *name, bool per_thread)
{
	static const char *const endings[] = { "_ptsz", "_ptds", "" };
	char longer[128];
	size_t n = strlen(name);
	uintptr_t found = 0;
	for (int i = per_thread ? 0 : 2; i < 3 && !found && n < sizeof longer - 6; i++) {
		memcpy(longer, name, n);
		memcpy(longer + n, endings[i], strlen(endings[i]) + 1);
		found = find(longer);
	}
	return found ? found : (uintptr_t)&not_supported;
}

/* As cuda.bindings reads it. */
static bool wants_per_thread(void)
{
	const char *value = getenv("CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM");
	return value && atoi(value);
}

/* Returns how many functions were replaced. */
static unsigned replace_all(python_object_t *offered, python_module_find *find, bool per_thread)
{
	intptr_t position = 0;
	python_object_t *key, *capsule;
	unsigned replaced = 0;
	while (python.dict_next(offered, &position, &key, &capsule)) {
		const char *name = python.text(key, NULL);
		if (!name || strncmp(name, "_cuda", 5))
			continue;
		uintptr_t function = function_of(find, name + 1, per_thread);
		replaced += !python.capsule_set_pointer(capsule, (void *)function);
	}
	return replaced;
}

static void replace_functions(python_object_t *module, const char *path, python_module_find *find)
{
	if (!find_python()) {
		hr_log(HR_LOG_WARN, "%s: Python's functions are not found: calls of its static CUDA runtime will fail", path);
		return;
	}
	python_object_t *offered = python.get_attribute(module, "__pyx_capi__");
	int version = offered ? version_of(offered) : 0;
	if (version / 1000 != 13) {
		hr_log(HR_LOG_WARN,
		       "%s: it is not known how to replace its static CUDA runtime (version %d): its calls will fail", path,
		       version);
	} else {
		bool per_thread = strstr(path, "_ptds") || wants_per_thread();
		unsigned replaced = replace_all(offered, find, per_thread);
		hr_log(HR_LOG_DEBUG, "%s: %u functions of its static CUDA runtime replaced", path, replaced);
	}
	if (offered)
		python.release(offered);
	python.clear_error();
}

/* ---- the slot ---- */

/* The modules of a process. An interpreter of Python executes a module once, and a process may have several. */
enum { MODULES = 4 };
static struct adopted {
	execute_function *execute;
	python_module_find *find;
	char path[PATH_MAX];
} adopted[MODULES];
static unsigned modules; /* changed under the dynamic linker's lock */

static int execute(struct adopted *own, python_object_t *module)
{
	int status = own->execute(module);
	if (!status)
		replace_functions(module, own->path, own->find);
	return status;
}

#define EXECUTE(index)                                             \
	static int execute_##index(python_object_t *module)        \
	{                                                          \
		return execute(&adopted[index], module);           \
	}
EXECUTE(0)
EXECUTE(1)
EXECUTE(2)
EXECUTE(3)
static execute_function *const replacements[MODULES] = { execute_0, execute_1, execute_2, execute_3 };

static bool is_in_segment(const struct dl_phdr_info *info, uintptr_t address, size_t n, uint32_t flag)
{
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uintptr_t offset = address - (info->dlpi_addr + segment->p_vaddr);
		if (segment->p_type == PT_LOAD && segment->p_flags & flag && offset < segment->p_memsz &&
		    n <= segment->p_memsz - offset)
			return true;
	}
	return false;
}

/* Whether two slots begin as those of a module do: the first makes it, the second executes it. base: what the dynamic
 * linker has added to the addresses in them. */
static bool are_slots(const struct dl_phdr_info *info, const struct slot *slot, uintptr_t base)
{
	for (int i = 0; i < 2; i++)
		if (slot[i].number != (i ? SLOT_EXECUTE : SLOT_CREATE) ||
		    !is_in_segment(info, (uintptr_t)slot[i].value - base + info->dlpi_addr, 1, PF_X))
			return false;
	return true;
}

/* The slot that executes the module. NULL: there is none, or there are several places that look like the table. */
static struct slot *find_slot(const struct dl_phdr_info *info, const elf_file_t *file, uintptr_t base)
{
	struct slot *found = NULL;
	uint64_t begin, bytes;
	if (!elf_file_section(file, ".data", &begin, &bytes) ||
	    !is_in_segment(info, info->dlpi_addr + begin, bytes, PF_W))
		return NULL;
	uintptr_t at = (info->dlpi_addr + begin + sizeof(void *) - 1) & ~(uintptr_t)(sizeof(void *) - 1);
	uintptr_t end = info->dlpi_addr + begin + bytes;
	for (; at + 2 * sizeof(struct slot) <= end; at += sizeof(void *)) {
		struct slot *slot = (struct slot *)at;
		if (!are_slots(info, slot, base))
			continue;
		if (found)
			return NULL;
		found = &slot[1];
	}
	return found;
}

static bool is_module(const elf_file_t *file)
{
	elf_symbols_t symbols;
	Elf64_Sym symbol;
	const char *name;
	if (!elf_file_symbols(file, SHT_DYNSYM, &symbols))
		return false;
	for (uint64_t i = 0; i < symbols.count; i++)
		if (elf_file_symbol(file, &symbols, i, &symbol, &name) && !strcmp(name, "PyModuleDef_Init"))
			return true;
	return false;
}

enum python_module python_module_adopt(const struct dl_phdr_info *info, const elf_file_t *file, const char *path,
				       python_module_find *find)
{
	if (modules == MODULES || strlen(path) >= PATH_MAX || !is_module(file))
		return PYTHON_MODULE_NONE;
	struct slot *slot = find_slot(info, file, info->dlpi_addr);
	if (!slot)
		return find_slot(info, file, 0) ? PYTHON_MODULE_UNTOUCHED : PYTHON_MODULE_NONE;
	struct adopted *own = &adopted[modules];
	memcpy(own->path, path, strlen(path) + 1);
	own->find = find;
	memcpy(&own->execute, &slot->value, sizeof slot->value);
	execute_function *replacement = replacements[modules++];
	memcpy(&slot->value, &replacement, sizeof replacement);
	return PYTHON_MODULE_ADOPTED;
}
