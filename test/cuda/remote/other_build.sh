#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A server whose table of calls is another one: client and server use the calls that both have.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
other=$build/test/cuda/remote/headraced-other
key=$folder/key
run() { timeout 120 "$build/test/cuda/remote/other_build" "$@" 2>"$folder/err" || fail "$(cat "$folder/err")"; }

# The client's log names the two calls, each once, although it makes one of them twice.
check_log() {
	[ "$(grep -c 'is not supported: the server is of another build' "$folder/err")" = 2 ] || fail "$(cat "$folder/err")"
	grep -q 'cuCtxGetCacheConfig is not supported' "$folder/err" || fail "$(cat "$folder/err")"
	grep -q 'cuCtxSetCacheConfig is not supported' "$folder/err" || fail "$(cat "$folder/err")"
}

remote_start
run same
[ ! -s "$folder/err" ] || fail "a server of this build: $(cat "$folder/err")"
HEADRACE_LOG=info run same
! grep -q 'another build' "$folder/err" || fail "a server of this build: $(cat "$folder/err")"
remote_stop || fail "the first server does not end"

headraced=$other
remote_start
HEADRACE_LOG=info run
check_log
grep -q "another build of Headrace: 2 of this build's calls are not supported, the first is cuCtxSetCacheConfig" "$folder/err" ||
	fail "the log does not name the difference: $(cat "$folder/err")"
remote_stop || fail "the other server does not end"

# With a key, the list of calls is authenticated.
if "$other" --make-key="$key" 2>"$folder/err"; then
	export HEADRACE_KEY_FILE=$key HEADRACE_KEY_UNIX=1
	remote_start --key-file="$key"
	run
	check_log
fi
