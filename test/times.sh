#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# times.sh PROGRAM [ARGUMENT...]: runs a test. If HEADRACE_TEST_TIMES names a file, appends a line to it: the test's wall
# time, its user time and its system time in seconds, and its name. make check starts every test with it.
[ -n "${HEADRACE_TEST_TIMES:-}" ] || exec "$@"
times=$HEADRACE_TEST_TIMES
unset HEADRACE_TEST_TIMES
name=${!#}
name=${name#"${top_srcdir:-}"/}
TIMEFORMAT="%R %U %S ${name#./}"
status=0
{ time "$@" 2>&3 3>&-; } 3>&2 2>>"$times" || status=$?
exit $status
