# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += test/cuda/runtime/runtime_exports.sh
TESTS += test/cuda/runtime/runtime_exports.sh

check_PROGRAMS += test/cuda/runtime/runtime_without_driver
TESTS += test/cuda/runtime/runtime_without_driver
test_cuda_runtime_runtime_without_driver_SOURCES = test/cuda/runtime/runtime_without_driver.c
test_cuda_runtime_runtime_without_driver_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_runtime_runtime_without_driver_LDADD = cuda_remote/runtime/libcudart.la

if HAVE_CHECK
# A libcuda.so.1 that records what reaches it. The test program is linked with it, so that the runtime's dlopen of that
# name finds it loaded.
check_LTLIBRARIES += test/cuda/runtime/libcuda.la
test_cuda_runtime_libcuda_la_SOURCES = \
	test/cuda/runtime/double.c test/cuda/runtime/double.h test/cuda/runtime/double_rest.c
test_cuda_runtime_libcuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_runtime_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -shared -rpath /nowhere -version-info 1:0:0

check_PROGRAMS += test/cuda/runtime/runtime_calls
TESTS += test/cuda/runtime/runtime_calls
test_cuda_runtime_runtime_calls_SOURCES = test/cuda/runtime/runtime_calls.c
test_cuda_runtime_runtime_calls_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_runtime_runtime_calls_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_cuda_runtime_runtime_calls_LDADD = cuda_remote/runtime/libcudart.la test/cuda/runtime/libcuda.la $(CHECK_LIBS)

# A program as CUDA 12 compiles it, over the software GPU.
check_PROGRAMS += test/cuda/runtime/cuda12_calls
TESTS += test/cuda/runtime/cuda12_calls
test_cuda_runtime_cuda12_calls_SOURCES = test/cuda/runtime/cuda12_calls.c test/cuda/runtime/cuda12_abi.h
test_cuda_runtime_cuda12_calls_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_cuda_runtime_cuda12_calls_LDADD = cuda_remote/runtime/cuda12/libcudart.la cuda_remote/softgpu/libcuda.la \
	$(CHECK_LIBS) -ldl
endif

# Programs that nvcc builds as a user would, run over the software GPU.
dist_check_SCRIPTS += test/cuda/runtime/over_softgpu.sh test/cuda/runtime/programs_remote.sh \
	test/cuda/runtime/same_everywhere.sh
TESTS += test/cuda/runtime/programs_remote.sh test/cuda/runtime/same_everywhere.sh
CUTEST_LOG_COMPILER = $(LOG_COMPILER) $(srcdir)/test/cuda/runtime/over_softgpu.sh
runtime_program_sources = \
	test/cuda/runtime/programs/program.cuh \
	test/cuda/runtime/programs/arrays.cu \
	test/cuda/runtime/programs/async_copies.cu \
	test/cuda/runtime/programs/checked.cu \
	test/cuda/runtime/programs/clusters.cu \
	test/cuda/runtime/programs/copies.cu \
	test/cuda/runtime/programs/default_stream.cu \
	test/cuda/runtime/programs/device.cu \
	test/cuda/runtime/programs/device_heap.cu \
	test/cuda/runtime/programs/device_launch.cu \
	test/cuda/runtime/programs/device_limits.cu \
	test/cuda/runtime/programs/driver_handles.cu \
	test/cuda/runtime/programs/errors.cu \
	test/cuda/runtime/programs/graphs.cu \
	test/cuda/runtime/programs/machine_code_only.cu \
	test/cuda/runtime/programs/managed.cu \
	test/cuda/runtime/programs/managed_structures.cu \
	test/cuda/runtime/programs/managed_variables.cu \
	test/cuda/runtime/programs/printing.cu \
	test/cuda/runtime/programs/relocatable.cu \
	test/cuda/runtime/programs/separate.cu \
	test/cuda/runtime/programs/separate.cuh \
	test/cuda/runtime/programs/separate_library.cu \
	test/cuda/runtime/programs/separate_other.cu \
	test/cuda/runtime/programs/same_everywhere.cu \
	test/cuda/runtime/programs/streams.cu \
	test/cuda/runtime/programs/symbols.cu \
	test/cuda/runtime/programs/symbols.cuh \
	test/cuda/runtime/programs/symbols_other.cu \
	test/cuda/runtime/programs/templates.cu \
	test/cuda/runtime/programs/textures.cu
