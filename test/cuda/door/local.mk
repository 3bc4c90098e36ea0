# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CHECK
check_PROGRAMS += test/cuda/door/server_name_test test/cuda/door/door_test test/cuda/door/door_users_test
TESTS += test/cuda/door/server_name_test test/cuda/door/door_test test/cuda/door/door_users_test
test_cuda_door_server_name_test_SOURCES = test/cuda/door/server_name_test.c
test_cuda_door_server_name_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_door_server_name_test_LDADD = cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
test_cuda_door_door_test_SOURCES = \
	test/cuda/door/bad_clients.c \
	test/cuda/door/bad_servers.c \
	test/cuda/door/door_kit.c \
	test/cuda/door/door_kit.h \
	test/cuda/door/door_test.c \
	test/cuda/door/encryption.c \
	test/cuda/door/entering.c \
	test/cuda/door/keys.c \
	test/cuda/door/listening.c
test_cuda_door_door_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_door_door_test_LDADD = cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
test_cuda_door_door_users_test_SOURCES = \
	test/cuda/door/door_kit.c \
	test/cuda/door/door_kit.h \
	test/cuda/door/door_users_test.c
test_cuda_door_door_users_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_door_door_users_test_LDADD = cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
endif

# The daemon with a worker that echoes, and a client to knock at it with.
check_PROGRAMS += test/cuda/door/headraced-echo test/cuda/door/knock test/cuda/door/munge_rogue
test_cuda_door_munge_rogue_SOURCES = test/cuda/door/munge_rogue.c
test_cuda_door_munge_rogue_LDADD = cuda_remote/door/libhrdoor.la
test_cuda_door_headraced_echo_SOURCES = test/cuda/door/echo_worker.c
test_cuda_door_headraced_echo_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rc_door_peer_send
test_cuda_door_headraced_echo_LDADD = cuda_remote/server/daemon/libhrdaemon.la
test_cuda_door_knock_SOURCES = test/cuda/door/knock.c
test_cuda_door_knock_LDADD = cuda_remote/door/libhrdoor.la
dist_check_SCRIPTS += test/cuda/door/daemon_users_test.sh
dist_check_SCRIPTS += test/cuda/door/daemon_test.sh test/cuda/door/munge_test.sh test/cuda/door/run_test.sh test/cuda/door/two_hosts_test.sh
EXTRA_DIST += test/cuda/door/daemon.sh test/cuda/door/two_hosts.sh
TESTS += test/cuda/door/daemon_users_test.sh
TESTS += test/cuda/door/daemon_test.sh test/cuda/door/munge_test.sh test/cuda/door/run_test.sh test/cuda/door/two_hosts_test.sh
