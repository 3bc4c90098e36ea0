# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CUDA
include cuda_remote/api/local.mk
include cuda_remote/door/local.mk
include cuda_remote/client/local.mk
include cuda_remote/server/local.mk
include cuda_remote/server/daemon/local.mk
include cuda_remote/softgpu/local.mk
include cuda_remote/runtime/local.mk
include cuda_remote/run/local.mk
endif
