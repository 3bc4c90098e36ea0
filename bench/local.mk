# SPDX-License-Identifier: BSD-3-Clause
include bench/perf/local.mk
include bench/info/local.mk
include bench/collectives/local.mk
include bench/compare/local.mk
include bench/figures/local.mk
include bench/softgpu/local.mk
