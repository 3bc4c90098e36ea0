#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check sets it
# headrace-info: settings and their origin, transports, sections, servers that are not there.
info="timeout 180 $top_builddir/bench/info/headrace-info"
failures=0
fail() {
	echo "FAILED: $*"
	failures=1
}

out=$($info versions transports settings) || fail "exit status"
grep -Eq '^  tcp +yes' <<< "$out" || fail "no tcp: $out"
HEADRACE_RING_BYTES=16k $info transports | grep -Eq '^  tcp .*a connection takes ([1-5]?[0-9]|6[0-4]) KB' ||
	fail "the smallest connection is not within 64 KB"
grep -Eq '^  HEADRACE_TIMEOUT_MS +[0-9]+ +default ' <<< "$out" || fail "a default setting: $out"
[ "$(grep -c HEADRACE_TIMEOUT_MS <<< "$out")" = 1 ] || fail "a setting twice"
HEADRACE_TIMEOUT_MS=4321 $info settings | grep -Eq '^  HEADRACE_TIMEOUT_MS +4321 +environment ' || fail "a setting from the environment"
$info settings | grep -q '^Transports' && fail "a section that was not asked for"
# Each collective has a line for any size and number of ranks.
out=$($info collectives)
for collective in barrier bcast reduce allreduce reduce_scatter gather scatter allgather alltoall; do
	grep -Eq "^  $collective +any +any +[a-z_]+$" <<< "$out" || fail "no algorithm for any $collective: $out"
done
out=$($info nonsense 2>&1) && fail "a section that is none: exit status"
grep -q 'nonsense.*want versions, transports, devices, settings or collectives' <<< "$out" || fail "a section that is none: $out"
if out=$($info devices); grep -q "built without the CUDA toolkit" <<< "$out"; then
	echo "(no devices: built without CUDA)"
else
	grep -q "^  software GPU" <<< "$out" || fail "no software GPU: $out"
	out=$($info -s 127.0.0.1:1 devices 2> /dev/null) && fail "a server that is not there: exit status"
	grep -q "cannot be queried: Connection refused" <<< "$out" || fail "a server that is not there: $out"
fi
exit $failures
