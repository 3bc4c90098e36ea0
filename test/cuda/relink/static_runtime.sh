#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Programs that nvcc links with its static runtime run under headrace-run, local and with a server. What cannot be
# replaced is named.
set -euo pipefail
build=${top_builddir:?run by make check}
[ -n "${NVCC:-}" ] || { echo "skipped: there is no nvcc"; exit 77; }
[ "$(uname -m)" = x86_64 ] || { echo "skipped: a static runtime is replaced on x86-64 only"; exit 77; }
if ldd "$build/cuda_remote/runtime/.libs/libcudart.so.13" | grep -E 'lib(a|t)san' >/dev/null; then # with -q, ldd could die of SIGPIPE
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
compile() { # OUTPUT ARGUMENT...
	local output=$1
	shift
	"$NVCC" -std=c++17 -Wno-deprecated-gpu-targets -arch=compute_75 -I"$top_srcdir/test/cuda/runtime/programs" \
		-o "$work/$output" "$@" || fail "nvcc"
}
# run HOW PROGRAM: HOW is local or server.
run() {
	local how=--local
	[ "$1" = local ] || how=--driver=softgpu
	timeout 100 "$build/cuda_remote/run/headrace-run" $how "${@:2}"
}
# refused PROGRAM TEXT: the program's message has the text, and it gets no further than NVIDIA's runtime.
refused() {
	run local "${@:2}" >"$work/out" 2>"$work/err" && fail "$2 ran"
	grep -q "$1" "$work/err" || fail "no message with \"$1\""
}

programs=$top_srcdir/test/cuda/runtime/programs
compile copies "$programs/copies.cu"
compile separate -rdc=true "$programs/separate.cu" "$programs/separate_other.cu" "$programs/separate_library.cu"
compile liblibrary.so -shared -Xcompiler -fPIC "$here/library.cu"
for runtime in static shared; do
	compile both_$runtime -cudart $runtime "$here/program.cu" -L"$work" -llibrary -Xlinker -rpath -Xlinker "$work"
done
for how in local server; do
	for program in copies separate both_static both_shared; do
		status=0
		run $how "$work/$program" >"$work/out" 2>"$work/err" || status=$?
		[ $status -eq 0 ] || fail "$program, $how: status $status"
		[ ! -s "$work/err" ] || fail "$program, $how: a message"
		echo "passed: $program, $how"
	done
done

# The same library opened by dlopen, alone and as what an opened library needs.
compile libsecond.so -shared -Xcompiler -fPIC -Xlinker --no-as-needed "$here/second.cu" -L"$work" -llibrary \
	-Xlinker -rpath -Xlinker "$work"
for how in local server; do
	for name in library second; do
		run $how "$build/test/cuda/relink/opens" "$work/lib$name.so" ${name}_doubled >"$work/out" 2>"$work/err" ||
			fail "opens lib$name.so, $how: $(cat "$work/out")"
		[ ! -s "$work/err" ] || fail "opens lib$name.so, $how: a message"
		echo "passed: dlopen of lib$name.so, $how"
	done
done

# Programs that make no CUDA call, do not clean up, fork, and execute others with another LD_LIBRARY_PATH.
compile habits "$here/habits.cu"
for how in local server; do
	for mode in works nothing exits ends forks execs; do
		case $mode in
		exits | ends) expected=7 ;;
		*) expected=0 ;;
		esac
		status=0
		run $how "$work/habits" $mode >"$work/out" 2>"$work/err" || status=$?
		[ $status -eq $expected ] || fail "habits $mode, $how: status $status"
		[ ! -s "$work/err" ] || fail "habits $mode, $how: a message"
	done
	echo "passed: habits, $how"
done

strip -o "$work/stripped" "$work/copies"
refused "is stripped, so that Headrace cannot replace it" "$work/stripped"
strip -o "$work/libstripped.so" "$work/liblibrary.so"
refused "libstripped.so has NVIDIA's static CUDA runtime and is stripped" "$build/test/cuda/relink/opens" \
	"$work/libstripped.so" library_doubled
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one message about libstripped.so"
# Without kernels it may be loaded and not used: a warning. Python's cuda.bindings has such modules.
compile libplain.so -shared -Xcompiler -fPIC "$here/plain.c"
compile libplain_shared.so -cudart shared -shared -Xcompiler -fPIC "$here/plain.c"
export HEADRACE_LOG=warn
for name in plain plain_shared; do
	run local "$build/test/cuda/relink/opens" "$work/lib$name.so" plain_doubled >"$work/out" 2>"$work/err" ||
		fail "opens lib$name.so: $(cat "$work/out")"
	[ ! -s "$work/err" ] || fail "opens lib$name.so: a message"
