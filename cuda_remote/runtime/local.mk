# SPDX-License-Identifier: BSD-3-Clause
# Our CUDA runtime, where headrace-run finds it and programs can be relinked against it.
runtimedir = $(pkglibdir)/runtime
runtime_LTLIBRARIES = cuda_remote/runtime/libcudart.la
runtime_DATA = cuda_remote/runtime/libcudart_static.a
EXTRA_DIST += cuda_remote/runtime/gen_unsupported.py cuda_remote/runtime/more_names.list \
	cuda_remote/runtime/libcudart.map
CLEANFILES += cuda_remote/runtime/unsupported.c cuda_remote/runtime/cuda_runtime_api.i \
	cuda_remote/runtime/libcudart_static.a cuda_remote/runtime/libcudart_static.o

noinst_LTLIBRARIES += cuda_remote/runtime/libruntime.la cuda_remote/runtime/libruntime_legacy.la \
	cuda_remote/runtime/libruntime_ptsz.la
runtime_once_sources = \
	cuda_remote/runtime/array/array.c \
	cuda_remote/runtime/array/array_copy.c cuda_remote/runtime/array/array_copy.h \
	cuda_remote/runtime/array/channel_format.c cuda_remote/runtime/array/channel_format.h \
	cuda_remote/runtime/context.c \
	cuda_remote/runtime/copy.c cuda_remote/runtime/copy.h cuda_remote/runtime/copy_kind.h \
	cuda_remote/runtime/cuda_headers.h \
	cuda_remote/runtime/device.c \
	cuda_remote/runtime/driver.c cuda_remote/runtime/driver.h cuda_remote/runtime/driver_calls.h \
	cuda_remote/runtime/error.c cuda_remote/runtime/error.h cuda_remote/runtime/error_list.h \
	cuda_remote/runtime/fatbin.c cuda_remote/runtime/fatbin.h \
	cuda_remote/runtime/function.c \
	cuda_remote/runtime/graph/graph.c \
	cuda_remote/runtime/graph/graph_node.c \
	cuda_remote/runtime/graph/graph_params.c cuda_remote/runtime/graph/graph_params.h \
	cuda_remote/runtime/library.c \
	cuda_remote/runtime/memory.c \
	cuda_remote/runtime/notification.c \
	cuda_remote/runtime/pool.c \
	cuda_remote/runtime/registration.h \
	cuda_remote/runtime/registry.c \
	cuda_remote/runtime/runtime.h \
	cuda_remote/runtime/stream.c \
	cuda_remote/runtime/symbol_map.c cuda_remote/runtime/symbol_map.h \
	cuda_remote/runtime/array/texture.c \
	cuda_remote/runtime/unsupported.h
cuda_remote_runtime_libruntime_la_SOURCES = $(runtime_once_sources)
nodist_cuda_remote_runtime_libruntime_la_SOURCES = cuda_remote/runtime/unsupported.c
cuda_remote_runtime_libruntime_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)

# Functions with a variant for each kind of default stream: compiled twice, see default_stream.h.
runtime_twice_sources = \
	cuda_remote/runtime/batch_twice.c \
	cuda_remote/runtime/array/array_twice.c \
	cuda_remote/runtime/copy_twice.c \
	cuda_remote/runtime/graph/graph_twice.c \
	cuda_remote/runtime/launch_twice.c \
	cuda_remote/runtime/stream_twice.c \
	cuda_remote/runtime/default_stream.h
cuda_remote_runtime_libruntime_legacy_la_SOURCES = $(runtime_twice_sources)
cuda_remote_runtime_libruntime_legacy_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS)
cuda_remote_runtime_libruntime_ptsz_la_SOURCES = $(runtime_twice_sources)
cuda_remote_runtime_libruntime_ptsz_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DRUNTIME_PER_THREAD

runtime_parts = cuda_remote/runtime/libruntime.la cuda_remote/runtime/libruntime_legacy.la \
	cuda_remote/runtime/libruntime_ptsz.la rdma_channel/base/libhrbase.la

# Every name that NVIDIA's library exports; what is not implemented says so.
cuda_remote/runtime/cuda_runtime_api.i:
	$(AM_V_GEN)$(MKDIR_P) $(@D) && echo '#include <cuda_runtime_api.h>' | \
		$(CPP) -P $(CUDA_CPPFLAGS) -D__CUDA_API_VERSION_INTERNAL -x c - >$@.tmp && mv $@.tmp $@
cuda_remote/runtime/unsupported.c: cuda_remote/runtime/gen_unsupported.py cuda_remote/runtime/more_names.list \
		cuda_remote/runtime/cuda_runtime_api.i
	$(AM_V_GEN)$(PYTHON) $(srcdir)/cuda_remote/runtime/gen_unsupported.py \
		$(srcdir)/cuda_remote/runtime/more_names.list cuda_remote/runtime/cuda_runtime_api.i >$@.tmp && mv $@.tmp $@

cuda_remote_runtime_libcudart_la_SOURCES =
cuda_remote_runtime_libcudart_la_LIBADD = $(runtime_parts)
cuda_remote_runtime_libcudart_la_LDFLAGS = $(AM_LDFLAGS) -shared -version-info 13:0:0 -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/cuda_remote/runtime/libcudart.map
cuda_remote_runtime_libcudart_la_DEPENDENCIES = $(runtime_parts) cuda_remote/runtime/libcudart.map

# One object, so that the linker has chosen between weak and strong definitions before a program sees them, and nothing
# of ours but CUDA's interface can meet a name of the program's.
cuda_remote/runtime/libcudart_static.a: $(runtime_parts)
	$(AM_V_AR)rm -f $@ && \
	$(LD) -r -o cuda_remote/runtime/libcudart_static.o --whole-archive \
		cuda_remote/runtime/.libs/libruntime.a cuda_remote/runtime/.libs/libruntime_legacy.a \
		cuda_remote/runtime/.libs/libruntime_ptsz.a rdma_channel/base/.libs/libhrbase.a && \
	$(OBJCOPY) --localize-hidden cuda_remote/runtime/libcudart_static.o && \
	$(AR) rc $@ cuda_remote/runtime/libcudart_static.o

include cuda_remote/runtime/cuda12/local.mk

dist_man_MANS += docs/man/headrace-cudart.7
