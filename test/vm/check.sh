#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# make check-vm: what is tested over verbs on the kernel's Soft-RoCE, after a test of run.sh itself. Prints one line per
# test, as make check does; fails if one failed, exits 77 if the machine cannot be had. The machine is emulated, so the
# amounts of data are smaller there, and all tests run in one boot.
set -u
: "${top_builddir:?set by make check-vm}" "${top_srcdir:?set by make check-vm}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# try NAME SECONDS COMMAND…
try()
{
	local name=$1 status
	timeout -k 5 "${@:2}"
	status=$?
	case $status in
	0) echo "PASS: vm/$name" ;;
	77) echo "SKIP: vm/$name" ;;
	*) echo "FAIL: vm/$name (status $status)" ;;
	esac
}

# What runs in the machine.
inside()
{
	# All long pieces by zero copy: the measured threshold is higher on this slow machine.
	export HEADRACE_IB_ZERO_COPY=64k
	local conformance=("$top_builddir/test/channel/conformance" --transport verbs --scale 0.01)
	# The longest: several minutes with a processor of its own, and .ci/run has other work for the processors.
	try conformance-designs 1500 "$here/designs.sh"
	# Many queue pairs, all of them nearly always full, and the smallest chunks that hold each case's single messages.
	HEADRACE_IB_QPS=16 HEADRACE_IB_DEPTH=2 HEADRACE_IB_CHUNK=4k try conformance-narrow 600 "${conformance[@]}"
	try verbs-cases 600 "$top_builddir/test/vm/verbs_cases"
	try ch3 600 "$top_builddir/test/ch3/processes" verbs
	HEADRACE_RENDEZVOUS="write" try ch3-write 600 "$top_builddir/test/ch3/processes" verbs
	try mpi 900 bash "$top_srcdir/test/adi/verbs-vm.sh" inside
	try cuda 1500 bash "$here/cuda.sh"
	echo "vm: all tests ran"
}

if [[ ${1:-} = --inside ]]; then
	inside
	exit 0
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
{
	try selftest 600 "$here/selftest.sh"
	"$here/run.sh" --timeout 3000 bash "$here/check.sh" --inside
} 2>&1 | tee "$log"
count() { grep -c "^$1: vm/" "$log"; }
passed=$(count PASS) failed=$(count FAIL) skipped=$(count SKIP)
echo "vm: $passed passed, $failed failed, $skipped skipped"
[[ $failed = 0 ]] || exit 1
[[ $passed -gt 0 ]] || exit 77
grep -qx 'vm: all tests ran' "$log" || { echo "vm: the machine ended before all tests ran"; exit 1; }
