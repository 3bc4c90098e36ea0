# SPDX-License-Identifier: BSD-3-Clause

# The tables of MPI functions (bindings/README.md), and what is generated from them: mpi.h, the bindings in C, the Fortran stubs.
# The generator looks in the sources which functions are implemented, so it runs when any of them changes. It leaves files alone
# that do not change.
HR_MPI_TABLES = \
	adi/bindings/abi.table adi/bindings/collective.table adi/bindings/communicator.table \
	adi/bindings/datatype.table adi/bindings/deprecated.table adi/bindings/dynamic.table \
	adi/bindings/environment.table adi/bindings/info.table adi/bindings/io.table adi/bindings/onesided.table \
	adi/bindings/point.table adi/bindings/session.table adi/bindings/tool.table adi/bindings/topology.table
HR_MPI_GENERATORS = \
	adi/bindings/bindings.py adi/bindings/c_bindings.py adi/bindings/constants.py adi/bindings/coverage.py \
	adi/bindings/fortran.py adi/bindings/header.py adi/bindings/modules.py adi/bindings/table.py
HR_MPI_BINDINGS_H = adi/mpi.h adi/bindings/functions.h
HR_MPI_BINDINGS_C = \
	adi/bindings/abi.c adi/bindings/collective.c adi/bindings/communicator.c adi/bindings/datatype.c \
	adi/bindings/deprecated.c adi/bindings/dynamic.c adi/bindings/environment.c adi/bindings/info.c \
	adi/bindings/io.c adi/bindings/onesided.c adi/bindings/point.c adi/bindings/session.c adi/bindings/tool.c \
	adi/bindings/topology.c adi/bindings/unsupported.c
HR_MPI_INPUTS = $(HR_MPI_TABLES) $(HR_MPI_GENERATORS) adi/mpi.h.in
EXTRA_DIST += $(HR_MPI_INPUTS) adi/fortran/callbacks.f90.in
EXTRA_DIST += \
	adi/bindings/README.md adi/collective/README.md adi/core/README.md adi/datatype/README.md \
	adi/fortran/README.md
BUILT_SOURCES += $(HR_MPI_BINDINGS_H) $(HR_MPI_BINDINGS_C)
CLEANFILES += $(HR_MPI_BINDINGS_H) $(HR_MPI_BINDINGS_C) adi/bindings/bindings.stamp

adi/bindings/bindings.stamp: $(HR_MPI_INPUTS) $(adi_libmpi_abi_la_SOURCES)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) -B $(srcdir)/adi/bindings/bindings.py . $(srcdir) && touch $@
$(HR_MPI_BINDINGS_H) $(HR_MPI_BINDINGS_C): adi/bindings/bindings.stamp
	@test -f $@ || { rm -f $< && $(MAKE) $(AM_MAKEFLAGS) $<; }

