/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels print: one record for each call, of a block while it runs, of the launch until it ends.
 *
 * CUDA's buffer (CU_LIMIT_PRINTF_FIFO_SIZE) is one of the device that holds formats' addresses and arguments, written in
 * a circle: what does not fit takes the place of the oldest. Here a launch has a buffer of that size; a record counts
 * as 16 bytes and 8 for each argument that was printed, however long its text. The oldest of a block is what it printed
 * first, and of a launch what the block with the lowest number printed.
 */
#ifndef SOFTGPU_EXEC_OUTPUT_H
#define SOFTGPU_EXEC_OUTPUT_H

#include "cuda_remote/softgpu/exec/warp.h"

/* A record begins: pieces of text follow, then its end. What there is no memory for is left out. */
size_t output_begin(struct print_buffer *print);
void output_append(struct print_buffer *print, const char *text, size_t length);
/* Takes old records away until the block's fit into the launch's buffer. */
void output_end(struct block *block, size_t record, uint32_t arguments);

/* The block has ended: moves its records to the launch. The caller holds a lock that all of the launch's blocks take. */
void output_keep(struct launch *launch, struct block *block);
/* To stdout, block by block, and frees them. */
void output_write(struct launch *launch);

#endif
