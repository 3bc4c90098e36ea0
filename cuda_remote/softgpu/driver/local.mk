# SPDX-License-Identifier: BSD-3-Clause
# The software GPU's driver without its engine: libsgdriver.la.
SOFTGPU_DRIVER_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS)

# Files compiled twice, see cuda_api.h.
SOFTGPU_TWINS = \
	cuda_remote/softgpu/driver/calls_batch.c \
	cuda_remote/softgpu/driver/calls_array.c \
	cuda_remote/softgpu/driver/calls_copy.c \
	cuda_remote/softgpu/driver/calls_graph.c \
	cuda_remote/softgpu/driver/calls_launch.c \
	cuda_remote/softgpu/driver/calls_memop.c \
	cuda_remote/softgpu/driver/calls_memory.c \
	cuda_remote/softgpu/driver/calls_stream.c \
	cuda_remote/softgpu/driver/calls_stream_attribute.c

noinst_LTLIBRARIES += cuda_remote/softgpu/libsgdriver.la cuda_remote/softgpu/libsgtwins.la
cuda_remote_softgpu_libsgtwins_la_SOURCES = $(SOFTGPU_TWINS)
cuda_remote_softgpu_libsgtwins_la_CPPFLAGS = $(SOFTGPU_DRIVER_CPPFLAGS) -DSOFTGPU_PER_THREAD

