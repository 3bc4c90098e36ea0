/* SPDX-License-Identifier: BSD-3-Clause */
/* Images from the wire: only what lies inside its message reaches the driver. The worker lives through all of them. */
#include "test/cuda/server/raw_client.h"

#include <cuda.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>

static raw_t raw;
static uint64_t number;
static uint32_t context;
static int failures;

static void check(const char *what, const void *image, size_t size, int want)
{
	int got = raw_load(&raw, ++number, context, image, size, NULL, NULL);
	if (got == want)
		return;
	fprintf(stderr, "%s: result %d, want %d (connection: %d)\n", what, got, want, raw.failed);
	failures++;
}

/* A pointer of the client's instead of an image, and a length of the client's. The last byte is 0, as of a text. */
static void pointers(void)
{
	struct {
		uint32_t magic, version;
		uint64_t container, units, end;
	} wrapper = { 0x466243b1u, 1, 0x414141414100u, 0, 0 };
	struct {
		char magic[8];
		uint32_t version, units;
		uint64_t bytes, end;
	} linked = { "HRPTXLN", 1, 1, 1ull << 40, 0 };
	check("a wrapper", &wrapper, sizeof wrapper, CUDA_ERROR_INVALID_IMAGE);
	wrapper.version = 2;
	wrapper.units = wrapper.container;
	check("a wrapper with units", &wrapper, sizeof wrapper, CUDA_ERROR_INVALID_IMAGE);
	linked.magic[7] = 'K';
	check("a linked image", &linked, sizeof linked, CUDA_ERROR_INVALID_IMAGE);
	check("a linked image's letters", "HRPTXLNK", 9, CUDA_ERROR_INVALID_IMAGE);
	linked.bytes = sizeof linked;
	linked.end = 1ull << 40;
	check("a linked image's unit", &linked, sizeof linked, CUDA_ERROR_INVALID_IMAGE);
	linked.units = UINT32_MAX;
	check("a linked image's number of units", &linked, sizeof linked, CUDA_ERROR_INVALID_IMAGE);
}

static void containers(void)
{
	struct {
		uint32_t magic;
		uint16_t version, header_bytes;
		uint64_t bytes;
		uint16_t kind, entry_version;
		uint32_t entry_header_bytes;
		uint64_t payload_bytes;
		uint8_t rest[112];
	} container = { 0xba55ed50u, 1, 16, 128, 1, 0x101, 64, 64, { 0 } };
	container.bytes = sizeof container;
	check("a container longer than its message", &container, sizeof container, CUDA_ERROR_INVALID_IMAGE);
	container.bytes = UINT64_MAX;
	check("a container of all memory", &container, sizeof container, CUDA_ERROR_INVALID_IMAGE);
	container.bytes = sizeof container - 16;
	container.payload_bytes = 1 << 20;
	check("an entry longer than its container", &container, sizeof container, CUDA_ERROR_INVALID_IMAGE);
	container.bytes = 64;
	container.payload_bytes = 0;
	check("bytes behind a container", &container, sizeof container, CUDA_ERROR_INVALID_IMAGE);
}

static void objects(void)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr section[2];
		Elf64_Phdr segment;
	} file = { 0 };
	memcpy(file.head.e_ident, ELFMAG, SELFMAG);
	file.head.e_ident[EI_CLASS] = ELFCLASS64;
	file.head.e_ident[EI_DATA] = ELFDATA2LSB;
	file.head.e_machine = 190;
	file.head.e_ehsize = sizeof file.head;
	file.head.e_shentsize = sizeof file.section[0];
	file.head.e_shnum = 2;
	file.head.e_shoff = sizeof file.head;
	file.head.e_phentsize = sizeof file.segment;
	file.head.e_phnum = 1;
	file.head.e_phoff = sizeof file.head + sizeof file.section;
	check("an ELF file inside its message", &file, sizeof file, CUDA_ERROR_NO_BINARY_FOR_GPU);
	file.section[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_offset = 64, .sh_size = sizeof file };
	check("a section outside", &file, sizeof file, CUDA_ERROR_INVALID_IMAGE);
	file.section[1].sh_offset = UINT64_MAX - 64;
	check("a section that wraps", &file, sizeof file, CUDA_ERROR_INVALID_IMAGE);
	memset(&file.section[1], 0, sizeof file.section[1]);
	file.segment = (Elf64_Phdr){ .p_offset = 1 << 20, .p_filesz = 1 };
	check("a segment outside", &file, sizeof file, CUDA_ERROR_INVALID_IMAGE);
	memset(&file.segment, 0, sizeof file.segment);
	file.head.e_shoff = UINT64_MAX - 8;
	check("section headers outside", &file, sizeof file, CUDA_ERROR_INVALID_IMAGE);
	check("half a header", &file, sizeof file.head / 2, CUDA_ERROR_INVALID_IMAGE);
}

int main(void)
{
	if (raw_connect(&raw, NULL, RC_SERVER_ALL_GPUS) || !(context = raw_hello(&raw, ++number, 0, NULL)))
		return 1;
	check("a text", "double\nnothing\n", 16, CUDA_SUCCESS);
	pointers();
	containers();
	objects();
	check("a text without an end", "double\nnothing\n", 15, CUDA_ERROR_INVALID_IMAGE);
	check("a text that ends before its message", "double\nnothing\n\0\0", 17, CUDA_ERROR_INVALID_IMAGE);
	check("nothing", "", 1, CUDA_ERROR_INVALID_IMAGE);
	check("a text", "double\nnothing\n", 16, CUDA_SUCCESS);
	raw_close(&raw);
	return failures != 0;
}
