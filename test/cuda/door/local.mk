# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += test/cuda/door/server_test test/cuda/door/door_test
TESTS += test/cuda/door/server_test test/cuda/door/door_test
test_cuda_door_server_test_SOURCES = test/cuda/door/server_test.c
test_cuda_door_server_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_door_server_test_LDADD = cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
test_cuda_door_door_test_SOURCES = test/cuda/door/door_test.c
test_cuda_door_door_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_door_door_test_LDADD = cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
endif
