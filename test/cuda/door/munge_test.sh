#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# Credentials of MUNGE, with a munged of the test's own.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
rogue="timeout 120 $top_builddir/test/cuda/door/munge_rogue"
free_ports 2
server=127.0.0.1:$port
unix=unix:$work/sock
nobody="setpriv --reuid=65534 --regid=65534 --clear-groups"
unset HEADRACE_KEY_FILE
PATH=$PATH:/usr/sbin:/sbin
command -v munged > "$work/null" && command -v munge > "$work/null" || { echo "SKIP: there is no munged here (Debian: munge)"; exit 77; }
"$headraced" --credential=munge --help > "$work/null" 2>&1 ||
	{ echo "SKIP: built without libmunge or libsodium"; exit 77; }

# start_munged NAME: with a key of its own; its socket is $work/NAME/socket.
mungeds=()
start_munged() {
	mkdir -m 755 "$work/$1"
	head -c 128 /dev/urandom > "$work/$1/key"
	chmod 600 "$work/$1/key"
	munged --foreground --key-file="$work/$1/key" --socket="$work/$1/socket" --pid-file="$work/$1/pid" \
		--log-file="$work/$1/log" --seed-file="$work/$1/seed" --num-threads=2 > "$work/$1/out" 2>&1 &
	mungeds+=($!)
	eventually 20 works "$1" || { echo "SKIP: munged does not start here: $(tail -n 3 "$work/$1/out")"; exit 77; }
}
works() { munge --no-input --socket="$work/$1/socket" > "$work/null" 2>&1; }
end_all() {
	[ "$BASHPID" = $$ ] || return
	kill -CONT "${mungeds[@]}" 2> "$work/null"
	kill -9 "${mungeds[@]}" 2> "$work/null"
	tidy
}
trap end_all EXIT
start_munged ours
start_munged theirs
export HEADRACE_MUNGE_SOCKET=$work/ours/socket HEADRACE_CREDENTIAL=munge
start() { start_daemon "$headraced" --socket="$work/sock" --no-loopback --driver=echo --listen="$server" "$@"; }
said() { [ "$1" = "$2" ] || fail "$3: \"$1\", not \"$2\""; }

echo "- the daemon learns the user"
start --credential=munge --root-workers || finish
read -r _ uid < <(echo p | $knock "$server" new 2> "$work/err")
said "$uid" "$([ "$(id -u)" = 0 ] && echo 65534 || id -u)" "the worker's user: $(cat "$work/err")"
if [ "$(id -u)" = 0 ]; then
	read -r _ uid < <(echo p | $nobody $knock "$server" new 2> "$work/err")
	said "$uid" 65534 "the worker's user for nobody: $(cat "$work/err")"
	read -r _ uid < <(echo p | setpriv --reuid=1234 --regid=1234 --clear-groups $knock "$server" new 2> "$work/err")
	said "$uid" 1234 "the worker's user for 1234: $(cat "$work/err")"
fi
$knock "$server" join > "$work/out" 2> "$work/err" || fail "a further connection: $(cat "$work/err")"
HEADRACE_ENCRYPT=1 $knock "$server" status > "$work/out" 2> "$work/err" || fail "with encryption: $(cat "$work/err")"
# MUNGE is for TCP: at a Unix socket the kernel names the user.
HEADRACE_MUNGE_SOCKET=/nonexistent $knock "$unix" status > "$work/out" 2> "$work/err" || fail "Unix socket: $(cat "$work/err")"
HEADRACE_CREDENTIAL='' $knock "$server" status > "$work/out" 2> "$work/err" || fail "by user on loopback: $(cat "$work/err")"

