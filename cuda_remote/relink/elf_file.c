/* SPDX-License-Identifier: BSD-3-Clause */
/* Bounds-checked reading of ELF-64 files. */
#define _GNU_SOURCE /* memmem */
#include "cuda_remote/relink/elf_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

const void *elf_file_at(const elf_file_t *file, uint64_t offset, uint64_t n)
{
	return offset <= file->size && n <= file->size - offset ? file->bytes + offset : NULL;
}

static bool section_at(const elf_file_t *file, unsigned index, Elf64_Shdr *section)
{
	if (index >= file->count)
		return false;
	/* elf_file_set has checked that all headers are inside the file. */
	memcpy(section, file->bytes + file->sections + index * sizeof *section, sizeof *section);
	return true;
}

/* The string at an offset of a string table, or NULL. */
static const char *string_at(const elf_file_t *file, const Elf64_Shdr *table, uint64_t offset)
{
	if (table->sh_type == SHT_NOBITS || offset >= table->sh_size)
		return NULL;
	const char *text = elf_file_at(file, table->sh_offset, table->sh_size);
	return text && memchr(text + offset, 0, table->sh_size - offset) ? text + offset : NULL;
}

bool elf_file_set(const void *bytes, size_t size, elf_file_t *file)
{
	Elf64_Ehdr header;
	*file = (elf_file_t){ .bytes = bytes, .size = size };
	if (size < sizeof header)
		return false;
	memcpy(&header, bytes, sizeof header);
	if (memcmp(header.e_ident, ELFMAG, SELFMAG) || header.e_ident[EI_CLASS] != ELFCLASS64 ||
	    header.e_ident[EI_DATA] != (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? ELFDATA2LSB : ELFDATA2MSB) ||
	    header.e_shentsize != sizeof(Elf64_Shdr))
		return false;
	if (!elf_file_at(file, header.e_shoff, header.e_shnum * sizeof(Elf64_Shdr)))
		return false;
	file->sections = header.e_shoff;
	file->count = header.e_shnum;
	return section_at(file, header.e_shstrndx, &file->names);
}

bool elf_file_open(const char *path, elf_file_t *file)
{
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	void *bytes = MAP_FAILED;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return false;
	if (elf_file_set(bytes, (size_t)status.st_size, file))
		return true;
	elf_file_close(file);
	return false;
}

void elf_file_close(elf_file_t *file)
{
	munmap((void *)(uintptr_t)file->bytes, file->size);
	*file = (elf_file_t){ 0 };
}

static bool find_name(const elf_file_t *file, const char *name, Elf64_Shdr *section)
{
	for (unsigned i = 0; section_at(file, i, section); i++) {
		const char *own = string_at(file, &file->names, section->sh_name);
		if (own && !strcmp(own, name))
			return true;
	}
	return false;
}

bool elf_file_has_section(const elf_file_t *file, const char *name)
{
	Elf64_Shdr section;
	return find_name(file, name, &section);
}

bool elf_file_section(const elf_file_t *file, const char *name, uint64_t *address, uint64_t *bytes)
{
	Elf64_Shdr section;
	if (!find_name(file, name, &section))
		return false;
	*address = section.sh_addr;
	*bytes = section.sh_size;
	return true;
}

bool elf_file_section_has(const elf_file_t *file, const char *name, const char *text)
{
	Elf64_Shdr section;
	if (!find_name(file, name, &section) || section.sh_type == SHT_NOBITS)
		return false;
	const void *bytes = elf_file_at(file, section.sh_offset, section.sh_size);
	return bytes && memmem(bytes, section.sh_size, text, strlen(text));
}

static bool find_type(const elf_file_t *file, uint32_t type, Elf64_Shdr *section)
{
	for (unsigned i = 0; section_at(file, i, section); i++)
		if (section->sh_type == type)
			return true;
	return false;
}

bool elf_file_symbols(const elf_file_t *file, uint32_t type, elf_symbols_t *symbols)
{
	Elf64_Shdr section;
	if (!find_type(file, type, &section) || section.sh_entsize != sizeof(Elf64_Sym) ||
	    !elf_file_at(file, section.sh_offset, section.sh_size) ||
	    !section_at(file, section.sh_link, &symbols->strings))
		return false;
	symbols->offset = section.sh_offset;
	symbols->count = section.sh_size / sizeof(Elf64_Sym);
	return true;
}

bool elf_file_symbol(const elf_file_t *file, const elf_symbols_t *symbols, uint64_t index, Elf64_Sym *symbol,
		     const char **name)
{
	memcpy(symbol, file->bytes + symbols->offset + index * sizeof *symbol, sizeof *symbol);
	*name = string_at(file, &symbols->strings, symbol->st_name);
	return *name;
}

const char *elf_file_dynamic(const elf_file_t *file, int64_t tag, unsigned index)
{
	Elf64_Shdr section, strings;
	Elf64_Dyn entry;
	if (!find_type(file, SHT_DYNAMIC, &section) || !section_at(file, section.sh_link, &strings))
		return NULL;
	const uint8_t *entries = elf_file_at(file, section.sh_offset, section.sh_size);
	for (uint64_t i = 0; entries && i < section.sh_size / sizeof entry; i++) {
		memcpy(&entry, entries + i * sizeof entry, sizeof entry);
		if (entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == tag && index-- == 0)
			return string_at(file, &strings, entry.d_un.d_val);
	}
	return NULL;
}
