/* SPDX-License-Identifier: BSD-3-Clause */
/* How many blocks of a kernel a multiprocessor holds. */
#ifndef SOFTGPU_OCCUPANCY_H
#define SOFTGPU_OCCUPANCY_H

#include "cuda_remote/softgpu/driver/module/module.h"

/* Blocks of a function that one multiprocessor holds, by the model in occupancy.c; 0: a block exceeds the limits. */
unsigned occupancy_blocks(const struct CUfunc_st *function, unsigned threads, uint64_t dynamic_shared);

#endif
