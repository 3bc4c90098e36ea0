/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several texts of PTX in one piece: what the software GPU's linker makes in place of a cubin. The texts are joined
 * when the image is loaded (softgpu_program_link); they were linked once before that, so an image of cuLinkComplete's
 * loads.
 *
 * Header (24 bytes): "HRPTXLNK", u32 version 1, u32 units, u64 bytes of the whole image. Then for each unit: u64
 * bytes of text, u32 bytes of name, u32 1 if it is joined on demand only; the name and a NUL, the text and a NUL;
 * zeros up to a multiple of 8. Bytes of this machine's order: an image is not meant for another.
 */
#ifndef SOFTGPU_LINKED_H
#define SOFTGPU_LINKED_H

#include "cuda_remote/softgpu/fatbin/fatbin.h"

#define LINKED_HEADER_BYTES 24

/* A list of units that grows. */
typedef struct linked_units {
	softgpu_unit_t *unit;
	size_t count, room;
	bool borrowed; /* names and texts are those of an image */
} linked_units_t;

/* Takes ptx->text over, also when it fails. name is copied. CUDA_ERROR_OUT_OF_MEMORY. */
CUresult linked_add(linked_units_t *units, const char *name, const fatbin_ptx_t *ptx, bool on_demand);
void linked_free(linked_units_t *units);

/* All units as one image, which the caller frees. */
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
