# SPDX-License-Identifier: BSD-3-Clause
# Drawn sequences of work on the GPUs of several servers, and on those of one.
check_PROGRAMS += test/cuda/mixed/mixed test/cuda/mixed/mixed_local
dist_check_SCRIPTS += test/cuda/mixed/mixed.sh
TESTS += test/cuda/mixed/mixed.sh
MIXED_SOURCES = test/cuda/mixed/mixed.c test/cuda/mixed/operations.c test/cuda/mixed/order.c test/cuda/mixed/mixed.h
test_cuda_mixed_mixed_SOURCES = $(MIXED_SOURCES)
test_cuda_mixed_mixed_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_mixed_mixed_LDADD = cuda_remote/client/libcuda.la
test_cuda_mixed_mixed_local_SOURCES = $(MIXED_SOURCES)
test_cuda_mixed_mixed_local_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_mixed_mixed_local_LDADD = test/cuda/softgpu/libcuda_double.la
