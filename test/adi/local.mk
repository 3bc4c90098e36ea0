# SPDX-License-Identifier: BSD-3-Clause

EXTRA_DIST += test/adi/check_mpi.h
adi_programs = test/adi/ring test/adi/pingpong test/adi/matching test/adi/arguments test/adi/barrier test/adi/ends \
	test/adi/demand
check_PROGRAMS += $(adi_programs)
adi_cppflags = -I$(srcdir)/adi $(AM_CPPFLAGS)
test_adi_ring_CPPFLAGS = $(adi_cppflags)
test_adi_ring_LDADD = adi/libmpi_abi.la
test_adi_pingpong_CPPFLAGS = $(adi_cppflags)
test_adi_pingpong_LDADD = adi/libmpi_abi.la
test_adi_matching_CPPFLAGS = $(adi_cppflags)
test_adi_matching_LDADD = adi/libmpi_abi.la
test_adi_arguments_CPPFLAGS = $(adi_cppflags)
test_adi_arguments_LDADD = adi/libmpi_abi.la
test_adi_barrier_CPPFLAGS = $(adi_cppflags)
test_adi_barrier_LDADD = adi/libmpi_abi.la
test_adi_demand_CPPFLAGS = $(adi_cppflags)
test_adi_demand_LDADD = adi/libmpi_abi.la
test_adi_ends_CPPFLAGS = $(adi_cppflags)
test_adi_ends_LDADD = adi/libmpi_abi.la
if HAVE_PMIX
check_PROGRAMS += test/adi/lost_fence
endif
test_adi_lost_fence_SOURCES = test/adi/lost_fence.c
test_adi_lost_fence_CPPFLAGS = $(adi_cppflags)
test_adi_lost_fence_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
test_adi_lost_fence_LDADD = adi/libmpi_abi.la $(PMIX_LIBS)

adi_tests = test/adi/alone.sh test/adi/shm.sh test/adi/tcp.sh test/adi/ends.sh test/adi/demand.sh test/adi/lost_fence.sh \
	test/adi/symbols.sh
TESTS += $(adi_tests)
EXTRA_DIST += $(adi_tests) test/adi/common.sh test/adi/hrmpicc.sh test/adi/ring-vm.sh
# What a user builds knows nothing of the sanitizers that the library was built with.
if !SANITIZED
TESTS += test/adi/hrmpicc.sh
endif
