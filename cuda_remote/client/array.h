/* SPDX-License-Identifier: BSD-3-Clause */
/* Arrays (array.c), copies with arrays (array_copy.c), textures and surfaces (texture.c). */
#ifndef RC_CLIENT_ARRAY_H
#define RC_CLIENT_ARRAY_H

#include <cuda.h>
#include <stdbool.h>

struct rc_route;

/* CUDA_ERROR_INVALID_VALUE if the box of a copy is not within its arrays and device memory. */
CUresult rc_array_check(const CUDA_MEMCPY3D *copy);
/* CUDA_ERROR_INVALID_VALUE if the array has more than one row. */
CUresult rc_array_check_row(CUarray array);

/* A copy with an array on one side at least. */
CUresult rc_array_copy(const CUDA_MEMCPY3D *copy, CUstream stream, bool asynchronous);
/* Copies a struct as it travels (api/widths.py: TRANSLATED). Generated. */
CUresult rc_send_CUDA_MEMCPY3D(struct rc_route *route, const CUDA_MEMCPY3D *from, CUDA_MEMCPY3D *to);
/* Forgets the textures and surfaces of a context that is gone. */
void rc_textures_forget(CUcontext context);

#endif
