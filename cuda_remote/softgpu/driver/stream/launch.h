/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernel launches in streams. Everything is checked before anything is submitted. */
#ifndef SOFTGPU_LAUNCH_H
#define SOFTGPU_LAUNCH_H

#include "cuda_remote/softgpu/driver/module/launch_shape.h"

/*
 * Launches in the stream that the handle means. function may be a CUkernel too. Parameters come as kernelParams or in
 * extra's buffer; they are copied before the call returns. config: NULL, or has attributes, which a captured launch
 * keeps. Outputs the stream that the launch went to.
 */
CUresult launch_submit(CUfunction function, const launch_shape_t *shape, CUstream handle, void **parameters,
		       void **extra, const CUlaunchConfig *config, CUstream *stream);

/* cuLaunchKernelEx. Attributes that are hints or permissions are accepted; so are
 * cluster dimensions, but no preferred ones of several blocks. */
CUresult launch_submit_ex(const CUlaunchConfig *config, CUfunction function, CUstream handle, void **parameters,
			  void **extra);

#endif
