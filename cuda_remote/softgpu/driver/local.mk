# SPDX-License-Identifier: BSD-3-Clause
# The software GPU's driver without its engine: libsgdriver.la.
SOFTGPU_DRIVER_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS) $(ZSTD_CFLAGS) $(LZ4_CFLAGS)

# Files compiled twice, see cuda_api.h.
SOFTGPU_TWICE =

noinst_LTLIBRARIES += cuda_remote/softgpu/libsgdriver.la cuda_remote/softgpu/libsgtwice.la
cuda_remote_softgpu_libsgtwice_la_SOURCES = $(SOFTGPU_TWICE)
cuda_remote_softgpu_libsgtwice_la_CPPFLAGS = $(SOFTGPU_DRIVER_CPPFLAGS) -DSOFTGPU_PER_THREAD -DCUDA_PER_THREAD

cuda_remote_softgpu_libsgdriver_la_CPPFLAGS = $(SOFTGPU_DRIVER_CPPFLAGS)
cuda_remote_softgpu_libsgdriver_la_LIBADD = cuda_remote/softgpu/libsgtwice.la $(ZSTD_LIBS) $(LZ4_LIBS)
cuda_remote_softgpu_libsgdriver_la_SOURCES = \
	$(SOFTGPU_TWICE) \
	cuda_remote/softgpu/engine.h \
	cuda_remote/softgpu/memory_map.h \
	cuda_remote/softgpu/driver/cuda_api.h \
	cuda_remote/softgpu/driver/init.c \
	cuda_remote/softgpu/driver/init.h \
	cuda_remote/softgpu/driver/ipc_handle.c \
	cuda_remote/softgpu/driver/ipc_handle.h \
	cuda_remote/softgpu/driver/notification.c \
	cuda_remote/softgpu/tensor_map.h \
	cuda_remote/softgpu/texture.h \
	cuda_remote/softgpu/fatbin/complain.c \
	cuda_remote/softgpu/fatbin/complain.h \
	cuda_remote/softgpu/fatbin/fatbin.c \
	cuda_remote/softgpu/fatbin/fatbin.h \
	cuda_remote/softgpu/fatbin/host_object.c \
	cuda_remote/softgpu/fatbin/host_object.h \
	cuda_remote/softgpu/fatbin/linked.c \
	cuda_remote/softgpu/fatbin/linked.h \
	cuda_remote/softgpu/fatbin/unpack.c \
	cuda_remote/softgpu/fatbin/unpack.h \
	cuda_remote/bitmap.h \
	cuda_remote/softgpu/space/allocation.h \
	cuda_remote/softgpu/space/registered.c \
	cuda_remote/softgpu/space/registered.h \
	cuda_remote/softgpu/space/shared.c \
	cuda_remote/softgpu/space/shared.h \
	cuda_remote/softgpu/space/space.c \
	cuda_remote/softgpu/space/space.h \
	cuda_remote/softgpu/space/windows.c \
	cuda_remote/softgpu/space/windows.h

include cuda_remote/softgpu/driver/device/local.mk
include cuda_remote/softgpu/driver/queue/local.mk
include cuda_remote/softgpu/driver/context/local.mk
include cuda_remote/softgpu/driver/stream/local.mk
include cuda_remote/softgpu/driver/graph/local.mk
include cuda_remote/softgpu/driver/memory/local.mk
include cuda_remote/softgpu/driver/texture/local.mk
include cuda_remote/softgpu/driver/module/local.mk
