/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies to and from arrays in the driver's form, row by row where the copy does not fill whole rows. */
#include "cuda_remote/runtime/array/array_copy.h"

#include "cuda_remote/runtime/array/channel_format.h"

cudaError_t array_row_bytes(cudaArray_const_t array, size_t *row, size_t *texel)
{
	CUDA_ARRAY3D_DESCRIPTOR descriptor;
	CUresult result = runtime_driver.cuArray3DGetDescriptor_v2(&descriptor, (CUarray)(uintptr_t)array);
	if (result != CUDA_SUCCESS)
		return runtime_error_translate(result);
	*texel = channel_texel_bytes(descriptor.Format, descriptor.NumChannels);
	*row = descriptor.Width * *texel;
	return *texel ? cudaSuccess : cudaErrorNotSupported;
}

/* An array is device memory, so the kind must not name host memory for it. */
cudaError_t array_copy_check(const struct array_end *to, const struct array_end *from, enum cudaMemcpyKind kind)
{
	if (!copy_kind_valid(kind) || (from->array && copy_source_type(kind) == CU_MEMORYTYPE_HOST) ||
	    (to->array && copy_target_type(kind) == CU_MEMORYTYPE_HOST))
		return runtime_fail(cudaErrorInvalidMemcpyDirection);
	return cudaSuccess;
}

CUDA_MEMCPY2D array_copy_2d(const struct array_end *to, const struct array_end *from, size_t width, size_t height,
			    enum cudaMemcpyKind kind)
{
	return (CUDA_MEMCPY2D){
		.srcXInBytes = from->x, .srcY = from->y,
		.srcMemoryType = from->array ? CU_MEMORYTYPE_ARRAY : copy_source_type(kind),
		.srcHost = from->memory, .srcDevice = runtime_address(from->memory),
		.srcArray = (CUarray)(uintptr_t)from->array, .srcPitch = from->pitch,
		.dstXInBytes = to->x, .dstY = to->y,
		.dstMemoryType = to->array ? CU_MEMORYTYPE_ARRAY : copy_target_type(kind),
		.dstHost = (void *)(uintptr_t)to->memory, .dstDevice = runtime_address(to->memory),
		.dstArray = (CUarray)(uintptr_t)to->array, .dstPitch = to->pitch,
		.WidthInBytes = width, .Height = height,
	};
}

static size_t left_in_row(const struct array_end *end, size_t row, size_t count)
{
	if (!row)
		return count;
	return row > end->x && row - end->x < count ? row - end->x : count;
}

static void advance(struct array_end *end, size_t row, size_t bytes)
{
	if (!row) {
		end->memory = (const char *)end->memory + bytes;
		return;
	}
	end->y += (end->x + bytes) / row;
	end->x = (end->x + bytes) % row;
}

size_t array_copy_piece(struct array_end *to, size_t to_row, struct array_end *from, size_t from_row, size_t count,
			enum cudaMemcpyKind kind, CUDA_MEMCPY2D *piece)
{
	size_t row = to_row ? to_row : from_row, width = left_in_row(to, to_row, count), height = 1;
	width = left_in_row(from, from_row, width);
	/* Whole rows are copied in one piece. */
	if (width == row && !to->x && !from->x && (!to_row || !from_row || to_row == from_row))
		height = count / row;
	to->pitch = from->pitch = row;
	*piece = array_copy_2d(to, from, width, height, kind);
	advance(to, to_row, width * height);
	advance(from, from_row, width * height);
	return width * height;
}
