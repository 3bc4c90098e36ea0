# SPDX-License-Identifier: BSD-3-Clause
# Where the installed parts lie: for headrace-run, headraced and headrace-info.
noinst_LTLIBRARIES += cuda_remote/run/libhrlayout.la
cuda_remote_run_libhrlayout_la_SOURCES = cuda_remote/run/layout.h cuda_remote/run/layout.c
cuda_remote_run_libhrlayout_la_CPPFLAGS = $(AM_CPPFLAGS) \
	-DHR_PREFIX='"$(prefix)"' -DHR_PKGLIBDIR='"$(pkglibdir)"' -DHR_SBINDIR='"$(sbindir)"'
cuda_remote_run_libhrlayout_la_LIBADD = rdma_channel/base/libhrbase.la

bin_PROGRAMS += cuda_remote/run/headrace-run
cuda_remote_run_headrace_run_SOURCES = \
	cuda_remote/run/main.c \
	cuda_remote/run/private.h cuda_remote/run/private.c \
	cuda_remote/run/program.h cuda_remote/run/program.c
cuda_remote_run_headrace_run_CPPFLAGS = $(AM_CPPFLAGS) -DHR_VERSION='"$(PACKAGE_VERSION)"'
cuda_remote_run_headrace_run_LDADD = cuda_remote/run/libhrlayout.la cuda_remote/relink/libhrelf.la \
	cuda_remote/door/libhrdoor.la

dist_man_MANS += docs/man/headrace-run.1
