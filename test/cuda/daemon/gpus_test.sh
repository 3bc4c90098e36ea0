#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# Exclusive GPUs, quotas that reach the workers, and sessions that make no calls.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
socket=$work/sock
server=unix:$socket
conf=$work/headraced.conf
unset HEADRACE_KEY_FILE
common=("socket = $socket" "no-loopback = yes" "driver = echo")
write() { printf '%s\n' "${common[@]}" "$@" > "$conf"; }
start() { start_daemon "$headraced" --config="$conf"; }

# hold SERVER: a session over descriptor 8; release ends it.
hold() {
	rm -f "$work/in" "$work/answer"
	mkfifo "$work/in"
	$knock "$1" new < "$work/in" > "$work/answer" 2> "$work/session.err" &
	client=$!
	exec 8> "$work/in"
	echo p >&8
	eventually 60 test -s "$work/answer" || fail "no session: $(cat "$work/session.err")"
}
release() {
	exec 8>&-
	wait $client
	eventually 60 none_served || fail "the session does not end"
}
none_served() { [ "$($knock "$server" status | cut -d' ' -f2)" = 0 ]; }

echo "- wrong values"
for wrong in "gpu-mode = mine" "gpu-mode = 64:shared" "gpu-mode = x:shared" "gpu-memory = 0" "gpu-memory = 4X" \
	"gpu-memory = 99999999999G" "gpu-memory = 1:" "idle-timeout = -1"; do
	write "$wrong"
	timeout 120 "$headraced" --config="$conf" 2> "$work/err"
	refused 1 "$conf:4: $wrong: want " "$wrong"
done

echo "- GPU 1 is exclusive"
write "gpu-mode = 1:exclusive"
start || finish
hold "$server/1"
$knock "$server/1" new < /dev/null 2> "$work/err"
refused 16 "GPU 1 is exclusive and another session has it" "a second session on GPU 1"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "GPU 1 is exclusive and another session has it; ask for another GPU (HOST/GPU)" "a session on all GPUs"
$knock "$server/0" new < /dev/null || fail "GPU 0 is not shared"
release
hold "$server"
$knock "$server/1" new < /dev/null 2> "$work/err"
refused 16 "GPU 1 is exclusive" "GPU 1 beside a session on all"
$knock "$server/0" new < /dev/null || fail "GPU 0 beside a session on all"
release
hold "$server/1"
release

echo "- quotas, and others after SIGHUP"
quota() { [ "$(echo q | $knock "$server" new)" = "$1" ]; }
quota 0 || fail "a quota that nobody has set: $(echo q | $knock "$server" new)"
write "gpu-memory = 3G" "gpu-memory = 1:5G"
kill -HUP "$daemon"
eventually 60 has_line "$work/log" "has been reloaded" || fail "no reload"
eventually 60 quota $((3 << 30)) || fail "the quota is not that of the file: $(echo q | $knock "$server" new)"
stop_daemon

echo "- a session without calls"
write "idle-timeout = 5"
start || finish
hold "$server"
eventually 60 has_line "$work/log" "has made no call for 5 s (idle-timeout): its session ends" || fail "it does not end"
release
stop_daemon
finish
