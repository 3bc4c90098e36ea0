# SPDX-License-Identifier: BSD-3-Clause
# Tests with faults on command. The fault channel is a list of transports of its own that a test links instead of
# rdma_channel/transports.c.
fault_transport = test/faults/fault_transport.c test/faults/fault_transport.h

check_PROGRAMS += test/faults/conformance test/faults/ch3_processes
test_faults_conformance_SOURCES = $(conformance_sources) $(fault_transport)
test_faults_conformance_LDADD = rdma_channel/libhrchannel.la
test_faults_ch3_processes_SOURCES = test/ch3/processes.c $(fault_transport)
test_faults_ch3_processes_LDADD = ch3/libhrch3.la

dist_check_SCRIPTS += test/faults/conformance.sh test/faults/conformance_shm.sh test/faults/conformance_tcp.sh \
	test/faults/ch3.sh
TESTS += test/faults/conformance_shm.sh test/faults/conformance_tcp.sh test/faults/ch3.sh
