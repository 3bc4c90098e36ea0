# SPDX-License-Identifier: BSD-3-Clause
# Collectives, as adi/collective.

EXTRA_DIST += %D%/kinds.h %D%/reference.h
check_PROGRAMS += %D%/alltoalls %D%/collectives %D%/crowded %D%/direct %D%/disagree %D%/disagree_late \
	%D%/gathers %D%/neighbors %D%/orders %D%/rounds %D%/schedules %D%/sequences %D%/told %D%/two_level \
	%D%/uneven
%C%_alltoalls_CPPFLAGS = $(adi_cppflags)
%C%_alltoalls_LDADD = adi/libmpi_abi.la
%C%_collectives_CPPFLAGS = $(adi_cppflags)
%C%_collectives_LDADD = adi/libmpi_abi.la
%C%_crowded_CPPFLAGS = $(adi_cppflags)
%C%_crowded_LDADD = adi/libmpi_abi.la
%C%_direct_CPPFLAGS = $(adi_cppflags)
%C%_direct_LDADD = adi/libmpi_abi.la
%C%_disagree_CPPFLAGS = $(adi_cppflags)
%C%_disagree_LDADD = adi/libmpi_abi.la
%C%_disagree_late_CPPFLAGS = $(adi_cppflags)
%C%_disagree_late_LDADD = adi/libmpi_abi.la
%C%_gathers_CPPFLAGS = $(adi_cppflags)
%C%_gathers_LDADD = adi/libmpi_abi.la
%C%_neighbors_CPPFLAGS = $(adi_cppflags)
%C%_neighbors_LDADD = adi/libmpi_abi.la
%C%_orders_CPPFLAGS = $(adi_cppflags)
%C%_orders_LDADD = adi/libmpi_abi.la
%C%_rounds_CPPFLAGS = $(adi_cppflags)
%C%_rounds_LDADD = adi/libmpi_abi.la
%C%_schedules_CPPFLAGS = $(adi_cppflags)
%C%_schedules_LDADD = adi/libmpi_abi.la
%C%_sequences_CPPFLAGS = $(adi_cppflags)
%C%_sequences_LDADD = adi/libmpi_abi.la
%C%_told_CPPFLAGS = $(adi_cppflags)
%C%_told_LDADD = adi/libmpi_abi.la
%C%_two_level_CPPFLAGS = $(adi_cppflags)
%C%_two_level_LDADD = adi/libmpi_abi.la
%C%_uneven_CPPFLAGS = $(adi_cppflags)
%C%_uneven_LDADD = adi/libmpi_abi.la

adi_collective_tests = %D%/algorithms.sh %D%/collectives.sh %D%/crowded.sh %D%/gathers.sh %D%/two_level.sh
TESTS += $(adi_collective_tests)
EXTRA_DIST += $(adi_collective_tests)
