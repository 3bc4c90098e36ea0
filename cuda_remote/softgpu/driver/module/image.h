/* SPDX-License-Identifier: BSD-3-Clause */
/* From the image that a program loads as a module to PTX text, or to an image of linked PTX texts (fatbin/linked.h). */
#ifndef SOFTGPU_IMAGE_H
#define SOFTGPU_IMAGE_H

#include "cuda_remote/softgpu/driver/cuda_api.h"
#include "cuda_remote/softgpu/fatbin/fatbin.h"

/* The JIT options of a load: the two logs, and the outputs that are written at the end. */
typedef struct image_jit {
	softgpu_log_t log;      /* filled by the load, successful or not */
	char *info, *error;     /* the caller's buffers, or NULL */
	void **info_size, **error_size;
	void **wall_time;
	size_t info_room, error_room;
	uint64_t started;       /* ns */
} image_jit_t;

/*
 * Reads the options. CUDA_ERROR_INVALID_VALUE: an option that cuda.h does not define. Options that tune or limit
 * generated machine code are accepted without effect: PTX is executed directly.
 */
CUresult image_jit_begin(image_jit_t *jit, unsigned count, const CUjit_option *options, void **values);

/* Copies the log to the caller's buffers: to the error log if the load failed, else to the info log. Returns result. */
CUresult image_jit_report(image_jit_t *jit, CUresult result);
/* image_jit_report, then frees the log. */
CUresult image_jit_end(image_jit_t *jit, CUresult result);

/* Checks the options of one input of the linker; the logs are the link's. */
CUresult image_jit_check(unsigned count, const CUjit_option *options, void **values);

/* True if these bytes hold an image of the linker. */
bool image_is_linked(const void *data, size_t size);

/* Reads a whole file and appends a NUL; the caller frees *data. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult image_read_file(const char *name, char **data, size_t *size);

/* Loads the output of image_from_memory or image_from_file: one text, or several texts to link. */
CUresult image_program(const fatbin_ptx_t *ptx, softgpu_log_t *log, softgpu_program_t **program);

/*
 * An image in memory: fat binary wrapper or container, ELF, an image of the linker, or PTX text with a NUL at its end.
 * The caller frees ptx->text. CUDA_ERROR_INVALID_IMAGE, _NO_BINARY_FOR_GPU, _NOT_SUPPORTED: see fatbin.h; an ELF is
 * machine code, which is not executed here.
 */
CUresult image_from_memory(const void *image, softgpu_log_t *log, fatbin_ptx_t *ptx);

/* image_from_memory for a file. CUDA_ERROR_FILE_NOT_FOUND. */
CUresult image_from_file(const char *name, softgpu_log_t *log, fatbin_ptx_t *ptx);

#endif
