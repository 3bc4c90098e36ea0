# SPDX-License-Identifier: BSD-3-Clause

if HAVE_CHECK
# The verbs ring's protocol, on plain memory; needs no libibverbs.
check_PROGRAMS += test/channel/verbs_ring
TESTS += test/channel/verbs_ring
test_channel_verbs_ring_SOURCES = test/channel/verbs_ring.c ib/ib_ring.c ib/ib_ring.h
test_channel_verbs_ring_CPPFLAGS = $(AM_CPPFLAGS) $(CHECK_CFLAGS)
test_channel_verbs_ring_LDADD = $(CHECK_LIBS)
endif
