/* SPDX-License-Identifier: BSD-3-Clause */
/* What the two compilations of array_twice.c share. */
#ifndef RUNTIME_ARRAY_COPY_H
#define RUNTIME_ARRAY_COPY_H

#include "cuda_remote/runtime/copy_kind.h"
#include "cuda_remote/runtime/runtime.h"

/* One end of a copy: a place in an array, bytes x of row y, or memory. */
struct array_end {
	cudaArray_const_t array;
	size_t x, y;
	const void *memory;
	size_t pitch;
};

/*
 * Bytes of a row of the array, and of a texel. Fails with the driver's error, such as cudaErrorInvalidResourceHandle.
 * Records nothing.
 */
cudaError_t array_row_bytes(cudaArray_const_t array, size_t *row, size_t *texel);

/* Checks that kind allows an array at each end that is an array. A failure is recorded. */
cudaError_t array_copy_check(const struct array_end *to, const struct array_end *from, enum cudaMemcpyKind kind);

/* The driver's description of a copy of height rows of width bytes. */
CUDA_MEMCPY2D array_copy_2d(const struct array_end *to, const struct array_end *from, size_t width, size_t height,
			    enum cudaMemcpyKind kind);

/*
 * The next piece of a copy of count bytes that continues from row to row. Outputs the driver's description of the piece
 * and moves both ends past it. Returns the bytes of the piece. A row of 0 means that the end is not an array.
 */
size_t array_copy_piece(struct array_end *to, size_t to_row, struct array_end *from, size_t from_row, size_t count,
			enum cudaMemcpyKind kind, CUDA_MEMCPY2D *piece);

#endif
