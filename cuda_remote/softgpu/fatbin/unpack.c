/* SPDX-License-Identifier: BSD-3-Clause */
/* Decompression of PTX by zstd and LZ4, or an error that says how to do without the missing library. */
#include "config.h"

#include "cuda_remote/softgpu/fatbin/unpack.h"

#include "cuda_remote/softgpu/fatbin/complain.h"

#include <limits.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

CUresult unpack_zstd(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log)
{
	size_t got = ZSTD_decompress(to, to_bytes, from, from_bytes);
	if (!ZSTD_isError(got) && got == to_bytes)
		return CUDA_SUCCESS;
	fatbin_complain(log, "fat binary: zstd payload of %zu bytes: %s", from_bytes,
			ZSTD_isError(got) ? ZSTD_getErrorName(got) : "shorter than its header says");
	return CUDA_ERROR_INVALID_IMAGE;
}
#else
CUresult unpack_zstd(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log)
{
	(void)from, (void)from_bytes, (void)to, (void)to_bytes;
	fatbin_complain(log, "fat binary: PTX compressed by zstd, and Headrace was built without libzstd: "
			"build it with --with-zstd, or the program with nvcc --compress-mode=none");
	return CUDA_ERROR_NOT_SUPPORTED;
}
#endif

#ifdef HAVE_LZ4
#include <lz4.h>

CUresult unpack_lz4(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log)
{
	if (from_bytes <= INT_MAX && to_bytes <= INT_MAX &&
	    LZ4_decompress_safe(from, to, (int)from_bytes, (int)to_bytes) == (int)to_bytes)
		return CUDA_SUCCESS;
	fatbin_complain(log, "fat binary: LZ4 payload of %zu bytes does not unpack to %zu", from_bytes, to_bytes);
	return CUDA_ERROR_INVALID_IMAGE;
}
#else
CUresult unpack_lz4(const void *from, size_t from_bytes, void *to, size_t to_bytes, softgpu_log_t *log)
{
	(void)from, (void)from_bytes, (void)to, (void)to_bytes;
	fatbin_complain(log, "fat binary: PTX compressed by LZ4, and Headrace was built without liblz4: "
			"build it with --with-lz4, or the program with nvcc --compress-mode=none");
	return CUDA_ERROR_NOT_SUPPORTED;
}
#endif
