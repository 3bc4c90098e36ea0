#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# The whole path with bad input and sudden deaths: clear errors in time, nothing left behind, others served.
. "$top_srcdir/test/cuda/door/daemon.sh"
with_own_shm
programs=$top_builddir/test/cuda/bad_input
headraced=$top_builddir/cuda_remote/server/headraced
knock="timeout 120 $top_builddir/test/cuda/door/knock"
run="timeout 60 $top_builddir/cuda_remote/run/headrace-run"
unset HEADRACE_KEY_FILE
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
server=unix:$work/sock
. "$top_srcdir/test/cuda/bad_input/program.sh"

left_over() { shared_memory | comm -13 <(echo "$before") -; }
nothing_left() { [ -z "$(left_over)" ]; }
# The worker of the client that came last.
serving_worker() { worker=$(sed -n 's/.*served by worker \([0-9]*\).*/\1/p' "$work/log" | tail -1); }
still_served() {
	$program $run -s "$server" "$programs/copy_loop" 2 > "$work/out2" 2> "$work/err2" ||
		fail "$1: others are not served: $(cat "$work/err2")"
}
before=$(shared_memory)

echo "- wrong calls, in the program's own process"
$program $run --local "$programs/bad_calls" > "$work/out" 2> "$work/err" || fail "local: $(cat "$work/out" "$work/err")"
$program $run --local "$programs/elf_only" > "$work/out" 2> "$work/err" || fail "local, machine code only: $(cat "$work/out")"

start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu || finish

echo "- wrong calls, remote"
$program $run -s "$server" "$programs/bad_calls" > "$work/out" 2> "$work/err" || fail "remote: $(cat "$work/out" "$work/err")"
$program $run -s "$server" "$programs/elf_only" > "$work/out" 2> "$work/err" ||
	fail "remote, machine code only: $(cat "$work/out")"

echo "- the server does not have that, or is not there"
$program $run -s "$server/7" "$programs/copy_loop" 2> "$work/err"
refused 125 "no such GPU index 7: the server has 1" "GPU 7"
$program $run -s "unix:$work/none" "$programs/copy_loop" 2> "$work/err"
refused 125 "no headraced listens there" "no server"

echo "- without headrace-run to ask first, the program itself says so"
libraries=$top_builddir/cuda_remote/runtime/.libs:$top_builddir/cuda_remote/client/.libs
for bad in "unix:$work/none" "$server/7" "127.0.0.1:1"; do
	LD_LIBRARY_PATH=$libraries HEADRACE_SERVER=$bad timeout 120 $program "$programs/copy_loop" > "$work/out" 2> "$work/err"
	refused 3 "server .*: " "HEADRACE_SERVER=$bad"
done
$knock "unix:$work/other" answer 999 > "$work/answer" &
other=$!
eventually 60 test -s "$work/answer"
LD_LIBRARY_PATH=$libraries HEADRACE_SERVER=unix:$work/other \
	timeout 120 $program "$programs/copy_loop" > "$work/out" 2> "$work/err"
refused 3 "speaks protocol 999" "another version"
wait $other

echo "- a client killed in mid-copy"
for signal in KILL SEGV TERM; do
	rm -f "$work/client"
	$program $run -s "$server" "$programs/copy_loop" > "$work/client" 2> "$work/null" &
	client=$!
	eventually 60 has_line "$work/client" copying || fail "the copy did not begin"
	serving_worker
	pkill -$signal -P $client
	wait $client 2> "$work/null"
	eventually 60 gone "$worker" || fail "SIG$signal: the worker stays"
	still_served "SIG$signal at the client"
done

echo "- a worker killed in mid-copy"
for signal in KILL SEGV; do
	rm -f "$work/client"
	$program $run -s "$server" "$programs/copy_loop" > "$work/client" 2> "$work/err" &
	client=$!
	eventually 60 has_line "$work/client" copying || fail "the copy did not begin"
	serving_worker
	kill -$signal "$worker"
	wait $client
	status=$?
	[ $status = 3 ] && has_line "$work/err" cudaMemcpy ||
		fail "SIG$signal: the client's status $status: $(cat "$work/err")"
	still_served "SIG$signal at the worker"
done

echo "- the daemon killed under a client"
rm -f "$work/client"
$program $run -s "$server" "$programs/copy_loop" > "$work/client" 2> "$work/err" &
client=$!
eventually 60 has_line "$work/client" copying || fail "the copy did not begin"
stop_daemon KILL
wait $client
[ $? = 3 ] || fail "the client does not notice: $(cat "$work/err")"

echo "- a daemon that ends in order under a client"
start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=softgpu || finish
rm -f "$work/client"
$program $run -s "$server" "$programs/copy_loop" > "$work/client" 2> "$work/err" &
client=$!
eventually 60 has_line "$work/client" copying || fail "the copy did not begin"
stop_daemon
[ $status = 0 ] || fail "the daemon ended with $status"
wait $client
[ $? = 3 ] || fail "the client does not notice: $(cat "$work/err")"
[ ! -e "$work/sock" ] || fail "the socket file stays"

echo "- a server of its own, killed programs"
for signal in INT TERM KILL; do
	rm -f "$work/client"
	$program env --default-signal=INT "$top_builddir/cuda_remote/run/headrace-run" --driver=softgpu "$programs/copy_loop" \
		> "$work/client" 2> "$work/err" &
	client=$!
	eventually 60 has_line "$work/client" copying || fail "the copy did not begin: $(cat "$work/err")"
	kill -$signal $client
	wait $client 2> "$work/null"
	eventually 60 sh -c "! grep -q @headrace-$client- /proc/net/unix" || fail "SIG$signal: a server stays"
done

eventually 30 nothing_left || fail "left in /dev/shm: $(left_over)"
finish
