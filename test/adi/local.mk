# SPDX-License-Identifier: BSD-3-Clause

EXTRA_DIST += test/adi/check_mpi.h test/adi/type_map.h
adi_programs = test/adi/ring test/adi/pingpong test/adi/matching test/adi/arguments test/adi/barrier test/adi/ends \
	test/adi/demand test/adi/abi test/adi/cancel test/adi/attributes test/adi/communicators test/adi/datatypes \
	test/adi/errors test/adi/groups test/adi/info test/adi/intercommunicators test/adi/older test/adi/point \
	test/adi/probe test/adi/requests test/adi/sessions test/adi/threads test/adi/tool test/adi/topologies \
	test/adi/windows test/adi/deaths test/adi/computes test/adi/passive test/adi/flood test/adi/held test/adi/no_memory test/adi/many \
	test/adi/wrong_arguments
check_PROGRAMS += $(adi_programs) test/adi/streams
adi_cppflags = -I$(builddir)/adi -I$(srcdir)/test/adi $(AM_CPPFLAGS)
include test/adi/collective/local.mk
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
test_adi_ends_CPPFLAGS = $(adi_cppflags)
test_adi_ends_LDADD = adi/libmpi_abi.la
test_adi_demand_CPPFLAGS = $(adi_cppflags)
test_adi_demand_LDADD = adi/libmpi_abi.la
test_adi_abi_CPPFLAGS = $(adi_cppflags)
test_adi_abi_LDADD = adi/libmpi_abi.la
test_adi_cancel_CPPFLAGS = $(adi_cppflags)
test_adi_cancel_LDADD = adi/libmpi_abi.la
test_adi_attributes_CPPFLAGS = $(adi_cppflags)
test_adi_attributes_LDADD = adi/libmpi_abi.la
test_adi_communicators_CPPFLAGS = $(adi_cppflags)
test_adi_communicators_LDADD = adi/libmpi_abi.la
test_adi_datatypes_CPPFLAGS = $(adi_cppflags)
test_adi_datatypes_LDADD = adi/libmpi_abi.la
test_adi_errors_CPPFLAGS = $(adi_cppflags)
test_adi_errors_LDADD = adi/libmpi_abi.la
test_adi_groups_CPPFLAGS = $(adi_cppflags)
test_adi_groups_LDADD = adi/libmpi_abi.la
test_adi_info_CPPFLAGS = $(adi_cppflags)
test_adi_info_LDADD = adi/libmpi_abi.la
test_adi_intercommunicators_CPPFLAGS = $(adi_cppflags)
test_adi_intercommunicators_LDADD = adi/libmpi_abi.la
test_adi_older_CPPFLAGS = $(adi_cppflags)
test_adi_older_LDADD = adi/libmpi_abi.la
test_adi_point_CPPFLAGS = $(adi_cppflags)
test_adi_point_LDADD = adi/libmpi_abi.la
test_adi_probe_CPPFLAGS = $(adi_cppflags)
test_adi_probe_LDADD = adi/libmpi_abi.la
test_adi_requests_CPPFLAGS = $(adi_cppflags)
test_adi_requests_LDADD = adi/libmpi_abi.la
test_adi_sessions_CPPFLAGS = $(adi_cppflags)
test_adi_sessions_LDADD = adi/libmpi_abi.la
test_adi_threads_CPPFLAGS = $(adi_cppflags)
test_adi_threads_LDADD = adi/libmpi_abi.la -lpthread
test_adi_tool_CPPFLAGS = $(adi_cppflags)
test_adi_tool_LDADD = adi/libmpi_abi.la
test_adi_topologies_CPPFLAGS = $(adi_cppflags)
test_adi_topologies_LDADD = adi/libmpi_abi.la
test_adi_windows_CPPFLAGS = $(adi_cppflags)
test_adi_windows_LDADD = adi/libmpi_abi.la
test_adi_computes_CPPFLAGS = $(adi_cppflags)
test_adi_computes_LDADD = adi/libmpi_abi.la
test_adi_passive_CPPFLAGS = $(adi_cppflags)
test_adi_passive_LDADD = adi/libmpi_abi.la
test_adi_deaths_CPPFLAGS = $(adi_cppflags)
test_adi_deaths_LDADD = adi/libmpi_abi.la
test_adi_flood_CPPFLAGS = $(adi_cppflags)
test_adi_flood_LDADD = adi/libmpi_abi.la
test_adi_no_memory_CPPFLAGS = $(adi_cppflags)
test_adi_no_memory_LDADD = adi/libmpi_abi.la
test_adi_held_CPPFLAGS = $(adi_cppflags)
test_adi_held_LDADD = adi/libmpi_abi.la
test_adi_many_CPPFLAGS = $(adi_cppflags)
test_adi_many_LDADD = adi/libmpi_abi.la
# Its calls are made from the tables of signatures.
test_adi_wrong_arguments_SOURCES = test/adi/wrong_arguments.c
nodist_test_adi_wrong_arguments_SOURCES = test/adi/wrong_arguments.h
test_adi_wrong_arguments_CPPFLAGS = $(adi_cppflags)
test_adi_wrong_arguments_LDADD = adi/libmpi_abi.la
$(test_adi_wrong_arguments_OBJECTS): test/adi/wrong_arguments.h
test/adi/wrong_arguments.h: $(HR_MPI_TABLES) adi/bindings/table.py test/adi/wrong_arguments.py
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) -B $(srcdir)/test/adi/wrong_arguments.py $(srcdir) $@
CLEANFILES += test/adi/wrong_arguments.h
EXTRA_DIST += test/adi/wrong_arguments.py
if HAVE_PMIX
check_PROGRAMS += test/adi/lost_fence
endif
test_adi_lost_fence_SOURCES = test/adi/lost_fence.c
test_adi_lost_fence_CPPFLAGS = $(adi_cppflags)
test_adi_lost_fence_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
test_adi_lost_fence_LDADD = adi/libmpi_abi.la $(PMIX_LIBS)
# The datatypes without the rest of the library.
test_adi_streams_SOURCES = test/adi/streams.c adi/core/object.c \
	adi/datatype/array.c adi/datatype/construct.c adi/datatype/contents.c adi/datatype/copy.c \
	adi/datatype/elements.c adi/datatype/external.c adi/datatype/fortran.c adi/datatype/layout.c \
	adi/datatype/pack.c adi/datatype/predefined.c adi/datatype/stream.c adi/datatype/type.c adi/datatype/wire.c
