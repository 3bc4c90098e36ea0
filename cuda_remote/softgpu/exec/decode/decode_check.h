/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode_check.c: the instructions of HEADRACE_SOFTGPU_CHECK. Each function emits what belongs before the access whose
 * draft the caller emits next (decode_check_learned: after it), or nothing. kind: enum check_kind.
 */
#ifndef SOFTGPU_EXEC_DECODE_CHECK_H
#define SOFTGPU_EXEC_DECODE_CHECK_H

#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"

/* The statement's modifiers as parts of a kind. */
uint8_t decode_check_order(const struct decoder *decoder, bool atomic);
void decode_check_access(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t bytes,
			 uint8_t kind);
/* Lanes 0 to rows - 1 have the address of 16 bytes each. */
void decode_check_rows(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t rows,
		       uint8_t kind);
/* bytes: a row of them, or none: most. */
void decode_check_copy(struct decoder *decoder, struct value address, enum access_space space, struct value bytes,
		       uint32_t most, uint8_t kind);
/* Behind decode_check_copy: lanes whose predicate is true do not take part. */
void decode_check_unless(struct decoder *decoder, struct value ignored, bool negated);
/* extent: lines, elements of a line, bits of an element. */
void decode_check_tile(struct decoder *decoder, const struct address *address, enum access_space space,
		       struct value stride, const uint32_t extent[3], uint8_t kind);
void decode_check_learned(struct decoder *decoder, enum access_space space, uint8_t kind);
void decode_check_fence(struct decoder *decoder);

#endif
