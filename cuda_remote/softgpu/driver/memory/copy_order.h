/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order of copies in the legacy default stream between the memories of two devices. CUDA: such a copy does not start until
 * all commands that were given to either device's default stream before have completed, and it completes before their later
 * commands start (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy").
 */
#ifndef SOFTGPU_COPY_ORDER_H
#define SOFTGPU_COPY_ORDER_H

#include "cuda_remote/softgpu/driver/context/context.h"
#include "cuda_remote/softgpu/driver/memory/copy_box.h"

/* The default streams, other than its own, with which a copy is ordered. Each has a reference. */
typedef struct copy_order {
	unsigned count;
	CUstream streams[2];
} copy_order_t;

/* Later commands of stream wait for what the other default streams were given before. CUDA_ERROR_OUT_OF_MEMORY: nothing changed
 * for the caller. Otherwise the caller submits the copy, or gives up, and then calls copy_order_end. */
CUresult copy_order_begin(CUstream stream, const copy_box_t *box, copy_order_t *order);

/* Later commands of the other default streams wait for what stream was given before. */
void copy_order_end(CUstream stream, copy_order_t *order);

#endif
