#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The conformance suite in each verbs design, with one queue pair or with two; with HEADRACE_TEST_LONG=1 with one and with two.
# All in one boot of run.sh's machine. Prints the failures and a line for each run; fails if one failed.
set -u
: "${top_builddir:?set by make check-vm}"
failed=0
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
declare -A counts=([basic]=1 [piggyback]=2 [pipeline]=1 [zerocopy]=2)
for design in basic piggyback pipeline zerocopy; do
	[[ -z ${HEADRACE_TEST_LONG:-} ]] || counts[$design]="1 2"
	for qps in ${counts[$design]}; do
		HEADRACE_IB_QPS=$qps "$top_builddir/test/channel/conformance" --transport verbs --design "$design" \
			--scale "${1:-0.01}" >"$log" 2>&1
		status=$?
		[[ $status = 77 ]] && { cat "$log"; exit 77; }
		[[ $status = 0 ]] || { grep -v '^PASS' "$log" | tail -n 40; failed=1; }
		echo "$design, queue pairs $qps: $(tail -n 1 "$log")"
	done
done
exit $failed
