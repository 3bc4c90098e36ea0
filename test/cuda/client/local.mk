# SPDX-License-Identifier: BSD-3-Clause
# The client library against servers that this folder plays.
check_PROGRAMS += test/cuda/client/hostile
dist_check_SCRIPTS += test/cuda/client/hostile.sh
TESTS += test/cuda/client/hostile.sh
test_cuda_client_hostile_SOURCES = test/cuda/client/hostile.c
test_cuda_client_hostile_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_client_hostile_LDADD = cuda_remote/client/libcuda.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la

if HAVE_CHECK
check_PROGRAMS += test/cuda/client/peer_plan
TESTS += test/cuda/client/peer_plan
test_cuda_client_peer_plan_SOURCES = test/cuda/client/peer_plan.c cuda_remote/client/peer/peer_plan.c
test_cuda_client_peer_plan_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) $(CHECK_CFLAGS)
test_cuda_client_peer_plan_LDADD = rdma_channel/base/libhrbase.la $(CHECK_LIBS)
endif
