/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the bytes of an image that a program loads, and sorts the JIT options: which are sent, which stay here. */
#include "cuda_remote/client/image.h"

#include "cuda_remote/fatbin.h"
#include "cuda_remote/linked_image.h"
#include "rdma_channel/base/log.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The size of an ELF file: the end of the last section or header table. */
static bool elf_size(const void *image, size_t *size)
{
	Elf64_Ehdr head;
	memcpy(&head, image, sizeof head);
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || (head.e_shnum && head.e_shentsize != sizeof(Elf64_Shdr)))
		return false;
	size_t end = sizeof head;
	if (head.e_shnum && head.e_shoff + head.e_shnum * sizeof(Elf64_Shdr) > end)
		end = head.e_shoff + head.e_shnum * sizeof(Elf64_Shdr);
	if (head.e_phnum && head.e_phoff + (size_t)head.e_phnum * head.e_phentsize > end)
		end = head.e_phoff + (size_t)head.e_phnum * head.e_phentsize;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		Elf64_Shdr section;
		memcpy(&section, (const char *)image + head.e_shoff + i * sizeof section, sizeof section);
		if (section.sh_type != SHT_NOBITS && section.sh_offset + section.sh_size > end)
			end = section.sh_offset + section.sh_size;
	}
	*size = end;
	return true;
}

static void add_piece(struct rc_image *image, const void *bytes, size_t size)
{
	image->piece[image->n++] = (struct iovec){ (void *)(uintptr_t)bytes, size };
	image->bytes += size;
}

static size_t container_size(const void *bytes)
{
	return fatbin_container_bytes(bytes, SIZE_MAX);
}

/* Adds the units of a linked program. If they are more than RC_UNITS_MAX or one is damaged, only the linked program is
 * sent. */
static CUresult add_units(struct rc_image *image, const void *const *units)
{
	unsigned n = 0;
	uint64_t begin = image->bytes, end = begin;
	for (; units[n] && n <= RC_UNITS_MAX && container_size(units[n]); n++)
		end = ((end + 7) & ~7ull) + container_size(units[n]);
	if (units[n] || n > RC_UNITS_MAX || !n)
		return CUDA_SUCCESS;
	uint8_t *joined = calloc(1, end - begin);
	if (!joined)
		return CUDA_ERROR_OUT_OF_MEMORY;
	uint64_t at = begin;
	for (unsigned i = 0; i < n; i++) {
		at = (at + 7) & ~7ull;
		memcpy(joined + (at - begin), units[i], container_size(units[i]));
		at += container_size(units[i]);
	}
	image->units = n;
	image->joined = joined;
	add_piece(image, joined, end - begin);
	return CUDA_SUCCESS;
}

void rc_image_free(struct rc_image *image)
{
	free(image->joined);
	image->joined = NULL;
}

CUresult rc_image_find(const void *bytes, struct rc_image *image)
{
	struct fatbin_wrapper wrapper = { 0 };
	*image = (struct rc_image){ .n = 0 };
	if (linked_is(bytes)) {
		add_piece(image, bytes, linked_bytes(bytes));
		return CUDA_SUCCESS;
	}
	/* Text may be shorter than a magic number. */
	uint8_t first = *(const uint8_t *)bytes;
	if (first != ELFMAG0 && first != (uint8_t)FATBIN_WRAPPER_MAGIC && first != (uint8_t)FATBIN_MAGIC) {
		add_piece(image, bytes, strlen(bytes) + 1);
		return image->bytes > 1 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
	}
	uint32_t magic;
	memcpy(&magic, bytes, sizeof magic);
	if (magic == FATBIN_WRAPPER_MAGIC) {
		memcpy(&wrapper, bytes, sizeof wrapper);
		if (!wrapper.container)
			return CUDA_ERROR_INVALID_IMAGE;
		bytes = wrapper.container;
		memcpy(&magic, bytes, sizeof magic);
	}
	size_t size;
	if (magic == FATBIN_MAGIC)
		size = container_size(bytes);
	else if (memcmp(bytes, ELFMAG, SELFMAG) || !elf_size(bytes, &size))
		size = 0;
	if (!size)
		return CUDA_ERROR_INVALID_IMAGE;
	add_piece(image, bytes, size);
	if (magic == FATBIN_MAGIC && wrapper.version == 2 && wrapper.units)
		return add_units(image, wrapper.units);
	return CUDA_SUCCESS;
}

CUresult rc_image_read(const char *path, void **image, size_t *size)
{
	FILE *file = fopen(path, "rb");
	if (!file)
		return CUDA_ERROR_FILE_NOT_FOUND;
	char *bytes = NULL;
	size_t len = 0, room = 0;
	do {
		if (room - len < 4096) {
			room = room ? 2 * room : 65536;
			char *larger = realloc(bytes, room);
			if (!larger)
				goto close_file;
			bytes = larger;
		}
		len += fread(bytes + len, 1, room - len - 1, file);
	} while (!feof(file) && !ferror(file));
	if (ferror(file))
		goto close_file;
	fclose(file);
	bytes[len] = '\0';
	*image = bytes;
	*size = len;
	return CUDA_SUCCESS;

close_file:
	free(bytes);
	fclose(file);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult travel(struct rc_image_options *options, CUjit_option name, void *value)
{
	if (!rc_jit_option_travels(name)) {
		hr_log(HR_LOG_WARN, "JIT option %d is not supported by the forwarding driver; load the module without it",
		       (int)name);
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	if (options->n == sizeof options->wire / sizeof options->wire[0])
		return CUDA_ERROR_INVALID_VALUE;
	options->wire[options->n].option = name;
	options->wire[options->n].reserved = 0;
	options->wire[options->n++].value = (uint64_t)(uintptr_t)value;
	return CUDA_SUCCESS;
}

CUresult rc_image_options(unsigned n, CUjit_option *names, void **values, struct rc_image_options *options)
{
	CUresult result = CUDA_SUCCESS;
	*options = (struct rc_image_options){ .info_at = -1, .error_at = -1 };
	for (unsigned i = 0; i < n && result == CUDA_SUCCESS; i++) {
		switch (names[i]) {
		case CU_JIT_INFO_LOG_BUFFER:
			options->info = values[i];
			break;
		case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
			options->info_size = (uint32_t)(uintptr_t)values[i];
			options->info_at = (int)i;
			break;
		case CU_JIT_ERROR_LOG_BUFFER:
			options->error = values[i];
			break;
		case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
			options->error_size = (uint32_t)(uintptr_t)values[i];
			options->error_at = (int)i;
			break;
		case CU_JIT_WALL_TIME:
			values[i] = NULL; /* 0 ms as a float: the client does not compile */
			break;
		default:
			result = travel(options, names[i], values[i]);
		}
	}
	if (!options->info)
		options->info_size = 0;
	if (!options->error)
		options->error_size = 0;
	return result;
}

static void give_log(char *to, size_t room, void **size, const void *text, size_t len)
{
	if (room) {
		if (len > room - 1)
			len = room - 1;
		memcpy(to, text, len);
		to[len] = '\0';
	} else {
		len = 0;
	}
	if (size)
		*size = (void *)(uintptr_t)len;
}

void rc_image_logs(const struct rc_image_options *options, void **values, const void *info, size_t info_len,
		   const void *error, size_t error_len)
{
	give_log(options->info, options->info_size, options->info_at < 0 ? NULL : &values[options->info_at], info, info_len);
	give_log(options->error, options->error_size, options->error_at < 0 ? NULL : &values[options->error_at], error,
		 error_len);
}
