/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parses any bytes as a host object, an archive, a cubin or an image of the linker. The result is a refusal, or units
 * that end where their lengths say. An image of the linker is parsed with the input's length, as a file is. If the
 * input is long enough, it is also parsed with the length in the image's header, as an image in memory is.
 */
#include "cuda_remote/softgpu/fatbin/host_object.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const linked_units_t *units)
{
	for (size_t n = 0; n < units->count; n++)
		if (strlen(units->unit[n].name) > 255 || units->unit[n].text[units->unit[n].length])
			abort();
}

/* Joins the units to an image and splits it again: the units must be the same. */
static void there_and_back(const linked_units_t *units)
{
	fatbin_ptx_t image;
	linked_units_t again;
	if (linked_join(units, &image))
		return;
	if (linked_split(image.text, image.length, &again) || again.count != units->count)
		abort();
	for (size_t n = 0; n < units->count; n++)
		if (again.unit[n].length != units->unit[n].length || strcmp(again.unit[n].name, units->unit[n].name) ||
		    memcmp(again.unit[n].text, units->unit[n].text, units->unit[n].length))
			abort();
	linked_free(&again);
	free(image.text);
}

static void split_image(const uint8_t *data, size_t size)
{
	linked_units_t split;
	if (linked_split(data, size, &split) != CUDA_SUCCESS)
		return;
	for (size_t n = 0; n < split.count; n++)
		if (strlen(split.unit[n].name) >= size || split.unit[n].text[split.unit[n].length])
			abort();
	linked_free(&split);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char said[256];
	softgpu_log_t log = { said, sizeof said, 0 };
	linked_units_t units = { 0 };
	unsigned passed_over = 0;
	host_object_units(data, size, "object", 90, false, &log, &units, &passed_over);
	if (host_object_is_archive(data, size))
		host_archive_units(data, size, "archive", 90, &log, &units, &passed_over);
	check(&units);
	there_and_back(&units);
	linked_free(&units);
	split_image(data, size);
	if (size >= LINKED_HEADER_BYTES && linked_is(data) && linked_bytes(data) <= size)
		split_image(data, linked_bytes(data));
	return 0;
}
