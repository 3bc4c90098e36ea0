/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The context of one load of PTX: an arena for all of a module's structures, and the way that errors end the load.
 * "Gives up" means, here and in the decoder: logs the error and jumps out of the load (ptx_fail). One thread runs a
 * load, and nothing here is shared.
 */
#ifndef SOFTGPU_PTX_CONTEXT_H
#define SOFTGPU_PTX_CONTEXT_H

#include "cuda_remote/softgpu/engine.h"

#include <setjmp.h>

struct ptx_arena_chunk;
struct ptx_arena {
	struct ptx_arena_chunk *chunks;
	size_t left; /* bytes left in the newest chunk */
};

struct ptx_context {
	struct ptx_arena arena;
	softgpu_log_t *log; /* may be NULL */
	const char *unit;   /* name, in messages, of the text being read; NULL: it is the only text */
	jmp_buf give_up;    /* ptx_fail jumps here */
	CUresult result;    /* set by ptx_fail */
};

/* Zeroed, aligned to 16 bytes; lives until ptx_arena_free. Gives up with CUDA_ERROR_OUT_OF_MEMORY. */
void *ptx_alloc(struct ptx_context *context, size_t size);
char *ptx_copy_text(struct ptx_context *context, const char *text, size_t length);
void ptx_arena_free(struct ptx_arena *arena);

/* Writes the error and its line to context->log and to the library's log, and jumps to context->give_up. line 0: no
 * line. */
_Noreturn void ptx_fail(struct ptx_context *context, CUresult result, uint32_t line, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

#define ptx_invalid(context, line, ...) ptx_fail((context), CUDA_ERROR_INVALID_PTX, (line), __VA_ARGS__)
#define ptx_unsupported(context, line, ...) ptx_fail((context), CUDA_ERROR_NOT_SUPPORTED, (line), __VA_ARGS__)

#endif
