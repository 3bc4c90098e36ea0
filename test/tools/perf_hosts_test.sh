#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check and two_hosts.sh set these
# headrace-perf --listen and --connect between two hosts, which are two network namespaces: every test, bad command
# lines, a client that is no headrace-perf, and a client that dies.
work=$(mktemp -d) || exit 1
tidy() { [ -z "$listener" ] || kill "$listener" 2> "$work/null"; rm -rf "$work"; }
# shellcheck source=test/cuda/door/two_hosts.sh
source "$top_srcdir/test/cuda/door/two_hosts.sh"
perf=$top_builddir/headrace-perf
status=0
fail() { echo "FAIL: $*"; status=1; }
client() { timeout 120 "${on_client[@]}" "$perf" "$@"; }

"${on_server[@]}" "$perf" --listen > "$work/listen.out" 2> "$work/listen.err" & listener=$!
for _ in $(seq 200); do
	grep -q listening "$work/listen.out" && break
	sleep 0.05
done

for test in lat bw rate; do
	client $test --connect $server_address --size 8,64k --iters 40 --json > "$work/$test.json" ||
		fail "$test between two hosts"
	# Two hosts have no shared memory; tcp is always there, with raw TCP as the floor.
	grep -q '"transport": *"tcp".*"floor": *"raw TCP"' "$work/$test.json" || fail "$test: $(cat "$work/$test.json")"
	! grep -q '"transport": *"shm"' "$work/$test.json" || fail "$test: shared memory between two hosts"
done
client lat --layer channel,ch3 --transport tcp --connect $server_address:27181 --size 300k --iters 10 --csv > "$work/csv" ||
	fail "lat with two layers"
[ "$(grep -c ',tcp,' "$work/csv")" = 2 ] || fail "two layers: $(cat "$work/csv")"
client wake --connect $server_address > "$work/wake" || fail "wake"
grep -q '^wake, round trip: tcp' "$work/wake" || fail "wake: $(cat "$work/wake")"

client lat --transport shm --connect $server_address > "$work/out" 2>&1 && fail "shm between two hosts has status 0"
grep -q 'the two hosts do not both have' "$work/out" || fail "shm between two hosts: $(cat "$work/out")"
client lat --connect $server_address:1 > "$work/out" 2>&1 && fail "nobody listens, and the status is 0"
grep -q 'start .headrace-perf --listen. there' "$work/out" || fail "nobody listens: $(cat "$work/out")"
client cuda --connect $server_address > "$work/out" 2>&1
[ $? = 64 ] || fail "cuda --connect"
client --listen lat > "$work/out" 2>&1
[ $? = 64 ] || fail "--listen with a test"

# A client that speaks something else, and a client that dies in the middle: the next one is served.
"${on_client[@]}" bash -c "printf 'GET / HTTP/1.0\r\n\r\n%0100d' 0 > /dev/tcp/$server_address/27181" 2> "$work/null"
"${on_client[@]}" "$perf" bw --connect $server_address --size 1M --seconds 60 > "$work/null" 2>&1 & victim=$!
sleep 1
kill -9 $victim
wait $victim 2> "$work/null"
client lat --connect $server_address --size 8 --iters 10 > "$work/out" 2>&1 || fail "after a dead client: $(cat "$work/out")"
kill -0 $listener 2> "$work/null" || fail "the listening process has ended: $(cat "$work/listen.err")"
exit $status
