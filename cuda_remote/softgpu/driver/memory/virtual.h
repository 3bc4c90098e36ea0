/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual memory management (cuMemAddressReserve, cuMemCreate, cuMemMap …). Memory is a file (space/shared.h), mapped
 * by mmap. It lives as long as a handle or a mapping of it in any process. The unit is SOFTGPU_SPACE_PAGE.
 */
#ifndef SOFTGPU_VIRTUAL_H
#define SOFTGPU_VIRTUAL_H

#include "cuda_remote/softgpu/driver/cuda_api.h"

#include <stdbool.h>

/* True if all these bytes are mapped and may be read (if write: and written). */
bool virtual_covers(CUdeviceptr address, size_t bytes, bool write);

/* Start and size of the reservation that contains address. False: no reservation does. */
bool virtual_reservation(CUdeviceptr address, CUdeviceptr *base, size_t *bytes);

/* CUmemAllocationHandleType bits of the memory that is mapped at address. */
unsigned virtual_handle_types(CUdeviceptr address);

#endif
