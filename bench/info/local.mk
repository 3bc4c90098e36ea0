# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += bench/info/headrace-info
bench_info_headrace_info_SOURCES = \
	adi/collective/select.c \
	adi/collective/select.h \
	bench/info/channel.c \
	bench/info/collectives.c \
	bench/info/info.h \
	bench/info/libraries.h \
	bench/info/main.c \
	bench/info/settings.c
bench_info_headrace_info_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DHR_VERSION='"$(PACKAGE_VERSION)"'
# The settings of ch3 are wanted, though nothing here calls it.
bench_info_headrace_info_LDFLAGS = $(AM_LDFLAGS) -Wl,-u,ch3_open
bench_info_headrace_info_LDADD =
if HAVE_CUDA
bench_info_headrace_info_SOURCES += bench/info/devices.c bench/info/libraries.c \
	bench/info/counters.h bench/info/counters.c bench/info/sessions.h bench/info/sessions.c
bench_info_headrace_info_LDADD += cuda_remote/door/libhrdoor.la cuda_remote/run/libhrlayout.la
else
bench_info_headrace_info_SOURCES += bench/info/no_devices.c bench/info/no_libraries.c
endif
bench_info_headrace_info_LDADD += ch3/libhrch3.la

dist_man_MANS += docs/man/headrace-info.1
