#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Our libcudart.so.13 and the toolkit's export the same names under the same version node; so does the static library.
# Our libcudart.so.12 exports the names of CUDA 12.9.
set -euo pipefail
export LC_ALL=C

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
count() { # LIBRARY
	nm -D --defined-only "$1" | awk -v library="${1##*/}" '$2 == "T" {i++} $2 == "W" {n++}
		END {print library ": " i " functions implemented, " n " not supported"}'
}

list=${top_srcdir:?}/cuda_remote/runtime/cuda12/exports.list
ours=${top_builddir:?run by make check}/cuda_remote/runtime/cuda12/.libs/libcudart.so.12
nm -D --defined-only "$ours" | awk '{print $NF}' | grep -v '^lib' | sort >"$work/ours"
awk '!/^#/ {print $1 "@@libcudart.so.12"}' "$list" | sort >"$work/theirs"
diff "$work/theirs" "$work/ours"
readelf -d "$ours" | grep -F 'soname: [libcudart.so.12]' >"$work/soname"
cmp "$ours" "$top_builddir/cuda_remote/runtime/.libs/libcudart.so.12" # where headrace-run finds it
count "$ours"

theirs=$CUDA_HOME/lib64/libcudart.so.13
ours=${top_builddir:?run by make check}/cuda_remote/runtime/.libs/libcudart.so.13
if [ ! -e "$theirs" ]; then
	echo "skipped: the toolkit has no $theirs to compare with"
	exit 77
fi

nm -D --defined-only "$theirs" | awk '{print $NF}' | sort >"$work/theirs"
nm -D --defined-only "$ours" | awk '{print $NF}' | sort >"$work/ours"
diff "$work/theirs" "$work/ours"

sed -n 's/@.*//p' "$work/theirs" | grep -v '^lib' | sort >"$work/names"
archive=$top_builddir/cuda_remote/runtime/libcudart_static.a
nm -g --defined-only "$archive" | awk 'NF == 3 {print $3}' | sort >"$work/static"
diff "$work/names" "$work/static"
count "$ours"
