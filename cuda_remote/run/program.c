/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the program that headrace-run is to run, and checks by its ELF headers if it can work under Headrace. */
#include "cuda_remote/run/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- finding ---- */

static int may_run(const char *path)
{
	struct stat status;
	if (stat(path, &status))
		return -errno;
	return S_ISREG(status.st_mode) && !access(path, X_OK) ? 0 : -EACCES;
}

int program_find(const char *name, char path[PATH_MAX])
{
	if (!*name)
		return -ENOENT;
	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return -ENOENT;
		return may_run(path) == -EACCES ? -EACCES : may_run(path) ? -ENOENT : 0;
	}
	const char *at = getenv("PATH");
	bool denied = false;
	for (at = at ? at : "/bin:/usr/bin";; at++) {
		size_t n = strcspn(at, ":");
		int length = snprintf(path, PATH_MAX, "%.*s%s%s", (int)n, at, n ? "/" : "", name);
		int error = length < PATH_MAX ? may_run(path) : -ENOENT;
		if (!error)
			return 0;
		denied |= error == -EACCES;
		at += n;
		if (!*at)
			return denied ? -EACCES : -ENOENT;
	}
}

/* ---- looking inside: ELF-64 as in elf(5) ---- */

struct image {
	const uint8_t *bytes;
	size_t size;
};

/* n bytes at offset, or NULL if the file ends before. */
static const void *at(const struct image *image, uint64_t offset, uint64_t n)
{
	return offset <= image->size && n <= image->size - offset ? image->bytes + offset : NULL;
}

/* The string at offset of a string table, or NULL. */
static const char *string_at(const struct image *image, const Elf64_Shdr *table, uint64_t offset)
{
	if (offset >= table->sh_size || !at(image, table->sh_offset, table->sh_size))
		return NULL;
	const char *text = (const char *)image->bytes + table->sh_offset + offset;
	return memchr(text, 0, table->sh_size - offset) ? text : NULL;
}

struct findings {
	bool has_kernels;       /* section .nvFatBinSegment: kernels from nvcc (.nv_fatbin is in all that nvcc links) */
	bool has_runtime;       /* needs libcudart.so.13 */
	char other_runtime[64]; /* needs another libcudart */
};

static void look_at_needed(const struct image *image, const Elf64_Shdr *sections, unsigned count,
			   const Elf64_Shdr *dynamic, struct findings *findings)
{
	const Elf64_Dyn *entry = at(image, dynamic->sh_offset, dynamic->sh_size);
	if (!entry || dynamic->sh_link >= count)
		return;
	for (uint64_t i = 0; i < dynamic->sh_size / sizeof *entry; i++) {
		Elf64_Dyn copy;
		memcpy(&copy, entry + i, sizeof copy);
		if (copy.d_tag != DT_NEEDED)
			continue;
		const char *name = string_at(image, &sections[dynamic->sh_link], copy.d_un.d_val);
		if (!name || strncmp(name, "libcudart.so.", 13))
			continue;
		if (!strcmp(name, "libcudart.so.13"))
			findings->has_runtime = true;
		else
			snprintf(findings->other_runtime, sizeof findings->other_runtime, "%s", name);
	}
}

static void look_inside(const struct image *image, struct findings *findings)
{
	const Elf64_Ehdr *header = at(image, 0, sizeof *header);
	if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) || header->e_ident[EI_CLASS] != ELFCLASS64 ||
	    header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff % _Alignof(Elf64_Shdr))
		return;
	unsigned count = header->e_shnum;
	const Elf64_Shdr *sections = at(image, header->e_shoff, (uint64_t)count * sizeof *sections);
	if (!sections || header->e_shstrndx >= count)
		return;
	for (unsigned i = 0; i < count; i++) {
		const char *name = string_at(image, &sections[header->e_shstrndx], sections[i].sh_name);
		if (name && !strcmp(name, ".nvFatBinSegment"))
			findings->has_kernels = true;
		if (sections[i].sh_type == SHT_DYNAMIC)
			look_at_needed(image, sections, count, &sections[i], findings);
	}
}

void program_check(const char *path)
{
	struct findings findings = { 0 };
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (!fstat(fd, &status) && S_ISREG(status.st_mode) && status.st_size > 0) {
		struct image image = { .size = (size_t)status.st_size };
		void *bytes = mmap(NULL, image.size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (bytes != MAP_FAILED) {
			image.bytes = bytes;
			look_inside(&image, &findings);
			munmap(bytes, image.size);
		}
	}
	close(fd);
	if (*findings.other_runtime)
		fprintf(stderr,
			"headrace-run: warning: %s needs %s; Headrace has libcudart.so.13: build it with CUDA 13\n",
			path, findings.other_runtime);
	else if (findings.has_kernels && !findings.has_runtime)
		fprintf(stderr,
			"headrace-run: warning: %s carries NVIDIA's static runtime, which works with NVIDIA's driver "
			"only: link it with nvcc -cudart shared\n",
			path);
}
