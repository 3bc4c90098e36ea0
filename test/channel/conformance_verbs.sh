#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# conformance_verbs.sh DESIGN: the conformance suite over verbs in that design, with one and with two queue pairs, on
# the libibverbs double. HEADRACE_TEST_LONG: twice the amounts.
status=0
scale=0.05
[ -z "${HEADRACE_TEST_LONG:-}" ] || scale=0.1
for queues in 1 2; do
	echo "$1, $queues queue pairs:"
	HEADRACE_IB_QPS=$queues "$top_srcdir/test/ibverbs_double/with_double.sh" \
		"$top_builddir/test/channel/conformance" --transport verbs --design "$1" --scale $scale
	one=$?
	# Missing for one is missing for both: nothing has been tested.
	[ $one = 77 ] && exit 77
	[ $one = 0 ] || status=1
done
exit $status
