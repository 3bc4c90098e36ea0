# SPDX-License-Identifier: BSD-3-Clause
# Streams: handles, events, host functions, memory operations, kernel launches.
SOFTGPU_TWICE += \
	cuda_remote/softgpu/driver/stream/launch_twice.c \
	cuda_remote/softgpu/driver/stream/memop_twice.c \
	cuda_remote/softgpu/driver/stream/stream_attribute_twice.c \
	cuda_remote/softgpu/driver/stream/stream_twice.c
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/stream/default_stream.h \
	cuda_remote/softgpu/driver/stream/event.c \
	cuda_remote/softgpu/driver/stream/event.h \
	cuda_remote/softgpu/driver/stream/host_function.c \
	cuda_remote/softgpu/driver/stream/host_function.h \
	cuda_remote/softgpu/driver/stream/ipc_event.c \
	cuda_remote/softgpu/driver/stream/ipc_event.h \
	cuda_remote/softgpu/driver/stream/launch.c \
	cuda_remote/softgpu/driver/stream/launch.h \
	cuda_remote/softgpu/driver/stream/memop.c \
	cuda_remote/softgpu/driver/stream/memop.h \
	cuda_remote/softgpu/driver/stream/old_launch.c \
	cuda_remote/softgpu/driver/stream/stream.c \
	cuda_remote/softgpu/driver/stream/stream.h
