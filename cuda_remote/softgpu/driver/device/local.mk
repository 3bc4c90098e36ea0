# SPDX-License-Identifier: BSD-3-Clause
# Devices: attributes, resources, what a program can ask about them.
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/device/device.c \
	cuda_remote/softgpu/driver/device/device.h \
	cuda_remote/softgpu/driver/device/device_attributes.c \
	cuda_remote/softgpu/driver/device/device_calls.c \
	cuda_remote/softgpu/driver/device/device_queries.c \
	cuda_remote/softgpu/driver/device/device_resource.c \
	cuda_remote/softgpu/driver/device/device_resource.h \
	cuda_remote/softgpu/driver/device/device_settings.c
