# SPDX-License-Identifier: BSD-3-Clause
# Asynchronous copies, mbarriers, tensor copies, clusters, waits for wgmma.
cuda_remote_softgpu_libsgengine_la_SOURCES += \
	cuda_remote/softgpu/exec/async/async.c \
	cuda_remote/softgpu/exec/async/async.h \
	cuda_remote/softgpu/exec/async/cluster.c \
	cuda_remote/softgpu/exec/async/cluster.h \
	cuda_remote/softgpu/exec/async/mbarrier.c \
	cuda_remote/softgpu/exec/async/mbarrier.h \
	cuda_remote/softgpu/exec/async/tensor.c \
	cuda_remote/softgpu/exec/async/tensor.h \
	cuda_remote/softgpu/exec/async/warpgroup.c \
	cuda_remote/softgpu/exec/async/warpgroup.h
