# SPDX-License-Identifier: BSD-3-Clause
# Libraries that a program opens by a path.
check_PROGRAMS += test/cuda/redirect/opens
test_cuda_redirect_opens_SOURCES = test/cuda/redirect/opens.c
test_cuda_redirect_opens_LDADD = -ldl
dist_check_SCRIPTS += test/cuda/redirect/redirect.sh
TESTS += test/cuda/redirect/redirect.sh
