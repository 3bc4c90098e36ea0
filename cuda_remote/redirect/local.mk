# SPDX-License-Identifier: BSD-3-Clause
# Preloaded by headrace-run: leads dlopen to Headrace's libraries. It lies beside the runtime.
runtime_LTLIBRARIES += cuda_remote/runtime/libheadrace-redirect.la
cuda_remote_runtime_libheadrace_redirect_la_SOURCES = \
	cuda_remote/redirect/tail_call.h cuda_remote/redirect/redirect.c
cuda_remote_runtime_libheadrace_redirect_la_LIBADD = -ldl
# nodelete: other objects may be bound to its dlopen.
cuda_remote_runtime_libheadrace_redirect_la_LDFLAGS = $(AM_LDFLAGS) -module -shared -avoid-version -Wl,-z,nodelete
