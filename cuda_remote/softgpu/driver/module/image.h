/* SPDX-License-Identifier: BSD-3-Clause */
/* From whatever a program loads as a module to PTX text, or to several that are linked (fatbin/linked.h). */
#ifndef SOFTGPU_IMAGE_H
#define SOFTGPU_IMAGE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/fatbin/fatbin.h"

/* What the JIT options of a load say: the two logs and what is to be told afterwards. */
typedef struct image_jit {
	softgpu_log_t log;      /* filled by the load, whatever its result */
	char *info, *error;     /* the caller's buffers, or NULL */
	void **info_size, **error_size;
	void **wall_time;
	size_t info_room, error_room;
	uint64_t started;       /* ns */
} image_jit_t;

/*
 * Reads the options. CUDA_ERROR_INVALID_VALUE: one that cuda.h does not know. Options that tune or limit generated
 * machine code are accepted: PTX is executed as it is.
 */
CUresult image_jit_begin(image_jit_t *jit, unsigned count, const CUjit_option *options, void **values);

/* Hands the log to the caller's buffers: the error log if the load failed, else the info log. Passes result on. */
CUresult image_jit_report(image_jit_t *jit, CUresult result);
/* The same, and frees the log. */
CUresult image_jit_end(image_jit_t *jit, CUresult result);

/* What can be wrong with options that are for one input of the linker, whose logs are the link's. */
CUresult image_jit_check(unsigned count, const CUjit_option *options, void **values);

/* Whether size bytes hold an image of the linker's. */
bool image_is_linked(const void *data, size_t size);

/* A whole file and a NUL behind it; the caller frees *data. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult image_read_file(const char *name, char **data, size_t *size);

/* The program of what image_from_… gave: one text, or several to link. */
CUresult image_program(const fatbin_ptx_t *ptx, softgpu_log_t *log, softgpu_program_t **program);

/*
 * An image in memory: fat binary wrapper or container, ELF, an image of the linker's, or PTX text with a NUL at its
 * end. The caller frees
 * ptx->text. CUDA_ERROR_INVALID_IMAGE, _NO_BINARY_FOR_GPU, _NOT_SUPPORTED: see fatbin.h; an ELF is machine code, which
 * is not executed here.
 */
CUresult image_from_memory(const void *image, softgpu_log_t *log, fatbin_ptx_t *ptx);

/* The same from a file. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult image_from_file(const char *name, softgpu_log_t *log, fatbin_ptx_t *ptx);

#endif
