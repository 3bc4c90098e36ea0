# SPDX-License-Identifier: BSD-3-Clause
# The engine alone, over a memory of the tests' own.
if HAVE_CHECK
check_LTLIBRARIES += test/cuda/softgpu/ptx/libengine.la
test_cuda_softgpu_ptx_libengine_la_SOURCES = test/cuda/softgpu/ptx/engine.c test/cuda/softgpu/ptx/engine.h
test_cuda_softgpu_ptx_libengine_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS)
test_cuda_softgpu_ptx_libengine_la_LIBADD = cuda_remote/softgpu/libsgengine.la rdma_channel/base/libhrbase.la

SOFTGPU_PTX_TESTS = test/cuda/softgpu/ptx/arithmetic test/cuda/softgpu/ptx/control test/cuda/softgpu/ptx/spaces \
	test/cuda/softgpu/ptx/rejects test/cuda/softgpu/ptx/windows
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/linking test/cuda/softgpu/ptx/directives
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/device_launch
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/surfaces test/cuda/softgpu/ptx/textures
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/matrix
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/async
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/progress
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/parameters
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/defects
SOFTGPU_PTX_TESTS += test/cuda/softgpu/ptx/collectives
check_PROGRAMS += $(SOFTGPU_PTX_TESTS)
TESTS += $(SOFTGPU_PTX_TESTS)
SOFTGPU_PTX_LDADD = test/cuda/softgpu/ptx/libengine.la $(CHECK_LIBS) -lm
test_cuda_softgpu_ptx_arithmetic_SOURCES = test/cuda/softgpu/ptx/arithmetic.c
test_cuda_softgpu_ptx_arithmetic_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_arithmetic_CFLAGS = $(AM_CFLAGS) -ffp-contract=off -frounding-math
test_cuda_softgpu_ptx_arithmetic_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_control_SOURCES = test/cuda/softgpu/ptx/control.c
test_cuda_softgpu_ptx_control_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_control_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_spaces_SOURCES = test/cuda/softgpu/ptx/spaces.c
test_cuda_softgpu_ptx_spaces_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_spaces_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_collectives_SOURCES = test/cuda/softgpu/ptx/collectives.c
test_cuda_softgpu_ptx_collectives_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_collectives_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_parameters_SOURCES = test/cuda/softgpu/ptx/parameters.c
test_cuda_softgpu_ptx_parameters_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_parameters_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_async_SOURCES = test/cuda/softgpu/ptx/async.c
test_cuda_softgpu_ptx_async_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_async_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_progress_SOURCES = test/cuda/softgpu/ptx/progress.c
test_cuda_softgpu_ptx_progress_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_progress_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_defects_SOURCES = test/cuda/softgpu/ptx/defects.c
test_cuda_softgpu_ptx_defects_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_defects_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_matrix_SOURCES = test/cuda/softgpu/ptx/matrix.c
test_cuda_softgpu_ptx_matrix_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_matrix_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_rejects_SOURCES = test/cuda/softgpu/ptx/rejects.c
test_cuda_softgpu_ptx_rejects_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_rejects_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_windows_SOURCES = test/cuda/softgpu/ptx/windows.c
test_cuda_softgpu_ptx_windows_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_windows_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_linking_SOURCES = test/cuda/softgpu/ptx/linking.c
test_cuda_softgpu_ptx_linking_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_linking_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_directives_SOURCES = test/cuda/softgpu/ptx/directives.c
test_cuda_softgpu_ptx_directives_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_directives_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_device_launch_SOURCES = test/cuda/softgpu/ptx/device_launch.c
test_cuda_softgpu_ptx_device_launch_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_device_launch_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_surfaces_SOURCES = test/cuda/softgpu/ptx/surfaces.c
test_cuda_softgpu_ptx_surfaces_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_surfaces_LDADD = $(SOFTGPU_PTX_LDADD)
test_cuda_softgpu_ptx_textures_SOURCES = test/cuda/softgpu/ptx/textures.c
test_cuda_softgpu_ptx_textures_CPPFLAGS = $(test_cuda_softgpu_ptx_libengine_la_CPPFLAGS)
test_cuda_softgpu_ptx_textures_LDADD = $(SOFTGPU_PTX_LDADD)
endif
