# SPDX-License-Identifier: BSD-3-Clause
# Preloaded by headrace-run: replaces NVIDIA's static runtime in programs. It lies beside the runtime that it jumps to.
noinst_LTLIBRARIES += cuda_remote/relink/libhrelf.la
cuda_remote_relink_libhrelf_la_SOURCES = \
	cuda_remote/relink/elf_file.h cuda_remote/relink/elf_file.c \
	cuda_remote/relink/runtime_entries.h cuda_remote/relink/runtime_entries.c
nodist_cuda_remote_relink_libhrelf_la_SOURCES = cuda_remote/relink/later_functions.h
BUILT_SOURCES += cuda_remote/relink/later_functions.h
CLEANFILES += cuda_remote/relink/later_functions.h
cuda_remote/relink/later_functions.h: cuda_remote/runtime/cuda12/exports.list
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(AWK) '!/^#/ && NF == 2 { sub(/12[.]/, "", $$2); \
		print "{ \"" $$1 "\", " 12000 + $$2 * 10 " }," }' \
		$(srcdir)/cuda_remote/runtime/cuda12/exports.list >$@.tmp && mv $@.tmp $@

runtime_LTLIBRARIES += cuda_remote/runtime/libheadrace-relink.la
cuda_remote_runtime_libheadrace_relink_la_SOURCES = \
	cuda_remote/relink/code_patch.h cuda_remote/relink/code_patch.c \
	cuda_remote/relink/entry_points.h cuda_remote/relink/entry_points.c \
	cuda_remote/relink/known_objects.h cuda_remote/relink/known_objects.c cuda_remote/relink/late.h \
	cuda_remote/relink/python_module.h cuda_remote/relink/python_module.c \
	cuda_remote/relink/relink.c
cuda_remote_runtime_libheadrace_relink_la_LIBADD = cuda_remote/relink/libhrelf.la rdma_channel/base/libhrbase.la
# initfirst: before the constructors of other libraries. nodelete: replaced functions may jump into it.
cuda_remote_runtime_libheadrace_relink_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -avoid-version \
	-Wl,-z,initfirst -Wl,-z,nodelete

# Loaded at the first dlopen. See late.c for -nostartfiles.
runtime_LTLIBRARIES += cuda_remote/runtime/libheadrace-late.la
cuda_remote_runtime_libheadrace_late_la_SOURCES = cuda_remote/relink/late.h cuda_remote/relink/late.c
cuda_remote_runtime_libheadrace_late_la_LIBADD =
cuda_remote_runtime_libheadrace_late_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -avoid-version -XCClinker -nostartfiles \
	-Wl,-z,now -Wl,-z,nodelete
