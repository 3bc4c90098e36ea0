# SPDX-License-Identifier: BSD-3-Clause

# The engine alone, for tests that bring a channel of their own, and with the channel, for everybody else.
noinst_LTLIBRARIES += ch3/libhrch3core.la ch3/libhrch3.la
ch3_libhrch3core_la_SOURCES = \
	ch3/ch3.h ch3/packet.h ch3/internal.h \
	ch3/access.c ch3/ahead.c ch3/cursor.c ch3/engine.c ch3/ids.c ch3/numbers.c ch3/pack.c \
	ch3/peers.c ch3/progress.c ch3/receive.c ch3/request.c ch3/rndv.c \
	ch3/send.c ch3/vc.c ch3/write.c
ch3_libhrch3_la_SOURCES =
ch3_libhrch3_la_LIBADD = ch3/libhrch3core.la rdma_channel/libhrchannel.la
