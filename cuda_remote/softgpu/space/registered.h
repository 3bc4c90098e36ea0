/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered host memory: a table sorted by address behind a read-write lock. Called by space.c only. */
#ifndef SOFTGPU_REGISTERED_H
#define SOFTGPU_REGISTERED_H

#include "cuda_remote/softgpu/space/allocation.h"

/* Returns 0, -EEXIST if the range overlaps a registered range that is not hidden, or -ENOMEM. */
int softgpu_registered_add(const softgpu_allocation_t *range);
/* Returns 0, or -EINVAL if no range starts at base. */
int softgpu_registered_remove(uint64_t base);
void softgpu_registered_remove_owned(const void *owner);
/* The range at base stays mapped until it is removed: it is not verified. given: another process reads what copies
 * write there. -EINVAL: no range starts there. */
int softgpu_registered_keep(uint64_t base, bool given);
/*
 * Hides ranges that the program has unmapped since their registration, completely or in part. Hidden ranges are not
 * found. Returns whether a range was hidden by this call.
 */
bool softgpu_registered_verify(void);
/* The same for the range that contains address. If it is mapped, the others are not looked at. */
bool softgpu_registered_verify_at(uint64_t address);
bool softgpu_registered_find(uint64_t address, softgpu_allocation_t *found);
/*
 * Loads the word of 4 or 8 bytes at address with acquire semantics, or stores it with release semantics, while no range can be
 * removed. So the memory is still mapped, if the program ends a registration before it unmaps the memory. False: the word is in no
 * registered range, or a store would write a range that may only be read.
 */
bool softgpu_registered_load(uint64_t address, unsigned bytes, uint64_t *value);
bool softgpu_registered_store(uint64_t address, unsigned bytes, uint64_t value);

#endif
