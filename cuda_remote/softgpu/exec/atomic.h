/* SPDX-License-Identifier: BSD-3-Clause */
/* PTX's atomic operations, as atomic operations of the host: they are atomic for other blocks and the host too. */
#ifndef SOFTGPU_EXEC_ATOMIC_H
#define SOFTGPU_EXEC_ATOMIC_H

#include "cuda_remote/softgpu/exec/insn.h"

enum atomic_op { ATOMIC_ADD, ATOMIC_MIN, ATOMIC_MAX, ATOMIC_AND, ATOMIC_OR, ATOMIC_XOR, ATOMIC_INC, ATOMIC_DEC,
		 ATOMIC_EXCHANGE, ATOMIC_CAS };

/* The number of the function for op and type; false if PTX or this engine has none. */
bool atomic_find(enum atomic_op op, enum ptx_type type, uint32_t *variant);

/* Whether there are atomics of 16 bytes here. */
bool atomic_has_wide(void);
/* atomic_wide.c: r[0], r[1] the old value; r[2], r[3] the new value; the next instruction's r[0], r[1] the value that
 * cas compares with; count: ATOMIC_EXCHANGE or ATOMIC_CAS; size: the space. */
insn_handler op_atom_wide;

/* Applies the function to a host address; returns the old value. b: the value that compare-and-swap stores. add.f32
 * flushes subnormals. */
uint64_t atomic_apply(uint32_t variant, void *address, uint64_t a, uint64_t b);

#endif
