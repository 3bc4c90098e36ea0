# SPDX-License-Identifier: BSD-3-Clause
# The forwarding driver. It is in a folder of its own, as headrace-run puts that folder into the library path.
cudaclientdir = $(pkglibdir)/client
cudaclient_LTLIBRARIES = cuda_remote/client/libcuda.la
cuda_client_but_session = \
	cuda_remote/bitmap.h cuda_remote/handle_table.h cuda_remote/wire.h \
	cuda_remote/client/alias.c cuda_remote/client/allocate.c cuda_remote/client/array.c \
	cuda_remote/client/array.h cuda_remote/client/array_copy.c cuda_remote/client/chunks.c \
	cuda_remote/client/chunks.h cuda_remote/client/context.c cuda_remote/client/context.h \
	cuda_remote/client/copy.c cuda_remote/client/copy.h cuda_remote/client/copy_batch.c \
	cuda_remote/client/copy_table.c cuda_remote/client/copy_ways.c cuda_remote/client/delay.c \
	cuda_remote/client/device.c cuda_remote/client/done.c cuda_remote/client/done.h cuda_remote/client/early.c \
	cuda_remote/client/early.h cuda_remote/client/handle.c cuda_remote/client/handle.h cuda_remote/client/held.c \
	cuda_remote/client/hooks.h cuda_remote/client/host_pool.c cuda_remote/client/hostfn.c \
	cuda_remote/client/hostfn.h cuda_remote/client/hostmem.c cuda_remote/client/hostmem.h \
	cuda_remote/client/image.c cuda_remote/client/image.h cuda_remote/client/kernel.c cuda_remote/client/kernel.h \
	cuda_remote/client/launch.c cuda_remote/client/library.c cuda_remote/client/link.c cuda_remote/client/link.h \
	cuda_remote/client/linker.c cuda_remote/client/managed.c cuda_remote/client/memory.c \
	cuda_remote/client/memory.h cuda_remote/client/module.c cuda_remote/client/module.h \
	cuda_remote/client/pinned.c cuda_remote/client/pinned.h cuda_remote/client/pool.c cuda_remote/client/route.c \
	cuda_remote/client/rows.c cuda_remote/client/session.h cuda_remote/client/shared_window.c \
	cuda_remote/client/slab.c cuda_remote/client/stream.c cuda_remote/client/stream.h \
	cuda_remote/client/stream_memory.c cuda_remote/client/texture.c cuda_remote/client/unmapped.c \
	cuda_remote/client/virtual.c cuda_remote/client/window.c cuda_remote/client/window.h \
	cuda_remote/client/data/connection.c cuda_remote/client/data/data.h cuda_remote/client/data/fetch.c \
	cuda_remote/client/graph/capture_calls.c cuda_remote/client/graph/capture_calls.h \
	cuda_remote/client/graph/conditional.c cuda_remote/client/graph/graph_allocation.c \
	cuda_remote/client/graph/graph_calls.h cuda_remote/client/graph/graph_client.h \
	cuda_remote/client/graph/graph_driver.c cuda_remote/client/graph/graph_host.c \
	cuda_remote/client/graph/graph_send.c cuda_remote/client/graph/graph_spread.c \
	cuda_remote/client/graph/graph_spread.h cuda_remote/client/graph/streams.c \
	cuda_remote/client/green/green.c cuda_remote/client/green/green.h cuda_remote/client/green/resource.c \
	cuda_remote/client/ipc/handle_file.c cuda_remote/client/ipc/handle_file.h cuda_remote/client/ipc/ipc_event.c \
	cuda_remote/client/ipc/ipc_memory.c cuda_remote/client/ipc/ipc_pool.c cuda_remote/client/ipc/ipc_virtual.c \
	cuda_remote/client/mirror/client_mirror.c cuda_remote/client/mirror/client_mirror.h \
	cuda_remote/client/mirror/mirror_memory.c cuda_remote/client/mirror/mirror_variable.c \
	cuda_remote/client/mirror/promote.c \
	cuda_remote/client/peer/peer.c cuda_remote/client/peer/peer.h cuda_remote/client/peer/peer_calls.c \
	cuda_remote/client/peer/peer_calls.h cuda_remote/client/peer/peer_copy.c cuda_remote/client/peer/peer_link.c \
	cuda_remote/client/peer/peer_plan.c \
	cuda_remote/client/small/context_event.c cuda_remote/client/small/notification.c \
	cuda_remote/client/small/old_launch.c cuda_remote/client/small/reference_array.c \
	cuda_remote/client/small/tensor_map.c \
	$(MIRROR_SOURCES) $(GRAPH_SOURCES) $(GRAPH_TWICE) $(MANAGED_SOURCES) $(MANAGED_TWICE)
# The calls that have a variant for programs with a default stream for each thread.
noinst_LTLIBRARIES += cuda_remote/client/libgraphtwice.la
cuda_remote_client_libgraphtwice_la_SOURCES = $(GRAPH_TWICE) $(MANAGED_TWICE)
cuda_remote_client_libgraphtwice_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS) -DCUDA_PER_THREAD
cuda_remote_client_libcuda_la_SOURCES = $(cuda_client_but_session) cuda_remote/client/session.c
nodist_cuda_remote_client_libcuda_la_SOURCES = cuda_remote/client/calls.c cuda_remote/api/names.c
cuda_remote_client_libcuda_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)
cuda_remote_client_libcuda_la_LIBADD = \
	cuda_remote/client/libgraphtwice.la \
	cuda_remote/api/libcuapi.la cuda_remote/door/libhrdoorcore.la ch3/libhrch3.la
# nodelete: the destructors of thread-specific data must stay callable. Bsymbolic: the library's own calls of cu*
# functions must not go to another library that exports them.
cuda_remote_client_libcuda_la_LDFLAGS = $(AM_LDFLAGS) -version-info 1:0:0 -Wl,-z,nodelete -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/cuda_remote/client/client.map
cuda_remote_client_libcuda_la_DEPENDENCIES = $(cuda_remote_client_libcuda_la_LIBADD) cuda_remote/client/client.map
EXTRA_DIST += cuda_remote/client/client.map
