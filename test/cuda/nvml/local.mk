# SPDX-License-Identifier: BSD-3-Clause
# The program has no path to a libcuda.so.1, so that the script chooses it. dist_check_SCRIPTS names the script.
check_PROGRAMS += test/cuda/nvml/nvml_test
dist_check_SCRIPTS += test/cuda/nvml/nvml_test.sh
TESTS += test/cuda/nvml/nvml_test.sh
test_cuda_nvml_nvml_test_SOURCES = test/cuda/nvml/nvml_test.c test/cuda/softgpu/driver.h
test_cuda_nvml_nvml_test_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_nvml_nvml_test_LDADD = cuda_remote/client/libcuda.la -ldl
# Without libtool's wrapper, which would put the build's client in front of LD_LIBRARY_PATH.
test_cuda_nvml_nvml_test_LDFLAGS = $(AM_LDFLAGS) -no-install
