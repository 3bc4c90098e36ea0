#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# The daemon with the echo worker: sessions, crashes, floods, users, and that nothing is left behind.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
socket=$work/d/sock
server=unix:$socket
unset HEADRACE_KEY_FILE
mkdir "$work/d"
free_ports 2 # nobody listens at the second one

start() { start_daemon "$headraced" --socket="$socket" --no-loopback --driver=echo "$@"; }

# Keeps a session open: "tell COMMAND" sends it a command and sets answer.
open_session() { coproc session { $knock "$server" new 2> "$work/session.err"; }; }
tell() { echo "$1" >&"${session[1]}"; read -r -t 60 answer <&"${session[0]}"; }
close_session() {
	local pid=$session_PID
	eval "exec ${session[1]}>&-"
	wait "$pid"
	status=$?
}

echo "- sessions"
start || finish
version=$($headraced --version | sed 's/.* \(.*\),.*/\1/')
[ "$($knock "$server" status)" = "2 0 1 headraced $version, NVIDIA driver" ] ||
	fail "status: $($knock "$server" status)"
first=$(echo p | $knock "$server" new) || fail "a session"
second=$(echo p | $knock "$server" new) || fail "a second session"
[ "${first% *}" != "${second% *}" ] || fail "two sessions had one worker"
$knock "$server" join > "$work/join" || fail "join"
[ "$(sort -u "$work/join" | wc -l)" = 1 ] || fail "the joined connection came to another worker"

echo "- a GPU that is not there"
$knock "$server/5" new < /dev/null 2> "$work/err"
refused 19 "no such GPU index 5: the server has 2" "GPU 5"
$knock "$server/1" new < /dev/null || fail "GPU 1"

echo "- crashes touch nobody else"
open_session
tell p
survivor=$answer
echo c | $knock "$server" new 2> "$work/err" && fail "a crashed worker's client saw no error"
echo x | $knock "$server" new 2> "$work/err" && fail "a lost worker's client saw no error"
tell p
[ "$answer" = "$survivor" ] || fail "the other session suffered"
eventually 60 has_line "$work/log" "was killed by signal 6" || fail "the crash is not in the log"
mkfifo "$work/in"
$knock "$server" new < "$work/in" > "$work/pid" &
client=$!
exec 8> "$work/in"
echo p >&8
eventually 60 test -s "$work/pid" || fail "no session"
worker=$(cut -d' ' -f1 "$work/pid")
kill -9 $client
wait $client 2> "$work/null"
exec 8>&-
eventually 60 gone "$worker" || fail "the worker of a killed client stays"
tell p
[ "$answer" = "$survivor" ] || fail "the other session suffered from a killed client"

echo "- garbage, idlers and floods"
$knock "$server" garbage 300 || fail "garbage"
coproc idlers { $knock "$server" idle 60; }
idlers_pid=$idlers_PID # which bash unsets when the process has ended
read -r -t 60 answer <&"${idlers[0]}"
echo p | $knock "$server" new > "$work/null" || fail "idlers keep others out"
eval "exec ${idlers[1]}>&-"
wait "$idlers_pid" 2> "$work/null"
$knock "$server" flood 40 > "$work/null" || fail "a flood of sessions"
tell p
[ "$answer" = "$survivor" ] || fail "the other session suffered from the flood"
close_session
[ $status = 0 ] || fail "the session ended with $status"

echo "- a second daemon at the same socket"
"$headraced" --socket="$socket" --no-loopback --driver=echo 2> "$work/err" && fail "a second daemon started"
has_line "$work/err" "a daemon is listening there" || fail "it does not say why: $(cat "$work/err")"
$knock "$server" status > "$work/null" || fail "the first daemon lost its socket"

echo "- an orderly end"
workers=$(children "$daemon")
stop_daemon TERM
[ $status = 0 ] || fail "SIGTERM: exit status $status"
[ ! -e "$socket" ] || fail "the socket file stays"
for pid in $workers; do gone "$pid" || fail "worker $pid stays"; done
$knock "$server" status 2> "$work/err"
refused 2 "no headraced listens there" "no server"

echo "- a killed daemon"
start
workers=$(children "$daemon")
stop_daemon KILL
for pid in $workers; do eventually 60 gone "$pid" || fail "worker $pid outlives the daemon"; done
[ -e "$socket" ] || fail "expected the stale socket"
start || fail "the stale socket is not replaced"
stop_daemon

echo "- the watched descriptor"
mkfifo "$work/watch"
start --watch-fd=7 7< <(cat "$work/watch")
pid=$daemon
exec 8> "$work/watch"
$knock "$server" status > "$work/null" || fail "not there while watched"
exec 8>&-
eventually 60 gone "$pid" || fail "the daemon outlives what it watches"
daemon=
[ ! -e "$socket" ] || fail "the socket file stays after the watched end"

