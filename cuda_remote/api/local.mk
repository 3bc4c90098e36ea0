# SPDX-License-Identifier: BSD-3-Clause
# What every libcuda.so.1 here exports, from the toolkit's headers: see exports.h.
HR_DRIVER_CPPFLAGS = -D__CUDA_API_VERSION_INTERNAL -D__CUDA_API_PUSH_VISIBILITY_DEFAULT $(CUDA_CPPFLAGS)

noinst_LTLIBRARIES += cuda_remote/api/libcuapi.la
cuda_remote_api_libcuapi_la_SOURCES = \
	cuda_remote/api/exports.h cuda_remote/api/procaddress.c cuda_remote/api/errors.c
nodist_cuda_remote_api_libcuapi_la_SOURCES = cuda_remote/api/exports.c
cuda_remote_api_libcuapi_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)

EXTRA_DIST += cuda_remote/api/header.py cuda_remote/api/exports.py
CLEANFILES += cuda_remote/api/exports.c

cuda_remote/api/exports.c: cuda_remote/api/exports.py cuda_remote/api/header.py
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(PYTHON) -B $(srcdir)/cuda_remote/api/exports.py "$(CC) $(CUDA_CPPFLAGS)" > $@.new && mv $@.new $@
