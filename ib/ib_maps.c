/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up the mapping of an address: PROCMAP_QUERY, or /proc/self/maps on older kernels. */
#include "config.h"

#include "ib/ib_maps.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* PROCMAP_QUERY of <linux/fs.h>, Linux 6.11. The kernel headers of a build may be older and lack it. */
struct query {
	uint64_t size;
	uint64_t query_flags;
	uint64_t query_addr;
	uint64_t vma_start, vma_end;
	uint64_t vma_flags;
	uint64_t vma_page_size;
	uint64_t vma_offset;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	uint32_t vma_name_size, build_id_size;
	uint64_t vma_name_addr, build_id_addr;
};
_Static_assert(sizeof(struct query) == 104, "the kernel's interface");

#define QUERY_MAPPING _IOWR('f', 17, struct query)
#define QUERY_VMA_SHARED 8u
#define QUERY_COVERING_OR_NEXT_VMA 0x10u

static int find(int maps, uintptr_t at, uint64_t flags, struct ib_mapping *mapping)
{
	struct query query = { .size = sizeof query, .query_flags = flags, .query_addr = at };
	if (ioctl(maps, QUERY_MAPPING, &query))
		return -errno;
	*mapping = (struct ib_mapping){
		.start = (uintptr_t)query.vma_start,
		.end = (uintptr_t)query.vma_end,
		.private_anonymous = query.inode == 0 && !(query.vma_flags & QUERY_VMA_SHARED),
	};
	return 0;
}

int ib_maps_find(int maps, uintptr_t at, struct ib_mapping *mapping)
{
	int error = find(maps, at, 0, mapping);
	return error && error != -ENOENT ? ib_maps_find_text(maps, at, mapping) : error;
}

int ib_maps_next(int maps, uintptr_t at, struct ib_mapping *mapping)
{
	int error = find(maps, at, QUERY_COVERING_OR_NEXT_VMA, mapping);
	return error && error != -ENOENT ? ib_maps_next_text(maps, at, mapping) : error;
}

static uint64_t number(const char **text, unsigned base)
{
	uint64_t value = 0;
	for (;; (*text)++) {
		unsigned digit = **text >= 'a' ? (unsigned)(**text - 'a') + 10 : (unsigned)(**text - '0');
		if (digit >= base)
			return value;
		value = value * base + digit;
	}
}

/* Parses one line: "start-end rwxp offset major:minor inode ...". */
static struct ib_mapping parse(const char *line)
{
	struct ib_mapping mapping;
	mapping.start = (uintptr_t)number(&line, 16);
	line += *line == '-';
	mapping.end = (uintptr_t)number(&line, 16);
	bool private = strlen(line) > 5 && line[4] == 'p';
	for (int field = 0; *line && field < 4; line++)
		field += *line == ' ';
	mapping.private_anonymous = private && number(&line, 10) == 0;
	return mapping;
}

int ib_maps_next_text(int maps, uintptr_t at, struct ib_mapping *mapping)
{
	char text[8192]; /* a line contains a path of up to 4096 bytes, so it fits */
	size_t len = 0;
	if (lseek(maps, 0, SEEK_SET) < 0)
		return -EIO;
	for (;;) {
		ssize_t got = read(maps, text + len, sizeof text - 1 - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -EIO;
		len += (size_t)got;
		text[len] = 0;
		char *line = text, *end;
		for (; (end = strchr(line, '\n')); line = end + 1) {
			*end = 0;
			struct ib_mapping found = parse(line);
			if (found.end <= at)
				continue;
			*mapping = found;
			return 0;
		}
		if (got == 0)
			return -ENOENT;
		len -= (size_t)(line - text);
		if (len == sizeof text - 1)
			return -EIO; /* not in the format that this function expects: no line is that long */
		memmove(text, line, len);
	}
}

int ib_maps_find_text(int maps, uintptr_t at, struct ib_mapping *mapping)
{
	struct ib_mapping found;
	int error = ib_maps_next_text(maps, at, &found);
	if (!error && found.start > at)
		error = -ENOENT;
	if (!error)
		*mapping = found;
	return error;
}
