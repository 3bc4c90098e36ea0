/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software GPU's address space, as the driver sees it (the engine sees only ../memory_map.h).
 *
 * One range is reserved at start: device memory, pinned host memory, managed memory and module variables all come out
 * of it, in 512-byte granules, so that finding the allocation of an address takes two loads and no lock. Host memory
 * that a program registers keeps its own address and is looked up in a sorted table.
 *
 * Any thread may call anything here after softgpu_space_open. 0 or -errno.
 */
#ifndef SOFTGPU_SPACE_H
#define SOFTGPU_SPACE_H

#include "cuda_remote/softgpu/space/allocation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOFTGPU_GRANULE 512u
#define SOFTGPU_MAX_DEVICES 16

/* What shareable memory is mapped in: whole pages of this size. */
#define SOFTGPU_SPACE_PAGE (UINT64_C(2) << 20)

/* Reserves the range for devices of memory bytes each. Called once. -ENOMEM: the process may not have address space. */
int softgpu_space_open(unsigned devices, uint64_t memory);

/*
 * Allocates want->size bytes (> 0) of want->kind; device, flags, read_only and owner are kept; base and id are filled
 * in. align: a power of two; never less than a granule. Content is arbitrary. -ENOMEM: the device (or the range) is
 * full.
 */
int softgpu_space_alloc(softgpu_allocation_t *want, uint64_t align);

/* Gives back the allocation that starts at base. -EINVAL: none does. Large ones go back to the kernel. */
int softgpu_space_free(uint64_t base);

/*
 * Frees everything with this owner, what a context leaves behind, and tells freed of each (which may not call back
 * here).
 */
void softgpu_space_free_owned(const void *owner, void (*freed)(const softgpu_allocation_t *allocation));

/* Adds host memory at its own address. -EEXIST: overlaps a registered range; -EINVAL: lies in the reserved range. */
int softgpu_space_register(const softgpu_allocation_t *range);
/* Takes it out again. -EINVAL: no registered range starts there. */
int softgpu_space_unregister(uint64_t base);

/*
 * Registered memory that the program has unmapped since is found no more. Called before anything uses addresses: what is
 * unmapped while a kernel runs ends the process.
 */
void softgpu_space_verify_registered(void);

/* The allocation that holds address; false if none does, or a kernel's malloc: what the host's calls are not to use. */
bool softgpu_space_find(uint64_t address, softgpu_allocation_t *found);

/* Takes bytes of device's memory, or gives them back: for memory that no allocation above counts. -ENOMEM. */
int softgpu_space_charge(int device, uint64_t bytes);
void softgpu_space_discharge(int device, uint64_t bytes);

/*
 * Takes size bytes of addresses (whole pages; align a power of two) out of use, without anything in them: at hint if
 * that is free, else anywhere. -ENOMEM. softgpu_space_unreserve gives them back; nothing may be mapped there.
 */
int softgpu_space_reserve(uint64_t size, uint64_t align, uint64_t hint, uint64_t *base);
void softgpu_space_unreserve(uint64_t base, uint64_t size);

/*
 * Maps file from offset (a multiple of 4096) at reserved addresses: want->base and size say where and how much is to be
 * found (not more than is reserved), at is the start of the page that base lies in. want->id is filled in; the kind is
 * SOFTGPU_SPACE_MAPPED or _DEVICE. -ENOMEM. softgpu_space_unmap takes the allocation that starts at base away again.
 */
int softgpu_space_map(softgpu_allocation_t *want, uint64_t at, int file, uint64_t offset);

/* Sets whether what starts at base is hidden and read-only, or is to be waited for. False: nothing starts there. */
bool softgpu_space_set_access(uint64_t base, bool hidden, bool read_only);
bool softgpu_space_set_sync(uint64_t base, bool sync_memops);

/*
 * The file behind device memory that another process is to map: the pages around address, which are moved into a file
 * the first time (nothing may write them meanwhile; what the host writes without a command, pinned and managed memory and
 * modules' variables, does not lie in such pages). The caller does not close it. -EINVAL: no such memory; -errno.
 */
int softgpu_space_share(uint64_t address, int *file, uint64_t *start, uint64_t *bytes);

/* True if address lies in the reserved range, allocated or not. */
bool softgpu_space_holds(uint64_t address);

/* Bytes of device, and how many of them are free. */
void softgpu_space_usage(int device, uint64_t *free_bytes, uint64_t *total);

/* The device and owner that softgpu_memory_alloc uses on this thread from now on (a module belongs to a context). */
void softgpu_space_module_owner(int device, const void *owner);

#endif
