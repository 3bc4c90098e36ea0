# SPDX-License-Identifier: BSD-3-Clause
# The daemon and its workers from the outside, with the echo worker and knock of test/cuda/door.
dist_check_SCRIPTS += test/cuda/daemon/confinement_test.sh test/cuda/daemon/config_test.sh \
	test/cuda/daemon/ending_test.sh test/cuda/daemon/gpus_test.sh test/cuda/daemon/limits_test.sh test/cuda/daemon/metrics_test.sh \
	test/cuda/daemon/report_test.sh
EXTRA_DIST += test/cuda/daemon/activate.py test/cuda/daemon/journal.py test/cuda/daemon/metrics.py test/cuda/daemon/scan.py
TESTS += test/cuda/daemon/confinement_test.sh test/cuda/daemon/config_test.sh \
	test/cuda/daemon/ending_test.sh test/cuda/daemon/gpus_test.sh test/cuda/daemon/limits_test.sh test/cuda/daemon/metrics_test.sh \
	test/cuda/daemon/report_test.sh

if HAVE_CHECK
check_PROGRAMS += test/cuda/daemon/pool_test
TESTS += test/cuda/daemon/pool_test
test_cuda_daemon_pool_test_SOURCES = test/cuda/daemon/pool_test.c
test_cuda_daemon_pool_test_CFLAGS = $(HR_CFLAGS) $(CHECK_CFLAGS)
test_cuda_daemon_pool_test_LDADD = cuda_remote/server/daemon/libhrdaemon.la cuda_remote/door/libhrdoor.la $(CHECK_LIBS)
endif
