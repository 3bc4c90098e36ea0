# SPDX-License-Identifier: BSD-3-Clause
# A libibverbs for tests (double.h says how it works). Nothing is ever linked with it: programs find it in place of the
# real library by with_double.sh.
if HAVE_IBVERBS
check_LTLIBRARIES += test/ibverbs_double/libibverbs.la
test_ibverbs_double_libibverbs_la_SOURCES = \
	test/ibverbs_double/double.h test/ibverbs_double/double_fault.h \
	test/ibverbs_double/double_copy.c \
	test/ibverbs_double/double_cq.c \
	test/ibverbs_double/double_device.c \
	test/ibverbs_double/double_engine.c \
	test/ibverbs_double/double_events.c \
	test/ibverbs_double/double_execute.c \
	test/ibverbs_double/double_fault.c \
	test/ibverbs_double/double_lacks.c \
	test/ibverbs_double/double_memory.c \
	test/ibverbs_double/double_names.c \
	test/ibverbs_double/double_node.c \
	test/ibverbs_double/double_post.c \
	test/ibverbs_double/double_qp.c \
	test/ibverbs_double/double_time.c
test_ibverbs_double_libibverbs_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
# With an rpath, so that a shared object is made although it is not installed.
test_ibverbs_double_libibverbs_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nonexistent -version-info 1:0:0 \
	-Wl,--version-script=$(srcdir)/test/ibverbs_double/libibverbs.map
EXTRA_test_ibverbs_double_libibverbs_la_DEPENDENCIES = test/ibverbs_double/libibverbs.map

if HAVE_CHECK
check_PROGRAMS += test/ibverbs_double/rules
TESTS += test/ibverbs_double/rules.sh
test_ibverbs_double_rules_SOURCES = \
	test/ibverbs_double/ends.c test/ibverbs_double/ends.h \
	test/ibverbs_double/rules.c \
	test/ibverbs_double/rules_data.c \
	test/ibverbs_double/rules_faults.c \
	test/ibverbs_double/rules_keys.c \
	test/ibverbs_double/rules_peers.c \
	test/ibverbs_double/rules_queues.c
test_ibverbs_double_rules_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS) $(CHECK_CFLAGS)
test_ibverbs_double_rules_LDADD = $(IBVERBS_LIBS) $(CHECK_LIBS)
endif
endif
EXTRA_DIST += test/ibverbs_double/libibverbs.map
dist_check_SCRIPTS += test/ibverbs_double/rules.sh test/ibverbs_double/with_double.sh
