#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# conformance.sh TRANSPORT: the conformance suite through the fault channel: each plan over the transport.
# HEADRACE_TEST_LONG=1: whole amounts and more seeds.
set -u
transport=$1
scale=0.01 seeds=(1)
if [ "${HEADRACE_TEST_LONG:-0}" = 1 ]; then
	scale=0.2 seeds=(1 2 3 4 5)
fi
status=0
for seed in "${seeds[@]}"; do
	for plan in shorten=60 refuse=40,shorten=20 delay=5,spurious=30 refuse=10,shorten=30,spurious=50,delay=2; do
		echo "== seed=$seed,$plan"
		HR_FAULTS=seed=$seed,$plan "$top_builddir/test/faults/conformance" --transport "$transport" --scale $scale
		result=$?
		[ $result = 77 ] && exit 77
		[ $result = 0 ] || status=1
	done
done
exit $status
