/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matrix instructions of a warp (PTX ISA, "Warp Level Matrix Multiply-Accumulate Instructions"): the description of
 * fragments that the decoder gives to the handlers.
 *
 * A matrix instruction has more operands than struct insn holds. The instructions after it, the carriers, hold six rows
 * each and are never executed. The first carrier holds the form.
 */
#ifndef SOFTGPU_EXEC_MATRIX_H
#define SOFTGPU_EXEC_MATRIX_H

#include "cuda_remote/softgpu/exec/warp.h"

enum matrix_type { MATRIX_F16, MATRIX_BF16, MATRIX_TF32, MATRIX_E4M3, MATRIX_E5M2, MATRIX_F64, MATRIX_S8, MATRIX_U8,
		   MATRIX_S4, MATRIX_U4, MATRIX_B1, MATRIX_F32, MATRIX_S32, MATRIX_NO_TYPE };

#define FRAGMENT_REGISTERS 8

/*
 * Where a fragment's elements lie in the matrix, counted row by row: element i of register r in a lane is at
 * lane / 4 * group_step + lane % 4 * thread_step + offset[r] + i * element_step. One-bit elements are counted in words
 * of 32 along k.
 */
struct matrix_fragment {
	uint8_t type;
	uint8_t bits;      /* of an element; 32 for a word of single bits */
	uint8_t registers; /* of the instruction */
	uint8_t distinct;  /* registers with different elements; the others repeat them (wmma's f16) */
	uint8_t elements;  /* in a register */
	uint16_t rows, columns;
	uint16_t group_step, thread_step, element_step;
	uint16_t offset[FRAGMENT_REGISTERS];
};

struct matrix_form {
	struct matrix_fragment a, b, c, d; /* loads and stores: only d */
	uint16_t m, n, k;
	bool saturate, bit_and, column_major;
	bool a_by_columns, b_by_rows; /* m8n8k4 of f16 only: four products, one for each quad pair */
	bool sparse;                  /* mma.sp: a has half of k's columns; the row after d is the metadata */
	uint8_t selector;             /* mma.sp: which lanes of each four have the metadata */
	bool warpgroup;               /* wgmma */
	bool a_in_memory, a_by_m, b_by_n; /* wgmma: a descriptor for a; neighbours in memory are along m or n, not k */
	bool negative;                /* wgmma: the signs of a and b differ */
	uint8_t carriers;             /* instructions that follow */
	int rounding;                 /* f64: the rounding mode of fenv.h */
};

#define CARRIER_ROWS 6

static inline const struct matrix_form *matrix_form_of(const struct insn *insn)
{
	return (const struct matrix_form *)(uintptr_t)insn[1].imm;
}

/* The n-th row of a matrix instruction: a, b and c in the order of the text, results, then mma.sp's metadata. */
static inline int32_t matrix_row(const struct insn *insn, uint32_t n)
{
	return insn[1 + n / CARRIER_ROWS].r[n % CARRIER_ROWS];
}

static inline uint32_t *matrix_words(const struct warp *warp, const struct insn *insn, uint32_t n)
{
	return (uint32_t *)__builtin_assume_aligned(warp->regs + matrix_row(insn, n), 64);
}

static inline uint32_t matrix_lane_position(const struct matrix_fragment *fragment, uint32_t lane)
{
	return lane / 4 * fragment->group_step + lane % 4 * fragment->thread_step;
}

/*
 * wgmma's rows: a's registers or the descriptor of a; the descriptor of b; whether d is a summand; d's registers as
 * sources; the same as results. d's fragment has more registers than matrix_fragment describes.
 */
#define WGMMA_COLUMNS_MAX 256
#define WGMMA_ROWS_MAX (4 + 2 + 2 * WGMMA_COLUMNS_MAX / 2)

static inline uint32_t wgmma_accumulators(const struct matrix_form *form)
{
	return form->d.type == MATRIX_F16 ? form->n / 4u : form->n / 2u;
}

/* matrix.c */
insn_handler op_matrix_load, op_matrix_store, op_matrix_quads, op_ldmatrix, op_stmatrix, op_movmatrix;

#endif
