#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A worker's links to other workers: who may use an invitation, and what a hostile worker or client can do with a link.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
program=$build/test/cuda/server/links
export HEADRACE_TIMEOUT_MS=5000
remote_start
timeout 100 "$program" secret
status=$?
[ $status = 0 ] && { echo "no libsodium: only that the ticket stays secret"; exit 0; }
[ $status = 77 ] || fail "secret"
for test in doors frames; do
	timeout 100 "$program" $test || fail "$test"
done
timeout 60 "$program" leave || fail "the client did not come to its end"
for _ in $(seq 200); do
	[ "$(remote_workers | wc -l)" = 1 ] && break
	sleep 0.05
done
[ "$(remote_workers | wc -l)" = 1 ] || fail "a worker outlived a client that left in the middle of a transfer"
grep -a 'was killed by signal' "$folder/log" && fail "a worker crashed"
grep -qa 'a link was refused: wrong ticket' "$folder/log" || fail "the log does not name the wrong ticket"
remote_stop || fail "something is left"
HEADRACE_SESSION_LINKS=1 remote_start
timeout 100 "$program" limit || fail "limit"
remote_stop || fail "something is left"
HEADRACE_TRANSPORT=shm remote_start
HEADRACE_TRANSPORT=shm timeout 100 "$program" here || fail "shared memory only"
exit 0
