#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check sets it
# What scripts/demo.sh and scripts/test.sh answer to --help, -h and to words that they do not know: they begin no build.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HEADRACE_BUILD=/dev/null/build # a script that begins a build fails at once

failed=0
fail() {
	echo "FAILED: $*"
	cat "$work/out" "$work/err"
	failed=1
}

# answer STATUS SCRIPT ARGUMENT…
answer() {
	local want=$1 script=$2 status=0
	shift 2
	bash "$top_srcdir/scripts/$script" "$@" >"$work/out" 2>"$work/err" </dev/null || status=$?
	[ $status = "$want" ] || fail "$script $*: status $status, not $want"
	case $want in
	0)
		grep -q "^$script \[" "$work/out" || fail "$script $*: no line of usage"
		! grep -q 'set -e\|shellcheck' "$work/out" || fail "$script $*: prints more than its comment"
		[ ! -s "$work/err" ] || fail "$script $*: writes to standard error"
		;;
	2)
		[ ! -s "$work/out" ] || fail "$script $*: writes to standard output"
		[ "$(wc -l <"$work/err")" = 1 ] && grep -q "usage: $script " "$work/err" ||
			fail "$script $*: not one line with the usage"
		;;
	esac
}

for script in demo.sh test.sh; do
	for option in --help -h; do answer 0 $script $option; done
	for word in foo -x "two words"; do answer 2 $script "$word"; done
done
answer 0 test.sh --list --help
answer 0 test.sh CFLAGS=-O1 --without-cuda --help
answer 2 test.sh --list foo
answer 2 test.sh --build --list
answer 2 test.sh CFLAGS=-O1 foo
answer 2 demo.sh --without-cuda
exit $failed
