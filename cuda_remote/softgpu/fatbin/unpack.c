/* SPDX-License-Identifier: BSD-3-Clause */
/* Decompression of PTX by zstd and LZ4, or an error that says how to do without the missing library. */
#include "config.h"

#include "cuda_remote/softgpu/fatbin/unpack.h"

#include "cuda_remote/softgpu/fatbin/complain.h"

#include <limits.h>
#include <string.h>

#ifdef HAVE_ZSTD
#include <zstd.h>

#define BLOCK_BYTES (128u << 10) /* the most that a compressed block holds */

enum { BLOCK_RAW, BLOCK_RLE, BLOCK_COMPRESSED };

/* The bytes of a frame before its blocks (RFC 8878, section 3.1.1.1), without the magic number. */
static size_t frame_head(unsigned char descriptor)
{
	static const unsigned char dictionary[] = { 0, 1, 2, 4 }, content[] = { 0, 2, 4, 8 };
	bool single = descriptor & 0x20;
	return 2 - single + dictionary[descriptor & 3] + (descriptor >> 6 ? content[descriptor >> 6] : single);
}

uint64_t unpack_zstd_most(const void *from, size_t bytes)
{
	const unsigned char *at = from, *end = at + bytes;
	uint64_t most = 0;
	while (end - at >= 5) {
		uint32_t magic;
		memcpy(&magic, at, sizeof magic);
		if (magic != ZSTD_MAGICNUMBER)
			return most; /* nvcc makes no other frames */
		unsigned char descriptor = at[4];
		bool last = false;
		if ((size_t)(end - at) < 4 + frame_head(descriptor))
			return most;
		for (at += 4 + frame_head(descriptor); !last; at += 3) {
			if (end - at < 3)
				return most; /* cut off: it holds no more */
			uint32_t head = at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16, size = head >> 3;
			unsigned kind = head >> 1 & 3;
			last = head & 1;
			most += kind == BLOCK_COMPRESSED ? BLOCK_BYTES : size;
			size = kind == BLOCK_RLE ? 1 : size;
			if (end - at - 3 < (ptrdiff_t)size)
				return most;
			at += size;
		}
		at += descriptor & 4; /* a checksum of four bytes */
	}
	return most;
}

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
uint64_t unpack_zstd_most(const void *from, size_t bytes)
{
	(void)from, (void)bytes;
	return UINT64_MAX;
}

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
