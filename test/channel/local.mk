# SPDX-License-Identifier: BSD-3-Clause

if HAVE_CHECK
# The verbs rings' protocols, on plain memory; need no libibverbs.
check_PROGRAMS += test/channel/verbs_flat test/channel/verbs_pull test/channel/verbs_ring
TESTS += test/channel/verbs_flat test/channel/verbs_pull test/channel/verbs_ring
test_channel_verbs_flat_SOURCES = test/channel/verbs_flat.c ib/ib_flat.c ib/ib_flat.h ib/ib_ring.c ib/ib_ring.h
test_channel_verbs_flat_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_verbs_flat_LDADD = $(CHECK_LIBS)
test_channel_verbs_pull_SOURCES = test/channel/verbs_pull.c ib/ib_offer.c ib/ib_offer.h ib/ib_pull.c ib/ib_pull.h
test_channel_verbs_pull_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_verbs_pull_LDADD = $(CHECK_LIBS)
test_channel_verbs_ring_SOURCES = test/channel/verbs_ring.c ib/ib_ring.c ib/ib_ring.h
test_channel_verbs_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_verbs_ring_LDADD = $(CHECK_LIBS)

# The registration cache with registering of the test's own; needs no libibverbs either.
check_PROGRAMS += test/channel/verbs_cache
TESTS += test/channel/verbs_cache
test_channel_verbs_cache_SOURCES = test/channel/verbs_cache.c test/channel/verbs_cache.h \
	test/channel/verbs_cache_forking.c test/channel/verbs_cache_going.c \
	test/channel/verbs_cache_keeping.c test/channel/verbs_cache_kit.c \
	ib/ib_cache.c ib/ib_cache.h ib/ib_maps.c ib/ib_maps.h ib/ib_memory.c ib/ib_memory.h ib/ib_register.h
test_channel_verbs_cache_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_verbs_cache_LDADD = rdma_channel/base/libhrbase.la $(CHECK_LIBS)

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

# What ch3 asks of a connection.
check_PROGRAMS += test/channel/upper
TESTS += test/channel/upper
test_channel_upper_SOURCES = test/channel/upper.c
test_channel_upper_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_upper_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=process_vm_readv,--wrap=process_vm_writev,--wrap=epoll_wait
test_channel_upper_LDADD = rdma_channel/libhrchannel.la $(CHECK_LIBS)

# Both ends of a connection over shared memory in one process: its memory, and its end while a single copy is under way.
shm_ends = test/channel/shm_ends.c test/channel/shm_ends.h
check_PROGRAMS += test/channel/shm_flood test/channel/shm_numa test/channel/shm_pages test/channel/shm_shutdown
TESTS += test/channel/shm_flood test/channel/shm_numa test/channel/shm_pages test/channel/shm_shutdown
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
	test/channel/case_setup.c \
	test/channel/case_sleep.c \
	test/channel/conformance.c \
	test/channel/pair.c test/channel/pair.h
test_channel_conformance_SOURCES = $(conformance_sources)
test_channel_conformance_LDADD = rdma_channel/libhrchannel.la

check_PROGRAMS += test/channel/shm_single
TESTS += test/channel/shm_single
test_channel_shm_single_SOURCES = test/channel/shm_single.c test/channel/pair.c test/channel/pair.h
test_channel_shm_single_LDADD = rdma_channel/libhrchannel.la

conformance_scripts = \
	test/channel/conformance_shm.sh \
	test/channel/conformance_shm_ring.sh \
	test/channel/conformance_tcp.sh \
	test/channel/verbs_basic.sh \
	test/channel/verbs_piggyback.sh \
	test/channel/verbs_pipeline.sh \
	test/channel/verbs_zerocopy.sh
dist_check_SCRIPTS += $(conformance_scripts) test/channel/conformance_verbs.sh
TESTS += $(conformance_scripts)

# A thousand connections in one process. The linker lets the test count the channel's system calls.
check_PROGRAMS += test/channel/many
test_channel_many_SOURCES = test/channel/many.c test/channel/pair.c test/channel/pair.h
test_channel_many_LDADD = rdma_channel/libhrchannel.la
test_channel_many_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=recv,--wrap=recvmsg,--wrap=epoll_wait
dist_check_SCRIPTS += test/channel/many_shm.sh test/channel/many_tcp.sh
TESTS += test/channel/many_shm.sh test/channel/many_tcp.sh

if HAVE_IBVERBS
check_PROGRAMS += test/channel/verbs_events
test_channel_verbs_events_SOURCES = test/channel/verbs_events.c test/channel/pair.c test/channel/pair.h
test_channel_verbs_events_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_channel_verbs_events_LDADD = rdma_channel/libhrchannel.la
TESTS += test/channel/verbs_events.sh

check_PROGRAMS += test/channel/verbs_gets
test_channel_verbs_gets_SOURCES = test/channel/verbs_gets.c test/channel/pair.c test/channel/pair.h
test_channel_verbs_gets_LDADD = rdma_channel/libhrchannel.la
TESTS += test/channel/verbs_gets.sh

check_PROGRAMS += test/channel/verbs_limits
test_channel_verbs_limits_SOURCES = test/channel/verbs_limits.c test/channel/pair.c test/channel/pair.h
test_channel_verbs_limits_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_channel_verbs_limits_LDADD = rdma_channel/libhrchannel.la
TESTS += test/channel/verbs_limits.sh

check_PROGRAMS += test/channel/verbs_writes
test_channel_verbs_writes_SOURCES = test/channel/verbs_writes.c test/channel/pair.c test/channel/pair.h
test_channel_verbs_writes_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_channel_verbs_writes_LDADD = rdma_channel/libhrchannel.la
TESTS += test/channel/verbs_writes.sh

check_PROGRAMS += test/channel/verbs_sleep
test_channel_verbs_sleep_SOURCES = test/channel/verbs_sleep.c test/channel/pair.c test/channel/pair.h
test_channel_verbs_sleep_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_channel_verbs_sleep_LDADD = rdma_channel/libhrchannel.la
TESTS += test/channel/verbs_sleep.sh
endif
dist_check_SCRIPTS += test/channel/verbs_events.sh test/channel/verbs_gets.sh test/channel/verbs_limits.sh \
	test/channel/verbs_sleep.sh test/channel/verbs_writes.sh

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
