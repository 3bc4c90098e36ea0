# SPDX-License-Identifier: BSD-3-Clause
# The lane operations, once for each instruction set.
softgpu_lane_sources = cuda_remote/softgpu/exec/lanes/lanes.c cuda_remote/softgpu/exec/lanes/lanes.h cuda_remote/softgpu/exec/lanes/memory_ops.c \
	cuda_remote/softgpu/exec/lanes/single_lane.c cuda_remote/softgpu/exec/lanes/matrix_ops.c cuda_remote/softgpu/exec/matrix.h \
	cuda_remote/softgpu/exec/lanes/lane_float.h cuda_remote/softgpu/exec/lanes/lane_half.h cuda_remote/softgpu/exec/lanes/lane_math.h
softgpu_op_sources = $(softgpu_tables:.table=.c)
softgpu_lane_cflags = $(softgpu_cflags) -fno-math-errno -fno-trapping-math $(HR_LANES_CFLAGS)
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_baseline.la
cuda_remote_softgpu_exec_liblanes_baseline_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_baseline_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_baseline_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=baseline
cuda_remote_softgpu_exec_liblanes_baseline_la_CFLAGS = $(softgpu_lane_cflags)
if SOFTGPU_X86_64
cuda_remote_softgpu_exec_libcontrol_la_CFLAGS += -mgeneral-regs-only
cuda_remote_softgpu_libsgengine_la_CPPFLAGS += -DSOFTGPU_X86_64
cuda_remote_softgpu_libsgengine_la_LIBADD += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
noinst_LTLIBRARIES += cuda_remote/softgpu/exec/liblanes_avx2.la cuda_remote/softgpu/exec/liblanes_avx512.la
cuda_remote_softgpu_exec_liblanes_avx2_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_avx2_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_avx2_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx2
cuda_remote_softgpu_exec_liblanes_avx2_la_CFLAGS = $(softgpu_lane_cflags) -mavx2 -mfma -mbmi2 -mno-vzeroupper
cuda_remote_softgpu_exec_liblanes_avx512_la_SOURCES = $(softgpu_lane_sources)
nodist_cuda_remote_softgpu_exec_liblanes_avx512_la_SOURCES = $(softgpu_op_sources)
cuda_remote_softgpu_exec_liblanes_avx512_la_CPPFLAGS = $(softgpu_cppflags) -DLANES_ISA=avx512
cuda_remote_softgpu_exec_liblanes_avx512_la_CFLAGS = $(softgpu_lane_cflags) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 \
	-mfma -mbmi2 -mprefer-vector-width=512 -mno-vzeroupper
endif
