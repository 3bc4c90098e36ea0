/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads ELF-64 files of this machine's byte order (elf(5)): sections, symbols, needed libraries. The file may be
 * corrupt or hostile: every offset and length is checked against the file's size, so that a read is always inside the
 * file. The reader keeps no copy: names point into the file's bytes.
 */
#ifndef RC_RELINK_ELF_FILE_H
#define RC_RELINK_ELF_FILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct elf_file {
	const uint8_t *bytes;
	size_t size;
	uint64_t sections; /* offset of the section headers */
	unsigned count;    /* of sections */
	Elf64_Shdr names;  /* string table of the sections' names */
} elf_file_t;

/* A symbol table with its string table. */
typedef struct elf_symbols {
	uint64_t offset, count;
	Elf64_Shdr strings;
} elf_symbols_t;

/* Sets *file to size bytes, which stay the caller's. False: they are not an ELF-64 file with section headers. */
bool elf_file_set(const void *bytes, size_t size, elf_file_t *file);

/* Maps a file. False: it cannot be read, or as above. Call elf_file_close after true. */
bool elf_file_open(const char *path, elf_file_t *file);
void elf_file_close(elf_file_t *file);

/* n bytes at an offset, or NULL if the file ends before. They may be misaligned. */
const void *elf_file_at(const elf_file_t *file, uint64_t offset, uint64_t n);

bool elf_file_has_section(const elf_file_t *file, const char *name);

/* Address and size of the section of this name in memory, without the object's base. They are not checked. */
bool elf_file_section(const elf_file_t *file, const char *name, uint64_t *address, uint64_t *bytes);

/* Whether the section of this name contains the text. */
bool elf_file_section_has(const elf_file_t *file, const char *name, const char *text);

/* The first symbol table of a type, SHT_SYMTAB or SHT_DYNSYM. False: there is none, or it is not inside the file. */
bool elf_file_symbols(const elf_file_t *file, uint32_t type, elf_symbols_t *symbols);

/* The symbol of an index below symbols->count, and its name. False: its name is not inside the string table. */
bool elf_file_symbol(const elf_file_t *file, const elf_symbols_t *symbols, uint64_t index, Elf64_Sym *symbol,
		     const char **name);

/* The index-th string that the dynamic section has with a tag (DT_NEEDED, DT_SONAME); NULL: there are not as many. */
const char *elf_file_dynamic(const elf_file_t *file, int64_t tag, unsigned index);

#endif
