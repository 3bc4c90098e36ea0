#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A program under headrace-run gets Headrace's libraries, whatever path or RPATH leads it to others, and so do its
# children. Other libraries are found as without Headrace.
set -euo pipefail
build=${top_builddir:?run by make check}
if ldd "$build/cuda_remote/runtime/.libs/libcudart.so.13" | grep -E 'lib(a|t)san' >/dev/null; then
	echo "skipped: a sanitizer's library would have to be preloaded too"
	exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
opens=$build/test/cuda/redirect/opens
folder=$work/folder
mkdir "$folder" "$folder/inner"

fail() {
	echo "$0: $*" >&2
	exit 1
}
run() { # local|server PROGRAM ARGUMENT...
	local how=--local
	[ "$1" = local ] || how=--driver=softgpu
	timeout 100 "$build/cuda_remote/run/headrace-run" $how "${@:2}"
}
library() { # OUTPUT TEXT ARGUMENT...
	echo "$2" | "${CC:-cc}" -x c -shared -fPIC -o "$folder/$1" - "${@:3}" || fail "compiling $1"
}

library other.so 'int other_library = 1; int cuDriverGetVersion(int *v) { *v = -1; return 0; }' -Wl,-soname,libcuda.so.1
for name in libcuda.so.1 libcuda.so.999.1 libcudart.so.13.0.88 libnvidia-ml.so.1 libcudax.so.1; do
	cp "$folder/other.so" "$folder/$name"
done
ln -s libcuda.so.1 "$folder/libcuda.so"
ln -s libcudart.so.13.0.88 "$folder/libcudart.so.13"
ln -s libcudart.so.13 "$folder/libcudart.so"
library inner/libinner.so 'int inner = 1;'
library libopener.so '#include <dlfcn.h>
void *open_other(const char *name);
void *open_other(const char *name) { void *other = dlopen(name, RTLD_NOW); return other; }' \
	-Wl,--enable-new-dtags,-rpath,"$folder/inner" -ldl
"${CC:-cc}" -x c -o "$work/linked" - -L"$folder" -lcuda -Wl,--disable-new-dtags,-rpath,"$folder" <<'C' || fail "compiling linked"
#include <stdio.h>
int cuDriverGetVersion(int *version);
int main(void)
{
	int version = 0;
	return cuDriverGetVersion(&version) || printf("%d\n", version) < 0;
}
C

# Without Headrace: the folder's libraries. Else the test below would prove nothing.
"$opens" others "$folder"
[ "$("$work/linked")" = -1 ] || fail "linked does not find the folder's library"
for how in local server; do
	for what in ours child needed; do
		run $how "$opens" $what "$folder" || fail "opens $what, $how"
		LD_LIBRARY_PATH=$folder run $how "$opens" $what "$folder" || fail "opens $what, $how, with LD_LIBRARY_PATH"
	done
	version=$(run $how "$work/linked")
	[ "$version" -ge 13000 ] || fail "linked, $how: its RPATH leads to another driver"
	version=$(run $how env LD_LIBRARY_PATH="$folder" "$work/linked")
	[ "$version" -ge 13000 ] || fail "linked with LD_LIBRARY_PATH, $how: another driver"
done

# An inner headrace-run decides: the driver of the outer one is not preloaded too.
preloaded=$(run local "$build/cuda_remote/run/headrace-run" --driver=softgpu printenv LD_PRELOAD)
[ "$(tr : '\n' <<<"$preloaded" | grep -c '/libcuda\.so\.1$')" -eq 1 ] || fail "two drivers are preloaded: $preloaded"
[[ $preloaded == */client/* ]] || fail "the outer driver is preloaded: $preloaded"
