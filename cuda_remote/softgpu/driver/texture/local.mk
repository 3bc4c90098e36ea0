# SPDX-License-Identifier: BSD-3-Clause
# Arrays, textures, surfaces, tensor maps.
SOFTGPU_TWICE += \
	cuda_remote/softgpu/driver/texture/array_twice.c
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/texture/array.c \
	cuda_remote/softgpu/driver/texture/array.h \
	cuda_remote/softgpu/driver/texture/array_format.c \
	cuda_remote/softgpu/driver/texture/array_format.h \
	cuda_remote/softgpu/driver/texture/tensor_map.c \
	cuda_remote/softgpu/driver/texture/texture_object.c \
	cuda_remote/softgpu/driver/texture/texture_reference.c \
	cuda_remote/softgpu/driver/texture/texture_resource.c \
	cuda_remote/softgpu/driver/texture/texture_resource.h
