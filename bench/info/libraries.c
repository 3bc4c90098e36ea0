/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the settings that are linked into the installed CUDA libraries, for headrace-info. */
#define _GNU_SOURCE /* dlinfo */
#include "bench/info/libraries.h"

#include "cuda_remote/run/layout.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Finds a section of an ELF-64 file (elf(5)): its address as linked, and its size. The file is a library of this
 * package, so its headers are checked only roughly. False: no such section. */
static bool find_section(const uint8_t *file, size_t size, const char *wanted, uint64_t *address, uint64_t *bytes)
{
	const Elf64_Ehdr *header = (const void *)file;
	if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) ||
	    header->e_shoff > size || header->e_shnum > (size - header->e_shoff) / sizeof(Elf64_Shdr) ||
	    header->e_shstrndx >= header->e_shnum)
		return false;
	const Elf64_Shdr *sections = (const void *)(file + header->e_shoff), *names = &sections[header->e_shstrndx];
	for (unsigned i = 0; i < header->e_shnum; i++) {
		uint64_t name = names->sh_offset + sections[i].sh_name;
		if (name > size || size - name < strlen(wanted) + 1 || strcmp((const char *)file + name, wanted))
			continue;
		*address = sections[i].sh_addr;
		*bytes = sections[i].sh_size;
		return true;
	}
	return false;
}

static bool find_settings(const char *path, uint64_t *address, uint64_t *bytes)
{
	struct stat status;
	bool found = false;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (!fstat(fd, &status) && status.st_size > 0) {
		void *file = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			found = find_section(file, (size_t)status.st_size, "hr_settings", address, bytes);
			munmap(file, (size_t)status.st_size);
		}
	}
	close(fd);
	return found;
}

void info_library_settings(info_settings_fn visit, void *context)
{
	static const enum rc_layout_part parts[] = { RC_LAYOUT_CLIENT, RC_LAYOUT_SOFTGPU, RC_LAYOUT_RUNTIME };
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
		uint64_t address, bytes;
		struct link_map *map;
		if (rc_layout_library(parts[i], path) || !find_settings(path, &address, &bytes))
			continue;
		/* Load the library, so that its pointers are relocated. It stays loaded. */
		void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
		if (!library || dlinfo(library, RTLD_DI_LINKMAP, &map)) {
			printf("  (%s: %s)\n", path, dlerror());
			continue;
		}
		visit(context, (const struct hr_setting *const *)(map->l_addr + address),
		      bytes / sizeof(struct hr_setting *));
	}
}
