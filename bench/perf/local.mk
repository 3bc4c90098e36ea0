# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += headrace-perf
headrace_perf_SOURCES = \
	%D%/endpoint.c %D%/endpoint.h %D%/main.c %D%/measure.c %D%/measure.h %D%/options.c %D%/options.h \
	%D%/pair.c %D%/pair.h %D%/report.c %D%/report.h %D%/stats.c %D%/stats.h
if HAVE_CUDA
headrace_perf_SOURCES += %D%/cuda_calls.c %D%/cuda_calls.h
endif
headrace_perf_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(CUDA_CPPFLAGS)
headrace_perf_LDADD = ch3/libhrch3.la -lm
