/* SPDX-License-Identifier: BSD-3-Clause */
/* Decompression of one payload, by whichever libraries this was built with. */
#ifndef SOFTGPU_UNPACK_H
#define SOFTGPU_UNPACK_H

#include "cuda_remote/softgpu/engine.h"

/* Unpacks exactly to_bytes. CUDA_ERROR_INVALID_IMAGE: damaged; CUDA_ERROR_NOT_SUPPORTED: built without the library. */
CUresult unpack_zstd(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log);
CUresult unpack_lz4(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log);

/* A bound of the bytes that a payload unpacks to, from the heads of its blocks; UINT64_MAX: not known. */
uint64_t unpack_zstd_most(const void *from, size_t bytes);
#define UNPACK_LZ4_RATIO 255 /* a byte of an LZ4 payload stands for at most so many */

#endif
