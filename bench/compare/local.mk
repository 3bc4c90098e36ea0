# SPDX-License-Identifier: BSD-3-Clause
# The comparison with an installed MPI, both in one run: see compare.py --help. Not installed.
EXTRA_DIST += %D%/compare.py
noinst_PROGRAMS += %D%/compare_headrace
bench_compare_compare_headrace_SOURCES = \
	%D%/cells.c %D%/cells.h %D%/with_headrace.c bench/perf/endpoint.c bench/perf/endpoint.h \
	bench/perf/variant.c bench/perf/variant.h
bench_compare_compare_headrace_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -I$(srcdir)/bench/perf
bench_compare_compare_headrace_LDADD = ch3/libhrch3.la
# The same program with Headrace's MPI and with Open MPI.
if HAVE_PMIX
noinst_PROGRAMS += %D%/compare_hrmpi
bench_compare_compare_hrmpi_SOURCES = %D%/cells.c %D%/cells.h %D%/with_mpi.c
bench_compare_compare_hrmpi_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -I$(builddir)/adi
bench_compare_compare_hrmpi_LDADD = adi/libmpi_abi.la
endif
if HAVE_OMPI
noinst_PROGRAMS += %D%/compare_mpi
bench_compare_compare_mpi_SOURCES = %D%/cells.c %D%/cells.h %D%/with_mpi.c
bench_compare_compare_mpi_CPPFLAGS = -I$(builddir) -I$(srcdir)/%D% $(OMPI_CFLAGS)
bench_compare_compare_mpi_LDADD = $(OMPI_LIBS)
endif
