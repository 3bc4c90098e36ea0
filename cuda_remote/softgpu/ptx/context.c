/* SPDX-License-Identifier: BSD-3-Clause */
/* Services for all stages of loading PTX: an arena, and errors, which are logged and end the load. */
#include "cuda_remote/softgpu/ptx/context.h"

#include "rdma_channel/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES (64 * 1024)
#define ALIGNMENT 16

struct ptx_arena_chunk {
	struct ptx_arena_chunk *next;
	size_t size; /* of bytes */
	_Alignas(ALIGNMENT) char bytes[];
};

void *ptx_alloc(struct ptx_context *context, size_t size)
{
	struct ptx_arena *arena = &context->arena;
	if (size > SIZE_MAX - CHUNK_BYTES)
		ptx_fail(context, CUDA_ERROR_OUT_OF_MEMORY, 0, "out of memory");
	size = (size + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
	if (!arena->chunks || size > arena->left) {
		size_t chunk_size = size > CHUNK_BYTES ? size : CHUNK_BYTES;
		struct ptx_arena_chunk *chunk = calloc(1, sizeof *chunk + chunk_size);
		if (!chunk)
			ptx_fail(context, CUDA_ERROR_OUT_OF_MEMORY, 0, "out of memory");
		chunk->size = chunk_size;
		chunk->next = arena->chunks;
		arena->chunks = chunk;
		arena->left = chunk_size;
	}
	char *at = arena->chunks->bytes + (arena->chunks->size - arena->left);
	arena->left -= size;
	return at;
}

char *ptx_copy_text(struct ptx_context *context, const char *text, size_t length)
{
	char *copy = ptx_alloc(context, length + 1);
	memcpy(copy, text, length);
	return copy;
}

void ptx_arena_free(struct ptx_arena *arena)
{
	while (arena->chunks) {
		struct ptx_arena_chunk *next = arena->chunks->next;
		free(arena->chunks);
		arena->chunks = next;
	}
	arena->left = 0;
}

static void log_append(softgpu_log_t *log, const char *line)
{
	if (!log || !log->text || log->used + 1 >= log->size)
		return;
	int n = snprintf(log->text + log->used, log->size - log->used, "%s\n", line);
	log->used += (size_t)n < log->size - log->used ? (size_t)n : log->size - log->used - 1;
}

_Noreturn void ptx_fail(struct ptx_context *context, CUresult result, uint32_t line, const char *format, ...)
{
	char text[512], in[128] = "";
	if (context->unit)
		snprintf(in, sizeof in, "%s: ", context->unit);
	int used = line ? snprintf(text, sizeof text, "%sptx line %u: ", in, line) :
			  snprintf(text, sizeof text, "%sptx: ", in);
	va_list args;
	va_start(args, format);
	vsnprintf(text + used, sizeof text - (size_t)used, format, args);
	va_end(args);
	hr_log(HR_LOG_ERROR, "softgpu: %s", text);
	log_append(context->log, text);
	context->result = result;
	longjmp(context->give_up, 1);
}
