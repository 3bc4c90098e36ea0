# SPDX-License-Identifier: BSD-3-Clause
dist_check_SCRIPTS += test/cuda/runtime/runtime_exports.sh
TESTS += test/cuda/runtime/runtime_exports.sh
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
endif
