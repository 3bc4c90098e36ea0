/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interposes a function of the dynamic linker. dlopen and dlsym behave as their caller requires: the caller's RUNPATH, its
 * name space and what RTLD_NEXT means follow from the return address. Therefore the interposing function does not call
 * the real one: it jumps there, with the caller's return address still on the stack.
 *
 *	TAIL_CALL(dlopen, choose, end)
 *
 * defines dlopen(a, b): it calls choose(a, b), restores the arguments, and goes on with the assembler code "end", which
 * finds the result in %rax and ends with a jump to the real function.
 */
#ifndef RC_REDIRECT_TAIL_CALL_H
#define RC_REDIRECT_TAIL_CALL_H

/* For the functions that TAIL_CALL names: the assembler code is their only user. */
#define TAIL_CALL_PART __attribute__((used, visibility("hidden")))

#if defined(__x86_64__)
/* clang-format off */
#define TAIL_CALL(name, choose, end)                                                                                \
	__asm__(".text\n"                                                                                              \
		".globl " #name "\n"                                                                                   \
		".type " #name ", @function\n"                                                                         \
		".p2align 4\n" #name ":\n"                                                                             \
		"	.cfi_startproc\n"                                                                              \
		"	.byte 0xf3, 0x0f, 0x1e, 0xfa\n" /* endbr64 */                                                  \
		"	push %rdi\n"                                                                                   \
		"	.cfi_adjust_cfa_offset 8\n"                                                                    \
		"	push %rsi\n"                                                                                   \
		"	.cfi_adjust_cfa_offset 8\n"                                                                    \
		"	sub $8, %rsp\n"                                                                                \
		"	.cfi_adjust_cfa_offset 8\n"                                                                    \
		"	call " #choose "\n"                                                                            \
		"	add $8, %rsp\n"                                                                                \
		"	.cfi_adjust_cfa_offset -8\n"                                                                   \
		"	pop %rsi\n"                                                                                    \
		"	.cfi_adjust_cfa_offset -8\n"                                                                   \
		"	pop %rdi\n"                                                                                    \
		"	.cfi_adjust_cfa_offset -8\n"                                                                   \
		end                                                                                                    \
		"	.cfi_endproc\n"                                                                                \
		".size " #name ", . - " #name "\n")
/* clang-format on */
#endif

#endif
