/* SPDX-License-Identifier: BSD-3-Clause */
/* A model of the bus between host and GPU, for measurements: copies between the two are no faster than a given bandwidth. */
#ifndef SOFTGPU_COPY_PACE_H
#define SOFTGPU_COPY_PACE_H

#include "cuda_remote/softgpu/driver/memory/copy_box.h"

#include <stdbool.h>

/* True if a bandwidth is set. */
bool copy_is_paced(void);
/* Time at which a copy of the box that begins now may end, ns of CLOCK_MONOTONIC; 0: at once. */
uint64_t copy_pace_begin(const copy_box_t *box);
/* Sleeps until then. */
void copy_pace_end(uint64_t until);

#endif
