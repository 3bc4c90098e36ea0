#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154
#
# Remote CUDA over verbs, on the kernel's Soft-RoCE in run.sh's machine: programs built by nvcc, the software GPU behind a
# daemon of root, whose workers run as another user and with the filter of system calls.
: "${top_builddir:?set by make check-vm}" "${top_srcdir:?set by make check-vm}"
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/cuda_remote/server/headraced
softgpu=$top_builddir/cuda_remote/softgpu/.libs/libcuda.so.1
programs=$top_builddir/test/cuda/runtime/programs
if [ ! -e "$softgpu" ] || [ ! -e "$programs/copies.cutest" ]; then
	echo "skipped: it needs the software GPU and programs built by nvcc"
	exit 77
fi
address=$(ip -4 -o address show scope global | awk '{ sub("/.*", "", $4); print $4; exit }')
[ -n "$address" ] || { echo "skipped: no IPv4 address"; exit 77; }
if ! "$headraced" --make-key="$work/key" 2> "$work/err"; then
	echo "skipped: built without libsodium"
	exit 77
fi
free_ports
# The machine is emulated: everything takes longer.
export HEADRACE_TRANSPORT=verbs HEADRACE_TIMEOUT_MS=60000 HEADRACE_CONNECT_TIMEOUT_MS=60000
export HEADRACE_KEY_FILE=$work/key
start_seconds=300
start_daemon "$headraced" --no-loopback --socket="$work/socket" --listen="$address:$port" --key-file="$work/key" \
	--driver="$softgpu" || finish
export HEADRACE_SERVER=$address:$port HEADRACE_TEST_REMOTE=1 HEADRACE_LOG=info
libraries=$top_builddir/cuda_remote/runtime/.libs:$top_builddir/cuda_remote/client/.libs
for program in async_copies copies graphs managed streams templates textures; do
	[ -z "$*" ] || [[ " $* " = *" $program "* ]] || continue
	status=0
	LD_LIBRARY_PATH=$libraries timeout -k 5 400 "$programs/$program.cutest" 2> "$work/err" || status=$?
	[ $status = 0 ] || { fail "$program ended with status $status"; tail -n 20 "$work/err"; }
	has_line "$work/err" "is up over verbs" || fail "$program: no connection over verbs"
	echo "ended: $program, $SECONDS s"
done
has_line "$work/log" "system call" && fail "a worker was denied a system call"
[ $failures = 0 ] || tail -n 20 "$work/log"
stop_daemon
finish
