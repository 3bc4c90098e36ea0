#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# NVML beside the forwarding driver, with a server, and beside the software GPU.
softgpu=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs
[ -e "$softgpu/libnvidia-ml.so.1" ] || { echo "skipped: it needs the software GPU"; exit 77; }
export HEADRACE_TEST_DRIVER=$softgpu/libcuda.so.1
# shellcheck source=test/cuda/remote/remote.sh
. "${top_srcdir:?}/test/cuda/remote/remote.sh"
export HEADRACE_SOFTGPU_DEVICES=2
remote_start
names=$top_srcdir/cuda_remote/nvml/nvml.names
program=$top_builddir/test/cuda/nvml/nvml_test
sanitizer=$(ldd "$softgpu/libcuda.so.1" | awk '/lib(a|t)san/ {print $3}')
for part in client softgpu; do
	libraries=$top_builddir/cuda_remote/$part/.libs
	[ $part = client ] || unset HEADRACE_SERVER
	LD_LIBRARY_PATH=$libraries LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0 timeout 120 "$program" "$names" ||
		fail "NVML beside $part/libcuda.so.1"
done
