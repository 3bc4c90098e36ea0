# SPDX-License-Identifier: BSD-3-Clause
# A test of one file has its name, and needs no list of sources.
noinst_HEADERS += test/cuda/softgpu/driver.h test/cuda/softgpu/graph.h test/cuda/softgpu/host_to_host.h test/cuda/softgpu/line.h
SOFTGPU_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

# The driver's tests run over a libcuda whose engine is a double (engine_double.c).
check_LTLIBRARIES += test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_libcuda_double_la_SOURCES = test/cuda/softgpu/engine_double.c \
	cuda_remote/softgpu/exec/occupancy.c \
	cuda_remote/softgpu/exec/texture/texture_table.c
test_cuda_softgpu_libcuda_double_la_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_libcuda_double_la_LDFLAGS = $(AM_LDFLAGS) -avoid-version -rpath /nowhere -no-undefined
test_cuda_softgpu_libcuda_double_la_LIBADD = cuda_remote/softgpu/libsgdriver.la cuda_remote/api/libcuapi.la \
	rdma_channel/base/libhrbase.la

SOFTGPU_DRIVER_TESTS = \
	test/cuda/softgpu/batches \
	test/cuda/softgpu/capabilities \
	test/cuda/softgpu/captures \
	test/cuda/softgpu/default_streams \
	test/cuda/softgpu/driver_logs \
	test/cuda/softgpu/graph_launches \
	test/cuda/softgpu/graph_memory \
	test/cuda/softgpu/graph_updates \
	test/cuda/softgpu/graphs \
	test/cuda/softgpu/green_contexts \
	test/cuda/softgpu/arrays \
	test/cuda/softgpu/images \
	test/cuda/softgpu/launches \
	test/cuda/softgpu/lifetimes \
	test/cuda/softgpu/limits \
	test/cuda/softgpu/bus \
	test/cuda/softgpu/memory \
	test/cuda/softgpu/memory_operations \
	test/cuda/softgpu/old_calls \
	test/cuda/softgpu/per_thread \
	test/cuda/softgpu/placed \
	test/cuda/softgpu/processes \
	test/cuda/softgpu/streams \
	test/cuda/softgpu/virtual
check_PROGRAMS += $(SOFTGPU_DRIVER_TESTS)
TESTS += $(SOFTGPU_DRIVER_TESTS)
test_cuda_softgpu_arrays_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_arrays_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_default_streams_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_default_streams_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_images_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS)
test_cuda_softgpu_images_LDADD = test/cuda/softgpu/libcuda_double.la $(ZSTD_LIBS) $(LZ4_LIBS)
test_cuda_softgpu_launches_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_launches_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_lifetimes_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_lifetimes_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_limits_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_limits_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_bus_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_bus_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_memory_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_memory_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_per_thread_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_per_thread_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_placed_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_placed_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_streams_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_streams_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_processes_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_processes_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_virtual_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_virtual_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_batches_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_batches_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_captures_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_captures_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_graph_launches_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_graph_launches_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_graph_memory_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_graph_memory_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_graph_updates_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_graph_updates_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_graphs_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_graphs_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_memory_operations_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_memory_operations_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_capabilities_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_capabilities_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_driver_logs_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_driver_logs_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_green_contexts_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_green_contexts_LDADD = test/cuda/softgpu/libcuda_double.la
test_cuda_softgpu_old_calls_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_softgpu_old_calls_LDADD = test/cuda/softgpu/libcuda_double.la

# The whole software GPU.
check_PROGRAMS += test/cuda/softgpu/linking test/cuda/softgpu/load_image test/cuda/softgpu/programs
dist_check_SCRIPTS += test/cuda/softgpu/images_by_nvcc.sh
TESTS += test/cuda/softgpu/linking test/cuda/softgpu/programs test/cuda/softgpu/images_by_nvcc.sh
test_cuda_softgpu_linking_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_linking_LDADD = cuda_remote/softgpu/libcuda.la
check_PROGRAMS += test/cuda/softgpu/bounds test/cuda/softgpu/references test/cuda/softgpu/tensor_maps
TESTS += test/cuda/softgpu/bounds test/cuda/softgpu/references test/cuda/softgpu/tensor_maps
test_cuda_softgpu_bounds_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_bounds_LDADD = cuda_remote/softgpu/libcuda.la
test_cuda_softgpu_tensor_maps_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_tensor_maps_LDADD = cuda_remote/softgpu/libcuda.la
test_cuda_softgpu_load_image_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_load_image_LDADD = cuda_remote/softgpu/libcuda.la
test_cuda_softgpu_programs_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_programs_LDADD = cuda_remote/softgpu/libcuda.la
test_cuda_softgpu_references_CPPFLAGS = $(SOFTGPU_TEST_CPPFLAGS)
test_cuda_softgpu_references_LDADD = cuda_remote/softgpu/libcuda.la
dist_check_SCRIPTS += test/cuda/softgpu/nvrtc.sh test/cuda/softgpu/toolkit.sh
TESTS += test/cuda/softgpu/nvrtc.sh test/cuda/softgpu/toolkit.sh
EXTRA_DIST += test/cuda/softgpu/toolkit.cpp
include test/cuda/softgpu/ptx/local.mk
include test/cuda/softgpu/vectors/local.mk
