/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What kernels print: one record for each call. A running block holds its records; when it has ended, the launch does.
 *
 * CUDA's buffer (CU_LIMIT_PRINTF_FIFO_SIZE) is a ring on the device that holds formats' addresses and arguments; if it
 * is full, a new record replaces the oldest. Here each launch has a buffer of that size. A record counts as 16 bytes,
 * and 8 for each argument that was printed; if its text is very long, as one byte for each 256 of the text. A block's
 * oldest record is the first that it printed; a launch's oldest record is the first of the block with the lowest number.
 */
#ifndef SOFTGPU_EXEC_OUTPUT_H
#define SOFTGPU_EXEC_OUTPUT_H

#include "cuda_remote/softgpu/exec/warp.h"

/* Begin a record; append pieces of text to it; then output_end. Text that there is no memory for is left out. */
size_t output_begin(struct print_buffer *print);
void output_append(struct print_buffer *print, const char *text, size_t length);
/* Ends the record, and drops old records until the block's records fit into the launch's buffer. */
void output_end(struct block *block, size_t record, uint32_t arguments);

/* The block has ended: moves its records to the launch. The caller holds a lock that all of the launch's blocks take. */
void output_keep(struct launch *launch, struct block *block);
/* Writes the launch's records to stdout, block by block, and frees them. */
void output_write(struct launch *launch);

#endif