done
strip -R .nvFatBinSegment -o "$work/libbare.so" "$work/libplain.so"
refused "libbare.so has NVIDIA's static CUDA runtime and is stripped" "$build/test/cuda/relink/opens" \
	"$work/libbare.so" plain_doubled
[ "$(wc -l <"$work/err")" -eq 1 ] || fail "more than one message about libbare.so"
unset HEADRACE_LOG

"$build/test/cuda/relink/no_text_changes" true || exit $?
refused "forbids a program to change its code" "$build/test/cuda/relink/no_text_changes" "$work/copies"

# Programs with a runtime that is not NVIDIA's: only the names of its functions matter, and that each returns 3.
# stand_in OUTPUT NAME...: the program prints what cudaRuntimeGetVersion says, and 1 if cudaGetDriverEntryPoint returns
# the first version of a function of the driver.
stand_in() {
	local output=$1
	{
		echo "extern int printf(const char *, ...);"
		echo "extern void *dlsym(void *, const char *);"
		echo "volatile int three = 3;"
		for name in "${@:2}"; do
			echo "int $name(void *p) { three = 3; return p && three ? three : three + !three; }"
		done
		echo "int main(void) {"
		echo "	int version = 0, error = cudaRuntimeGetVersion(&version);"
		echo "	void *function = &version;"
		echo "	((int (*)(const char *, void **, unsigned long long, int *))cudaGetDriverEntryPoint)"
		echo "		(\"cuMemPrefetchAsync\", &function, 0, 0);"
		echo "	return printf(\"%d %d %d\\n\", error, version,"
		echo "		function == dlsym(0, \"cuMemPrefetchAsync\")) < 0;"
		echo "}"
	} >"$work/$output.c"
	${CC:-cc} -w -o "$work/$output" "$work/$output.c" || fail compiling
}
# left_alone PROGRAM TEXT: the message has the text, and the program runs its own functions.
left_alone() {
	run local "$work/$1" >"$work/out" 2>"$work/err" || fail "$1"
	grep -q "$2" "$work/err" || fail "$1: no message with \"$2\""
	grep -qx "3 0 0" "$work/out" || fail "$1: $(cat "$work/out")"
}
list=$top_srcdir/cuda_remote/runtime/cuda12/exports.list
mapfile -t all < <(awk '!/^#/ {print $1}' "$list")
mapfile -t first < <(awk '!/^#/ && NF == 1 {print $1}' "$list")
mapfile -t without_malloc < <(awk '!/^#/ && $1 != "cudaMalloc" {print $1}' "$list")
stand_in cuda_12_9 "${all[@]}"
stand_in cuda_12_0 "${first[@]}"
for how in local server; do
	for program in cuda_12_9 cuda_12_0; do
		first_version=0
		[ $program = cuda_12_9 ] || first_version=1
		run $how "$work/$program" >"$work/out" 2>"$work/err" || fail "$program, $how"
		[ ! -s "$work/err" ] || fail "$program, $how: a message"
		grep -qx "0 12090 $first_version" "$work/out" || fail "$program, $how: $(cat "$work/out")"
		echo "passed: $program, $how"
	done
done
stand_in lacks_malloc "${without_malloc[@]}"
left_alone lacks_malloc "lacks cudaMalloc of CUDA 12.0"
stand_in has_more "${first[@]:0:200}" cudaOfMine "${first[@]:200}"
left_alone has_more "has cudaOfMine, which CUDA 12 lacks"
stand_in older __cudaRegisterFatBinary cudaThreadExit cudaRuntimeGetVersion cudaGetDriverEntryPoint
left_alone older "static runtime of CUDA 11 or older"
stand_in other __cudaRegisterFatBinary cudaRuntimeGetVersion cudaGetDriverEntryPoint
left_alone other "lacks .* of CUDA 13.0"
echo "passed: messages"
