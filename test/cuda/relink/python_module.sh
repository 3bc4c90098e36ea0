#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A module of Python with NVIDIA's static runtime and without symbols, as those of cuda.bindings: the functions that it
# offers to other modules become Headrace's, whether the dynamic linker looks at the module or at a library that the
# module needs first.
set -euo pipefail
build=${top_builddir:?run by make check}
[ -n "${NVCC:-}" ] || { echo "skipped: there is no nvcc"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: a static runtime is replaced on x86-64 only"; exit 77; }
python=$(command -v python3) || { echo "skipped: there is no python3"; exit 77; }
# The interpreter itself: its launcher could be a script.
python=$("$python" -c 'import sys; print(sys.executable)')
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
[ -r "$include/Python.h" ] || { echo "skipped: python3 has no header files"; exit 77; }
if ldd "$build/cuda_remote/runtime/.libs/libcudart.so.13" | grep -E 'lib(a|t)san' >/dev/null; then
	echo "skipped: a sanitizer's library would have to be preloaded too"
	exit 77
fi
here=${top_srcdir:?}/test/cuda/relink
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
	echo "$0: $*" >&2
	[ ! -e "$work/err" ] || cat "$work/err" >&2
	exit 1
}
module() { # FOLDER ARGUMENT...
	mkdir "$work/$1"
	"$NVCC" -Wno-deprecated-gpu-targets -shared -Xcompiler -fPIC -I"$include" -o "$work/capsules.so" \
		"$here/python_module.c" "${@:2}" || fail "nvcc"
	strip -R .nvFatBinSegment -o "$work/$1/capsules.so" "$work/capsules.so"
}
# run ENDING ARGUMENT...: the module of a folder under headrace-run.
run() {
	timeout 100 "$build/cuda_remote/run/headrace-run" "${@:3}" "$python" "$here/python_module.py" "$work/$2" "$1" \
		>"$work/out" 2>"$work/err"
}

echo 'int dependency(void); int dependency(void) { return 0; }' >"$work/dependency.c"
${CC:-cc} -shared -fPIC -o "$work/libdependency.so" "$work/dependency.c" || fail compiling
module alone
module needs -DWITH_DEPENDENCY -L"$work" -ldependency -Xlinker -rpath -Xlinker "$work"
export HEADRACE_LOG=error
for folder in alone needs; do
	for how in --local --driver=softgpu; do
		run "" $folder $how || fail "$folder, $how: $(cat "$work/out")"
		[ ! -s "$work/err" ] || fail "$folder, $how: a message"
		CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM=1 run _ptsz $folder $how ||
			fail "$folder, $how, default stream of each thread: $(cat "$work/out")"
		echo "passed: $folder, $how"
	done
done
