# SPDX-License-Identifier: BSD-3-Clause
headracedir = $(includedir)/headrace
dist_headrace_HEADERS = rdma_channel/include/headrace/channel.h

# Logging and settings, for every layer.
noinst_LTLIBRARIES += rdma_channel/base/libhrbase.la
rdma_channel_base_libhrbase_la_SOURCES = \
	rdma_channel/base/copy.h rdma_channel/base/copy_rows.c rdma_channel/base/copy_rows.h \
	rdma_channel/base/log.c rdma_channel/base/log.h \
	rdma_channel/base/setting.c rdma_channel/base/setting.h rdma_channel/base/peer_copy.h rdma_channel/base/stream_copy.h

# The whole channel, for what links it statically; ib/local.mk adds its transport to LIBADD.
noinst_LTLIBRARIES += rdma_channel/libhrchannel.la
rdma_channel_libhrchannel_la_SOURCES = \
	rdma_channel/barrier.c rdma_channel/barrier.h \
	rdma_channel/card.c rdma_channel/card.h \
	rdma_channel/channel.c \
	rdma_channel/channel_settings.c \
	rdma_channel/clock.h \
	rdma_channel/connect.c \
	rdma_channel/crc32.h \
	rdma_channel/events.c rdma_channel/fork.c \
	rdma_channel/host.c rdma_channel/host.h \
	rdma_channel/impl.h \
	rdma_channel/in_place.c \
	rdma_channel/iov.h \
	rdma_channel/listen.c rdma_channel/pacing.c rdma_channel/pacing.h \
	rdma_channel/shm/shm.c rdma_channel/shm/conn.c rdma_channel/shm/conn.h \
	rdma_channel/shm/put.c rdma_channel/shm/offer.c rdma_channel/shm/get.c rdma_channel/shm/in_place.c \
	rdma_channel/shm/near.c rdma_channel/shm/near.h rdma_channel/shm/sleep.c \
	rdma_channel/shm/ring.h rdma_channel/shm/copy.h \
	rdma_channel/shm/segment.c rdma_channel/shm/segment.h \
	rdma_channel/shm/numa.c rdma_channel/shm/numa.h \
	rdma_channel/remote_access.c rdma_channel/remote_access.h \
	rdma_channel/shm/single.c rdma_channel/shm/single.h \
	rdma_channel/stream.c rdma_channel/stream.h \
	rdma_channel/tcp/tcp.c rdma_channel/tcp/secret.h \
	rdma_channel/transport.h \
	rdma_channel/transports.c \
	rdma_channel/upper.h \
	rdma_channel/wireup.c rdma_channel/wireup.h
if HAVE_SODIUM
rdma_channel_libhrchannel_la_SOURCES += rdma_channel/tcp/secret.c
else
rdma_channel_libhrchannel_la_SOURCES += rdma_channel/tcp/secret_none.c
endif
rdma_channel_libhrchannel_la_CPPFLAGS = $(AM_CPPFLAGS) $(NUMA_CFLAGS) $(SODIUM_CFLAGS)
rdma_channel_libhrchannel_la_LIBADD = rdma_channel/base/libhrbase.la $(NUMA_LIBS) $(SODIUM_LIBS)

# The installed library.
lib_LTLIBRARIES += rdma_channel/libheadrace-channel.la
rdma_channel_libheadrace_channel_la_SOURCES =
rdma_channel_libheadrace_channel_la_LIBADD = rdma_channel/libhrchannel.la
rdma_channel_libheadrace_channel_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 \
	-Wl,--version-script=$(srcdir)/rdma_channel/channel.map
rdma_channel_libheadrace_channel_la_DEPENDENCIES = rdma_channel/libhrchannel.la rdma_channel/channel.map
EXTRA_DIST += rdma_channel/channel.map
pkgconfig_DATA += rdma_channel/headrace-channel.pc
dist_man_MANS += docs/man/hr_channel.7 \
	docs/man/hr_channel_arm.3 docs/man/hr_channel_conn_bytes.3 docs/man/hr_channel_connect.3 docs/man/hr_channel_fd.3 \
	docs/man/hr_channel_finalize.3 docs/man/hr_channel_get.3 docs/man/hr_channel_incoming.3 \
	docs/man/hr_channel_init.3 docs/man/hr_channel_put.3 docs/man/hr_channel_ready.3 \
	docs/man/hr_channel_version.3 docs/man/hr_channel_wait.3 docs/man/hr_conn_close.3 \
	docs/man/hr_conn_peer.3 docs/man/hr_conn_set_user.3 docs/man/hr_conn_state.3 \
	docs/man/hr_conn_stats.3 docs/man/hr_conn_transport.3 docs/man/hr_conn_user.3
