# SPDX-License-Identifier: BSD-3-Clause
# Contexts: life, state, primary and green contexts, the objects a context owns.
cuda_remote_softgpu_libsgdriver_la_SOURCES += \
	cuda_remote/softgpu/driver/context/attach.c \
	cuda_remote/softgpu/driver/context/context.c \
	cuda_remote/softgpu/driver/context/context.h \
	cuda_remote/softgpu/driver/context/context_event.c \
	cuda_remote/softgpu/driver/context/context_state.c \
	cuda_remote/softgpu/driver/context/coredump.c \
	cuda_remote/softgpu/driver/context/green.c \
	cuda_remote/softgpu/driver/context/green.h \
	cuda_remote/softgpu/driver/context/owned.c \
	cuda_remote/softgpu/driver/context/owned.h \
	cuda_remote/softgpu/driver/context/primary.c
