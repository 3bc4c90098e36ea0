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

# Both ends in one process, one fault at every place where it can be; and a process that dies at a byte.
check_PROGRAMS += test/faults/grid test/faults/death
TESTS += test/faults/grid test/faults/death
test_faults_grid_SOURCES = test/faults/grid.c test/faults/relay.c test/faults/relay.h \
	test/faults/two_ends.c test/faults/two_ends.h test/channel/pair.c test/channel/pair.h $(fault_transport)
test_faults_grid_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=aligned_alloc
test_faults_grid_LDADD = rdma_channel/libhrchannel.la
test_faults_death_SOURCES = test/faults/death.c test/channel/pair.c test/channel/pair.h $(fault_transport)
test_faults_death_LDADD = rdma_channel/libhrchannel.la
