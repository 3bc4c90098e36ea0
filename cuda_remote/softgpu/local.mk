# SPDX-License-Identifier: BSD-3-Clause
include cuda_remote/softgpu/driver/local.mk
