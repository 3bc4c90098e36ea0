/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The work of the benchmark's kernels in plain C, for comparison. plain.c is compiled twice, scalar and vectorised for
 * this machine; PLAIN_NAME is the name of the resulting structure. Matrices are stored by rows. Sizes are those of
 * kernels.cu.
 */
#ifndef HR_BENCH_PLAIN_H
#define HR_BENCH_PLAIN_H

struct plain {
	void (*vector_add)(const float *a, const float *b, float *c, int n);
	/* c[ha][wb] = a[ha][wa] * b[wa][wb], in tiles of 32 x 32 */
	void (*matrix_mul)(float *c, const float *a, const float *b, int ha, int wa, int wb);
	void (*one_lane)(unsigned *data, int blocks, int steps);
};
extern const struct plain plain_scalar, plain_vector;

#endif
