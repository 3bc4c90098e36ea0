/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVIDIA's fat binary container, as nvcc 13.0 writes it (measured; NVIDIA does not document it): a header and entries,
 * each with a kind, an architecture and a payload, raw or compressed as one LZ4 block or one zstd frame.
 *
 * Header: struct fatbin_header. Entry: struct fatbin_entry. Both: cuda_remote/fatbin.h.
 * The bytes are not trusted: every field is checked against the bounds before it is used.
 */
#ifndef SOFTGPU_FATBIN_H
#define SOFTGPU_FATBIN_H

#include "cuda_remote/fatbin.h"
#include "cuda_remote/softgpu/engine.h"
#include "cuda_remote/softgpu/fatbin/complain.h"

/* Text that the caller frees with free(ptx.text); NUL-terminated, length without the NUL. */
typedef struct fatbin_ptx {
	char *text;
	size_t length;
	unsigned sm; /* the architecture that it was compiled for */
} fatbin_ptx_t;

/*
 * Unpacks the PTX for the highest architecture not above capability (10 * major + minor). limit: bytes at data that may
 * be read (at least 16); SIZE_MAX if only the container itself knows its size. CUDA_ERROR_INVALID_IMAGE: not a
 * container, or a damaged one. CUDA_ERROR_NO_BINARY_FOR_GPU: no PTX that this capability can use; the log says what the
 * container holds. CUDA_ERROR_NOT_SUPPORTED: this build lacks the library to decompress it.
 */
CUresult fatbin_unpack(const void *data, size_t limit, unsigned capability, softgpu_log_t *log, fatbin_ptx_t *ptx);

/*
 * Whether a container has PTX for this capability, or a damaged entry, which fatbin_unpack then reports. False: it has
 * neither, or no container starts here. Does not log.
 */
bool fatbin_has_ptx(const void *data, size_t limit, unsigned capability);

#endif
