# SPDX-License-Identifier: BSD-3-Clause
# The engine alone, over a memory of the tests' own.
if HAVE_CHECK
SOFTGPU_PTX_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS)
if SOFTGPU_X86_64
SOFTGPU_PTX_CPPFLAGS += -DSOFTGPU_X86_64
endif
check_LTLIBRARIES += test/cuda/softgpu/ptx/libengine.la
test_cuda_softgpu_ptx_libengine_la_SOURCES = test/cuda/softgpu/ptx/engine.c test/cuda/softgpu/ptx/engine.h
test_cuda_softgpu_ptx_libengine_la_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_libengine_la_LIBADD = cuda_remote/softgpu/libsgengine.la rdma_channel/base/libhrbase.la

SOFTGPU_PTX_TESTS = \
	test/cuda/softgpu/ptx/arithmetic \
	test/cuda/softgpu/ptx/async \
	test/cuda/softgpu/ptx/clusters \
	test/cuda/softgpu/ptx/collectives \
	test/cuda/softgpu/ptx/control \
	test/cuda/softgpu/ptx/defects \
	test/cuda/softgpu/ptx/device_launch \
	test/cuda/softgpu/ptx/directives \
	test/cuda/softgpu/ptx/linking \
	test/cuda/softgpu/ptx/matrix \
	test/cuda/softgpu/ptx/one_lane \
	test/cuda/softgpu/ptx/parameters \
	test/cuda/softgpu/ptx/progress \
	test/cuda/softgpu/ptx/rejects \
	test/cuda/softgpu/ptx/residency \
	test/cuda/softgpu/ptx/schedule \
	test/cuda/softgpu/ptx/spaces \
	test/cuda/softgpu/ptx/surfaces \
	test/cuda/softgpu/ptx/textures \
	test/cuda/softgpu/ptx/windows
check_PROGRAMS += $(SOFTGPU_PTX_TESTS)
TESTS += $(SOFTGPU_PTX_TESTS)
SOFTGPU_PTX_LDADD = test/cuda/softgpu/ptx/libengine.la $(CHECK_LIBS) -lm
test_cuda_softgpu_ptx_arithmetic_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_arithmetic_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -frounding-math
test_cuda_softgpu_ptx_arithmetic_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_control_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_control_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_spaces_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_spaces_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_collectives_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_collectives_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_parameters_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_parameters_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_async_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_async_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_clusters_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_clusters_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_one_lane_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_one_lane_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_progress_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_progress_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_defects_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_defects_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_matrix_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_matrix_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_rejects_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_rejects_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_schedule_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_schedule_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_residency_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_residency_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=clock_gettime
test_cuda_softgpu_ptx_residency_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_windows_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_windows_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_linking_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_linking_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_directives_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_directives_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_device_launch_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_device_launch_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_surfaces_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_surfaces_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_textures_CPPFLAGS = $(SOFTGPU_PTX_CPPFLAGS)
test_cuda_softgpu_ptx_textures_LDADD = $(SOFTGPU_PTX_LDADD)
endif
