/* SPDX-License-Identifier: BSD-3-Clause */
/* Registered host memory: a table sorted by address behind a read-write lock. Called by space.c only. */
#ifndef SOFTGPU_REGISTERED_H
#define SOFTGPU_REGISTERED_H

#include "cuda_remote/softgpu/space/allocation.h"

/* -EEXIST: overlaps one that is there; -ENOMEM. */
int softgpu_registered_add(const softgpu_allocation_t *range);
/* -EINVAL: none starts at base. */
int softgpu_registered_remove(uint64_t base);
void softgpu_registered_remove_owned(const void *owner);
/*
 * Hides ranges that the program has unmapped meanwhile, wholly or in part, so that they are found no more. True if there
 * is such a one that was not hidden before.
 */
bool softgpu_registered_verify(void);
bool softgpu_registered_find(uint64_t address, softgpu_allocation_t *found);

#endif
