#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# SIGTERM lets sessions end; and what daemon and systemd tell each other: sockets, readiness, the journal.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
python=${PYTHON:-python3}
socket=$work/sock
server=unix:$socket
unset HEADRACE_KEY_FILE
start() { start_daemon "$headraced" --socket="$socket" --no-loopback --driver=echo "$@"; }

# hold: a session over descriptor 8, whose client's process is $client.
hold() {
	rm -f "$work/in" "$work/answer"
	mkfifo "$work/in"
	$knock "$server" new < "$work/in" > "$work/answer" 2> "$work/session.err" &
	client=$!
	exec 8> "$work/in"
	echo p >&8
	eventually 60 test -s "$work/answer" || fail "no session: $(cat "$work/session.err")"
}
draining() { has_line "$work/log" "no new sessions; waiting up to"; }

echo "- SIGTERM waits for sessions"
start || finish
hold
kill -TERM "$daemon"
eventually 60 draining || fail "SIGTERM: $(cat "$work/log")"
$knock "$server" new < /dev/null 2> "$work/err"
refused 5 "the server is ending and takes no new clients" "a new session"
$knock "$server" status > "$work/null" || fail "no status while it waits"
echo p >&8
two_answers() { [ "$(wc -l < "$work/answer")" = 2 ]; }
eventually 60 two_answers || fail "the session does not go on"
exec 8>&-
wait $client || fail "the session ended with $?: $(cat "$work/session.err")"
eventually 60 gone "$daemon" || fail "the daemon does not end with its last session"
wait "$daemon" || fail "exit status $?"
daemon=
[ ! -e "$socket" ] || fail "the socket file stays"

echo "- a second SIGTERM, and the time-out"
start || finish
hold
kill -TERM "$daemon"
eventually 60 draining || fail "SIGTERM: $(cat "$work/log")"
stop_daemon TERM
[ $status = 0 ] || fail "exit status $status"
exec 8>&-
wait $client
start --drain-timeout=0 || finish
hold
stop_daemon TERM
[ $status = 0 ] || fail "exit status $status"
has_line "$work/log" "1 sessions have not ended in 0 s (--drain-timeout)" || fail "no time-out: $(cat "$work/log")"
exec 8>&-
wait $client

echo "- sockets and notices of systemd"
notices=$work/notices
"$python" "$top_srcdir/test/cuda/daemon/activate.py" "$work/passed" "$work/notify" "$notices" \
	"$headraced" --no-loopback --driver=echo 2> "$work/log" &
daemon=$!
eventually 60 has_line "$notices" "READY=1" || fail "no readiness: $(cat "$work/log")"
$knock "unix:$work/passed" status > "$work/null" || fail "the passed socket is not served"
stop_daemon TERM
has_line "$notices" "STOPPING=1" || fail "no notice of the end: $(cat "$notices")"
[ -S "$work/passed" ] || fail "the daemon removed systemd's socket"

echo "- a socket that is none"
LISTEN_FDS=1 sh -c 'LISTEN_PID=$$ exec "$@"' sh "$headraced" --no-loopback --driver=echo 3< /dev/null 2> "$work/err"
refused 1 "descriptor 3 (LISTEN_FDS): Socket operation on non-socket; want a listening stream socket" "/dev/null"

echo "- the journal"
if [ "$(id -u)" = 0 ] && unshare -m true 2> "$work/null"; then
	unshare -m sh -c 'mount -t tmpfs none /run && mkdir -p /run/systemd/journal && exec "$@"' sh \
		"$python" "$top_srcdir/test/cuda/daemon/journal.py" "$work/journal" "$headraced" \
		--socket="$socket" --no-loopback --driver=echo --log=journal --max-clients=3 2> "$work/log" &
	daemon=$!
	eventually 60 has_line "$work/journal" "<6>headrace.*ready, 2 GPUs" || fail "not in the journal: $(cat "$work/log")"
	[ "$(head -n 1 "$work/journal")" = headraced ] || fail "the stream's head: $(cat "$work/journal")"
	echo c | $knock "$server" new 2> "$work/null"
	eventually 60 has_line "$work/journal" "<3>headrace.*was killed by signal 6" || fail "no error in the journal"
	kill "$daemon"
	eventually 60 gone "$daemon"
	daemon=
else
	echo "  (skipped: needs root and mount namespaces)"
fi
finish
