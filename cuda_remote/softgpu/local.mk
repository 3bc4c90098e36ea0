# SPDX-License-Identifier: BSD-3-Clause
include cuda_remote/softgpu/ptx/local.mk
include cuda_remote/softgpu/exec/local.mk
include cuda_remote/softgpu/driver/local.mk