cuda_remote_softgpu_libsgdriver_la_CPPFLAGS = $(SOFTGPU_DRIVER_CPPFLAGS)
cuda_remote_softgpu_libsgdriver_la_LIBADD = cuda_remote/softgpu/libsgtwins.la $(ZSTD_LIBS) $(LZ4_LIBS)
cuda_remote_softgpu_libsgdriver_la_SOURCES = \
	$(SOFTGPU_TWINS) \
	cuda_remote/softgpu/engine.h \
	cuda_remote/softgpu/memory.h \
	cuda_remote/softgpu/driver/calls.h \
	cuda_remote/softgpu/driver/capabilities.c \
	cuda_remote/softgpu/driver/capture.c \
	cuda_remote/softgpu/driver/capture.h \
	cuda_remote/softgpu/driver/array.c \
	cuda_remote/softgpu/driver/array.h \
	cuda_remote/softgpu/driver/array_format.c \
	cuda_remote/softgpu/driver/array_format.h \
	cuda_remote/softgpu/driver/context.c \
	cuda_remote/softgpu/driver/context.h \
	cuda_remote/softgpu/driver/context_event.c \
	cuda_remote/softgpu/driver/context_state.c \
	cuda_remote/softgpu/driver/copy.c \
	cuda_remote/softgpu/driver/copy.h \
	cuda_remote/softgpu/driver/copy_batch.c \
	cuda_remote/softgpu/driver/copy_batch.h \
	cuda_remote/softgpu/driver/coredump.c \
	cuda_remote/softgpu/driver/cuda_api.h \
	cuda_remote/softgpu/driver/device.c \
	cuda_remote/softgpu/driver/device.h \
	cuda_remote/softgpu/driver/device_attributes.c \
	cuda_remote/softgpu/driver/device_resource.c \
	cuda_remote/softgpu/driver/event.c \
	cuda_remote/softgpu/driver/event.h \
	cuda_remote/softgpu/driver/function.c \
	cuda_remote/softgpu/driver/graph.c \
	cuda_remote/softgpu/driver/graph.h \
	cuda_remote/softgpu/driver/graph_attributes.c \
	cuda_remote/softgpu/driver/graph_conditional.c \
	cuda_remote/softgpu/driver/graph_dot.c \
	cuda_remote/softgpu/driver/graph_exec.c \
	cuda_remote/softgpu/driver/graph_exec.h \
	cuda_remote/softgpu/driver/graph_launch.c \
	cuda_remote/softgpu/driver/graph_memory.c \
	cuda_remote/softgpu/driver/graph_memory.h \
	cuda_remote/softgpu/driver/graph_node.c \
	cuda_remote/softgpu/driver/graph_nodes.c \
	cuda_remote/softgpu/driver/graph_params.c \
	cuda_remote/softgpu/driver/graph_run.c \
	cuda_remote/softgpu/driver/graph_run.h \
	cuda_remote/softgpu/driver/graph_topology.c \
	cuda_remote/softgpu/driver/graph_update.c \
	cuda_remote/softgpu/driver/green.c \
	cuda_remote/softgpu/driver/green.h \
	cuda_remote/softgpu/driver/handle.c \
	cuda_remote/softgpu/driver/handle.h \
	cuda_remote/softgpu/driver/host_function.c \
	cuda_remote/softgpu/driver/host_function.h \
	cuda_remote/softgpu/driver/image.c \
	cuda_remote/softgpu/driver/image.h \
	cuda_remote/softgpu/driver/init.c \
	cuda_remote/softgpu/driver/init.h \
	cuda_remote/softgpu/driver/ipc.c \
	cuda_remote/softgpu/driver/ipc.h \
	cuda_remote/softgpu/driver/ipc_event.c \
	cuda_remote/softgpu/driver/ipc_event.h \
	cuda_remote/softgpu/driver/launch.c \
	cuda_remote/softgpu/driver/launch.h \
	cuda_remote/softgpu/driver/library.c \
	cuda_remote/softgpu/driver/link.c \
	cuda_remote/softgpu/driver/logs.c \
	cuda_remote/softgpu/driver/managed.c \
	cuda_remote/softgpu/driver/managed.h \
	cuda_remote/softgpu/driver/memop.c \
	cuda_remote/softgpu/driver/memop.h \
	cuda_remote/softgpu/driver/memory.c \
	cuda_remote/softgpu/driver/managed_range.c \
	cuda_remote/softgpu/driver/managed_range.h \
	cuda_remote/softgpu/driver/module.c \
	cuda_remote/softgpu/driver/module.h \
	cuda_remote/softgpu/driver/notification.c \
	cuda_remote/softgpu/driver/occupancy.c \
	cuda_remote/softgpu/driver/old_launch.c \
	cuda_remote/softgpu/driver/old_names.c \
	cuda_remote/softgpu/driver/owned.c \
	cuda_remote/softgpu/driver/owned.h \
	cuda_remote/softgpu/driver/pointer.c \
	cuda_remote/softgpu/driver/pool.c \
	cuda_remote/softgpu/driver/pool.h \
	cuda_remote/softgpu/driver/primary.c \
	cuda_remote/softgpu/driver/queue.c \
	cuda_remote/softgpu/driver/queue.h \
	cuda_remote/softgpu/driver/stream.c \
	cuda_remote/softgpu/driver/stream.h \
	cuda_remote/softgpu/driver/virtual.c \
	cuda_remote/softgpu/driver/virtual.h \
	cuda_remote/softgpu/driver/user_object.c \
	cuda_remote/softgpu/driver/tensor_map.c \
	cuda_remote/softgpu/driver/texture_object.c \
	cuda_remote/softgpu/driver/texture_reference.c \
	cuda_remote/softgpu/driver/texture_reference.h \
	cuda_remote/softgpu/driver/texture_resource.c \
	cuda_remote/softgpu/driver/texture_resource.h \
	cuda_remote/softgpu/tensor_map.h \
	cuda_remote/softgpu/texture.h \
	cuda_remote/softgpu/fatbin/fatbin.c \
	cuda_remote/softgpu/fatbin/fatbin.h \
	cuda_remote/softgpu/fatbin/host_object.c \
	cuda_remote/softgpu/fatbin/host_object.h \
	cuda_remote/softgpu/fatbin/linked.c \
	cuda_remote/softgpu/fatbin/linked.h \
	cuda_remote/softgpu/fatbin/unpack.c \
	cuda_remote/softgpu/fatbin/unpack.h \
	cuda_remote/softgpu/memory/bitmap.h \
	cuda_remote/softgpu/memory/registered.c \
	cuda_remote/softgpu/memory/registered.h \
	cuda_remote/softgpu/memory/shared.c \
	cuda_remote/softgpu/memory/shared.h \
	cuda_remote/softgpu/memory/space.c \
	cuda_remote/softgpu/memory/space.h
