/* SPDX-License-Identifier: BSD-3-Clause */
/* Python's modules that have a static runtime without symbols, and offer its functions to other modules. */
#ifndef RC_RELINK_PYTHON_MODULE_H
#define RC_RELINK_PYTHON_MODULE_H

#include "cuda_remote/relink/elf_file.h"

#include <link.h>
#include <stdint.h>

enum python_module {
	PYTHON_MODULE_NONE,	 /* the object is no such module */
	PYTHON_MODULE_UNTOUCHED, /* the dynamic linker has not relocated the object: call again when it has */
	PYTHON_MODULE_ADOPTED,
};

/* The address of a function of the runtime that takes the place of the static one; 0: the runtime lacks it. */
typedef uintptr_t python_module_find(const char *name);

/*
 * Adopts a module of which no code has run. When Python executes the module, the runtime's functions that the module
 * offers to others (__pyx_capi__, made by Cython) become those that `find` names. What prevents that is logged then.
 */
enum python_module python_module_adopt(const struct dl_phdr_info *info, const elf_file_t *file, const char *path,
				       python_module_find *find);

#endif
