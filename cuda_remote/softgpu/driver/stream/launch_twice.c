/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches, legacy and per-thread (see cuda_api.h): compiled twice. */
#include "cuda_remote/softgpu/driver/stream/launch.h"

CUresult PTSZ(cuLaunchKernel)(CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ,
			      unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ,
			      unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra)
{
	launch_shape_t shape = { .grid = { gridDimX, gridDimY, gridDimZ }, .block = { blockDimX, blockDimY, blockDimZ },
				 .dynamic_shared = sharedMemBytes };
	CUstream stream;
	return launch_submit(f, &shape, STREAM_OR_DEFAULT(hStream), kernelParams, extra, NULL, &stream);
}

CUresult PTSZ(cuLaunchCooperativeKernel)(CUfunction f, unsigned int gridDimX, unsigned int gridDimY,
					 unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY,
					 unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream,
					 void **kernelParams)
{
	launch_shape_t shape = { .grid = { gridDimX, gridDimY, gridDimZ }, .block = { blockDimX, blockDimY, blockDimZ },
				 .dynamic_shared = sharedMemBytes, .cooperative = true };
	CUstream stream;
	return launch_submit(f, &shape, STREAM_OR_DEFAULT(hStream), kernelParams, NULL, NULL, &stream);
}

CUresult PTSZ(cuLaunchKernelEx)(const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra)
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_submit_ex(config, f, STREAM_OR_DEFAULT(config->hStream), kernelParams, extra);
}
