/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device code inside host objects (ELF sections __nv_relfatbin and .nv_fatbin, as nvcc 13.0 writes them, each with
 * one fat binary behind the other) and in archives of such objects ("ar", the System V and GNU form). The bytes are
 * foreign: nothing is believed before it was checked against the bounds.
 */
#ifndef SOFTGPU_HOST_OBJECT_H
#define SOFTGPU_HOST_OBJECT_H

#include "cuda_remote/softgpu/fatbin/linked.h"

/* Whether this is an ELF file, machine code for a GPU. */
bool host_object_is_elf(const void *data, size_t size);
bool host_object_is_cubin(const void *data, size_t size);
bool host_object_is_archive(const void *data, size_t size);

/*
 * Adds the PTX of an object's fat binaries to units. Those without PTX that would do are passed over; *passed_over
 * counts them. CUDA_ERROR_INVALID_IMAGE: damaged; CUDA_ERROR_NO_BINARY_FOR_GPU: a cubin.
 */
CUresult host_object_units(const void *data, size_t size, const char *name, unsigned capability, bool on_demand,
			   softgpu_log_t *log, linked_units_t *units, unsigned *passed_over);

/* The same of each object of an archive; what they hold is joined on demand. */
CUresult host_archive_units(const void *data, size_t size, const char *name, unsigned capability, softgpu_log_t *log,
			    linked_units_t *units, unsigned *passed_over);

#endif
