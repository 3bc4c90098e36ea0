# SPDX-License-Identifier: BSD-3-Clause

# MPI under the name that the standard ABI gives it. Nothing but MPI's own names leaves the library.
lib_LTLIBRARIES += adi/libmpi_abi.la
headracempidir = $(includedir)/headrace/mpi
dist_headracempi_HEADERS = adi/mpi.h
adi_libmpi_abi_la_SOURCES = \
	adi/adi.h \
	adi/barrier.c adi/datatype.c adi/environment.c adi/error.c adi/init.c \
	adi/match.c adi/meet.c adi/pt2pt.c adi/request.c
if HAVE_PMIX
adi_libmpi_abi_la_SOURCES += adi/launch_pmix.c
else
adi_libmpi_abi_la_SOURCES += adi/launch_alone.c
endif
adi_libmpi_abi_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
adi_libmpi_abi_la_LIBADD = ch3/libhrch3.la $(PMIX_LIBS)
adi_libmpi_abi_la_LDFLAGS = $(AM_LDFLAGS) -no-undefined -version-info 1:0:0 -export-symbols-regex '^P?MPI_'

# What names the prefix: the compiler wrapper and the pkg-config file.
adi_substitute = sed \
	-e 's|@prefix[@]|$(prefix)|g' -e 's|@exec_prefix[@]|$(exec_prefix)|g' \
	-e 's|@includedir[@]|$(includedir)|g' -e 's|@libdir[@]|$(libdir)|g' \
	-e 's|@CC[@]|$(CC)|g' -e 's|@VERSION[@]|$(VERSION)|g'

bin_SCRIPTS += adi/hrmpicc
pkgconfig_DATA += adi/headrace-mpi.pc
CLEANFILES += adi/hrmpicc adi/headrace-mpi.pc
EXTRA_DIST += adi/hrmpicc.in adi/headrace-mpi.pc.in
dist_man_MANS += docs/man/hrmpicc.1

adi/hrmpicc: $(srcdir)/adi/hrmpicc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) adi && $(adi_substitute) $(srcdir)/adi/hrmpicc.in >$@.tmp && chmod +x $@.tmp && mv $@.tmp $@
adi/headrace-mpi.pc: $(srcdir)/adi/headrace-mpi.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) adi && $(adi_substitute) $(srcdir)/adi/headrace-mpi.pc.in >$@.tmp && mv $@.tmp $@
