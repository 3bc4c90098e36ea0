# SPDX-License-Identifier: BSD-3-Clause

# Copies of rows that lie close together.
check_PROGRAMS += test/channel/copy_rows
TESTS += test/channel/copy_rows
test_channel_copy_rows_SOURCES = test/channel/copy_rows.c
test_channel_copy_rows_LDADD = rdma_channel/base/libhrbase.la

if HAVE_CHECK
# Single copy over shared memory, step by step; the system calls are the test's.
check_PROGRAMS += test/channel/shm_grant
TESTS += test/channel/shm_grant
test_channel_shm_grant_SOURCES = test/channel/shm_grant.c
test_channel_shm_grant_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_shm_grant_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
test_channel_shm_grant_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# Peers that come in another order than set-up has it.
check_PROGRAMS += test/channel/anew
TESTS += test/channel/anew
test_channel_anew_SOURCES = test/channel/anew.c
test_channel_anew_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_anew_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# TCP streams within a host.
check_PROGRAMS += test/channel/tcp_within_host
TESTS += test/channel/tcp_within_host
test_channel_tcp_within_host_SOURCES = test/channel/tcp_within_host.c
test_channel_tcp_within_host_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_tcp_within_host_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=setsockopt
test_channel_tcp_within_host_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# Host names and messages from peers.
check_PROGRAMS += test/channel/foreign_text
TESTS += test/channel/foreign_text
test_channel_foreign_text_SOURCES = test/channel/foreign_text.c
test_channel_foreign_text_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_foreign_text_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# Encrypted records, and what a man in the middle does to them.
check_PROGRAMS += test/channel/secret_test
TESTS += test/channel/secret_test
test_channel_secret_test_SOURCES = test/channel/secret_test.c
test_channel_secret_test_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_secret_test_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# What ch3 asks of a connection.
check_PROGRAMS += test/channel/in_place
TESTS += test/channel/in_place
test_channel_in_place_SOURCES = test/channel/in_place.c
test_channel_in_place_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_in_place_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
check_PROGRAMS += test/channel/upper
TESTS += test/channel/upper
test_channel_upper_SOURCES = test/channel/upper.c
test_channel_upper_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_upper_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev,--wrap=epoll_wait
test_channel_upper_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# Both ends of a connection over shared memory in one process: its memory, and its end while a single copy is under way.
shm_ends = test/channel/shm_ends.c test/channel/shm_ends.h
check_PROGRAMS += test/channel/shm_flood test/channel/shm_numa test/channel/shm_pages test/channel/shm_records \
	test/channel/shm_shutdown
TESTS += test/channel/shm_flood test/channel/shm_numa test/channel/shm_pages test/channel/shm_records \
	test/channel/shm_shutdown
test_channel_shm_flood_SOURCES = test/channel/shm_flood.c $(shm_ends)
test_channel_shm_flood_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_shm_flood_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv
test_channel_shm_flood_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
test_channel_shm_numa_SOURCES = test/channel/shm_numa.c $(shm_ends)
test_channel_shm_numa_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS) $(NUMA_CFLAGS)
test_channel_shm_numa_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=get_mempolicy
test_channel_shm_numa_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
test_channel_shm_pages_SOURCES = test/channel/shm_pages.c $(shm_ends)
test_channel_shm_pages_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_shm_pages_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
test_channel_shm_records_SOURCES = test/channel/shm_records.c $(shm_ends)
test_channel_shm_records_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_shm_records_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
test_channel_shm_shutdown_SOURCES = test/channel/shm_shutdown.c $(shm_ends)
test_channel_shm_shutdown_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_shm_shutdown_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev
test_channel_shm_shutdown_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)
endif
check_PROGRAMS += test/channel/conformance
# test/faults builds it once more, through the fault channel.
conformance_sources = \
	test/channel/case_data.c \
	test/channel/case_demand.c \
	test/channel/case_end.c \
	test/channel/case_long.c \
	test/channel/case_several.c \
	test/channel/case_setup.c \
	test/channel/case_sleep.c \
	test/channel/conformance.c \
	test/channel/pair.c test/channel/pair.h
test_channel_conformance_SOURCES = $(conformance_sources)
test_channel_conformance_LDADD = rdma_channel/libhrchannel.la
# The same with keys on every connection.
check_PROGRAMS += test/channel/conformance_encrypted
test_channel_conformance_encrypted_SOURCES = $(conformance_sources) test/channel/with_keys.c
test_channel_conformance_encrypted_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=hr_channel_connect
test_channel_conformance_encrypted_LDADD = rdma_channel/libhrchannel.la

check_PROGRAMS += test/channel/shm_several
TESTS += test/channel/shm_several
test_channel_shm_several_SOURCES = test/channel/shm_several.c test/channel/shm_kit.c test/channel/shm_kit.h \
	test/channel/pair.c test/channel/pair.h
test_channel_shm_several_LDADD = rdma_channel/libhrchannel.la

check_PROGRAMS += test/channel/shm_single
TESTS += test/channel/shm_single
test_channel_shm_single_SOURCES = test/channel/shm_single.c test/channel/shm_kit.c test/channel/shm_kit.h \
	test/channel/pair.c test/channel/pair.h
test_channel_shm_single_LDADD = rdma_channel/libhrchannel.la

conformance_scripts = \
	test/channel/conformance_shm.sh \
	test/channel/conformance_shm_ring.sh \
	test/channel/conformance_tcp.sh \
	test/channel/conformance_tcp_encrypted.sh
dist_check_SCRIPTS += $(conformance_scripts) test/channel/conformance_verbs.sh
TESTS += $(conformance_scripts)

# A thousand connections in one process. The linker lets the test count the channel's system calls.
check_PROGRAMS += test/channel/many
test_channel_many_SOURCES = test/channel/many.c test/channel/pair.c test/channel/pair.h
test_channel_many_LDADD = rdma_channel/libhrchannel.la
test_channel_many_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv,--wrap=recvmsg,--wrap=epoll_wait
dist_check_SCRIPTS += test/channel/many_shm.sh test/channel/many_tcp.sh
TESTS += test/channel/many_shm.sh test/channel/many_tcp.sh

# Two hosts, a cable that can be cut.
check_PROGRAMS += test/channel/between_hosts
test_channel_between_hosts_SOURCES = test/channel/between_hosts.c test/channel/pair.c test/channel/pair.h
test_channel_between_hosts_LDADD = rdma_channel/libhrchannel.la
dist_check_SCRIPTS += test/channel/between_hosts.sh
TESTS += test/channel/between_hosts.sh

check_PROGRAMS += test/channel/forking
test_channel_forking_SOURCES = test/channel/forking.c
test_channel_forking_LDADD = rdma_channel/libhrchannel.la
test_channel_forking_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=close
TESTS += test/channel/forking

check_PROGRAMS += test/channel/crossing
test_channel_crossing_SOURCES = test/channel/crossing.c test/channel/pair.c test/channel/pair.h
test_channel_crossing_LDADD = rdma_channel/libhrchannel.la
test_channel_crossing_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=socket,--wrap=sendmsg
TESTS += test/channel/crossing
