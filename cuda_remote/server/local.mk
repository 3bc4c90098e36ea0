# SPDX-License-Identifier: BSD-3-Clause
# The worker: what serves one client. Link it with cuda_remote/door/libhrdoor.la and ch3/libhrch3.la.
noinst_LTLIBRARIES += cuda_remote/server/libworker.la
cuda_remote_server_libworker_la_SOURCES = \
	cuda_remote/wire.h cuda_remote/call_follows.h cuda_remote/stream_priority.h cuda_remote/written_memory.h cuda_remote/linked_image.h cuda_remote/handle_table.h cuda_remote/server/worker.h cuda_remote/server/internal.h \
	cuda_remote/server/array_copy.c cuda_remote/server/call_order.c cuda_remote/server/context.c \
	cuda_remote/server/copy_early.c cuda_remote/server/copy_pinned.c cuda_remote/server/copy_staged.c cuda_remote/server/copy_to_device.c cuda_remote/server/copy_to_host.c \
	cuda_remote/server/driver.c cuda_remote/server/grant.c cuda_remote/server/graph/arrive.c cuda_remote/server/graph/build.c \
	cuda_remote/server/graph/calls.c cuda_remote/server/green.c cuda_remote/server/graph/conditional.c cuda_remote/server/graph/graph.h cuda_remote/server/graph/host.c cuda_remote/server/hello.c \
	cuda_remote/server/hostfn.c cuda_remote/server/image.c cuda_remote/server/image.h cuda_remote/server/image_variables.c \
	cuda_remote/softgpu/fatbin/complain.c cuda_remote/softgpu/fatbin/complain.h cuda_remote/softgpu/fatbin/unpack.c cuda_remote/softgpu/fatbin/unpack.h \
	cuda_remote/handle_files.h cuda_remote/server/ipc/ipc.c cuda_remote/server/ipc/ipc_pool.c \
	cuda_remote/server/ipc/meeting.c cuda_remote/server/ipc/meeting.h \
	cuda_remote/server/latch.c \
	cuda_remote/server/mirror.c $(MIRROR_SOURCES) \
	cuda_remote/server/launch.c cuda_remote/server/limits.c cuda_remote/server/linker.c cuda_remote/server/memory.c cuda_remote/server/module.c \
	cuda_remote/server/numbers.c cuda_remote/server/objects.c cuda_remote/server/output.c cuda_remote/server/peer.c \
	cuda_remote/server/peer/copies.c cuda_remote/server/peer/copies.h \
	cuda_remote/server/peer/device.c cuda_remote/server/peer/link.c cuda_remote/server/peer/link.h cuda_remote/server/peer/meet.c \
	cuda_remote/server/peer/places.c \
	cuda_remote/server/peer/transfer.c \
	cuda_remote/server/placed/device_mirror.c cuda_remote/server/placed/device_mirror.h \
	cuda_remote/server/placed/placed_ipc.c cuda_remote/server/placed/placed_ipc.h \
	cuda_remote/server/placed/placed_virtual.c cuda_remote/server/placed/placed_virtual.h cuda_remote/server/placed/virtual_extents.c \
	cuda_remote/server/pinned.c cuda_remote/server/quota.c cuda_remote/server/slots.c cuda_remote/server/stream.c cuda_remote/server/stream_memory.c \
	cuda_remote/server/data/connection.c cuda_remote/server/data/data.h cuda_remote/server/data/fetch.c \
	cuda_remote/server/data/lane.c cuda_remote/server/data/push.c cuda_remote/server/data/sends.c \
	cuda_remote/server/tensor_map.c cuda_remote/server/thread.c \
	cuda_remote/server/traffic.c cuda_remote/server/usage.c cuda_remote/server/usage.h cuda_remote/server/usage_objects.c \
	cuda_remote/server/usage_pools.c \
	cuda_remote/server/virtual.c cuda_remote/server/watch.c cuda_remote/server/worker.c
nodist_cuda_remote_server_libworker_la_SOURCES = cuda_remote/server/calls.c cuda_remote/api/names.c
cuda_remote_server_libworker_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS)
cuda_remote_server_libworker_la_LIBADD = $(ZSTD_LIBS) $(LZ4_LIBS)

sbin_PROGRAMS += cuda_remote/server/headraced
cuda_remote_server_headraced_SOURCES =
cuda_remote_server_headraced_LDADD = \
	cuda_remote/server/daemon/libhrdaemon.la cuda_remote/server/libworker.la cuda_remote/door/libhrdoor.la ch3/libhrch3.la
