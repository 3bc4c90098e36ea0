/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap …): memory is a file (memory/shared.h), a mapping
 * is mmap's. Memory lives as long as its handle or a mapping of it, in any process. All in units of
 * SOFTGPU_SPACE_PAGE.
 */
#ifndef SOFTGPU_VIRTUAL_H
#define SOFTGPU_VIRTUAL_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>

/* The bytes from address on are mapped without a gap and may be read (and written, if write). */
bool virtual_covers(CUdeviceptr address, size_t bytes, bool write);

/* Size of the reservation that holds address, and its start. False: none does. */
bool virtual_reservation(CUdeviceptr address, CUdeviceptr *base, size_t *bytes);

/* CUmemAllocationHandleType bits of what is mapped at address. */
unsigned virtual_handle_types(CUdeviceptr address);

#endif
