/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds device code in host object files and archives. */
#include "cuda_remote/softgpu/fatbin/host_object.h"

#include <ar.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef EM_CUDA
#define EM_CUDA 190
#endif

bool host_object_is_elf(const void *data, size_t size)
{
	return size >= sizeof(Elf64_Ehdr) && !memcmp(data, ELFMAG, SELFMAG);
}

bool host_object_is_cubin(const void *data, size_t size)
{
	Elf64_Ehdr header;
	if (!host_object_is_elf(data, size))
		return false;
	memcpy(&header, data, sizeof header);
	return header.e_machine == EM_CUDA;
}

bool host_object_is_archive(const void *data, size_t size)
{
	return size >= SARMAG && !memcmp(data, ARMAG, SARMAG);
}

/* ---- ELF */
struct object {
	const unsigned char *data;
	size_t size;
	Elf64_Ehdr header;
	size_t count;     /* sections */
	Elf64_Shdr names; /* the section of the sections' names */
};

static bool section_at(const struct object *object, size_t index, Elf64_Shdr *section)
{
	if (index >= object->count)
		return false;
	memcpy(section, object->data + object->header.e_shoff + index * sizeof *section, sizeof *section);
	return section->sh_type == SHT_NOBITS ||
	       (section->sh_offset <= object->size && section->sh_size <= object->size - section->sh_offset);
}

static CUresult open_object(const void *data, size_t size, struct object *object)
{
	*object = (struct object){ .data = data, .size = size };
	if (!host_object_is_elf(data, size))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&object->header, data, sizeof object->header);
	const Elf64_Ehdr *header = &object->header;
	if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
	    header->e_shentsize != sizeof(Elf64_Shdr) || header->e_shoff > size)
		return CUDA_ERROR_INVALID_IMAGE;
	size_t most = (size - header->e_shoff) / sizeof(Elf64_Shdr), names = header->e_shstrndx;
	object->count = header->e_shnum;
	/* Numbers that do not fit in the header are in the first section's (System V ABI, "Sections"). */
	if (header->e_shoff && most && (!header->e_shnum || names == SHN_XINDEX)) {
		Elf64_Shdr first;
		memcpy(&first, object->data + header->e_shoff, sizeof first);
		object->count = header->e_shnum ? header->e_shnum : (size_t)first.sh_size;
		names = names == SHN_XINDEX ? first.sh_link : names;
	}
	if (object->count > most || (object->count && !section_at(object, names, &object->names)))
		return CUDA_ERROR_INVALID_IMAGE;
	return CUDA_SUCCESS;
}

static bool is_named(const struct object *object, const Elf64_Shdr *section, const char *name)
{
	size_t length = strlen(name) + 1;
	return object->names.sh_type != SHT_NOBITS && section->sh_name < object->names.sh_size &&
	       length <= object->names.sh_size - section->sh_name &&
	       !memcmp(object->data + object->names.sh_offset + section->sh_name, name, length);
}

/* The arguments of host_object_units. */
struct search {
	const char *name;
	unsigned capability;
	bool on_demand;
	softgpu_log_t *log;
	linked_units_t *units;
	unsigned *passed_over;
};

static CUresult add_container(const struct search *search, const unsigned char *at, size_t bytes)
{
	fatbin_ptx_t ptx;
	if (!fatbin_has_ptx(at, bytes, search->capability)) {
		++*search->passed_over;
		return CUDA_SUCCESS;
	}
	CUresult result = fatbin_unpack(at, bytes, search->capability, search->log, &ptx);
	return result ? result : linked_add(search->units, search->name, &ptx, search->on_demand);
}

/* Containers follow each other, with zeros in between. */
static CUresult search_section(const struct search *search, const unsigned char *at, size_t left)
{
	while (left >= sizeof(struct fatbin_header)) {
		size_t bytes = fatbin_container_bytes(at, left);
		if (!bytes) {
			at++;
			left--;
			continue;
		}
		CUresult result = add_container(search, at, bytes);
		if (result)
			return result;
		at += bytes;
		left -= bytes;
	}
	return CUDA_SUCCESS;
}

