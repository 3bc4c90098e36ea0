/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decode_check.c: the instructions of HEADRACE_SOFTGPU_CHECK. Each function emits the check of the access that the
 * caller emits next (decode_check_learned: of the one that it emitted last), or nothing. kind: a set of enum
 * check_kind.
 */
#ifndef SOFTGPU_EXEC_DECODE_CHECK_H
#define SOFTGPU_EXEC_DECODE_CHECK_H

#include "cuda_remote/softgpu/exec/check/check.h"
#include "cuda_remote/softgpu/exec/decode/decode.h"

/* The part of kind that the statement's modifiers give. */
uint8_t decode_check_order(const struct decoder *decoder, bool atomic);
void decode_check_access(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t bytes,
			 uint8_t kind);
/* Lanes 0 to rows - 1 have the address of 16 bytes each. */
void decode_check_rows(struct decoder *decoder, const struct address *address, enum access_space space, uint32_t rows,
		       uint8_t kind);
/* bytes: a row with each lane's number of bytes; if its role is ROLE_NONE, the number is most for each lane. */
void decode_check_copy(struct decoder *decoder, struct value address, enum access_space space, struct value bytes,
		       uint32_t most, uint8_t kind);
/* After decode_check_copy: lanes whose predicate is true do not take part in the copy. */
void decode_check_unless(struct decoder *decoder, struct value ignored, bool negated);
/* extent: lines, elements of a line, bits of an element. */
void decode_check_tile(struct decoder *decoder, const struct address *address, enum access_space space,
		       struct value stride, const uint32_t extent[3], uint8_t kind);
void decode_check_learned(struct decoder *decoder, enum access_space space, uint8_t kind);
void decode_check_fence(struct decoder *decoder);

#endif
