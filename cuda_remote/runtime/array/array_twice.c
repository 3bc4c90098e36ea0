/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies to, from and between arrays. */
#include "cuda_remote/runtime/array/array_copy.h"
#include "cuda_remote/runtime/default_stream.h"

static struct array_end in_array(cudaArray_const_t array, size_t x, size_t y)
{
	return (struct array_end){ .array = array, .x = x, .y = y };
}

static struct array_end in_memory(const void *memory, size_t pitch)
{
	return (struct array_end){ .memory = memory, .pitch = pitch };
}

static CUresult submit(const CUDA_MEMCPY2D *copy, bool synchronous, cudaStream_t stream)
{
	if (synchronous)
		return runtime_driver.DRIVER_CALL(cuMemcpy2DUnaligned_v2)(copy);
	return runtime_driver.cuMemcpy2DAsync_v2(copy, DRIVER_STREAM(stream));
}

/* A box of width bytes by height rows. */
static cudaError_t copy_box(struct array_end to, struct array_end from, size_t width, size_t height,
			    enum cudaMemcpyKind kind, bool synchronous, cudaStream_t stream)
{
	const struct array_end *memory = to.array ? &from : &to;
	cudaError_t error = array_copy_check(&to, &from, kind);
	if (error)
		return error;
	if (!memory->array && height > 1 && width > memory->pitch)
		return runtime_fail(cudaErrorInvalidPitchValue);
	error = runtime_enter();
	if (error || !width || !height)
		return error;
	CUDA_MEMCPY2D copy = array_copy_2d(&to, &from, width, height, kind);
	return runtime_done(submit(&copy, synchronous, stream));
}

/* Copies count bytes, which continue in the next row of an array. */
static cudaError_t copy_rows(struct array_end to, struct array_end from, size_t count, enum cudaMemcpyKind kind,
			     bool synchronous, cudaStream_t stream)
{
	size_t to_row = 0, from_row = 0, texel;
	cudaError_t error = array_copy_check(&to, &from, kind);
	if (!error)
		error = runtime_enter();
	if (error)
		return error;
	if (to.array)
		error = array_row_bytes(to.array, &to_row, &texel);
	if (!error && from.array)
		error = array_row_bytes(from.array, &from_row, &texel);
	CUresult result = CUDA_SUCCESS;
	while (!error && count && result == CUDA_SUCCESS) {
		CUDA_MEMCPY2D piece;
		count -= array_copy_piece(&to, to_row, &from, from_row, count, kind, &piece);
		result = submit(&piece, synchronous, stream);
	}
	return error ? runtime_fail(error) : runtime_done(result);
}

RUNTIME_API cudaError_t cudaMemcpy2DToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
					    size_t width,
					    size_t height, enum cudaMemcpyKind kind)
{
	return copy_box(in_array(to, x, y), in_memory(from, pitch), width, height, kind, true, NULL);
}

RUNTIME_API cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t pitch,
						 size_t width, size_t height, enum cudaMemcpyKind kind,
						 cudaStream_t stream)
{
	return copy_box(in_array(to, x, y), in_memory(from, pitch), width, height, kind, false, stream);
}

RUNTIME_API cudaError_t cudaMemcpy2DFromArray(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
					      size_t width, size_t height, enum cudaMemcpyKind kind)
{
	return copy_box(in_memory(to, pitch), in_array(from, x, y), width, height, kind, true, NULL);
}

RUNTIME_API cudaError_t cudaMemcpy2DFromArrayAsync(void *to, size_t pitch, cudaArray_const_t from, size_t x, size_t y,
						   size_t width, size_t height, enum cudaMemcpyKind kind,
						   cudaStream_t stream)
{
	return copy_box(in_memory(to, pitch), in_array(from, x, y), width, height, kind, false, stream);
}

RUNTIME_API cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
						 size_t from_x, size_t from_y, size_t width, size_t height,
						 enum cudaMemcpyKind kind)
{
	return copy_box(in_array(to, to_x, to_y), in_array(from, from_x, from_y), width, height, kind, true, NULL);
}

RUNTIME_API cudaError_t cudaMemcpyToArray(cudaArray_t to, size_t x, size_t y, const void *from, size_t count,
					  enum cudaMemcpyKind kind)
{
	return copy_rows(in_array(to, x, y), in_memory(from, 0), count, kind, true, NULL);
}

RUNTIME_API cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, size_t x, size_t y, const void *from, size_t count,
					       enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(in_array(to, x, y), in_memory(from, 0), count, kind, false, stream);
}

RUNTIME_API cudaError_t cudaMemcpyFromArray(void *to, cudaArray_const_t from, size_t x, size_t y, size_t count,
					    enum cudaMemcpyKind kind)
{
	return copy_rows(in_memory(to, 0), in_array(from, x, y), count, kind, true, NULL);
}

RUNTIME_API cudaError_t cudaMemcpyFromArrayAsync(void *to, cudaArray_const_t from, size_t x, size_t y, size_t count,
						 enum cudaMemcpyKind kind, cudaStream_t stream)
{
	return copy_rows(in_memory(to, 0), in_array(from, x, y), count, kind, false, stream);
}

RUNTIME_API cudaError_t cudaMemcpyArrayToArray(cudaArray_t to, size_t to_x, size_t to_y, cudaArray_const_t from,
					       size_t from_x, size_t from_y, size_t count, enum cudaMemcpyKind kind)
{
	return copy_rows(in_array(to, to_x, to_y), in_array(from, from_x, from_y), count, kind, true, NULL);
}
