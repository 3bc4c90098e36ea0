# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += test/cuda/api/exports_test
TESTS += test/cuda/api/exports_test
test_cuda_api_exports_test_SOURCES = test/cuda/api/exports_test.c
test_cuda_api_exports_test_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_api_exports_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_api_exports_test_LDADD = \
	cuda_remote/api/libcuapi.la rdma_channel/base/libhrbase.la $(CHECK_LIBS)
endif

dist_check_SCRIPTS += test/cuda/api/generator_test.sh
TESTS += test/cuda/api/generator_test.sh
