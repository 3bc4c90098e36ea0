/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads fat binary containers and chooses the PTX for a device. */
#include "cuda_remote/softgpu/fatbin/fatbin.h"

#include "cuda_remote/softgpu/fatbin/unpack.h"

#include <stdlib.h>
#include <string.h>

/* No real PTX is this large: a header with a larger size is damaged. */
#define MAX_TEXT (UINT64_C(1) << 29)

/* A walk through the entries. */
struct walk {
	const unsigned char *at;
	size_t left;
};

/* Outputs the next entry and its payload. 0: no entry left; -1: damaged. */
static int next_entry(struct walk *walk, struct fatbin_entry *entry, const unsigned char **payload)
{
	if (!walk->left)
		return 0;
	if (walk->left < sizeof *entry)
		return -1;
	memcpy(entry, walk->at, sizeof *entry);
	if (entry->header_bytes < sizeof *entry || entry->header_bytes > walk->left ||
	    entry->payload_bytes > walk->left - entry->header_bytes)
		return -1;
	*payload = walk->at + entry->header_bytes;
	size_t whole = entry->header_bytes + (size_t)entry->payload_bytes;
	walk->at += whole;
	walk->left -= whole;
	return 1;
}

/* Code with architecture-specific features runs on that architecture only. */
static bool runs_on(const struct fatbin_entry *entry, unsigned capability)
{
	if (entry->flags & FATBIN_FLAG_ARCH_SPECIFIC)
		return entry->sm == capability;
	if (entry->flags & FATBIN_FLAG_FAMILY_SPECIFIC)
		return entry->sm <= capability && entry->sm / 10 == capability / 10;
	return entry->sm <= capability;
}

/* The entry with the higher architecture; of equals, the one without specific features. */
static bool better(const struct fatbin_entry *entry, const struct fatbin_entry *best)
{
	const uint64_t special = FATBIN_FLAG_ARCH_SPECIFIC | FATBIN_FLAG_FAMILY_SPECIFIC;
	return !best->kind || entry->sm > best->sm ||
	       (entry->sm == best->sm && (best->flags & special) && !(entry->flags & special));
}

/* Whether a compressed payload can hold as many bytes as its header says. Looks at the contents before memory is allocated. */
static bool can_hold(const struct fatbin_entry *entry, const unsigned char *payload)
{
	uint64_t most = entry->flags & FATBIN_FLAG_ZSTD ? unpack_zstd_most(payload, entry->packed_bytes)
						 : (uint64_t)entry->packed_bytes * UNPACK_LZ4_RATIO;
	return entry->text_bytes <= most;
}

static CUresult unpack(const struct fatbin_entry *entry, const unsigned char *payload, softgpu_log_t *log,
		       fatbin_ptx_t *ptx)
{
	bool packed = entry->flags & (FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD);
	uint64_t bytes = packed ? entry->text_bytes : entry->payload_bytes;
	if (bytes > MAX_TEXT || (packed && (entry->packed_bytes > entry->payload_bytes || !can_hold(entry, payload)))) {
		fatbin_complain(log, "fat binary: the sizes of the PTX entry for sm_%u are damaged", entry->sm);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	char *text = malloc((size_t)bytes + 1);
	if (!text)
		return CUDA_ERROR_OUT_OF_MEMORY;
	CUresult result = CUDA_SUCCESS;
	if (entry->flags & FATBIN_FLAG_ZSTD)
		result = unpack_zstd(payload, entry->packed_bytes, text, (size_t)bytes, log);
	else if (entry->flags & FATBIN_FLAG_LZ4)
		result = unpack_lz4(payload, entry->packed_bytes, text, (size_t)bytes, log);
	else
		memcpy(text, payload, (size_t)bytes);
	if (result) {
		free(text);
		return result;
	}
	text[bytes] = '\0';
	*ptx = (fatbin_ptx_t){ text, strlen(text), entry->sm };
	return CUDA_SUCCESS;
}

/* Logs why no entry can be used. */
static CUresult refuse(unsigned elf, unsigned lto, unsigned lowest_ptx, unsigned capability, softgpu_log_t *log)
{
	if (lowest_ptx)
		fatbin_complain(log,
				"fat binary: PTX only from sm_%u on, the software GPU is sm_%u: compile for an older "
				"architecture or set HEADRACE_SOFTGPU_CAPABILITY=%u",
				lowest_ptx, capability, lowest_ptx);
	else
		fatbin_complain(log,
				"fat binary: %u machine code image%s, %u LTO, but no PTX: the software GPU needs PTX; "
				"compile with nvcc -arch=compute_75 or -gencode arch=compute_75,code=compute_75",
				elf, elf == 1 ? "" : "s", lto);
	return CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Reads the header at data and checks it against limit. */
static bool header_at(const void *data, size_t limit, struct fatbin_header *header)
{
	if (!fatbin_container_bytes(data, limit))
		return false;
	memcpy(header, data, sizeof *header);
	return true;
}

/* What a container holds, and its best entry for the device. */
struct contents {
	unsigned elf, lto, lowest; /* lowest: architecture of PTX; 0: none */
	struct fatbin_entry best;
	const unsigned char *payload; /* of best; NULL: the device can use no entry */
	size_t damaged_at; /* bytes from a damaged entry to the container's end; 0: no entry is damaged */
};

static void survey(const void *data, const struct fatbin_header *header, unsigned capability, struct contents *contents)
{
	struct walk walk = { (const unsigned char *)data + header->header_bytes, (size_t)header->bytes };
	struct fatbin_entry entry;
	const unsigned char *payload;
	int more;
	*contents = (struct contents){ 0 };
	while ((more = next_entry(&walk, &entry, &payload)) > 0) {
		contents->elf += entry.kind == FATBIN_ELF;
		contents->lto += entry.kind == FATBIN_LTO;
		if (entry.kind != FATBIN_PTX)
			continue;
		contents->lowest = !contents->lowest || entry.sm < contents->lowest ? entry.sm : contents->lowest;
		if (runs_on(&entry, capability) && better(&entry, &contents->best)) {
			contents->best = entry;
			contents->payload = payload;
		}
	}
	contents->damaged_at = more < 0 ? walk.left : 0;
}

bool fatbin_has_ptx(const void *data, size_t limit, unsigned capability)
{
	struct fatbin_header header;
	struct contents contents;
	if (!header_at(data, limit, &header))
		return false;
	survey(data, &header, capability, &contents);
	return contents.damaged_at || contents.payload;
}

CUresult fatbin_unpack(const void *data, size_t limit, unsigned capability, softgpu_log_t *log, fatbin_ptx_t *ptx)
{
	struct fatbin_header header;
	struct contents contents;
	if (!header_at(data, limit, &header)) {
		fatbin_complain(log, "fat binary: damaged header");
		return CUDA_ERROR_INVALID_IMAGE;
	}
	survey(data, &header, capability, &contents);
	if (contents.damaged_at) {
		fatbin_complain(log, "fat binary: damaged entry, %zu bytes before the end", contents.damaged_at);
		return CUDA_ERROR_INVALID_IMAGE;
	}
	return contents.payload ? unpack(&contents.best, contents.payload, log, ptx)
				: refuse(contents.elf, contents.lto, contents.lowest, capability, log);
}
