#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# The daemon's counters over HTTP: their format, what they count, and visitors that want to do harm.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
server=unix:$work/sock
place=$work/metrics
unset HEADRACE_KEY_FILE
start() { start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=echo "$@"; }
visit() { timeout 120 "${PYTHON:-python3}" -B "$top_srcdir/test/cuda/daemon/metrics.py" "$place" "$@"; }
has() { [ "$(visit value "$1" 2> "$work/err")" = "$2" ]; }
# reaches SAMPLE VALUE: soon. Workers end, and start, after what made them.
reaches() { eventually 60 has "$@" || fail "$1 is $(visit value "$1"), not $2"; }
process() { pgrep -P "$daemon" -x headrace-metric; }

echo "- off by default"
start
[ -z "$(process)" ] || fail "there is a process without the option"
stop_daemon

echo "- what is counted"
start --metrics="$place" --max-per-user=1 --gpu-memory=1M --gpu-memory=1:none --gpu-mode=1:exclusive || finish
visit get > "$work/page" || fail "no page"
visit head || fail "HEAD"
reaches headrace_gpus 2
reaches headrace_sessions 0
reaches 'headrace_gpu_memory_quota_bytes{gpu="0"}' 1048576
reaches 'headrace_gpu_memory_quota_bytes{gpu="1"}' 0
reaches 'headrace_gpu_exclusive{gpu="1"}' 1
mkfifo "$work/in"
$knock "$server" new < "$work/in" > "$work/out" 2> "$work/err" &
session=$!
exec 7> "$work/in"
echo p >&7
eventually 60 test -s "$work/out" || fail "no session"
has headrace_sessions 1 && has headrace_sessions_total 1 || fail "a session is not counted: $(visit get)"
has 'headrace_gpu_sessions{gpu="0"}' 1 || fail "a session is not counted on its GPU: $(visit get)"
has 'headrace_gpu_memory_used_bytes{gpu="1"}' $((1 << 53)) || fail "a lie of a worker: $(visit get)"
has headrace_calls_total 1 && has headrace_session_connections 1 || fail "a call is not counted: $(visit get)"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "has 1 sessions here" "a second session"
$knock "$server/7" new < /dev/null 2> "$work/err"
has 'headrace_refused_total{reason="limit"}' 2 || fail "a refusal is not counted: $(visit get)"
$knock "$server" garbage 3 2> "$work/err"
reaches 'headrace_refused_total{reason="malformed"}' 3
exec 7>&-
wait $session
reaches headrace_sessions 0
reaches 'headrace_worker_exits_total{cause="client_gone"}' 1
echo c | $knock "$server" new > "$work/out" 2> "$work/err"
reaches 'headrace_worker_exits_total{cause="signal"}' 1
reaches headrace_sessions 0
echo x | $knock "$server" new > "$work/out" 2> "$work/err"
reaches 'headrace_worker_exits_total{cause="error"}' 1
# The calls of sessions that have ended still count.
reaches headrace_calls_total 3
reaches headrace_sessions_total 3
$knock "$server/7" new < /dev/null 2> "$work/err"
refused 19 "no such GPU" "GPU 7"
reaches 'headrace_refused_total{reason="no_gpu"}' 1

echo "- the process: its user, and its end"
pid=$(process)
[ "$(id -u)" != 0 ] || [ "$(stat -c %U "/proc/$pid")" != root ] ||
	grep -Eq '^Uid:[[:space:]]+65534' "/proc/$pid/status" || fail "the process is root"
kill -9 "$pid"
visit get > "$work/page" || fail "no answer after the process was killed"
has_line "$work/log" "metrics: the process has ended (signal 9); another will start" || fail "no word of the end"
has headrace_sessions_total 3 || fail "the counters are lost with the process"

echo "- hostile visitors"
pid=$(process)
mkfifo "$work/in2"
$knock "$server" new < "$work/in2" > "$work/out" 2> "$work/err" &
exec 7> "$work/in2"
visit hostile || fail "hostile requests"
visit crowd || fail "silent visitors"
visit slow || fail "slow visitors"
echo a >&7
eventually 60 grep -q a "$work/out" || fail "the session does not go on"
exec 7>&-
[ "$(process)" = "$pid" ] || fail "the process did not survive: $(cat "$work/log")"
[ "$(find "/proc/$pid/fd" -lname 'socket:*' | wc -l)" -le 8 ] || fail "connections are left: $(ls -l "/proc/$pid/fd")"
[ "$(grep -c 'metrics:' "$work/log")" = 1 ] || fail "$(cat "$work/log")"
stop_daemon
[ ! -e "$place" ] || fail "the socket file is left"
gone "$pid" || fail "the process is left"

echo "- at a port"
free_ports
place=$port
start --metrics=127.0.0.1:$place
visit get > "$work/page" || fail "no page at a port"
if command -v promtool > "$work/null"; then
	promtool check metrics < "$work/page" || fail "promtool"
else
	echo "  (no promtool: its check is left out)"
fi
stop_daemon

echo "- wrong places"
for wrong in 127.0.0.1 '' '[::1]' relative/path 127.0.0.1:0x1 127.0.0.1:99999; do
	timeout 120 "$headraced" --driver=echo --no-loopback --socket="$work/sock" --metrics="$wrong" 2> "$work/err"
	refused 1 "want ADDRESS:PORT, or the path of a Unix socket" "--metrics=$wrong"
done
printf 'metrics = 127.0.0.1\n' > "$work/conf"
timeout 120 "$headraced" --config="$work/conf" 2> "$work/err"
refused 1 "conf:1: metrics = 127.0.0.1: want ADDRESS:PORT" "the file"
finish
