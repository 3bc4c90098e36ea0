/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program gives the driver to load: PTX text, an ELF file, a fat binary or its wrapper; and the JIT's options. */
#ifndef RC_CUDA_IMAGE_H
#define RC_CUDA_IMAGE_H

#include "cuda_remote/api/jit_options.h"
#include "cuda_remote/wire.h"

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/* The bytes to send. Of a wrapper: the container. If the program was linked from relocatable device code, the
 * containers of its units follow (struct rc_wire_load). Of text: its NUL too. */
struct rc_image {
	struct iovec piece[2];
	int n;
	unsigned units;
	uint64_t bytes;
	void *joined; /* the second piece: the units, each behind zeros up to a multiple of 8; allocated, or NULL */
};

/* Finds the bytes to send. CUDA_ERROR_INVALID_IMAGE if the format is unknown or the image is damaged. Then the caller needs
 * no rc_image_free. */
CUresult rc_image_find(const void *bytes, struct rc_image *image);
/* Frees what rc_image_find has allocated. */
void rc_image_free(struct rc_image *image);

/* Reads a file, with a NUL behind it, which *size does not count. CUDA_ERROR_FILE_NOT_FOUND. *image: for free(). */
CUresult rc_image_read(const char *path, void **image, size_t *size);

struct rc_image_options {
	unsigned n;
	struct {
		uint32_t option, reserved;
		uint64_t value;
	} wire[RC_JIT_OPTIONS_MAX];
	char *info, *error;           /* the caller's logs */
	size_t info_size, error_size; /* bytes that these can hold */
	int info_at, error_at;        /* where the caller wants to read the sizes; -1: nowhere */
};

/* Sorts options into those that are sent and those that name the caller's memory. CUDA_ERROR_NOT_SUPPORTED if an option
 * cannot be forwarded; the log names it. */
CUresult rc_image_options(unsigned n, CUjit_option *names, void **values, struct rc_image_options *options);

/* Copies the logs and their sizes to the caller's memory. */
void rc_image_logs(const struct rc_image_options *options, void **values, const void *info, size_t info_len,
		   const void *error, size_t error_len);

#endif
