# SPDX-License-Identifier: BSD-3-Clause
# The verbs transport: its rings and its registration cache on plain memory, then whole connections over the libibverbs
# double (test/ibverbs_double).
if HAVE_CHECK
# The verbs rings' protocols, on plain memory; need no libibverbs.
check_PROGRAMS += test/ib/flat test/ib/gauge test/ib/pull test/ib/ring
TESTS += test/ib/flat test/ib/gauge test/ib/pull test/ib/ring
test_ib_flat_SOURCES = test/ib/flat.c ib/ib_flat.c ib/ib_flat.h ib/ib_ring.c ib/ib_ring.h
test_ib_flat_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_ib_flat_LDADD = $(CHECK_LIBS)
test_ib_gauge_SOURCES = test/ib/gauge.c ib/ib_gauge.c ib/ib_gauge.h
test_ib_gauge_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_ib_gauge_LDADD = $(CHECK_LIBS)
test_ib_pull_SOURCES = test/ib/pull.c ib/ib_offer.c ib/ib_offer.h ib/ib_pull.c ib/ib_pull.h
test_ib_pull_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_ib_pull_LDADD = $(CHECK_LIBS)
test_ib_ring_SOURCES = test/ib/ring.c ib/ib_ring.c ib/ib_ring.h
test_ib_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_ib_ring_LDADD = $(CHECK_LIBS)

# The registration cache with registering of the test's own; needs no libibverbs either.
check_PROGRAMS += test/ib/cache
TESTS += test/ib/cache
test_ib_cache_SOURCES = test/ib/cache.c test/ib/cache.h \
	test/ib/cache_forking.c test/ib/cache_going.c \
	test/ib/cache_keeping.c test/ib/cache_kit.c \
	ib/ib_cache.c ib/ib_cache.h ib/ib_maps.c ib/ib_maps.h ib/ib_memory.c ib/ib_memory.h ib/ib_register.h
test_ib_cache_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_ib_cache_LDADD = rdma_channel/base/libhrbase.la $(CHECK_LIBS)
endif

verbs_conformance = \
	test/ib/basic.sh \
	test/ib/piggyback.sh \
	test/ib/pipeline.sh \
	test/ib/two_adapters.sh \
	test/ib/zerocopy.sh
dist_check_SCRIPTS += $(verbs_conformance)
TESTS += $(verbs_conformance)

if HAVE_IBVERBS
check_PROGRAMS += test/ib/adapters
test_ib_adapters_SOURCES = test/ib/adapters.c test/channel/pair.c test/channel/pair.h
test_ib_adapters_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_ib_adapters_LDADD = rdma_channel/libhrchannel.la $(IBVERBS_LIBS)
TESTS += test/ib/adapters.sh

check_PROGRAMS += test/ib/events
test_ib_events_SOURCES = test/ib/events.c test/channel/pair.c test/channel/pair.h
test_ib_events_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_ib_events_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/events.sh

check_PROGRAMS += test/ib/gets
test_ib_gets_SOURCES = test/ib/gets.c test/channel/pair.c test/channel/pair.h
test_ib_gets_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/gets.sh

check_PROGRAMS += test/ib/several
test_ib_several_SOURCES = test/ib/several.c test/channel/pair.c test/channel/pair.h
test_ib_several_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/several.sh

check_PROGRAMS += test/ib/limits
test_ib_limits_SOURCES = test/ib/limits.c test/channel/pair.c test/channel/pair.h
test_ib_limits_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_ib_limits_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/limits.sh

check_PROGRAMS += test/ib/writes
test_ib_writes_SOURCES = test/ib/writes.c test/channel/pair.c test/channel/pair.h
test_ib_writes_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_ib_writes_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/writes.sh

check_PROGRAMS += test/ib/sleep
test_ib_sleep_SOURCES = test/ib/sleep.c test/channel/pair.c test/channel/pair.h
test_ib_sleep_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
test_ib_sleep_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/sleep.sh
endif
dist_check_SCRIPTS += test/ib/adapters.sh test/ib/events.sh test/ib/gets.sh test/ib/limits.sh \
	test/ib/several.sh test/ib/sleep.sh test/ib/writes.sh

if HAVE_IBVERBS
check_PROGRAMS += test/ib/fault_matrix
test_ib_fault_matrix_SOURCES = test/ib/fault_matrix.c test/channel/pair.c test/channel/pair.h
test_ib_fault_matrix_LDADD = rdma_channel/libhrchannel.la
TESTS += test/ib/fault_matrix.sh
TESTS += test/ib/perftest.sh
endif
dist_check_SCRIPTS += test/ib/fault_matrix.sh test/ib/perftest.sh
