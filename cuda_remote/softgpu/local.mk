# SPDX-License-Identifier: BSD-3-Clause
include cuda_remote/softgpu/ptx/local.mk
include cuda_remote/softgpu/exec/local.mk
include cuda_remote/softgpu/driver/local.mk

# The software GPU as programs load it. It stays loaded once it is: worker threads run its code.
softgpudir = $(pkglibdir)/softgpu
softgpu_LTLIBRARIES = cuda_remote/softgpu/libcuda.la
cuda_remote_softgpu_libcuda_la_SOURCES =
cuda_remote_softgpu_libcuda_la_LIBADD = cuda_remote/softgpu/libsgdriver.la cuda_remote/softgpu/libsgengine.la \
	cuda_remote/api/libcuapi.la rdma_channel/base/libhrbase.la
cuda_remote_softgpu_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -shared -version-info 1:0:0 -no-undefined -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/cuda_remote/softgpu/libcuda.map
EXTRA_cuda_remote_softgpu_libcuda_la_DEPENDENCIES = cuda_remote/softgpu/libcuda.map
EXTRA_DIST += cuda_remote/softgpu/libcuda.map
dist_man_MANS += docs/man/headrace-softgpu.7

# Preloaded into programs that use NVIDIA's run-time compiler or linker. nodelete: programs keep its functions' addresses.
softgpu_LTLIBRARIES += cuda_remote/softgpu/libheadrace-nvrtc.la
cuda_remote_softgpu_libheadrace_nvrtc_la_SOURCES = \
	cuda_remote/softgpu/nvrtc/driver.h cuda_remote/softgpu/nvrtc/driver.c \
	cuda_remote/softgpu/nvrtc/toolkit.h cuda_remote/softgpu/nvrtc/toolkit.c \
	cuda_remote/softgpu/nvrtc/nvrtc.c cuda_remote/softgpu/nvrtc/jitlink.c
cuda_remote_softgpu_libheadrace_nvrtc_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -avoid-version -Wl,-z,nodelete
cuda_remote_softgpu_libheadrace_nvrtc_la_LIBADD = rdma_channel/base/libhrbase.la -ldl
