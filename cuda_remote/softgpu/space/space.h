/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The software GPU's address space, for the driver. The engine uses only ../memory_map.h.
 *
 * One range of addresses is reserved at start. Device memory, pinned host memory, managed memory and module variables
 * are allocated from it, in granules of 512 bytes. So finding the allocation of an address takes two loads and no lock.
 * Host memory that a program registers keeps its address and is looked up in a sorted table.
 *
 * Threads: any thread may call any function after softgpu_space_open. Functions of type int return 0 or a negated errno
 * value.
 */
#ifndef SOFTGPU_SPACE_H
#define SOFTGPU_SPACE_H

#include "cuda_remote/softgpu/space/allocation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOFTGPU_GRANULE 512u
#define SOFTGPU_MAX_DEVICES 16

/* The page size of shareable memory, bytes. Shareable memory is mapped in whole pages. */
#define SOFTGPU_SPACE_PAGE (UINT64_C(2) << 20)

/* Reserves the range, for devices of memory bytes each. Call once. -ENOMEM: no memory or no address space left. */
int softgpu_space_open(unsigned devices, uint64_t memory);

/*
 * Allocates want->size > 0 bytes of want->kind for want->device. Stores the base and id in want; the record keeps the
 * other fields. align: a power of two, raised to SOFTGPU_GRANULE if smaller. The content is undefined. -ENOMEM: the
 * device's memory, the host's memory or the range is full.
 */
int softgpu_space_alloc(softgpu_allocation_t *want, uint64_t align);

/*
 * Windows: ranges in which the caller chooses the address of each allocation.
 *
 * softgpu_space_window reserves size bytes of addresses at base, both multiples of SOFTGPU_SPACE_PAGE, as the window of
 * device; a device has at most one. -EEXIST: the device has one, or part of the addresses is in use; -EINVAL; -ENOMEM.
 *
 * softgpu_space_budget adds bytes (more) to the budget of a device's window, or takes bytes (less) away that no
 * allocation uses; one of the two is 0. The budget counts as used memory of the device, whether it is used or not. -ENOMEM:
 * the device's memory is full; -EINVAL: no window, or more of the budget is in use.
 *
 * softgpu_space_place allocates want->size > 0 bytes at want->base, which must be a multiple of SOFTGPU_GRANULE. An
 * allocation of up to SOFTGPU_PLACE_SMALL bytes must lie in one page, a larger one must begin at a multiple of
 * SOFTGPU_SPACE_PAGE. Stores the id in want. softgpu_space_free frees it; its bytes then belong to the budget again.
 * -EINVAL: wrong address or size, or want->device has no window there; -EEXIST: overlaps another allocation; -ENOMEM: the
 * budget is used up.
 */
#define SOFTGPU_PLACE_SMALL (SOFTGPU_SPACE_PAGE / 2)
int softgpu_space_window(int device, uint64_t base, uint64_t size);
int softgpu_space_budget(int device, uint64_t more, uint64_t less);
int softgpu_space_place(softgpu_allocation_t *want);

/* Frees the allocation that starts at base. Memory of large allocations is returned to the operating system. -EINVAL:
 * no allocation starts at base. */
int softgpu_space_free(uint64_t base);

/*
 * Frees all allocations and registrations of owner, when a context is destroyed. Calls freed for each allocation of the
 * range before it is freed; freed must not call functions of this header.
 */
void softgpu_space_free_owned(const void *owner, void (*freed)(const softgpu_allocation_t *allocation));

/* Registers host memory at its own address. -EEXIST: overlaps a registered range; -EINVAL: overlaps the reserved range;
 * -ENOMEM. */
int softgpu_space_register(const softgpu_allocation_t *range);
/* Removes a registration. -EINVAL: no registered range starts at base. */
int softgpu_space_unregister(uint64_t base);
/* The range at base stays mapped until its registration ends. given: another process reads what copies write there. -EINVAL: no
 * registered range starts at base. */
int softgpu_space_keep(uint64_t base, bool given);

/*
 * Checks all registered ranges: a range that the program has unmapped since its registration is not found any more.
 * Call it before a command uses addresses. If the program unmaps a range while a kernel uses it, the process is killed.
 */
void softgpu_space_verify_registered(void);
/* Checks the range that contains address. */
void softgpu_space_verify_registered_at(uint64_t address);

/* Finds the allocation that contains address. Returns false if there is none, or if a kernel allocated it with malloc:
 * host calls must not use such memory. */
bool softgpu_space_find(uint64_t address, softgpu_allocation_t *found);

/*
 * Loads and stores an aligned word of 4 or 8 bytes of registered memory, with acquire and release semantics. Another thread may
 * end the registration, and then unmap the memory, at the same time. False: the word is not registered, or read-only.
 */
bool softgpu_space_load_registered(uint64_t address, unsigned bytes, uint64_t *value);
bool softgpu_space_store_registered(uint64_t address, unsigned bytes, uint64_t value);

/* Counts bytes as used memory of device, and undoes that: for memory that is not in an allocation that counts. -ENOMEM:
 * the device's memory is full. */
int softgpu_space_charge(int device, uint64_t bytes);
void softgpu_space_discharge(int device, uint64_t bytes);

/*
 * Reserves size bytes of addresses without memory: at hint if these addresses are free, else anywhere. size: a multiple
 * of SOFTGPU_SPACE_PAGE. align: a power of two. -ENOMEM. softgpu_space_unreserve releases the addresses; nothing may be
 * mapped there.
 */
int softgpu_space_reserve(uint64_t size, uint64_t align, uint64_t hint, uint64_t *base);
void softgpu_space_unreserve(uint64_t base, uint64_t size);

/*
 * Maps file, from offset (a multiple of 4096), at reserved addresses, starting at address at. The allocation is
 * want->size bytes at want->base, which must lie in the first mapped page. Stores want->id. want->kind:
 * SOFTGPU_SPACE_MAPPED or SOFTGPU_SPACE_DEVICE. -ENOMEM. softgpu_space_free removes the mapping; the addresses of a
 * SOFTGPU_SPACE_MAPPED allocation stay reserved.
 */
int softgpu_space_map(softgpu_allocation_t *want, uint64_t at, int file, uint64_t offset);

/* Change fields of the allocation that starts at base. Return false if no allocation starts there. */
bool softgpu_space_set_access(uint64_t base, bool hidden, bool read_only);
bool softgpu_space_set_sync(uint64_t base, bool sync_memops);
/* Notes that a stream will free the allocation. False also if one will already. */
bool softgpu_space_set_freeing(uint64_t base);

/*
 * Returns the file behind the device memory at address, so that another process can map it, and the address and size of
 * the pages in the file. The first call moves these pages into a new file; nothing may write to them meanwhile. The
 * pages contain no memory that the host writes outside of commands (pinned memory, managed memory, module variables).
 * The caller must not close the file. -EINVAL: no device memory at address; or the error of a system call.
 */
int softgpu_space_share(uint64_t address, int *file, uint64_t *start, uint64_t *bytes);

/* Returns whether address lies in the reserved range or in a window, allocated or not. */
bool softgpu_space_holds(uint64_t address);

/* Stores the free and the total memory of device, bytes. */
void softgpu_space_usage(int device, uint64_t *free_bytes, uint64_t *total);

/* Sets the device and the owner of later calls of softgpu_memory_alloc on this thread: a module's context. */
void softgpu_space_module_owner(int device, const void *owner);

#endif
