#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# Limits of sessions for each user, address and key, and a worker that does not take its client.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
socket=$work/sock
server=unix:$socket
free_ports
unset HEADRACE_KEY_FILE
me=$(id -u)
start() { start_daemon "$headraced" --socket="$socket" --no-loopback --driver=echo "$@"; }

# hold SERVER [COMMAND…]: a session that stays until release.
held=()
hold() {
	local fifo=$work/hold${#held[@]}
	mkfifo "$fifo"
	"${@:2}" $knock "$1" new < "$fifo" > "$fifo.out" 2> "$fifo.err" &
	held+=($!)
	exec {fd}> "$fifo"
	echo p >&$fd
	eventually 60 test -s "$fifo.out" || fail "no session at $1: $(cat "$fifo.err")"
}
release() {
	kill "${held[@]}"
	wait "${held[@]}" 2> "$work/null"
	rm -f "$work"/hold*
	held=()
}

echo "- each user"
start --max-per-user=2
hold "$server"
hold "$server"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "user $me has 2 sessions here: the server's limit for each user (--max-per-user)" "a third session"
if [ "$(id -u)" = 0 ]; then
	echo p | setpriv --reuid=65534 --regid=65534 --clear-groups $knock "$server" new > "$work/null" ||
		fail "one user's sessions keep another user out"
fi
release
session_free() { $knock "$server" new < /dev/null 2> "$work/null"; }
eventually 60 session_free || fail "the places do not come free"
stop_daemon

echo "- each address, and the key"
if "$headraced" --make-key="$work/key" 2> "$work/err"; then
	export HEADRACE_KEY_FILE=$work/key
	start --key-file="$work/key" --listen=127.0.0.1:$port --max-per-address=1 --max-per-key=9
	hold 127.0.0.1:$port
	$knock 127.0.0.1:$port new < /dev/null 2> "$work/err"
	refused 16 "this address has 1 sessions here: the server's limit for each address" "a second session of an address"
	HEADRACE_KEY_FILE='' $knock "$server" new < /dev/null || fail "an address's sessions keep local users out"
	release
	stop_daemon
	start --key-file="$work/key" --listen=127.0.0.1:$port --max-per-address=9 --max-per-key=1
	hold 127.0.0.1:$port
	$knock 127.0.0.1:$port new < /dev/null 2> "$work/err"
	refused 16 "1 sessions here came by this key: the server's limit for each key" "a second session by key"
	release
	stop_daemon
	unset HEADRACE_KEY_FILE
else
	echo "  (no key: built without libsodium)"
fi

echo "- a worker that does not take its client"
export HR_TEST_HAND_OVER=$work/fault
start
before=$(children "$daemon")
touch "$work/fault"
echo p | $knock "$server" new > "$work/pid" || fail "the client does not get another worker"
[ ! -e "$work/fault" ] || fail "the fault was not met"
for pid in $before; do eventually 60 gone "$pid" || fail "worker $pid lives on without a client"; done
none_served() { [ "$($knock "$server" status | cut -d' ' -f2)" = 0 ]; }
eventually 60 none_served || fail "status counts a session that is none: $($knock "$server" status)"
stop_daemon
finish
