/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of bench-softgpu in plain C, as references. */
#include "plain.h"

static void vector_add(const float *restrict a, const float *restrict b, float *restrict c, int n)
{
	for (int i = 0; i < n; i++)
		c[i] = a[i] + b[i];
}

static void multiply_tile(float *restrict c, const float *restrict a, const float *restrict b, int wa, int wb)
{
	float sums[32][32] = { 0 };
	for (int k = 0; k < wa; k++)
		for (int y = 0; y < 32; y++)
			for (int x = 0; x < 32; x++)
				sums[y][x] += a[y * wa + k] * b[k * wb + x];
	for (int y = 0; y < 32; y++)
		for (int x = 0; x < 32; x++)
			c[y * wb + x] = sums[y][x];
}

static void matrix_mul(float *c, const float *a, const float *b, int ha, int wa, int wb)
{
	for (int y = 0; y < ha; y += 32)
		for (int x = 0; x < wb; x += 32)
			multiply_tile(c + y * wb + x, a + y * wa, b + x, wa, wb);
}

static void one_lane(unsigned *data, int blocks, int steps)
{
	for (int block = 0; block < blocks; block++) {
		unsigned x = (unsigned)block + 1, sum = 0, *mine = data + block * 1024;
		for (int i = 0; i < steps; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			sum += mine[x & 1023];
			mine[i & 1023] = sum;
		}
		mine[0] = sum;
	}
}

const struct plain PLAIN_NAME = { vector_add, matrix_mul, one_lane };
