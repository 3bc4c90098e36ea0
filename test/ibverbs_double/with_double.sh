#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# with_double.sh COMMAND...: runs a command of the build tree, or of the system, on the libibverbs double (double.h).
# Processes of one command meet in a folder that is removed when the command ends. Set HR_VERBS_DOUBLE_DIR to a folder
# where processes of several commands are to meet; it stays.
# A program built with a sanitizer must get that sanitizer's library first: it is linked with it, so nothing is to be
# done here. A program built without one cannot load a double that was built with one; the tests that run such
# programs skip.
here=$(cd "${top_builddir:-.}" && pwd)/test/ibverbs_double/.libs
if [ ! -e "$here/libibverbs.so.1" ]; then
	echo "SKIP: no libibverbs double in $here (make check builds it, where libibverbs' headers are)"
	exit 77
fi
# Tests count the pieces that go by zero copy, so the threshold is fixed; "auto" measures it.
export HEADRACE_IB_ZERO_COPY="${HEADRACE_IB_ZERO_COPY-64k}"
export LD_LIBRARY_PATH="$here${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
[ -z "${HR_VERBS_DOUBLE_DIR:-}" ] || exec "$@"

HR_VERBS_DOUBLE_DIR=$(mktemp -d /dev/shm/hr-verbs-double.XXXXXX) || exit 1
export HR_VERBS_DOUBLE_DIR
command=
# Under a signal the command ends first, then the folder goes.
ended_by() {
	trap '' TERM INT HUP
	[ -z "$command" ] || kill "-$1" "$command" 2>/dev/null
	wait
	exit $((128 + $2))
}
trap 'rm -rf "$HR_VERBS_DOUBLE_DIR"' EXIT
trap 'ended_by TERM 15' TERM
trap 'ended_by INT 2' INT
trap 'ended_by HUP 1' HUP
"$@" <&0 &
command=$!
wait "$command"
exit $?
