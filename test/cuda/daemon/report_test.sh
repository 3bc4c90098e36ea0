#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# headrace-info --server from another host: the server's sessions, and who sees which.
. "$top_srcdir/test/cuda/door/daemon.sh"
. "$top_srcdir/test/cuda/door/two_hosts.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 600 $top_builddir/test/cuda/door/knock"
info="timeout 180 $top_builddir/bench/info/headrace-info"
"$headraced" --make-key="$work/key" 2> "$work/err" || { echo "SKIP: no key support: built without libsodium"; exit 77; }
export HEADRACE_LIBDIR=$top_builddir/cuda_remote
start_daemon "${on_server[@]}" "$headraced" --socket="$work/sock" --no-loopback --driver=echo --key-file="$work/key" \
	--listen=$server_address || finish

# The echo worker has no devices to show: headrace-info lists the sessions and then fails.
# hold NAME SERVER [COMMAND…]: a session that lasts until the script ends, of two calls.
hold() {
	mkfifo "$work/$1"
	"${@:3}" $knock "$2" new < "$work/$1" > "$work/$1.out" 2> "$work/$1.err" &
	exec {fd}> "$work/$1"
	printf 'p\np\n' >&$fd
	eventually 180 test -s "$work/$1.out" || fail "no session $1: $(cat "$work/$1.err")"
}
export HEADRACE_KEY_FILE=$work/key
hold remote $server_address "${on_client[@]}"
hold root "unix:$work/sock"
hold nobody "unix:$work/sock" setpriv --reuid=65534 --regid=65534 --clear-groups

echo "- from another host, by key"
"${on_client[@]}" $info --server=$server_address devices > "$work/info" 2> "$work/err"
grep -Eq '^    by key +knock +10\.77\.0\.2:[0-9]+ +all +4\.0 +2 +0 +[0-9]+ +[0-9]+\.[0-9]{3}$' "$work/info" ||
	fail "the session by key: $(cat "$work/info" "$work/err")"
[ "$(grep -c ' knock ' "$work/info")" = 1 ] && grep -q "and 2 sessions of others" "$work/info" ||
	fail "the key shows others' sessions: $(cat "$work/info")"

echo "- root, and another user, on the server"
$info --server="unix:$work/sock" devices > "$work/info" 2> "$work/err"
[ "$(grep -c ' knock ' "$work/info")" = 3 ] || fail "root does not see all: $(cat "$work/info" "$work/err")"
setpriv --reuid=65534 --regid=65534 --clear-groups env HEADRACE_KEY_FILE= $info --server="unix:$work/sock" devices \
	> "$work/info" 2> "$work/err"
[ "$(grep -c ' knock ' "$work/info")" = 1 ] && grep -Eq '^    65534 +knock ' "$work/info" ||
	fail "a user does not see its own session alone: $(cat "$work/info" "$work/err")"
stop_daemon
finish
