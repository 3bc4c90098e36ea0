/* SPDX-License-Identifier: BSD-3-Clause */
/* separate.cu in three units: the kernels' own, a second one, and a library. */
extern __device__ int counter;
extern __constant__ int factors[4];
extern __managed__ int in_host_code_too;

__device__ int scaled(int x);      /* separate_other.cu */
__device__ int from_library(int x); /* separate_library.cu */
typedef int function(int);
extern __device__ function *chosen;

template <typename T> __device__ __noinline__ T doubled(T x)
{
	return x + x;
}

void launch_other(int *values, int n);
int other_factor(int index);
