# SPDX-License-Identifier: BSD-3-Clause
# Times of collectives, see collectives.py --help. Not installed.
EXTRA_DIST += %D%/collectives.py
if HAVE_PMIX
noinst_PROGRAMS += %D%/collectives_hrmpi
bench_collectives_collectives_hrmpi_SOURCES = %D%/collectives.c
bench_collectives_collectives_hrmpi_CPPFLAGS = -I$(builddir)/adi
bench_collectives_collectives_hrmpi_LDADD = adi/libmpi_abi.la
endif
if HAVE_OMPI
noinst_PROGRAMS += %D%/collectives_mpi
bench_collectives_collectives_mpi_SOURCES = %D%/collectives.c
bench_collectives_collectives_mpi_CPPFLAGS = $(OMPI_CFLAGS)
bench_collectives_collectives_mpi_LDADD = $(OMPI_LIBS)
endif
