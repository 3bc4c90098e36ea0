# SPDX-License-Identifier: BSD-3-Clause
# The worker against clients that no library of ours would be: packets made by hand, sent to a real daemon.
HR_SERVER_CHECKS = test/cuda/server/descriptors test/cuda/server/greedy test/cuda/server/hostile test/cuda/server/images test/cuda/server/links test/cuda/server/mirrors test/cuda/server/orphan test/cuda/server/output \
	test/cuda/server/placing test/cuda/server/session test/cuda/server/steady
HR_SERVER_RUNS = test/cuda/server/crowd.sh test/cuda/server/descriptors.sh test/cuda/server/hostile.sh test/cuda/server/images.sh test/cuda/server/links.sh test/cuda/server/orphan.sh test/cuda/server/output.sh \
	test/cuda/server/session.sh
check_PROGRAMS += $(HR_SERVER_CHECKS)
dist_check_SCRIPTS += $(HR_SERVER_RUNS)
TESTS += $(HR_SERVER_RUNS) test/cuda/server/mirrors test/cuda/server/placing

RAW_CLIENT = test/cuda/server/raw_client.c test/cuda/server/raw_client.h
RAW_LDADD = cuda_remote/door/libhrdoor.la ch3/libhrch3.la
SERVER_TEST_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
test_cuda_server_descriptors_SOURCES = test/cuda/server/descriptors.c $(RAW_CLIENT)
nodist_test_cuda_server_descriptors_SOURCES = cuda_remote/api/names.c
test_cuda_server_descriptors_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_descriptors_LDADD = $(RAW_LDADD)
test_cuda_server_greedy_SOURCES = test/cuda/server/greedy.c test/cuda/softgpu/driver.h
test_cuda_server_greedy_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_greedy_LDADD = cuda_remote/client/libcuda.la
test_cuda_server_hostile_SOURCES = test/cuda/server/hostile.c $(RAW_CLIENT)
nodist_test_cuda_server_hostile_SOURCES = cuda_remote/api/names.c
test_cuda_server_hostile_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_hostile_LDADD = $(RAW_LDADD)
test_cuda_server_images_SOURCES = test/cuda/server/images.c $(RAW_CLIENT)
nodist_test_cuda_server_images_SOURCES = cuda_remote/api/names.c
test_cuda_server_images_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_images_LDADD = $(RAW_LDADD)
test_cuda_server_links_SOURCES = test/cuda/server/links.c $(RAW_CLIENT)
nodist_test_cuda_server_links_SOURCES = cuda_remote/api/names.c
test_cuda_server_links_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_links_LDADD = $(RAW_LDADD)
test_cuda_server_orphan_SOURCES = test/cuda/server/orphan.c $(RAW_CLIENT)
nodist_test_cuda_server_orphan_SOURCES = cuda_remote/api/names.c
test_cuda_server_orphan_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_orphan_LDADD = $(RAW_LDADD)
test_cuda_server_session_SOURCES = test/cuda/server/session.c $(RAW_CLIENT)
nodist_test_cuda_server_session_SOURCES = cuda_remote/api/names.c
test_cuda_server_session_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_session_LDADD = $(RAW_LDADD)
test_cuda_server_output_SOURCES = test/cuda/server/output.c test/cuda/softgpu/driver.h
test_cuda_server_output_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_output_LDADD = cuda_remote/client/libcuda.la
test_cuda_server_steady_SOURCES = test/cuda/server/steady.c test/cuda/softgpu/driver.h
test_cuda_server_steady_CPPFLAGS = $(SERVER_TEST_CPPFLAGS)
test_cuda_server_steady_LDADD = cuda_remote/client/libcuda.la
test_cuda_server_mirrors_SOURCES = test/cuda/server/mirrors.c
test_cuda_server_mirrors_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_server_mirrors_LDADD = cuda_remote/server/libworker.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
test_cuda_server_placing_SOURCES = test/cuda/server/placing.c
test_cuda_server_placing_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
test_cuda_server_placing_LDADD = cuda_remote/server/libworker.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