test_adi_streams_CPPFLAGS = $(adi_cppflags)
# BUILT_SOURCES are made by "make all" and "make check" alone; these by whatever target needs them.
$(test_adi_streams_OBJECTS): | $(HR_MPI_BINDINGS_H)

adi_tests = test/adi/alone.sh test/adi/shm.sh test/adi/tcp.sh test/adi/ends.sh test/adi/demand.sh test/adi/lost_fence.sh \
	test/adi/symbols.sh test/adi/core.sh test/adi/messages.sh test/adi/datatypes.sh test/adi/communicators.sh \
	test/adi/windows.sh test/adi/deaths.sh test/adi/verbs.sh test/adi/pmi.sh test/adi/scale.sh test/adi/wrong_arguments.sh
TESTS += $(adi_tests)
EXTRA_DIST += $(adi_tests) test/adi/common.sh test/adi/pmi_server.py test/adi/hrmpicc.sh test/adi/fortran.sh test/adi/verbs-vm.sh \
	test/adi/fortran/fixed.f test/adi/fortran/module.f90 test/adi/fortran/f08.f90 test/adi/fortran/sections.f90 \
	test/adi/fortran/attributes.f90 test/adi/fortran/attributes_in_c.c test/adi/fortran/callbacks.f90
# What a user builds knows nothing of the sanitizers that the library was built with.
if !SANITIZED
TESTS += test/adi/hrmpicc.sh test/adi/fortran.sh
endif
