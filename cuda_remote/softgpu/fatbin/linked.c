/* SPDX-License-Identifier: BSD-3-Clause */
/* The linker's image: joins units of PTX in one image and splits them again. */
#include "cuda_remote/softgpu/fatbin/linked.h"

#include <stdlib.h>
#include <string.h>

CUresult linked_add(linked_units_t *units, const char *name, const fatbin_ptx_t *ptx, bool on_demand)
{
	if (units->count == units->room) {
		size_t room = units->room ? 2 * units->room : 8;
		softgpu_unit_t *grown = realloc(units->unit, room * sizeof *grown);
		if (!grown)
			goto out_of_memory;
		units->unit = grown;
		units->room = room;
	}
	char *copy = strdup(name ? name : "");
	if (!copy)
		goto out_of_memory;
	units->unit[units->count++] = (softgpu_unit_t){ copy, ptx->text, ptx->length, on_demand };
	return CUDA_SUCCESS;
out_of_memory:
	free(ptx->text);
	return CUDA_ERROR_OUT_OF_MEMORY;
}

void linked_free(linked_units_t *units)
{
	for (size_t n = 0; n < units->count && !units->borrowed; n++) {
		free((char *)(uintptr_t)units->unit[n].name);
		free((char *)(uintptr_t)units->unit[n].text);
	}
	free(units->unit);
	*units = (linked_units_t){ 0 };
}

static size_t entry_bytes(const softgpu_unit_t *unit)
{
	size_t bytes = sizeof(struct linked_entry) + strlen(unit->name) + 1 + unit->length + 1;
	return (bytes + 7) & ~(size_t)7;
}

CUresult linked_join(const linked_units_t *units, fatbin_ptx_t *image)
{
	struct linked_header header = { .version = 1, .units = (uint32_t)units->count, .bytes = sizeof header };
	memcpy(header.magic, LINKED_MAGIC, sizeof header.magic);
	for (size_t n = 0; n < units->count; n++)
		header.bytes += entry_bytes(&units->unit[n]);
	char *bytes = calloc(1, (size_t)header.bytes);
	if (!bytes)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memcpy(bytes, &header, sizeof header);
	char *at = bytes + sizeof header;
	for (size_t n = 0; n < units->count; n++) {
		const softgpu_unit_t *unit = &units->unit[n];
		struct linked_entry entry = { unit->length, (uint32_t)strlen(unit->name), unit->on_demand };
		memcpy(at, &entry, sizeof entry);
		memcpy(at + sizeof entry, unit->name, entry.name_bytes);
		memcpy(at + sizeof entry + entry.name_bytes + 1, unit->text, unit->length);
		at += entry_bytes(unit);
	}
	*image = (fatbin_ptx_t){ bytes, (size_t)header.bytes, 0 };
	return CUDA_SUCCESS;
}

/* Reads the unit at *at, with *left bytes left. False: damaged. */
static bool take_unit(const char **at, size_t *left, softgpu_unit_t *unit)
{
	struct linked_entry entry;
	size_t bytes = linked_unit_bytes(*at, *left, &entry);
	if (!bytes)
		return false;
	const char *name = *at + sizeof entry;
	*unit = (softgpu_unit_t){ name, name + entry.name_bytes + 1, (size_t)entry.text_bytes, entry.on_demand != 0 };
	*at += bytes;
	*left -= bytes;
	return true;
}

CUresult linked_split(const void *data, size_t length, linked_units_t *units)
{
	struct linked_header header;
	if (length < sizeof header || !linked_is(data))
		return CUDA_ERROR_INVALID_IMAGE;
	memcpy(&header, data, sizeof header);
	if (header.bytes != length || header.units > length / sizeof(struct linked_entry))
		return CUDA_ERROR_INVALID_IMAGE;
	*units = (linked_units_t){ .unit = calloc(header.units + 1u, sizeof *units->unit), .borrowed = true };
	if (!units->unit)
		return CUDA_ERROR_OUT_OF_MEMORY;
	const char *at = (const char *)data + sizeof header;
	size_t left = length - sizeof header;
	while (units->count < header.units) {
		if (!take_unit(&at, &left, &units->unit[units->count])) {
			linked_free(units);
			return CUDA_ERROR_INVALID_IMAGE;
		}
		units->count++;
	}
	return CUDA_SUCCESS;
}
