/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layers of NVIDIA's fat binary, as nvcc 13.0 writes them: the wrapper in .nvFatBinSegment, the header of a container, and
 * the headers of its entries. The client, the worker, the runtime and the software GPU share these definitions.
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

enum { FATBIN_PTX = 1, FATBIN_ELF = 2, FATBIN_LTO = 8 };
enum {
	FATBIN_FLAG_LZ4 = 0x2000,
	FATBIN_FLAG_ZSTD = 0x8000,
	FATBIN_FLAG_ARCH_SPECIFIC = 0x100000,
	FATBIN_FLAG_FAMILY_SPECIFIC = 0x200000
};

struct fatbin_entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t payload_bytes; /* padded; the next entry follows */
	uint32_t packed_bytes;  /* of a compressed payload, without padding */
	uint32_t options_offset;
	uint32_t reserved;
	uint32_t sm;
	uint32_t name_offset, name_bytes;
	uint64_t flags;
	uint64_t reserved2;
	uint64_t text_bytes; /* uncompressed */
};
_Static_assert(sizeof(struct fatbin_entry) == 64, "nvcc's layout");

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
