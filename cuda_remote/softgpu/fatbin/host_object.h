/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device code in host object files and in archives of them. In an object (ELF, as nvcc 13.0 writes it) the sections
 * __nv_relfatbin and .nv_fatbin hold one fat binary after another. Archives are in the System V and GNU form of ar.
 * The bytes are not trusted: every field is checked against the bounds before it is used.
 */
#ifndef SOFTGPU_HOST_OBJECT_H
#define SOFTGPU_HOST_OBJECT_H

#include "cuda_remote/softgpu/fatbin/linked.h"

/* True if the bytes are an ELF file, machine code for a GPU (a cubin), or an archive. */
bool host_object_is_elf(const void *data, size_t size);
bool host_object_is_cubin(const void *data, size_t size);
bool host_object_is_archive(const void *data, size_t size);

/*
 * Adds the PTX of an object's fat binaries to units. Fat binaries without PTX for this capability are skipped;
 * *passed_over counts them. CUDA_ERROR_INVALID_IMAGE: damaged; CUDA_ERROR_NO_BINARY_FOR_GPU: a cubin.
 */
CUresult host_object_units(const void *data, size_t size, const char *name, unsigned capability, bool on_demand,
			   softgpu_log_t *log, linked_units_t *units, unsigned *passed_over);

/* host_object_units for each object of an archive; the units are linked on demand only. */
CUresult host_archive_units(const void *data, size_t size, const char *name, unsigned capability, softgpu_log_t *log,
			    linked_units_t *units, unsigned *passed_over);

#endif
