# SPDX-License-Identifier: BSD-3-Clause
# Streams as queues of commands, the worker threads that run them, and captures.
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/queue/capture.c \
	cuda_remote/softgpu/driver/queue/capture.h \
	cuda_remote/softgpu/driver/queue/queue.c \
	cuda_remote/softgpu/driver/queue/queue.h
