# SPDX-License-Identifier: BSD-3-Clause
# Texture and surface instructions.
cuda_remote_softgpu_libsgengine_la_SOURCES += \
	cuda_remote/softgpu/exec/texture/cube.c \
	cuda_remote/softgpu/exec/texture/cube.h \
	cuda_remote/softgpu/exec/texture/fetch.h \
	cuda_remote/softgpu/exec/texture/sample.c \
	cuda_remote/softgpu/exec/texture/sample.h \
	cuda_remote/softgpu/exec/texture/sample_plane.c \
	cuda_remote/softgpu/exec/texture/sample_plane.h \
	cuda_remote/softgpu/exec/texture/surface.c \
	cuda_remote/softgpu/exec/texture/texel.c \
	cuda_remote/softgpu/exec/texture/texel.h \
	cuda_remote/softgpu/exec/texture/texture.c \
	cuda_remote/softgpu/exec/texture/texture.h \
	cuda_remote/softgpu/exec/texture/texture_table.c \
	cuda_remote/softgpu/exec/texture/texture_table.h