# MPI under the name that the standard ABI gives it. Nothing but MPI's own names leaves the library.
lib_LTLIBRARIES += adi/libmpi_abi.la
headracempidir = $(includedir)/headrace/mpi
nodist_headracempi_HEADERS = adi/mpi.h
adi_libmpi_abi_la_SOURCES = \
	adi/bindings/bind.h \
	adi/collective/allgather.c adi/collective/allreduce.c adi/collective/alltoall.c adi/collective/barrier.c \
	adi/collective/bcast.c adi/collective/blocks.c adi/collective/blocks.h adi/collective/combine.c \
	adi/collective/exchange.c adi/collective/gather.c adi/collective/internal.c adi/collective/kernels.c \
	adi/collective/kernels.h adi/collective/neighbor.c adi/collective/node.c adi/collective/node.h \
	adi/collective/node_bcast.c adi/collective/node_blocks.c adi/collective/node_copy.c adi/collective/node_direct.c \
	adi/collective/node_reduce.c adi/collective/node_segment.c adi/collective/node_uneven.c adi/collective/op.c adi/collective/op.h \
	adi/collective/reduce.c adi/collective/reduce_scatter.c adi/collective/reduction.h adi/collective/run.c \
	adi/collective/scan.c adi/collective/scatter.c adi/collective/schedule.c adi/collective/schedule.h \
	adi/collective/schedule_private.h adi/collective/select.c adi/collective/select.h adi/collective/two_level.c \
	adi/collective/two_level.h \
	adi/comm/agree.c adi/comm/agree.h adi/comm/cart.c adi/comm/comm.c adi/comm/comm.h adi/comm/context.c \
	adi/comm/create.c adi/comm/dims.c adi/comm/dist_graph.c adi/comm/dist_graph_create.c adi/comm/duplicate.c \
	adi/comm/edges.h adi/comm/graph.c adi/comm/group.c adi/comm/group_make.c adi/comm/hints.c adi/comm/hints.h \
	adi/comm/inter.c adi/comm/inter.h adi/comm/machine.c adi/comm/split.c adi/comm/topology.c adi/comm/topology.h \
	adi/core/abi.c adi/core/array.h adi/core/attribute.c adi/core/attribute.h adi/core/entry.c adi/core/entry.h \
	adi/core/environment.c adi/core/errhandler.c adi/core/error.c adi/core/error.h adi/core/handles.c \
	adi/core/info.c adi/core/info.h adi/core/info_env.c adi/core/info_env.h adi/core/init.c adi/core/init.h \
	adi/core/job.c adi/core/job.h adi/core/keyval.c adi/core/launch.c adi/core/launch.h adi/core/launch_pmi1.c \
	adi/core/launch_pmi2.c adi/core/launch_wire.c adi/core/meet.c adi/core/watch.c adi/core/helper.c adi/core/object.c adi/core/object.h \
	adi/core/predefined_attribute.c adi/core/predefined_attribute.h adi/core/progress.c adi/core/session.c \
	adi/core/session.h \
	adi/datatype/array.c adi/datatype/build.h adi/datatype/construct.c adi/datatype/contents.c \
	adi/datatype/copy.c adi/datatype/elements.c adi/datatype/external.c adi/datatype/fortran.c \
	adi/datatype/layout.c adi/datatype/pack.c adi/datatype/predefined.c adi/datatype/stream.c \
	adi/datatype/type.c adi/datatype/type.h adi/datatype/wire.c \
	adi/message/buffered.c adi/message/cancel.c adi/message/deliver.c adi/message/flow.c adi/message/generalized.c \
	adi/message/hold.c \
	adi/message/internal.h adi/message/match.c adi/message/partitioned.c adi/message/persistent.c \
	adi/message/probe.c adi/message/pt2pt.c adi/message/queue.c adi/message/queue.h adi/message/request.c \
	adi/message/request.h adi/message/send.c adi/message/sendrecv.c adi/message/statistics.h \
	adi/message/status.c adi/message/unexpected.c adi/message/wait.c \
	adi/tool/category.c adi/tool/control.c adi/tool/event.c adi/tool/init.c adi/tool/measure.c \
	adi/tool/measures.c adi/tool/tool.h \
	adi/window/access.c adi/window/active.c adi/window/adapter.c adi/window/apply.c adi/window/create.c adi/window/internal.h \
	adi/window/local.c adi/window/passive.c adi/window/query.c adi/window/remote.c adi/window/segment.c \
	adi/window/sends.c adi/window/table.c adi/window/target.c adi/window/window.h
if HAVE_PMIX
adi_libmpi_abi_la_SOURCES += adi/core/launch_pmix.c
endif
nodist_adi_libmpi_abi_la_SOURCES = $(HR_MPI_BINDINGS_H) $(HR_MPI_BINDINGS_C) adi/core/build.c
adi_libmpi_abi_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
adi_libmpi_abi_la_LIBADD = ch3/libhrch3.la $(PMIX_LIBS) -lm
adi_libmpi_abi_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 1:0:0 -export-symbols-regex '^P?MPI_'
# BUILT_SOURCES are made by "make all" alone; these by whatever target needs them.
$(adi_libmpi_abi_la_OBJECTS): | $(HR_MPI_BINDINGS_H)

# What tells builds apart: see build.py.
HR_MPI_BUILD_INPUTS = $(ch3_libhrch3core_la_SOURCES) $(adi_libmpi_abi_la_SOURCES) $(HR_MPI_TABLES)
CLEANFILES += adi/core/build.c
EXTRA_DIST += adi/core/build.py
adi/core/build.c: adi/core/build.py $(HR_MPI_BUILD_INPUTS)
	$(AM_V_GEN)$(MKDIR_P) $(@D) && here=`pwd` && cd $(srcdir) && $(PYTHON) -B adi/core/build.py $(HR_MPI_BUILD_INPUTS) \
		> "$$here/$@.new" && cd "$$here" && mv $@.new $@

# Prints which functions are not implemented.
coverage-mpi:
	@$(PYTHON) -B $(srcdir)/adi/bindings/bindings.py --coverage $(srcdir)
.PHONY: coverage-mpi

if HAVE_FORTRAN
HR_MPI_FORTRAN_C = \
	adi/fortran/stubs_abi.c adi/fortran/stubs_collective.c adi/fortran/stubs_communicator.c \
	adi/fortran/stubs_datatype.c adi/fortran/stubs_deprecated.c adi/fortran/stubs_dynamic.c \
	adi/fortran/stubs_environment.c adi/fortran/stubs_info.c adi/fortran/stubs_io.c adi/fortran/stubs_onesided.c \
	adi/fortran/stubs_point.c adi/fortran/stubs_session.c adi/fortran/stubs_topology.c
