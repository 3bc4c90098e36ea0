# SPDX-License-Identifier: BSD-3-Clause
# What every libcuda.so.1 here exports, from the toolkit's headers: see exports.h.
HR_DRIVER_CPPFLAGS = -D__CUDA_API_VERSION_INTERNAL -D__CUDA_API_PUSH_VISIBILITY_DEFAULT $(CUDA_CPPFLAGS)

noinst_LTLIBRARIES += cuda_remote/api/libcuapi.la
cuda_remote_api_libcuapi_la_SOURCES = \
	cuda_remote/api/exports.h cuda_remote/api/procaddress.c cuda_remote/api/errors.c cuda_remote/api/logs.c cuda_remote/api/old_names.c \
	cuda_remote/api/attributes.h cuda_remote/api/context_errors.h cuda_remote/api/jit_options.h cuda_remote/api/softgpu_name.h cuda_remote/fatbin.h
nodist_cuda_remote_api_libcuapi_la_SOURCES = cuda_remote/api/exports.c
cuda_remote_api_libcuapi_la_CPPFLAGS = $(AM_CPPFLAGS) $(HR_DRIVER_CPPFLAGS)

EXTRA_DIST += cuda_remote/api/header.py cuda_remote/api/exports.py
CLEANFILES += cuda_remote/api/exports.c

cuda_remote/api/exports.c: cuda_remote/api/exports.py cuda_remote/api/header.py
	$(AM_V_GEN)$(MKDIR_P) $(@D) && \
	$(PYTHON) -B $(srcdir)/cuda_remote/api/exports.py "$(CC) $(CUDA_CPPFLAGS)" > $@.new && mv $@.new $@

# The table of calls (calls/README.md) and what is made from it.
HR_CALL_TABLE = \
	cuda_remote/api/calls/array_copy.api cuda_remote/api/calls/context.api cuda_remote/api/calls/copy.api \
	cuda_remote/api/calls/device.api cuda_remote/api/calls/graph.api cuda_remote/api/calls/green.api cuda_remote/api/calls/ipc.api \
	cuda_remote/api/calls/launch.api cuda_remote/api/calls/memory.api cuda_remote/api/calls/module.api \
	cuda_remote/api/calls/peer.api cuda_remote/api/calls/pool.api cuda_remote/api/calls/refused.api cuda_remote/api/calls/stream.api \
	cuda_remote/api/calls/texture.api cuda_remote/api/calls/virtual.api
HR_CALL_GENERATED = cuda_remote/api/calls.h cuda_remote/api/names.c cuda_remote/api/driver.h cuda_remote/api/wire.txt cuda_remote/api/fuzz.h \
	cuda_remote/client/calls.c cuda_remote/server/calls.c
HR_CALL_INPUTS = cuda_remote/api/calls.py cuda_remote/api/header.py cuda_remote/api/widths.py $(HR_CALL_TABLE)
EXTRA_DIST += cuda_remote/api/calls.py cuda_remote/api/widths.py cuda_remote/api/calls/README.md $(HR_CALL_TABLE)
CLEANFILES += $(HR_CALL_GENERATED)
BUILT_SOURCES += $(HR_CALL_GENERATED)

HR_CALLS_PY = $(AM_V_GEN)$(MKDIR_P) $(@D) && \
	calls() { (cd $(srcdir) && $(PYTHON) -B cuda_remote/api/calls.py "$$1" "$(CC) $(CUDA_CPPFLAGS)" $(HR_CALL_TABLE)) \
		> "$$2.new" && mv "$$2.new" "$$2"; } && calls
cuda_remote/api/calls.h: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) calls.h $@
cuda_remote/api/names.c: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) names.c $@
cuda_remote/api/driver.h: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) driver.h $@
cuda_remote/api/wire.txt: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) wire.txt $@
cuda_remote/api/fuzz.h: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) fuzz.h $@
cuda_remote/client/calls.c: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) client.c $@
cuda_remote/server/calls.c: $(HR_CALL_INPUTS)
	$(HR_CALLS_PY) server.c $@

# Writes docs/COVERAGE.md: every function of cuda.h as forwarded, local, hand-written or not supported.
EXTRA_DIST += cuda_remote/api/coverage.py
coverage-api: cuda_remote/client/libcuda.la cuda_remote/softgpu/libcuda.la
	@here=`pwd` && cd $(srcdir) && $(PYTHON) -B cuda_remote/api/coverage.py docs/COVERAGE.md "$(CC) $(CUDA_CPPFLAGS)" \
		"$(NM)" $$here/cuda_remote/client/.libs/libcuda.so $$here/cuda_remote/softgpu/.libs/libcuda.so $(HR_CALL_TABLE)

# BUILT_SOURCES are made by "make all" alone; these by whatever target needs them.
$(cuda_remote_client_libcuda_la_OBJECTS): cuda_remote/api/calls.h
$(cuda_remote_server_libworker_la_OBJECTS): cuda_remote/api/calls.h cuda_remote/api/driver.h
