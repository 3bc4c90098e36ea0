/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Images of several PTX texts, which the software GPU's linker makes in place of a cubin. The texts are linked when the
 * image is loaded (softgpu_program_link). cuLinkComplete has linked them once before, as a check. The format is in
 * cuda_remote/linked_image.h.
 */
#ifndef SOFTGPU_LINKED_H
#define SOFTGPU_LINKED_H

#include "cuda_remote/linked_image.h"
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

/*
 * The units of an image of length bytes; they point into it. CUDA_ERROR_INVALID_IMAGE: damaged. The caller frees units.
 */
CUresult linked_split(const void *data, size_t length, linked_units_t *units);

#endif
