# SPDX-License-Identifier: BSD-3-Clause
# CUDA 12's runtime library: the sources of CUDA 13's, compiled with CUDA 12's structures and names. In a folder of its
# own, as the two libraries have the same name for the linker. headrace-run finds it by a link in the other's folder.
runtime12dir = $(runtimedir)/cuda12
runtime12_LTLIBRARIES = cuda_remote/runtime/cuda12/libcudart.la
noinst_DATA += cuda_remote/runtime/.libs/libcudart.so.12
EXTRA_DIST += cuda_remote/runtime/cuda12/exports.list
CLEANFILES += cuda_remote/runtime/cuda12/unsupported.c cuda_remote/runtime/cuda12/libcudart.map \
	cuda_remote/runtime/.libs/libcudart.so.12

runtime12_cppflags = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DRUNTIME_CUDA_12
noinst_LTLIBRARIES += cuda_remote/runtime/cuda12/libruntime.la cuda_remote/runtime/cuda12/libruntime_legacy.la \
	cuda_remote/runtime/cuda12/libruntime_ptsz.la
cuda_remote_runtime_cuda12_libruntime_la_SOURCES = $(runtime_once_sources) \
	cuda_remote/runtime/cuda12/first_versions.c cuda_remote/runtime/cuda12/first_versions.h \
	cuda_remote/runtime/cuda12/headers.h cuda_remote/runtime/cuda12/structs.h
nodist_cuda_remote_runtime_cuda12_libruntime_la_SOURCES = cuda_remote/runtime/cuda12/unsupported.c
cuda_remote_runtime_cuda12_libruntime_la_CPPFLAGS = $(runtime12_cppflags)

runtime12_twice_sources = $(runtime_twice_sources) cuda_remote/runtime/cuda12/first_versions_twice.c
cuda_remote_runtime_cuda12_libruntime_legacy_la_SOURCES = $(runtime12_twice_sources)
cuda_remote_runtime_cuda12_libruntime_legacy_la_CPPFLAGS = $(runtime12_cppflags)
cuda_remote_runtime_cuda12_libruntime_ptsz_la_SOURCES = $(runtime12_twice_sources)
cuda_remote_runtime_cuda12_libruntime_ptsz_la_CPPFLAGS = $(runtime12_cppflags) -DRUNTIME_PER_THREAD

# Every name that NVIDIA's library exports, and no other: the sources also define functions that only CUDA 13 has.
cuda_remote/runtime/cuda12/unsupported.c: cuda_remote/runtime/gen_unsupported.py cuda_remote/runtime/cuda12/exports.list
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) $(srcdir)/cuda_remote/runtime/gen_unsupported.py \
		$(srcdir)/cuda_remote/runtime/cuda12/exports.list >$@.tmp && mv $@.tmp $@
cuda_remote/runtime/cuda12/libcudart.map: cuda_remote/runtime/cuda12/exports.list
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) 'BEGIN { print "libcudart.so.12 {\nglobal:" } !/^#/ { print $$1 ";" } \
		END { print "local:\n*;\n};" }' $(srcdir)/cuda_remote/runtime/cuda12/exports.list >$@.tmp && mv $@.tmp $@

runtime12_parts = cuda_remote/runtime/cuda12/libruntime.la cuda_remote/runtime/cuda12/libruntime_legacy.la \
	cuda_remote/runtime/cuda12/libruntime_ptsz.la rdma_channel/base/libhrbase.la
cuda_remote_runtime_cuda12_libcudart_la_SOURCES =
cuda_remote_runtime_cuda12_libcudart_la_LIBADD = $(runtime12_parts)
cuda_remote_runtime_cuda12_libcudart_la_LDFLAGS = $(AM_LDFLAGS) -shared -version-info 12:0:0 -Wl,-Bsymbolic \
	-Wl,--version-script=cuda_remote/runtime/cuda12/libcudart.map
cuda_remote_runtime_cuda12_libcudart_la_DEPENDENCIES = $(runtime12_parts) cuda_remote/runtime/cuda12/libcudart.map

cuda_remote/runtime/.libs/libcudart.so.12: cuda_remote/runtime/cuda12/libcudart.la
	$(AM_V_at)$(MKDIR_P) $(@D) && $(LN_S) -f ../cuda12/.libs/libcudart.so.12 $@
install-data-hook:
	cd $(DESTDIR)$(runtimedir) && $(LN_S) -f cuda12/libcudart.so.12 libcudart.so.12
uninstall-hook:
	rm -f $(DESTDIR)$(runtimedir)/libcudart.so.12
