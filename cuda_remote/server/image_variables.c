/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How much device memory the variables of an image take, for the session's quota: the .global and .const declarations of PTX
 * text, and the sections of a cubin that hold variables. Of the entries of a fat binary, which are the same program for several
 * devices, the largest counts. An entry that cannot be unpacked counts nothing: a driver cannot load it either, or this build lacks
 * the library to decompress it, which is logged.
 */
#include "cuda_remote/server/image.h"

#include "cuda_remote/fatbin.h"
#include "cuda_remote/linked_image.h"
#include "cuda_remote/softgpu/fatbin/unpack.h"

#include <ctype.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

/* No real image is larger when it is unpacked. */
#define UNPACKED_MAX (UINT64_C(1) << 29)

static uint64_t add(uint64_t a, uint64_t b)
{
	uint64_t sum;
	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply(uint64_t a, uint64_t b)
{
	uint64_t product;
	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* ---- PTX text ---- */

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* Skips blanks and comments. */
static const char *skip_blanks(const char *at)
{
	for (;;) {
		if (isspace((unsigned char)*at)) {
			at++;
		} else if (at[0] == '/' && at[1] == '/') {
			at += strcspn(at, "\n");
		} else if (at[0] == '/' && at[1] == '*') {
			const char *end = strstr(at + 2, "*/");
			at = end ? end + 2 : at + strlen(at);
		} else {
			return at;
		}
	}
}

/* The end of the token at this place: a directive with its dot, a word with its modifiers (ld.global.u32), a string, or one
 * character. At the end of the text there is none. */
static const char *token_end(const char *at)
{
	const char *end = at + !!*at;
	if (*at == '.') {
		while (is_word(*end))
			end++;
	} else if (is_word(*at)) {
		while (is_word(*end) || *end == '.')
			end++;
	} else if (*at == '"') {
		end += strcspn(end, "\"");
		end += *end == '"';
	}
	return end;
}

static bool token_is(const char *at, const char *end, const char *text)
{
	size_t n = strlen(text);
	return (size_t)(end - at) == n && !memcmp(at, text, n);
}

/* Bytes of a fundamental type, such as .u32 or .f16x2; 0: none. */
static uint64_t type_bytes(const char *at, const char *end)
{
	if (token_is(at, end, ".bf16") || token_is(at, end, ".bf16x2"))
		return token_is(at, end, ".bf16") ? 2 : 4;
	if (end - at < 3 || at[0] != '.' || !memchr("busf", at[1], 4))
		return 0;
	char *rest;
	unsigned long bits = strtoul(at + 2, &rest, 10);
	if (*rest == 'x')
		bits *= strtoul(rest + 1, &rest, 10);
	return rest == end && bits >= 8 && bits <= 128 ? bits / 8 : 0;
}

/* Skips an initialiser up to the comma or semicolon behind it, and counts its elements. */
static const char *skip_initialiser(const char *at, uint64_t *elements)
{
	unsigned depth = 0;
	*elements = 1;
	for (at = skip_blanks(at); *at && *at != ';' && (depth || *at != ','); at = skip_blanks(token_end(at))) {
		depth += *at == '{' || *at == '(';
		depth -= depth && (*at == '}' || *at == ')');
		*elements += *at == ',';
	}
	return at;
}

/* A number, or a product of numbers, at this place, up to the bracket behind it. UINT64_MAX: an expression of another kind, which
 * compilers do not write. */
static uint64_t read_extent(const char **at)
{
	uint64_t product = 1;
	bool number = true, known = true; /* a number comes next, not an operator */
	for (; **at && **at != ']' && **at != ';'; *at = skip_blanks(token_end(*at))) {
		const char *end = token_end(*at);
		if (number && isdigit((unsigned char)**at)) {
			bool binary = (*at)[0] == '0' && (*at)[1] == 'b';
			char *rest;
			product = multiply(product, strtoull(*at + (binary ? 2 : 0), &rest, binary ? 2 : 0));
			known &= rest + (*rest == 'U') == end;
		} else {
			known &= !number && **at == '*';
		}
		number = !number;
	}
	return known && !number ? product : UINT64_MAX;
}

/* The dimensions behind a variable's name: the number of its elements. *open: one of them is left to the initialiser. */
static const char *read_dimensions(const char *at, uint64_t *elements, bool *open)
{
	*elements = 1;
	*open = false;
	for (at = skip_blanks(at); *at == '['; at = skip_blanks(at)) {
		at = skip_blanks(at + 1);
		if (*at == ']')
			*open = true;
		else
			*elements = multiply(*elements, read_extent(&at));
		at += *at == ']';
	}
	return at;
}

/* The declarations behind .global or .const, up to their semicolon. *bytes: of all their variables. */
static const char *read_declarations(const char *at, uint64_t *bytes)
{
	uint64_t type = 0, vector = 1;
	*bytes = 0;
	for (at = skip_blanks(at); *at && *at != ';'; at = skip_blanks(at)) {
		const char *end = token_end(at);
		if (token_is(at, end, ".align")) {
			end = token_end(skip_blanks(end));
		} else if (*at == '.') {
			uint64_t size = type_bytes(at, end);
			if (size)
				type = size;
			else if (at[1] == 'v' && end - at == 3 && isdigit((unsigned char)at[2]))
				vector = (uint64_t)(at[2] - '0');
		} else if (*at == '(') { /* of .attribute */
			end = at + strcspn(at, ");");
			end += *end == ')';
		} else if (is_word(*at)) {
			uint64_t elements, given = 1;
			bool open;
			end = read_dimensions(end, &elements, &open);
			if (*end == '=')
				end = skip_initialiser(end + 1, &given);
			*bytes = add(*bytes, multiply(multiply(type, vector), open && given > elements ? given : elements));
		}
		at = end;
	}
	return at;
}

static uint64_t text_variables(const char *at)
{
	uint64_t sum = 0, bytes;
	bool external = false, pointer = false; /* behind .extern, before the semicolon; behind .ptr */
	for (at = skip_blanks(at); *at; at = skip_blanks(at)) {
		const char *end = token_end(at);
		if (!pointer && (token_is(at, end, ".global") || token_is(at, end, ".const"))) {
			end = read_declarations(end, &bytes);
			sum = external ? sum : add(sum, bytes);
		}
		external = token_is(at, end, ".extern") || (external && *at != ';' && *end != ';');
		pointer = token_is(at, end, ".ptr");
		at = end;
	}
	return sum;
}

/* ---- cubins ---- */

static bool holds_variables(const char *name, size_t room)
{
	static const char *const starts[] = { ".nv.global", ".nv.constant3" };
	for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
		if (room > strlen(starts[i]) && !memcmp(name, starts[i], strlen(starts[i])))
			return true;
	return false;
}

/* The file is sound (server_image_is_sound). */
static uint64_t elf_variables(const uint8_t *image)
{
	Elf64_Ehdr head;
	Elf64_Shdr names, section;
	uint64_t sum = 0;
	memcpy(&head, image, sizeof head);
	if (!head.e_shnum)
		return 0;
	memcpy(&names, image + head.e_shoff + head.e_shstrndx * sizeof names, sizeof names);
	if (names.sh_type == SHT_NOBITS)
		return 0;
	for (unsigned i = 0; i < head.e_shnum; i++) {
		memcpy(&section, image + head.e_shoff + i * sizeof section, sizeof section);
		if (section.sh_name < names.sh_size &&
		    holds_variables((const char *)image + names.sh_offset + section.sh_name, names.sh_size - section.sh_name))
			sum = add(sum, section.sh_size);
	}
	return sum;
}

/* ---- fat binaries ---- */

/* The payload of an entry and a NUL, allocated; NULL: it cannot be unpacked. */
static uint8_t *unpack(const struct fatbin_entry *entry, const uint8_t *payload, uint64_t *bytes)
{
	bool zstd = entry->flags & FATBIN_FLAG_ZSTD, lz4 = entry->flags & FATBIN_FLAG_LZ4;
	*bytes = zstd || lz4 ? entry->text_bytes : entry->payload_bytes;
	if ((zstd || lz4) && entry->packed_bytes > entry->payload_bytes)
		return NULL;
	uint64_t most = zstd ? unpack_zstd_most(payload, entry->packed_bytes) :
			lz4  ? (uint64_t)entry->packed_bytes * UNPACK_LZ4_RATIO : UINT64_MAX;
	uint8_t *image = *bytes <= UNPACKED_MAX && *bytes <= most ? malloc(*bytes + 1) : NULL;
	CUresult result = CUDA_SUCCESS;
	if (!image)
		return NULL;
	if (zstd)
		result = unpack_zstd(payload, entry->packed_bytes, image, *bytes, NULL);
	else if (lz4)
		result = unpack_lz4(payload, entry->packed_bytes, image, *bytes, NULL);
	else
		memcpy(image, payload, *bytes);
	image[*bytes] = 0;
	if (result == CUDA_SUCCESS)
		return image;
	free(image);
	return NULL;
}

static uint64_t entry_variables(const struct fatbin_entry *entry, const uint8_t *payload)
{
	uint64_t bytes, sum = 0;
	if (entry->kind != FATBIN_PTX && entry->kind != FATBIN_ELF)
		return 0;
	uint8_t *image = unpack(entry, payload, &bytes);
	if (!image)
		return 0;
	if (entry->kind == FATBIN_PTX)
		sum = text_variables((const char *)image);
	else if (bytes >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG) && server_image_is_sound(image, bytes))
		sum = elf_variables(image);
	free(image);
	return sum;
}

static uint64_t container_variables(const uint8_t *image)
{
	struct fatbin_header header;
	uint64_t most = 0;
	memcpy(&header, image, sizeof header);
	const uint8_t *at = image + header.header_bytes, *end = at + header.bytes;
	while ((size_t)(end - at) >= sizeof(struct fatbin_entry)) {
		struct fatbin_entry entry;
		memcpy(&entry, at, sizeof entry);
		if (entry.header_bytes >= sizeof entry) {
			uint64_t bytes = entry_variables(&entry, at + entry.header_bytes);
			most = bytes > most ? bytes : most;
		}
		at += entry.header_bytes + entry.payload_bytes;
	}
	return most;
}

/* ---- images of the software GPU's linker ---- */

static uint64_t linked_variables(const uint8_t *image)
{
	struct linked_header header;
	struct linked_entry entry;
	uint64_t sum = 0;
	memcpy(&header, image, sizeof header);
	const char *at = (const char *)image + sizeof header, *end = (const char *)image + header.bytes;
	for (uint32_t i = 0; i < header.units; i++) {
		size_t bytes = linked_unit_bytes(at, (size_t)(end - at), &entry);
		sum = add(sum, text_variables(at + sizeof entry + entry.name_bytes + 1));
		at += bytes;
	}
	return sum;
}

uint64_t server_image_variables(const uint8_t *image, uint64_t size)
{
	if (size >= SELFMAG && !memcmp(image, ELFMAG, SELFMAG))
		return elf_variables(image);
	if (size >= sizeof(struct linked_header) && linked_is(image))
		return linked_variables(image);
	return server_image_container(image, size) ? container_variables(image) : text_variables((const char *)image);
}
