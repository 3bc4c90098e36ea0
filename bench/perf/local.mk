# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += headrace-perf
headrace_perf_SOURCES = \
	%D%/contest.c %D%/contest.h %D%/endpoint.c %D%/endpoint.h %D%/machine.c %D%/machine.h %D%/main.c \
	%D%/measure.c %D%/measure.h %D%/options.c %D%/options.h %D%/pair.c %D%/pair.h %D%/peer_version.c %D%/peer_version.h %D%/raw_verbs.h \
	%D%/remote.c %D%/remote.h %D%/report.c %D%/report.h %D%/stats.c %D%/stats.h %D%/sweep.c %D%/sweep.h %D%/variant.c %D%/variant.h \
	%D%/wake.c %D%/wake.h
headrace_perf_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% $(CUDA_CPPFLAGS)
headrace_perf_LDADD = ch3/libhrch3.la -lm
if HAVE_IBVERBS
headrace_perf_SOURCES += %D%/raw_verbs.c
headrace_perf_CPPFLAGS += $(IBVERBS_CFLAGS)
headrace_perf_LDADD += $(IBVERBS_LIBS)
else
headrace_perf_SOURCES += %D%/no_raw_verbs.c
endif
if HAVE_CUDA
headrace_perf_SOURCES += %D%/cuda/cuda_calls.c %D%/cuda/cuda_calls.h %D%/cuda/cuda_client.c %D%/cuda/cuda_driver.c %D%/cuda/cuda_driver.h %D%/cuda/cuda_rows.h \
	%D%/cuda/raw_stream.c %D%/cuda/raw_stream.h \
	%D%/cuda/server_cpu.c %D%/cuda/server_cpu.h \
	%D%/cuda/cuda_run.c %D%/cuda/cuda_run.h %D%/cuda/peer_client.c %D%/cuda/peer_copies.c %D%/cuda/peer_copies.h
headrace_perf_LDADD += cuda_remote/door/libhrdoor.la
endif
