#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The same programs as over the software GPU, but with that behind the daemon.
softgpu=${top_builddir:?run by make check}/cuda_remote/softgpu/.libs/libcuda.so.1
programs=$top_builddir/test/cuda/runtime/programs
if [ ! -e "$softgpu" ] || [ ! -e "$programs/copies.cutest" ]; then
	echo "skipped: it needs the software GPU and programs built by nvcc"
	exit 77
fi
export HEADRACE_TEST_DRIVER=$softgpu
# shellcheck source=test/cuda/remote/remote.sh
. "${top_srcdir:?}/test/cuda/remote/remote.sh"
# driver_handles needs two devices.
export HEADRACE_SOFTGPU_DEVICES=2
remote_start

libraries=$top_builddir/cuda_remote/runtime/.libs:$top_builddir/cuda_remote/client/.libs
sanitizer=$(ldd "$top_builddir/cuda_remote/runtime/.libs/libcudart.so.13" | awk '/lib(a|t)san/ {print $3}')
export HEADRACE_TEST_REMOTE=1
for program in "$programs"/*.cutest; do
	status=0
	LD_LIBRARY_PATH=$libraries LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0 timeout 60 "$program" || status=$?
	case $status in
	0) echo "passed: ${program##*/}" ;;
	77) echo "does not apply: ${program##*/}" ;;
	*) fail "${program##*/} ended with status $status" ;;
	esac
done

# Copies, clusters and managed memory once more with a server that shares no memory with the client.
remote_stop || fail "the daemon does not end"
free_ports
export HEADRACE_TRANSPORT=tcp
remote_start --listen=127.0.0.1:$port
export HEADRACE_SERVER=127.0.0.1:$port
for program in async_copies clusters managed managed_structures managed_variables; do
	LD_LIBRARY_PATH=$libraries LD_PRELOAD=$sanitizer ASAN_OPTIONS=detect_leaks=0 timeout 60 "$programs/$program.cutest" ||
		fail "$program.cutest over TCP ended with status $?"
	echo "passed over TCP: $program.cutest"
done
