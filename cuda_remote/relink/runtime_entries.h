/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The entry points of a CUDA runtime in an ELF file: the functions cuda... and __cuda... that programs call. In an
 * object that is linked with the static runtime most of them are local symbols of .symtab. The mark of such an object
 * is that its .symtab defines __cudaRegisterFatBinary.
 */
#ifndef RC_RELINK_RUNTIME_ENTRIES_H
#define RC_RELINK_RUNTIME_ENTRIES_H

#include "cuda_remote/relink/elf_file.h"

enum { RUNTIME_ENTRIES_MAX = 1024 };

typedef struct runtime_entry {
	const char *name;     /* in the file's bytes */
	uint64_t value, size; /* the symbol's; value: before the object's load address is added */
} runtime_entry_t;

typedef struct runtime_entries {
	unsigned count;
	runtime_entry_t entry[RUNTIME_ENTRIES_MAX]; /* sorted by name */
} runtime_entries_t;

enum runtime_presence {
	RUNTIME_ABSENT,
	RUNTIME_STRIPPED, /* the object has a static runtime, but no symbols of it */
	RUNTIME_PRESENT
};

enum runtime_version {
	RUNTIME_SAME,    /* it has the functions of the reference */
	RUNTIME_OLDER,   /* it is of CUDA 12 or older */
	RUNTIME_OTHER,   /* it lacks a function of the reference, and is of no known version */
	RUNTIME_TWICE,   /* a function is defined twice */
	RUNTIME_TOO_MANY /* the object defines more than RUNTIME_ENTRIES_MAX functions with such names */
};

/* The functions that a shared runtime exports. False: it has no dynamic symbols, or too many. */
bool runtime_entries_exported(const elf_file_t *file, runtime_entries_t *entries);

/* Looks for a static runtime in an object. */
enum runtime_presence runtime_entries_presence(const elf_file_t *file);

/*
 * Compares the static runtime of an object, which is RUNTIME_PRESENT, with the reference. RUNTIME_SAME: *entries are
 * the functions of the reference in the object, and all functions with such names that lie between them (a later 13.x
 * has more). RUNTIME_OTHER, RUNTIME_TWICE: *which is the function.
 */
enum runtime_version runtime_entries_static(const elf_file_t *file, const runtime_entries_t *reference,
					    runtime_entries_t *entries, const char **which);

/* The entry of a name, or NULL. */
const runtime_entry_t *runtime_entries_find(const runtime_entries_t *entries, const char *name);

#endif
