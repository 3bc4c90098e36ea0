/* SPDX-License-Identifier: BSD-3-Clause */
/* In a static library of device code. */
__device__ int from_library(int x)
{
	return x + 5000;
}
