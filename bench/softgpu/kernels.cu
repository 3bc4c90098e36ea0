/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernels of softgpu_speed.c. */

extern "C" __global__ void vector_add(const float *a, const float *b, float *c, int n)
{
	int i = blockDim.x * blockIdx.x + threadIdx.x;
	if (i < n)
		c[i] = a[i] + b[i];
}

/* c (wa columns of tiles wide) = a * b by tiles of 32 x 32 in shared memory, the way of the textbooks. */
extern "C" __global__ void matrix_mul(float *c, const float *a, const float *b, int wa, int wb)
{
	__shared__ float tile_a[32][32], tile_b[32][32];
	int x = threadIdx.x, y = threadIdx.y;
	const float *from_a = a + (blockIdx.y * 32 + y) * wa + x, *from_b = b + y * wb + blockIdx.x * 32 + x;
	float sum = 0;
	for (int t = 0; t < wa; t += 32) {
		tile_a[y][x] = from_a[t];
		tile_b[y][x] = from_b[t * wb];
		__syncthreads();
#pragma unroll
		for (int k = 0; k < 32; k++)
			sum += tile_a[y][k] * tile_b[k][x];
		__syncthreads();
	}
	c[(blockIdx.y * 32 + y) * wb + blockIdx.x * 32 + x] = sum;
}

/* One lane of each warp works: a random walk's arithmetic, a load and a store for each step. */
extern "C" __global__ void one_lane(unsigned *data, int steps)
{
	if (threadIdx.x % 32)
		return;
	unsigned x = blockIdx.x + 1, sum = 0;
	unsigned *mine = data + blockIdx.x * 1024;
#pragma unroll 1
	for (int i = 0; i < steps; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		sum += mine[x & 1023];
		mine[i & 1023] = sum;
	}
	mine[0] = sum;
}
