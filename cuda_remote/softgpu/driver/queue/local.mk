# SPDX-License-Identifier: BSD-3-Clause
# Streams as queues of commands, and the worker threads that run them.
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/queue/queue.c \
	cuda_remote/softgpu/driver/queue/queue.h
