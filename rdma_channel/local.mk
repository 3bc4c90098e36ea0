# SPDX-License-Identifier: BSD-3-Clause
headracedir = $(includedir)/headrace
dist_headrace_HEADERS = rdma_channel/include/headrace/channel.h

# Logging and settings, for every layer.
noinst_LTLIBRARIES += rdma_channel/base/libhrbase.la
rdma_channel_base_libhrbase_la_SOURCES = \
	rdma_channel/base/log.c rdma_channel/base/log.h \
	rdma_channel/base/setting.c rdma_channel/base/setting.h

# The whole channel, for what links it statically; ib/local.mk adds its transport to LIBADD.
noinst_LTLIBRARIES += rdma_channel/libhrchannel.la
rdma_channel_libhrchannel_la_SOURCES = \
	rdma_channel/stream.c rdma_channel/stream.h \
	rdma_channel/transport.h \
	rdma_channel/transports.c \
	rdma_channel/wireup.h
rdma_channel_libhrchannel_la_LIBADD = rdma_channel/base/libhrbase.la
