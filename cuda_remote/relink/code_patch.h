/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Replaces functions of a loaded object by jumps to others, all of an object or none. x86-64 only. The text is writable
 * only while it changes, and is not executable then: no thread may run the object's code meanwhile, which holds before
 * the object's constructors.
 *
 *	14 bytes and more   jmp *0(%rip) and the address
 *	5 to 13 bytes       jmp rel32 to such a jump, in bytes that a longer function no longer uses
 *	less                must be "return 0", and stays
 *
 * An endbr64 at a function's start stays, as an indirect call may require it.
 */
#ifndef RC_RELINK_CODE_PATCH_H
#define RC_RELINK_CODE_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct code_patch {
	const char *name;    /* for messages */
	uint8_t *code;       /* the function in memory */
	const uint8_t *file; /* the same bytes in the object's file */
	uint64_t size;
	uintptr_t target;
} code_patch_t;

enum code_patch_result {
	CODE_PATCH_DONE,
	CODE_PATCH_BEFORE,    /* the functions already are these jumps */
	CODE_PATCH_DIFFERENT, /* memory differs from the file; *which is the function */
	CODE_PATCH_SHORT,     /* a function is too short; *which */
	CODE_PATCH_FORBIDDEN, /* the system does not let a program change its text; nothing is changed */
	CODE_PATCH_MACHINE    /* not x86-64 */
};

/* Writes all jumps. path: the object's file. The functions are in one executable segment of the object. */
enum code_patch_result code_patch_all(const char *path, const code_patch_t *patches, unsigned count,
				      const char **which);

#endif
