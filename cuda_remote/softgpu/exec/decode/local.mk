# SPDX-License-Identifier: BSD-3-Clause
# PTX statements to executable code.
cuda_remote_softgpu_libsgengine_la_SOURCES += \
	cuda_remote/softgpu/exec/decode/decode.c \
	cuda_remote/softgpu/exec/decode/decode.h \
	cuda_remote/softgpu/exec/decode/decode_async.c \
	cuda_remote/softgpu/exec/decode/decode_check.c \
	cuda_remote/softgpu/exec/decode/decode_check.h \
	cuda_remote/softgpu/exec/decode/decode_cluster.c \
	cuda_remote/softgpu/exec/decode/decode_compare.c \
	cuda_remote/softgpu/exec/decode/decode_control.c \
	cuda_remote/softgpu/exec/decode/decode_matrix.c \
	cuda_remote/softgpu/exec/decode/decode_memory.c \
	cuda_remote/softgpu/exec/decode/decode_special.c \
	cuda_remote/softgpu/exec/decode/decode_tensor.c \
	cuda_remote/softgpu/exec/decode/decode_texture.c \
	cuda_remote/softgpu/exec/decode/decode_video.c
