# SPDX-License-Identifier: BSD-3-Clause
# A libibverbs for tests (double.h says how it works). Nothing is ever linked with it: programs find it in place of the
# real library by with_double.sh.
if HAVE_IBVERBS
check_LTLIBRARIES += test/verbs/libibverbs.la
test_verbs_libibverbs_la_SOURCES = \
	test/verbs/double.h test/verbs/double_fault.h \
	test/verbs/double_copy.c \
	test/verbs/double_cq.c \
	test/verbs/double_device.c \
	test/verbs/double_engine.c \
	test/verbs/double_events.c \
	test/verbs/double_execute.c \
	test/verbs/double_fault.c \
	test/verbs/double_lacks.c \
	test/verbs/double_memory.c \
	test/verbs/double_names.c \
	test/verbs/double_node.c \
	test/verbs/double_post.c \
	test/verbs/double_qp.c \
	test/verbs/double_time.c
test_verbs_libibverbs_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
# With an rpath, so that a shared object is made although it is not installed.
test_verbs_libibverbs_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nonexistent -version-info 1:0:0 \
	-Wl,--version-script=$(srcdir)/test/verbs/libibverbs.map
EXTRA_test_verbs_libibverbs_la_DEPENDENCIES = test/verbs/libibverbs.map

if HAVE_CHECK
check_PROGRAMS += test/verbs/rules
TESTS += test/verbs/rules.sh
test_verbs_rules_SOURCES = \
	test/verbs/ends.c test/verbs/ends.h \
	test/verbs/rules.c \
	test/verbs/rules_data.c \
	test/verbs/rules_faults.c \
	test/verbs/rules_keys.c \
	test/verbs/rules_peers.c \
	test/verbs/rules_queues.c
test_verbs_rules_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) $(CHECK_CFLAGS)
test_verbs_rules_LDADD = $(IBVERBS_LIBS) $(CHECK_LIBS)
endif
TESTS += test/verbs/perftest.sh
endif
if HAVE_IBVERBS
check_PROGRAMS += test/verbs/fault_matrix
test_verbs_fault_matrix_SOURCES = test/verbs/fault_matrix.c test/channel/pair.c test/channel/pair.h
test_verbs_fault_matrix_LDADD = rdma_channel/libhrchannel.la
TESTS += test/verbs/fault_matrix.sh
endif
dist_check_SCRIPTS += test/verbs/fault_matrix.sh
EXTRA_DIST += test/verbs/libibverbs.map
dist_check_SCRIPTS += test/verbs/perftest.sh test/verbs/rules.sh test/verbs/with_double.sh
