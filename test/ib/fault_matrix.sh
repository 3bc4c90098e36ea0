#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Every verbs design with every fault of the libibverbs double: fault_matrix.c.
HR_VERBS_DOUBLE_DIR=$(mktemp -d)
trap 'rm -rf "$HR_VERBS_DOUBLE_DIR"' EXIT
export HR_VERBS_DOUBLE_DIR HR_VERBS_DOUBLE_RETRY_MS=100 HEADRACE_LOG=error
"$top_srcdir/test/ibverbs_double/with_double.sh" "$top_builddir/test/ib/fault_matrix" "$@" 2>"$HR_VERBS_DOUBLE_DIR/log"
status=$?
# The lines that tell of errors are many, as they should be; those of a failure come last.
[ $status = 0 ] || grep -v '^headrace' "$HR_VERBS_DOUBLE_DIR/log" | tail -n 60
exit $status