EXTRA_DIST += $(runtime_program_sources)
if HAVE_NVCC
runtime_programs = \
	test/cuda/runtime/programs/arrays.cutest \
	test/cuda/runtime/programs/async_copies.cutest \
	test/cuda/runtime/programs/checked.cutest \
	test/cuda/runtime/programs/clusters.cutest \
	test/cuda/runtime/programs/copies.cutest \
	test/cuda/runtime/programs/default_stream.cutest \
	test/cuda/runtime/programs/per_thread_stream.cutest \
	test/cuda/runtime/programs/relinked.cutest \
	test/cuda/runtime/programs/device.cutest \
	test/cuda/runtime/programs/device_heap.cutest \
	test/cuda/runtime/programs/device_limits.cutest \
	test/cuda/runtime/programs/driver_handles.cutest \
	test/cuda/runtime/programs/errors.cutest \
	test/cuda/runtime/programs/graphs.cutest \
	test/cuda/runtime/programs/machine_code_only.cutest \
	test/cuda/runtime/programs/managed.cutest \
	test/cuda/runtime/programs/managed_structures.cutest \
	test/cuda/runtime/programs/managed_variables.cutest \
	test/cuda/runtime/programs/printing.cutest \
	test/cuda/runtime/programs/relocatable.cutest \
	test/cuda/runtime/programs/separate.cutest \
	test/cuda/runtime/programs/device_launch.cutest \
	test/cuda/runtime/programs/same_everywhere.cutest \
	test/cuda/runtime/programs/streams.cutest \
	test/cuda/runtime/programs/symbols.cutest \
	test/cuda/runtime/programs/templates.cutest \
	test/cuda/runtime/programs/textures.cutest
CHECK_BINARIES += $(runtime_programs)
CLEANFILES += $(runtime_programs)
TESTS += $(runtime_programs)

RUNTIME_NVCC = $(MKDIR_P) $(@D) && $(NVCC) -std=c++17 -Wno-deprecated-gpu-targets \
	-I$(srcdir)/test/cuda/runtime/programs -o $@
# PTX alone: the software GPU takes no other form, and a test needs no code for a device that is not there.
RUNTIME_PTX = -arch=compute_75
test/cuda/runtime/programs/%.cutest: test/cuda/runtime/programs/%.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) $(RUNTIME_PTX) -cudart shared $<
$(runtime_programs): test/cuda/runtime/programs/program.cuh
test/cuda/runtime/programs/symbols.cutest: test/cuda/runtime/programs/symbols.cu \
		test/cuda/runtime/programs/symbols_other.cu test/cuda/runtime/programs/symbols.cuh
	$(AM_V_GEN)$(RUNTIME_NVCC) $(RUNTIME_PTX) -cudart shared $(srcdir)/test/cuda/runtime/programs/symbols.cu \
		$(srcdir)/test/cuda/runtime/programs/symbols_other.cu
test/cuda/runtime/programs/per_thread_stream.cutest: test/cuda/runtime/programs/default_stream.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) $(RUNTIME_PTX) -cudart shared --default-stream per-thread \
		$(srcdir)/test/cuda/runtime/programs/default_stream.cu
test/cuda/runtime/programs/clusters.cutest: test/cuda/runtime/programs/clusters.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) -arch=compute_90 -cudart shared $(srcdir)/test/cuda/runtime/programs/clusters.cu
test/cuda/runtime/programs/machine_code_only.cutest: test/cuda/runtime/programs/machine_code_only.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) -gencode arch=compute_80,code=sm_80 -cudart shared \
		$(srcdir)/test/cuda/runtime/programs/machine_code_only.cu
test/cuda/runtime/programs/relocatable.cutest: test/cuda/runtime/programs/relocatable.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) -rdc=true -gencode arch=compute_75,code=[sm_75,compute_75] \
		-gencode arch=compute_86,code=[sm_86,compute_86] -cudart shared \
		$(srcdir)/test/cuda/runtime/programs/relocatable.cu
# Several units and a library of device code: all their PTX is linked when the program is loaded.
separate = $(srcdir)/test/cuda/runtime/programs/separate
test/cuda/runtime/programs/separate.cutest: $(separate).cu $(separate).cuh $(separate)_library.cu $(separate)_other.cu
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) -std=c++17 -rdc=true $(RUNTIME_PTX) -lib -o $(@D)/libseparate.a \
		$(separate)_library.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) -rdc=true $(RUNTIME_PTX) -cudart shared $(separate).cu $(separate)_other.cu \
		-L$(@D) -lseparate
CLEANFILES += test/cuda/runtime/programs/libseparate.a
test/cuda/runtime/programs/device_launch.cutest: test/cuda/runtime/programs/device_launch.cu
	$(AM_V_GEN)$(RUNTIME_NVCC) -rdc=true $(RUNTIME_PTX) -cudart shared $(srcdir)/test/cuda/runtime/programs/device_launch.cu \
		-lcudadevrt
# As a program that cannot be had with -cudart shared is relinked.
test/cuda/runtime/programs/relinked.cutest: test/cuda/runtime/programs/copies.cu cuda_remote/runtime/libcudart_static.a
	$(AM_V_GEN)$(RUNTIME_NVCC) $(RUNTIME_PTX) -cudart none $(srcdir)/test/cuda/runtime/programs/copies.cu \
		-Lcuda_remote/runtime -lcudart_static -ldl -lpthread $(HR_SANITIZE:%=-Xcompiler %)
endif