echo "- limits"
start --max-clients=1
open_session
tell p
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "as many clients as it takes" "max-clients"
close_session
eventually 60 has_line "$work/log" "has gone" && $knock "$server" new < /dev/null || fail "the place does not come free"
stop_daemon

echo "- workers that cannot start, or take their time"
for driver in none crash; do
	timeout 60 "$headraced" --socket="$socket" --no-loopback --driver=$driver 2> "$work/err"
	[ $? = 1 ] || fail "driver $driver: no exit status 1"
	[ ! -e "$socket" ] || fail "driver $driver: the socket file stays"
done
"$headraced" --socket="$socket" --no-loopback --driver=slow 2> "$work/log" &
daemon=$!
eventually 60 test -S "$socket" || fail "no socket"
echo p | $knock "$server" new > "$work/null" || fail "a client does not wait for a slow worker"
stop_daemon

"$headraced" --socket="$socket" --no-loopback --driver="!$work/broken" --workers=3 2> "$work/log" &
daemon=$!
three_ready() { [ "$($knock "$server" status 2> "$work/null" | cut -d' ' -f3)" = 3 ]; }
eventually 60 three_ready || fail "not three workers stand ready"
touch "$work/broken"
for i in 1 2 3; do $knock "$server" new < /dev/null || fail "worker $i of those that stood ready"; done
eventually 60 has_line "$work/log" "could not start" || fail "no failure in the log"
$knock "$server" new < /dev/null 2> "$work/err"
refused 5 "cannot start a worker" "workers that cannot start any more"
rm "$work/broken"
eventually 60 three_ready || fail "the daemon does not try again"
$knock "$server" new < /dev/null || fail "no service after the failure"
stop_daemon

echo "- TCP on loopback, and the wrong port"
start --listen=127.0.0.1:$port
echo p | $knock 127.0.0.1:$port new > "$work/null" || fail "loopback"
$knock 127.0.0.1:$port garbage 100 || fail "garbage over TCP"
echo p | $knock 127.0.0.1:$port new > "$work/null" || fail "loopback after garbage"
$knock 127.0.0.1:$((port + 1)) new < /dev/null 2> "$work/err"
refused 111 "no headraced listens there" "wrong port"
stop_daemon

echo "- other protocol versions"
$knock "$server" answer 999 > "$work/answer" &
eventually 60 test -s "$work/answer" || fail "no listener"
$knock "$server" status 2> "$work/err"
refused 93 "speaks protocol 999, this client" "other version"
wait $!

echo "- beyond loopback only with a key"
"$headraced" --socket="$socket" --no-loopback --driver=echo --listen=0.0.0.0:$port 2> "$work/err" &&
	fail "it listens to the network without a key"
has_line "$work/err" "without a credential" || fail "it does not say why: $(cat "$work/err")"
if "$headraced" --make-key="$work/key" 2> "$work/err"; then
	"$headraced" --make-key="$work/other" && cp "$work/key" "$work/open" && chmod 644 "$work/open"
	"$headraced" --socket="$socket" --driver=echo --key-file="$work/open" --no-loopback 2> "$work/err" &&
		fail "it takes a key file that others can read"
	has_line "$work/err" "chmod 600" || fail "it does not say why: $(cat "$work/err")"
	start --listen=0.0.0.0:$port --key-file="$work/key"
	echo p | HEADRACE_KEY_FILE=$work/key $knock 127.0.0.1:$port new > "$work/pid" || fail "the right key"
	HEADRACE_KEY_FILE=$work/other $knock 127.0.0.1:$port new < /dev/null 2> "$work/err"
	refused 13 "wrong key" "wrong key"
	$knock 127.0.0.1:$port new < /dev/null 2> "$work/err"
	refused 13 "HEADRACE_KEY_FILE" "no key"
	# As root the daemon gives its worker to nobody; otherwise the worker stays the daemon's user.
	expected=$(id -u)
	[ "$expected" != 0 ] || expected=$(id -u nobody)
	[ "$(cut -d' ' -f2 "$work/pid")" = "$expected" ] ||
		fail "a client that came by key is served as user $(cut -d' ' -f2 "$work/pid")"
	echo p | HEADRACE_KEY_FILE=$work/key $knock "$server" new > "$work/null" || fail "Unix beside the key"
	stop_daemon
else
	has_line "$work/err" "configured without libsodium" || fail "--make-key: $(cat "$work/err")"
	echo "  (this build has no key support)"
fi

finish
