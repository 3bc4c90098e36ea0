# SPDX-License-Identifier: BSD-3-Clause
if HAVE_CUDA
include cuda_remote/api/local.mk
include cuda_remote/graph/local.mk
include cuda_remote/managed/local.mk
include cuda_remote/mirror/local.mk
include cuda_remote/door/local.mk
include cuda_remote/client/local.mk
include cuda_remote/server/local.mk
include cuda_remote/server/daemon/local.mk
include cuda_remote/softgpu/local.mk
include cuda_remote/nvml/local.mk
include cuda_remote/runtime/local.mk
include cuda_remote/redirect/local.mk
include cuda_remote/relink/local.mk
include cuda_remote/run/local.mk
CUDA_IS_LISTED = :
else
CUDA_IS_LISTED = false
endif

# If these files are not included, a tarball lacks the sources that they list.
dist-hook:
	@$(CUDA_IS_LISTED) || { echo "make dist: configure with the CUDA toolkit; a tarball made without lacks cuda_remote" >&2; exit 1; }
