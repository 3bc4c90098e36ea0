#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# make check-vm: what is tested over verbs on the kernel's Soft-RoCE. Prints one line per test, as make check does;
# fails if one failed, exits 77 if the machine cannot be had. The machine is emulated, so the amounts of data are
# smaller there.
set -u
: "${top_builddir:?set by make check-vm}" "${top_srcdir:?set by make check-vm}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
passed=0 failed=0 skipped=0

# try NAME COMMAND…
try()
{
	local name=$1 status
	shift
	"$@"
	status=$?
	case $status in
	0) passed=$((passed + 1)) && echo "PASS: vm/$name" ;;
	77) skipped=$((skipped + 1)) && echo "SKIP: vm/$name" ;;
	*) failed=$((failed + 1)) && echo "FAIL: vm/$name (status $status)" ;;
	esac
}

try selftest "$here/selftest.sh"
# The longest: several minutes with a processor of its own, and .ci/run has other work for the processors.
try conformance-designs "$here/run.sh" --timeout=1500 "$here/designs.sh"
# Many queue pairs, all of them nearly always full, and the smallest chunks that hold each case's single messages.
HEADRACE_IB_QPS=16 HEADRACE_IB_DEPTH=2 HEADRACE_IB_CHUNK=4k \
	try conformance-narrow "$here/run.sh" "$top_builddir/test/channel/conformance" --transport verbs --scale 0.01
try verbs-cases "$here/run.sh" "$top_builddir/test/vm/verbs_cases"
try ch3 "$here/run.sh" "$top_builddir/test/ch3/processes" verbs
HEADRACE_RENDEZVOUS="write" try ch3-write "$here/run.sh" "$top_builddir/test/ch3/processes" verbs
try mpi "$top_srcdir/test/adi/verbs-vm.sh"
echo "vm: $passed passed, $failed failed, $skipped skipped"
[[ $failed = 0 ]] || exit 1
[[ $passed -gt 0 ]] || exit 77