static CUresult search_object(const struct search *search, const struct object *object)
{
	Elf64_Shdr section;
	for (size_t n = 0; n < object->count; n++) {
		if (!section_at(object, n, &section))
			return CUDA_ERROR_INVALID_IMAGE;
		if (section.sh_type == SHT_NOBITS ||
		    (!is_named(object, &section, "__nv_relfatbin") && !is_named(object, &section, ".nv_fatbin")))
			continue;
		CUresult result = search_section(search, object->data + section.sh_offset, (size_t)section.sh_size);
		if (result)
			return result;
	}
	return CUDA_SUCCESS;
}

CUresult host_object_units(const void *data, size_t size, const char *name, unsigned capability, bool on_demand,
			   softgpu_log_t *log, linked_units_t *units, unsigned *passed_over)
{
	const struct search search = { name, capability, on_demand, log, units, passed_over };
	struct object object;
	if (host_object_is_cubin(data, size)) {
		fatbin_complain(log, "%s: machine code (a cubin): the software GPU links PTX", name);
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	}
	CUresult result = open_object(data, size, &object);
	if (!result)
		result = search_object(&search, &object);
	if (result == CUDA_ERROR_INVALID_IMAGE)
		fatbin_complain(log, "%s: not an ELF object of 64 bits, or a damaged one", name);
	return result;
}

/* ---- archives */
struct archive {
	const char *at, *long_names;
	size_t left, long_names_bytes;
};

struct member {
	char name[80];
	const char *data;
	size_t size;
};

static bool number_of(const char *digits, size_t room, size_t *number)
{
	*number = 0;
	size_t n = 0;
	for (; n < room && digits[n] >= '0' && digits[n] <= '9'; n++)
		*number = *number * 10 + (size_t)(digits[n] - '0');
	return n > 0;
}

static void name_member(const struct archive *archive, const struct ar_hdr *header, char name[80])
{
	size_t offset, length = 0;
	const char *from = header->ar_name;
	size_t room = sizeof header->ar_name;
	if (from[0] == '/' && number_of(from + 1, room - 1, &offset) && offset < archive->long_names_bytes) {
		from = archive->long_names + offset;
		room = archive->long_names_bytes - offset;
	}
	while (length < room && length < 79 && from[length] != '/' && from[length] != '\n' && from[length])
		length++;
	memcpy(name, from, length);
	name[length] = '\0';
}

/* Outputs the next member. 1: found; 0: none left; -1: damaged. */
static int next_member(struct archive *archive, struct member *member)
{
	struct ar_hdr header;
	if (archive->left < sizeof header)
		return archive->left ? -1 : 0;
	memcpy(&header, archive->at, sizeof header);
	if (memcmp(header.ar_fmag, ARFMAG, sizeof header.ar_fmag) ||
	    !number_of(header.ar_size, sizeof header.ar_size, &member->size) ||
	    member->size > archive->left - sizeof header)
		return -1;
	member->data = archive->at + sizeof header;
	name_member(archive, &header, member->name);
	if (header.ar_name[0] == '/' && header.ar_name[1] == '/') {
		archive->long_names = member->data;
		archive->long_names_bytes = member->size;
	}
	size_t whole = sizeof header + member->size;
	whole += whole & 1 && whole < archive->left;
	archive->at += whole;
	archive->left -= whole;
	return 1;
}

CUresult host_archive_units(const void *data, size_t size, const char *name, unsigned capability, softgpu_log_t *log,
			    linked_units_t *units, unsigned *passed_over)
{
	struct archive archive = { .at = (const char *)data + SARMAG, .left = size - SARMAG };
	struct member member;
	char both[256];
	int more;
	while ((more = next_member(&archive, &member)) > 0) {
		/* Skips symbol tables, and objects without device code. */
		if (!host_object_is_elf(member.data, member.size))
			continue;
		snprintf(both, sizeof both, "%.160s(%s)", name, member.name);
		if (host_object_is_cubin(member.data, member.size)) {
			++*passed_over;
			continue;
		}
		CUresult result = host_object_units(member.data, member.size, both, capability, true, log, units,
						    passed_over);
		if (result)
			return result;
	}
	if (more == 0)
		return CUDA_SUCCESS;
	fatbin_complain(log, "%s: a damaged archive", name);
	return CUDA_ERROR_INVALID_IMAGE;
}
