/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images from the wire. A driver takes an image as a pointer without a length, and follows whatever lengths and pointers the
 * image holds. So the worker hands over only what it has checked to lie inside the message: PTX text, fat-binary containers,
 * ELF files, and images of the software GPU's linker. Everything else is refused, among it .nvFatBinSegment (pointers).
 *
 * The driver reads a private copy. Zeros follow the copy, and a page without access follows the zeros: a driver that reads
 * too far finds the end of a text or a page fault, never another client's or the worker's own data.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "cuda_remote/server/image.h"

#include "cuda_remote/fatbin.h"
#include "cuda_remote/linked_image.h"

#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- fat-binary containers ---- */

struct container_entry {
	uint16_t kind, version;
	uint32_t header_bytes;
	uint64_t payload_bytes;
};

/* True if the entries lie one behind the other and fill the container. */
static bool entries_are_inside(const uint8_t *at, uint64_t left)
{
	while (left) {
		struct container_entry entry;
		if (left < sizeof entry)
			return false;
		memcpy(&entry, at, sizeof entry);
		if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
		    entry.payload_bytes > left - entry.header_bytes)
			return false;
		at += entry.header_bytes + entry.payload_bytes;
		left -= entry.header_bytes + entry.payload_bytes;
	}
	return true;
}

uint64_t server_image_container(const uint8_t *image, uint64_t size)
{
	struct fatbin_header header;
	uint64_t bytes = fatbin_container_bytes(image, size);
	if (!bytes)
		return 0;
	memcpy(&header, image, sizeof header);
	return entries_are_inside(image + header.header_bytes, header.bytes) ? bytes : 0;
}

/* ---- ELF ---- */

static bool is_inside(uint64_t offset, uint64_t bytes, uint64_t size)
{
	return offset <= size && bytes <= size - offset;
}

static bool sections_are_inside(const Elf64_Ehdr *head, const uint8_t *image, uint64_t size)
{
	if (!head->e_shoff && !head->e_shnum)
		return true;
	/* If e_shnum is 0 beside an offset, the number is in the first section (more than 65,279 sections). Refused. */
	if (!head->e_shnum || head->e_shentsize != sizeof(Elf64_Shdr) || head->e_shstrndx >= head->e_shnum ||
	    !is_inside(head->e_shoff, head->e_shnum * sizeof(Elf64_Shdr), size))
		return false;
	for (unsigned i = 0; i < head->e_shnum; i++) {
		Elf64_Shdr section;
		memcpy(&section, image + head->e_shoff + i * sizeof section, sizeof section);
		if (section.sh_type != SHT_NOBITS && !is_inside(section.sh_offset, section.sh_size, size))
			return false;
	}
	return true;
}

static bool segments_are_inside(const Elf64_Ehdr *head, const uint8_t *image, uint64_t size)
{
	if (!head->e_phnum)
		return true;
	if (head->e_phentsize != sizeof(Elf64_Phdr) || !is_inside(head->e_phoff, head->e_phnum * sizeof(Elf64_Phdr), size))
		return false;
	for (unsigned i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr segment;
		memcpy(&segment, image + head->e_phoff + i * sizeof segment, sizeof segment);
		if (!is_inside(segment.p_offset, segment.p_filesz, size))
			return false;
	}
	return true;
}

static bool elf_is_inside(const uint8_t *image, uint64_t size)
{
	Elf64_Ehdr head;
	if (size < sizeof head)
		return false;
	memcpy(&head, image, sizeof head);
	return head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_ident[EI_DATA] == ELFDATA2LSB && head.e_ehsize == sizeof head &&
	       sections_are_inside(&head, image, size) && segments_are_inside(&head, image, size);
}

/* ---- text ---- */

/* True for text whose only NUL is its last byte and that has no control characters but blanks. */
static bool is_text(const uint8_t *image, uint64_t size)
{
	if (size < 2 || image[size - 1] || (size >= sizeof LINKED_MAGIC && !memcmp(image, LINKED_MAGIC, sizeof LINKED_MAGIC - 1)))
		return false;
	for (uint64_t i = 0; i < size - 1; i++)
		if ((image[i] < ' ' && (image[i] < '\t' || image[i] > '\r')) || image[i] == 0x7f)
			return false;
	/* A driver distinguishes kinds of images by the first byte. No PTX text begins with a byte beyond ASCII. */
	return image[0] < 0x80;
}

bool server_image_is_sound(const uint8_t *image, uint64_t size)
{
	if (size >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG))
		return elf_is_inside(image, size);
	if (size >= sizeof(struct linked_header) && linked_is(image))
		return linked_is_sound(image, size);
	return server_image_container(image, size) == size || is_text(image, size);
}

/* ---- the copy that the driver reads ---- */

CUresult server_image_copy(const void *image, uint64_t size, struct server_image *copy)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), room = (size + 2 * page - 1) / page * page;
	uint8_t *bytes = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (bytes == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(bytes, image, size);
	*copy = (struct server_image){ bytes, room + page };
	if (mprotect(bytes, room, PROT_READ) || mprotect(bytes + room, page, PROT_NONE)) {
		server_image_free(copy);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return CUDA_SUCCESS;
}

void server_image_free(struct server_image *copy)
{
	if (copy->bytes)
		munmap(copy->bytes, copy->mapped);
	*copy = (struct server_image){ NULL, 0 };
}
