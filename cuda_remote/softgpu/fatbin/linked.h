/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images of several PTX texts, which the software GPU's linker makes in place of a cubin. The texts are linked when the
 * image is loaded (softgpu_program_link). cuLinkComplete has linked them once before, as a check.
 *
 * Header (24 bytes): "HRPTXLNK", u32 version 1, u32 units, u64 bytes of the whole image. Then for each unit: u64
 * bytes of text, u32 bytes of name, u32 1 if it is linked on demand only; the name and a NUL, the text and a NUL;
 * zeros up to a multiple of 8. The byte order is the machine's; images are not portable.
 */
#ifndef SOFTGPU_LINKED_H
#define SOFTGPU_LINKED_H

#include "cuda_remote/softgpu/fatbin/fatbin.h"

#define LINKED_HEADER_BYTES 24

/* A growing list of units. */
typedef struct linked_units {
	softgpu_unit_t *unit;
	size_t count, room;
	bool borrowed; /* names and texts point into an image, and are not freed */
} linked_units_t;

/* Adds a unit. Owns ptx->text from now on, even if it fails; copies name. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult linked_add(linked_units_t *units, const char *name, const fatbin_ptx_t *ptx, bool on_demand);
void linked_free(linked_units_t *units);

/* Makes one image of all units, which the caller frees. */
CUresult linked_join(const linked_units_t *units, fatbin_ptx_t *image);

/* Whether such an image starts here; reads no further than the first byte that differs. */
bool linked_is(const void *data);
/* Bytes of the image at data, as its header says. */
size_t linked_bytes(const void *data);
/*
 * The units of an image of length bytes; they point into it. CUDA_ERROR_INVALID_IMAGE: damaged. The caller frees units.
 */
CUresult linked_split(const void *data, size_t length, linked_units_t *units);

#endif