echo "- misuse"
mapfile -t answers < <($rogue "$server" replay)
said "${answers[*]}" "welcome MUNGE: Replayed credential" "a replay"
said "$($rogue "$server" stolen)" "MUNGE: the credential is another client's" "a stolen credential"
said "$($rogue "$server" other-user)" "MUNGE: Unauthorized credential for client UID=$(id -u) GID=$(id -g)" "for another server"
said "$($rogue "$server" text garbage)" "MUNGE: Failed to match armor prefix" "no credential"
said "$($rogue "$server" text "")" "a credential that is empty or has no end" "an empty credential"
said "$($rogue "$server" endless)" "a credential that is empty or has no end" "a credential without an end"
foreign=$(munge --socket="$work/ours/socket" --string=hello)
said "$($rogue "$server" text "$foreign")" "MUNGE: the credential is not Headrace's" "a credential for something else"
plain=$(head -c 32 /dev/zero | munge --socket="$work/ours/socket" --cipher=none)
said "$($rogue "$server" text "$plain")" "MUNGE: the credential is not encrypted" "a credential in the clear"
HEADRACE_MUNGE_SOCKET=$work/theirs/socket $knock "$server" status 2> "$work/err"
refused 13 "MUNGE: Invalid credential" "another MUNGE key"
HEADRACE_CREDENTIAL=magic $knock "$server" status 2> "$work/err"
refused 22 "HEADRACE_CREDENTIAL=magic: want key or munge" "a wrong setting"
HEADRACE_MUNGE_SOCKET=/nonexistent $knock "$server" status 2> "$work/err"
refused 13 "MUNGE makes no credential" "no munged at the client"

echo "- servers that are not what they claim"
other=127.0.0.1:$((port + 1))
for uid in "$(id -u)" 4242; do
	$rogue "$other" pose "$uid" > "$work/pose" &
	eventually 60 has_line "$work/pose" ready || fail "no listener"
	text="cannot decode our credential"
	[ "$uid" != 4242 ] || text="is run by user 4242"
	$knock "$other" status 2> "$work/err"
	refused 129 "$text" "posing as $uid"
	wait $!
done

echo "- a munged that hangs, and one that has ended"
kill -STOP "${mungeds[0]}"
# More than are possible at a time: each is refused or dropped, and the daemon serves others meanwhile. Their munged is not
# the one that hangs.
credential=$(HEADRACE_MUNGE_SOCKET=$work/theirs/socket munge --socket="$work/theirs/socket" --string=hello)
waiting=()
for _ in $(seq 20); do
	$rogue "$server" text "$credential" > "$work/hung" 2>&1 &
	waiting+=($!)
done
# A daemon that waited itself would take 10 s for each of them, more than a knock may take.
HEADRACE_CREDENTIAL='' $knock "$server" status > "$work/out" 2> "$work/err" || fail "the daemon waits for munged"
echo p | $knock "$unix" new > "$work/out" 2> "$work/err" || fail "no session while munged hangs"
kill -CONT "${mungeds[0]}"
wait "${waiting[@]}"
entered() { $knock "$server" status > "$work/out" 2> "$work/err"; }
eventually 60 entered || fail "MUNGE does not work again: $(cat "$work/err")"
end_first() { kill -9 "${mungeds[0]}"; wait "${mungeds[0]}" 2> "$work/null"; }
credential=$(HEADRACE_MUNGE_SOCKET=$work/ours/socket munge --socket="$work/ours/socket" --string=hello)
end_first
said "$($rogue "$server" text "$credential")" "MUNGE does not work on the server: its log says why" "without munged"
has_line "$work/log" "MUNGE: .*is munged running" || fail "the log does not say why: $(tail -n 3 "$work/log")"
stop_daemon

echo "- daemons that do not accept it"
export HEADRACE_MUNGE_SOCKET=$work/theirs/socket
start
$knock "$server" status 2> "$work/err"
refused 13 "this daemon does not accept MUNGE" "a daemon without it"
stop_daemon
printf 'credential = magic\n' > "$work/conf"
timeout 120 "$headraced" --config="$work/conf" 2> "$work/err"
refused 1 "conf:1: credential = magic: want key or munge" "the file"
HEADRACE_CREDENTIAL='' "$headraced" --make-key="$work/key" 2> "$work/err"
start --credential=munge --key-file="$work/key"
$knock "$server" status > "$work/out" 2> "$work/err" || fail "MUNGE beside a key: $(cat "$work/err")"
HEADRACE_CREDENTIAL=key HEADRACE_KEY_FILE=$work/key $knock "$server" status > "$work/out" 2> "$work/err" ||
	fail "a key beside MUNGE: $(cat "$work/err")"
stop_daemon

echo "- a program, encrypted"
start_daemon "$top_builddir/cuda_remote/server/headraced" --socket="$work/sock" --no-loopback --listen="$server" \
	--driver="$top_builddir/test/cuda/softgpu/.libs/libcuda_double.so" --private --credential=munge --encrypt --gpu-memory=64M
HEADRACE_SERVER=$server timeout 60 "$top_builddir/test/cuda/remote/usage" 2> "$work/err" || fail "usage: $(cat "$work/err")"
stop_daemon
finish
