# SPDX-License-Identifier: BSD-3-Clause
# Programs that use the GPUs of two servers, each on a host of its own.
EXTRA_DIST += %D%/triangles.cu
dist_check_SCRIPTS += %D%/link_address_test.sh %D%/three_hosts_test.sh
if HAVE_NVCC
CHECK_BINARIES += %D%/triangles
CLEANFILES += %D%/triangles
TESTS += %D%/link_address_test.sh %D%/three_hosts_test.sh
%D%/triangles: %D%/triangles.cu
	$(AM_V_GEN)$(MKDIR_P) $(@D) && $(NVCC) -std=c++17 -cudart shared -Wno-deprecated-gpu-targets -arch=compute_75 -o $@ \
		$(srcdir)/%D%/triangles.cu
endif
