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
	RUNTIME_STRIPPED, /* the object has kernels and a static runtime, but no symbols of it */
	RUNTIME_BARE,     /* likewise, without kernels: a binding of the runtime to another language, say */
	RUNTIME_PRESENT
};

/* The major version of a runtime: CUDA 12 and 13 differ in the arguments of some functions. */
enum runtime_major { RUNTIME_CUDA_12, RUNTIME_CUDA_13, RUNTIME_MAJORS, RUNTIME_OLDER = RUNTIME_MAJORS };

enum runtime_match {
	RUNTIME_SAME,    /* it has the functions of the reference */
	RUNTIME_LACKS,   /* it lacks a function that all releases of its major version have */
	RUNTIME_UNKNOWN, /* CUDA 12: it has a function that no release of CUDA 12 has */
	RUNTIME_TWICE    /* a function is defined twice */
};

/* The functions that a shared runtime exports. False: it has no dynamic symbols, or too many. */
bool runtime_entries_exported(const elf_file_t *file, runtime_entries_t *entries);

/* Looks for a static runtime in an object. */
enum runtime_presence runtime_entries_presence(const elf_file_t *file);

/* Finds the functions named cuda... and __cuda... in an object that has a static runtime (RUNTIME_PRESENT). False: there are too
 * many. */
bool runtime_entries_static(const elf_file_t *file, runtime_entries_t *entries);

/* The major version that these functions are of. */
enum runtime_major runtime_entries_major(const runtime_entries_t *entries);

/* The first release of CUDA 12 that has all of these functions, as CUDART_VERSION: 12040 for 12.4. */
unsigned runtime_entries_release_12(const runtime_entries_t *entries);

/*
 * Compares the functions of an object with the reference, which is of the same major version. RUNTIME_SAME: *entries
 * are now the functions of the reference in the object, and all functions with such names that lie between them (a
 * later 13.x has more). Otherwise *which is the function.
 */
enum runtime_match runtime_entries_match(runtime_entries_t *entries, const runtime_entries_t *reference,
					 enum runtime_major major, const char **which);

/* The entry of a name, or NULL. */
const runtime_entry_t *runtime_entries_find(const runtime_entries_t *entries, const char *name);

#endif
