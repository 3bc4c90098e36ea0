# SPDX-License-Identifier: BSD-3-Clause

if HAVE_CHECK
# Over a channel in memory, with faults on command.
ch3_memory = \
	test/ch3/memory_channel.c test/ch3/memory_channel.h \
	test/ch3/pair.c test/ch3/pair.h
ch3_memory_libs = ch3/libhrch3core.la rdma_channel/base/libhrbase.la $(CHECK_LIBS)

check_PROGRAMS += test/ch3/messages test/ch3/ahead test/ch3/failures test/ch3/remote_writes test/ch3/visitors test/ch3/crowd
TESTS += test/ch3/messages test/ch3/ahead test/ch3/failures test/ch3/remote_writes test/ch3/visitors test/ch3/crowd test/ch3/write.sh
test_ch3_crowd_SOURCES = test/ch3/crowd.c test/ch3/memory_channel.c test/ch3/memory_channel.h
test_ch3_crowd_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_crowd_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=malloc
test_ch3_crowd_LDADD = $(ch3_memory_libs)
test_ch3_remote_writes_SOURCES = test/ch3/remote_writes.c $(ch3_memory)
test_ch3_remote_writes_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_remote_writes_LDADD = $(ch3_memory_libs)
test_ch3_visitors_SOURCES = test/ch3/visitors.c test/ch3/memory_channel.c test/ch3/memory_channel.h
test_ch3_visitors_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_visitors_LDADD = $(ch3_memory_libs)
test_ch3_messages_SOURCES = test/ch3/messages.c $(ch3_memory)
test_ch3_messages_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_messages_LDADD = $(ch3_memory_libs)
test_ch3_ahead_SOURCES = test/ch3/ahead.c $(ch3_memory)
test_ch3_ahead_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_ahead_LDADD = $(ch3_memory_libs)
test_ch3_failures_SOURCES = test/ch3/failures.c $(ch3_memory)
test_ch3_failures_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_failures_LDADD = $(ch3_memory_libs)

# Over the real channel.
check_PROGRAMS += test/ch3/demand test/ch3/turns
TESTS += test/ch3/demand test/ch3/turns
test_ch3_demand_SOURCES = test/ch3/demand.c
test_ch3_demand_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_demand_LDADD = ch3/libhrch3.la $(CHECK_LIBS)
test_ch3_turns_SOURCES = test/ch3/turns.c
test_ch3_turns_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
test_ch3_turns_LDADD = ch3/libhrch3.la $(CHECK_LIBS)
endif

check_PROGRAMS += test/ch3/processes
TESTS += test/ch3/processes
test_ch3_processes_SOURCES = test/ch3/processes.c
test_ch3_processes_LDADD = ch3/libhrch3.la
dist_check_SCRIPTS += test/ch3/write.sh test/ch3/verbs.sh
TESTS += test/ch3/verbs.sh
