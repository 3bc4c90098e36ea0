# SPDX-License-Identifier: BSD-3-Clause
# For the scripts that start a headraced: sourced, not run. Everything lives in $work, which goes away at the end.
# shellcheck shell=bash
set -u
. "$top_srcdir/test/ports.sh"
work=$(mktemp -d /tmp/headrace-test-XXXXXX)
chmod 755 "$work"
failures=0
daemon=
tidy() {
	# Not in a child that a signal ends before it has become another program.
	[ "$BASHPID" = $$ ] || return
	[ -z "$daemon" ] || kill -9 "$daemon" 2> "$work/null"
	rm -rf "$work"
}
trap tidy EXIT

fail() {
	echo "FAILED: $*"
	failures=$((failures + 1))
}

# finish: the script's last line.
finish() {
	[ $failures != 0 ] || echo "all passed"
	exit $((failures != 0))
}

# eventually SECONDS COMMAND…: true as soon as the command is.
eventually() {
	local tries=$(($1 * 50))
	shift
	until "$@"; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || return 1
		sleep 0.02
	done
}

# with_own_shm ARGUMENT…: if the machine allows that, runs the script again with a /dev/shm of its own, where no other
# program of the machine makes files.
with_own_shm() {
	[ -z "${OWN_SHM:-}" ] && [ "$(id -u)" = 0 ] && unshare -m true 2> "$work/null" || return 0
	rm -rf "$work"
	OWN_SHM=yes exec unshare -m bash -c 'mount -t tmpfs tmpfs /dev/shm && exec "$@"' - bash "$0" "$@"
}
# Lists the files in /dev/shm: all of them if the script has a /dev/shm of its own, else those with names that Headrace uses.
shared_memory() {
	if [ -n "${OWN_SHM:-}" ]; then
		find /dev/shm
	else
		find /dev/shm -maxdepth 1 \( -name 'hr*' -o -name '*headrace*' \) ! -name 'hr-verbs-double*'
	fi | sort
}

gone() { ! kill -0 "$1" 2> "$work/null"; }
children() { cat "/proc/$1/task/$1/children" 2> "$work/null"; }
has_line() { grep -qs -- "$2" "$1"; }

# refused STATUS TEXT WHAT: the command just run ended with that status, and TEXT, if any, is among what it said into
# $work/err.
refused() {
	local status=$?
	if [ $status != "$1" ] || { [ -n "$2" ] && ! has_line "$work/err" "$2"; }; then
		fail "$3: status $status: $(cat "$work/err" 2> "$work/null")"
	fi
}

# start_daemon PROGRAM OPTION…: in the background, its log in $work/log; returns when clients may come, or after
# $start_seconds (60). Sets daemon.
start_daemon() {
	mkfifo "$work/ready"
	"$@" --ready-fd=9 9> "$work/ready" > "$work/out" 2> "$work/log" &
	daemon=$!
	local line=
	read -r -t "${start_seconds:-60}" line < "$work/ready"
	rm -f "$work/ready"
	[ "$line" = ready ] || { fail "the daemon did not start: $*"; cat "$work/log"; return 1; }
}

# stop_daemon [SIGNAL]: ends it, by default without waiting for sessions; sets status.
stop_daemon() {
	local pid=$daemon
	kill "-${1:-INT}" "$pid"
	wait "$pid" 2> "$work/null"
	status=$?
	daemon=
}
