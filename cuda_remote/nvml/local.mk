# SPDX-License-Identifier: BSD-3-Clause
# NVML over libcuda.so.1. It lies beside each of our libcuda.so.1 and loads that one, so it is built into both folders.
noinst_LTLIBRARIES += cuda_remote/nvml/libnvml.la
cuda_remote_nvml_libnvml_la_SOURCES = \
	cuda_remote/nvml/nvml_api.h cuda_remote/nvml/internal.h cuda_remote/nvml/attributes.c cuda_remote/nvml/device.c \
	cuda_remote/nvml/driver.c cuda_remote/nvml/init.c cuda_remote/nvml/processes.c
nodist_cuda_remote_nvml_libnvml_la_SOURCES = cuda_remote/nvml/stubs.c
cuda_remote_nvml_libnvml_la_CPPFLAGS = $(AM_CPPFLAGS) $(CUDA_CPPFLAGS) -DHR_VERSION='"$(PACKAGE_VERSION)"'
cuda_remote_nvml_libnvml_la_LIBADD = cuda_remote/door/libhrdoor.la

CLEANFILES += cuda_remote/nvml/stubs.c
EXTRA_DIST += cuda_remote/nvml/names.py cuda_remote/nvml/nvml.names cuda_remote/nvml/libnvidia-ml.map
cuda_remote/nvml/stubs.c: cuda_remote/nvml/names.py cuda_remote/nvml/nvml.names
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(PYTHON) -B $(srcdir)/cuda_remote/nvml/names.py --stubs \
		$(srcdir)/cuda_remote/nvml/nvml.names > $@.new && mv $@.new $@

NVML_LDFLAGS = $(AM_LDFLAGS) -shared -version-info 1:0:0 -no-undefined -Wl,-z,nodelete -Wl,-z,defs -Wl,-Bsymbolic \
	-Wl,--version-script=$(srcdir)/cuda_remote/nvml/libnvidia-ml.map
cudaclient_LTLIBRARIES += cuda_remote/client/libnvidia-ml.la
cuda_remote_client_libnvidia_ml_la_SOURCES =
cuda_remote_client_libnvidia_ml_la_LIBADD = cuda_remote/nvml/libnvml.la -ldl
cuda_remote_client_libnvidia_ml_la_LDFLAGS = $(NVML_LDFLAGS)
EXTRA_cuda_remote_client_libnvidia_ml_la_DEPENDENCIES = cuda_remote/nvml/libnvidia-ml.map
softgpu_LTLIBRARIES += cuda_remote/softgpu/libnvidia-ml.la
cuda_remote_softgpu_libnvidia_ml_la_SOURCES =
cuda_remote_softgpu_libnvidia_ml_la_LIBADD = cuda_remote/nvml/libnvml.la -ldl
cuda_remote_softgpu_libnvidia_ml_la_LDFLAGS = $(NVML_LDFLAGS)
EXTRA_cuda_remote_softgpu_libnvidia_ml_la_DEPENDENCIES = cuda_remote/nvml/libnvidia-ml.map
