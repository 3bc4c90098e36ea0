# SPDX-License-Identifier: BSD-3-Clause
# Modules, functions, libraries, linking, occupancy.
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/module/function.c \
	cuda_remote/softgpu/driver/module/image.c \
	cuda_remote/softgpu/driver/module/image.h \
	cuda_remote/softgpu/driver/module/launch_shape.c \
	cuda_remote/softgpu/driver/module/launch_shape.h \
	cuda_remote/softgpu/driver/module/library.c \
	cuda_remote/softgpu/driver/module/link.c \
	cuda_remote/softgpu/driver/module/module.c \
	cuda_remote/softgpu/driver/module/module.h \
	cuda_remote/softgpu/driver/module/occupancy.c \
	cuda_remote/softgpu/driver/module/occupancy.h