HR_MPI_FORTRAN_90 = adi/fortran/mpi.f90 adi/fortran/mpi_f08.f90
HR_MPI_FORTRAN = adi/fortran/mpif.h $(HR_MPI_FORTRAN_C) $(HR_MPI_FORTRAN_90)
HR_MPI_MODULES = adi/fortran/mpi.mod adi/fortran/mpi_f08.mod
lib_LTLIBRARIES += adi/libheadrace_mpifort.la
adi_libheadrace_mpifort_la_SOURCES = \
	adi/fortran/attributes.c adi/fortran/callbacks.c adi/fortran/convert.c adi/fortran/environment.c \
	adi/fortran/fortran.h adi/fortran/removed.c adi/fortran/sections.c adi/fortran/sections.h adi/fortran/strings.c
nodist_adi_libheadrace_mpifort_la_SOURCES = $(HR_MPI_FORTRAN_C) $(HR_MPI_FORTRAN_90)
adi_libheadrace_mpifort_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_FORTRAN_CPPFLAGS)
adi_libheadrace_mpifort_la_CFLAGS = $(AM_CFLAGS) -fvisibility=default
adi_libheadrace_mpifort_la_FCFLAGS = $(AM_FCFLAGS) -Jadi/fortran
adi_libheadrace_mpifort_la_LIBADD = adi/libmpi_abi.la
adi_libheadrace_mpifort_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 0:0:0 \
	-export-symbols-regex '^p?mpi_|^hrmpi_|^__mpi'
nodist_headracempi_HEADERS += adi/fortran/mpif.h
headracempi_DATA = $(HR_MPI_MODULES)
CLEANFILES += $(HR_MPI_FORTRAN) $(HR_MPI_MODULES) adi/fortran/fortran.stamp
BUILT_SOURCES += $(HR_MPI_FORTRAN)

adi/fortran/fortran.stamp: $(HR_MPI_INPUTS) adi/fortran/callbacks.f90.in
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) -B $(srcdir)/adi/bindings/bindings.py --fortran . $(srcdir) && touch $@
$(HR_MPI_FORTRAN): adi/fortran/fortran.stamp
	@test -f $@ || { rm -f $< && $(MAKE) $(AM_MAKEFLAGS) $<; }
$(adi_libheadrace_mpifort_la_OBJECTS): | $(HR_MPI_BINDINGS_H) $(HR_MPI_FORTRAN)
# The compiler writes the module beside the object.
$(HR_MPI_MODULES): adi/libheadrace_mpifort.la
	@touch $@
bin_SCRIPTS += adi/hrmpifort
endif

# What names the prefix: the compiler wrappers and the pkg-config file.
adi_substitute = sed \
	-e 's|@prefix[@]|$(prefix)|g' -e 's|@exec_prefix[@]|$(exec_prefix)|g' \
	-e 's|@includedir[@]|$(includedir)|g' -e 's|@libdir[@]|$(libdir)|g' -e 's|@VERSION[@]|$(VERSION)|g'
comma = ,
# $(call adi_wrapper,NAME,VARIABLE,COMPILER,FLAGS,LIBRARIES)
adi_wrapper = $(AM_V_GEN)$(MKDIR_P) adi && $(adi_substitute) -e 's|@WRAPPER[@]|$(1)|g' -e 's|@VARIABLE[@]|$(2)|g' \
	-e 's|@COMPILER[@]|$(3)|g' -e 's|@FLAGS[@]|$(4)|g' -e 's|@LIBRARIES[@]|$(5)|g' $(srcdir)/adi/hrmpi.in >$@.tmp && \
	chmod +x $@.tmp && mv $@.tmp $@

bin_SCRIPTS += adi/hrmpicc adi/hrmpicxx
pkgconfig_DATA += adi/headrace-mpi.pc
CLEANFILES += adi/hrmpicc adi/hrmpicxx adi/hrmpifort adi/headrace-mpi.pc
EXTRA_DIST += adi/hrmpi.in adi/headrace-mpi.pc.in
dist_man_MANS += docs/man/hrmpicc.1 docs/man/hrmpicxx.1 docs/man/hrmpifort.1

adi/hrmpicc: $(srcdir)/adi/hrmpi.in Makefile
	$(call adi_wrapper,hrmpicc,HRMPICC_CC,$(CC),,-lmpi_abi)
adi/hrmpicxx: $(srcdir)/adi/hrmpi.in Makefile
	$(call adi_wrapper,hrmpicxx,HRMPICXX_CXX,$(CXX),,-lmpi_abi)
# libheadrace_mpifort does not say where libmpi_abi is, so the program itself must name it.
adi/hrmpifort: $(srcdir)/adi/hrmpi.in Makefile
	$(call adi_wrapper,hrmpifort,HRMPIFORT_FC,$(FC),$(HRMPIFORT_FLAGS),-lheadrace_mpifort "-Wl$(comma)--no-as-needed" -lmpi_abi)
adi/headrace-mpi.pc: $(srcdir)/adi/headrace-mpi.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) adi && $(adi_substitute) $(srcdir)/adi/headrace-mpi.pc.in >$@.tmp && mv $@.tmp $@
