# SPDX-License-Identifier: BSD-3-Clause
# The verbs transport, where libibverbs was found; without it the channel has shared memory and TCP.
if HAVE_IBVERBS
noinst_LTLIBRARIES += ib/libhrib.la
ib_libhrib_la_SOURCES = \
	ib/ib_adapters.c ib/ib_adapters.h \
	ib/ib_basic.c \
	ib/ib_cache.c ib/ib_cache.h \
	ib/ib_conn.c ib/ib_conn.h \
	ib/ib_device.c ib/ib_device.h \
	ib/ib_events.c ib/ib_events.h \
	ib/ib_flat.c ib/ib_flat.h \
	ib/ib_gauge.c ib/ib_gauge.h \
	ib/ib_maps.c ib/ib_maps.h \
	ib/ib_memory.c ib/ib_memory.h \
	ib/ib_offer.c ib/ib_offer.h \
	ib/ib_piggyback.c \
	ib/ib_pipeline.c \
	ib/ib_pull.c ib/ib_pull.h \
	ib/ib_qp.c ib/ib_qp.h \
	ib/ib_register.c ib/ib_register.h \
	ib/ib_ring.c ib/ib_ring.h \
	ib/ib_sleep.c \
	ib/ib_access.c ib/ib_access.h \
	ib/ib_transport.c \
	ib/ib_zerocopy.c
ib_libhrib_la_CPPFLAGS = $(AM_CPPFLAGS) $(IBVERBS_CFLAGS)
ib_libhrib_la_LIBADD = $(IBVERBS_LIBS)
rdma_channel_libhrchannel_la_LIBADD += ib/libhrib.la
endif
