# SPDX-License-Identifier: BSD-3-Clause
include test/cuda/api/local.mk
include test/cuda/softgpu/local.mk
include test/cuda/runtime/local.mk
include test/cuda/redirect/local.mk
include test/cuda/relink/local.mk
include test/cuda/client/local.mk
include test/cuda/door/local.mk
include test/cuda/daemon/local.mk
include test/cuda/nvml/local.mk
include test/cuda/remote/local.mk
include test/cuda/echo/local.mk
include test/cuda/bad_input/local.mk
include test/cuda/mixed/local.mk
include test/cuda/several_servers/local.mk
include test/cuda/server/local.mk
