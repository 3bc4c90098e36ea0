/* SPDX-License-Identifier: BSD-3-Clause */
/* Merges the container of a linked program with the container of the unit that has its PTX. */
#include "cuda_remote/runtime/fatbin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { KIND_PTX = 1 };

/* The start of an entry's header, which says where the next entry is; the rest follows. */
struct entry {
	uint16_t kind, flags;
	uint32_t header;
	uint64_t payload; /* bytes, padding included */
};

_Static_assert(sizeof(struct entry) == 16, "the layout of the file");

static struct fatbin_header header_at(const void *image)
{
	struct fatbin_header header;
	memcpy(&header, image, sizeof header);
	return header;
}

/*
 * Appends a container's PTX entries, or all its entries, to *to if that is not NULL. Returns their bytes; 0: not a
 * container.
 */
static size_t gather(const void *image, bool all, char **to)
{
	struct fatbin_header container = header_at(image);
	size_t total = 0;
	if (container.magic != FATBIN_MAGIC)
		return 0;
	const char *at = (const char *)image + container.header_bytes;
	for (uint64_t left = container.bytes; left >= sizeof(struct entry);) {
		struct entry entry;
		memcpy(&entry, at, sizeof entry);
		uint64_t size = entry.header + entry.payload;
		if (entry.header < sizeof entry || size > left)
			break;
		if (all || entry.kind == KIND_PTX) {
			if (to) {
				memcpy(*to, at, size);
				*to += size;
			}
			total += size;
		}
		at += size;
		left -= size;
	}
	return total;
}

/* The one unit that has PTX. */
static const void *only_unit_with_ptx(const void *const *units)
{
	const void *found = NULL;
	for (; *units; units++) {
		if (!gather(*units, false, NULL))
			continue;
		if (found)
			return NULL;
		found = *units;
	}
	return found;
}

void *fatbin_with_ptx(const struct fatbin_wrapper *wrapper)
{
	const void *unit = wrapper->version == 2 && wrapper->units ? only_unit_with_ptx(wrapper->units) : NULL;
	if (!unit || header_at(wrapper->container).magic != FATBIN_MAGIC)
		return NULL;
	struct fatbin_header head = { FATBIN_MAGIC, 1, sizeof head, 0 };
	head.bytes = gather(wrapper->container, true, NULL) + gather(unit, false, NULL);
	char *merged = malloc(sizeof head + head.bytes);
	if (!merged)
		return NULL;
	memcpy(merged, &head, sizeof head);
	char *at = merged + sizeof head;
	gather(wrapper->container, true, &at);
	gather(unit, false, &at);
	return merged;
}
