/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The outer layers of NVIDIA's fat binary, as nvcc 13.0 writes them: the wrapper in .nvFatBinSegment, and the header of
 * a container. The client, the worker, the runtime and the software GPU share these definitions. The entries in a
 * container are in softgpu/fatbin/fatbin.h.
 */
#ifndef RC_FATBIN_H
#define RC_FATBIN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define FATBIN_WRAPPER_MAGIC UINT32_C(0x466243B1)
#define FATBIN_MAGIC UINT32_C(0xBA55ED50)

/* fatbinary_section.h of the toolkit. It holds pointers, so it has a meaning in its own process only. */
struct fatbin_wrapper {
	uint32_t magic, version;
	const void *container;
	const void *const *units; /* version 2 (-rdc=true): the containers that were linked, NULL at the end */
};

/* In front of a container's entries. Little-endian. */
struct fatbin_header {
	uint32_t magic;
	uint16_t version; /* 1 */
	uint16_t header_bytes; /* of this header; the entries follow it */
	uint64_t bytes;        /* of all entries */
};
_Static_assert(sizeof(struct fatbin_header) == 16, "nvcc's layout");

/*
 * Bytes of the whole container at data, header included; 0 if no container starts there, or if it does not end within
 * limit bytes. limit: SIZE_MAX if only the container itself knows its size.
 */
static inline size_t fatbin_container_bytes(const void *data, size_t limit)
{
	struct fatbin_header header;
	if (limit < sizeof header)
		return 0;
	memcpy(&header, data, sizeof header);
	if (header.magic != FATBIN_MAGIC || header.version != 1 || header.header_bytes < sizeof header ||
	    header.header_bytes > limit || header.bytes > limit - header.header_bytes)
		return 0;
	return header.header_bytes + (size_t)header.bytes;
}

#endif
