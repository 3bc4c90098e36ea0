# SPDX-License-Identifier: BSD-3-Clause
# The checking mode: races, uninitialised reads.
cuda_remote_softgpu_libsgengine_la_SOURCES += \
	cuda_remote/softgpu/exec/check/check.c \
	cuda_remote/softgpu/exec/check/check.h \
	cuda_remote/softgpu/exec/check/check_global.c \
	cuda_remote/softgpu/exec/check/check_shared.c
