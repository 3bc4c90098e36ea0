/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images of several PTX texts, which the software GPU's linker makes in place of a cubin (softgpu/fatbin/linked.h). Client
 * and worker share the format with the software GPU: a program that has linked remotely loads the image remotely.
 *
 * A header. Then for each unit: an entry; the name and a NUL; the text and a NUL; zeros up to a multiple of 8. The byte order
 * is the machine's; images are not portable.
 */
#ifndef RC_LINKED_IMAGE_H
#define RC_LINKED_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define LINKED_MAGIC "HRPTXLNK"

struct linked_header {
	char magic[8];           /* LINKED_MAGIC without its NUL */
	uint32_t version, units; /* 1; number of units */
	uint64_t bytes;          /* of the whole image */
};

struct linked_entry {
	uint64_t text_bytes;            /* without the NUL */
	uint32_t name_bytes, on_demand; /* without the NUL; 1: the unit is linked only if others need it */
};
_Static_assert(sizeof(struct linked_header) == 24 && sizeof(struct linked_entry) == 16, "the layout of the image");

/* Whether such an image starts here; reads no further than the first byte that differs. */
static inline bool linked_is(const void *data)
{
	/* Compares the version's bytes too: a text that begins with the same letters may be shorter than a header. */
	static const char start[] = LINKED_MAGIC "\1\0\0";
	const char *bytes = data;
	for (size_t n = 0; n < sizeof start; n++)
		if (bytes[n] != start[n])
			return false;
	return true;
}

/* Bytes of the image at data, as its header says. */
static inline size_t linked_bytes(const void *data)
{
	struct linked_header header;
	memcpy(&header, data, sizeof header);
	return (size_t)header.bytes;
}

/* Bytes of a unit with its padding; 0: it does not lie within the bytes that are left, or a NUL is missing. */
static inline size_t linked_unit_bytes(const char *at, size_t left, struct linked_entry *entry)
{
	if (left < sizeof *entry)
		return 0;
	memcpy(entry, at, sizeof *entry);
	size_t rest = left - sizeof *entry;
	if (entry->name_bytes >= rest || entry->text_bytes >= rest - entry->name_bytes - 1)
		return 0;
	const char *name = at + sizeof *entry, *text = name + entry->name_bytes + 1;
	if (text[entry->text_bytes] || memchr(name, '\0', entry->name_bytes + 1) != name + entry->name_bytes)
		return 0;
	size_t bytes = (sizeof *entry + entry->name_bytes + 1 + (size_t)entry->text_bytes + 1 + 7) & ~(size_t)7;
	return bytes <= left ? bytes : 0;
}

/* True if length bytes are one image whose units all lie inside. */
static inline bool linked_is_sound(const void *data, size_t length)
{
	struct linked_header header;
	struct linked_entry entry;
	if (length < sizeof header || !linked_is(data))
		return false;
	memcpy(&header, data, sizeof header);
	if (header.bytes != length || header.units > length / sizeof entry)
		return false;
	const char *at = (const char *)data + sizeof header;
	size_t left = length - sizeof header;
	for (uint32_t i = 0; i < header.units; i++) {
		size_t bytes = linked_unit_bytes(at, left, &entry);
		if (!bytes)
			return false;
		at += bytes;
		left -= bytes;
	}
	return true;
}

#endif
