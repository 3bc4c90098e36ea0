#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# What a worker has and may do: no secrets of others in its memory, no descriptors of the daemon, another layout than the
# next worker, no privileges, limited resources, filtered system calls, only the GPUs of its session.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 200 $top_builddir/test/cuda/door/knock"
python=${PYTHON:-python3}
socket=$work/sock
server=unix:$socket
unset HEADRACE_KEY_FILE CUDA_VISIBLE_DEVICES
case $(ldd "$headraced") in
*libasan* | *libtsan* | *libubsan*)
	echo "SKIP: a sanitizer's build is confined less: the sanitizer needs what is denied, and keeps freed memory"
	exit 77
	;;
esac
[ "$(id -u)" = 0 ] || { echo "SKIP: needs root, to read a worker's memory and to change users"; exit 77; }
start() { start_daemon "$headraced" --socket="$socket" --no-loopback --driver=echo "$@"; }

# open_session [COMMAND…]: keeps a session open: "tell COMMAND" sends it a command and sets answer.
open_session() { coproc session { "$@" $knock "$server" new 2> "$work/session.err"; }; }
tell() { echo "$1" >&"${session[1]}"; read -r -t 60 answer <&"${session[0]}"; }
close_session() {
	local pid=${session_PID:-}
	[ -n "$pid" ] || return 0 # bash forgets a session that has ended
	eval "exec ${session[1]}>&-"
	wait "$pid" 2> "$work/null"
}
ready_workers() { [ "$($knock "$server" status 2> "$work/null" | cut -d' ' -f3)" = "$1" ]; }

echo "- secrets, descriptors and layout"
key=
if "$headraced" --make-key="$work/key" 2> "$work/err"; then
	key=--key-file=$work/key
else
	echo "  (no key: built without libsodium)"
fi
export NOTIFY_SOCKET=$work/systemd HEADRACE_KEY_FILE=$work/key
start --workers=2 $key
unset NOTIFY_SOCKET HEADRACE_KEY_FILE
eventually 60 ready_workers 2 || fail "two workers do not get ready"
open_session
tell t
token=$answer
tell p
first=${answer% *}
eventually 60 ready_workers 2 || fail "no further worker gets ready"
[ ${#token} = 32 ] || fail "no token: $token"
"$python" "$top_srcdir/test/cuda/daemon/scan.py" "$daemon" "$token" > "$work/null" && fail "the scan finds nothing in the daemon"
key_bytes=
[ -z "$key" ] || key_bytes=$(grep -oE '[0-9a-f]{64}' "$work/key" | head -1)
[ -z "$key" ] || [ -n "$key_bytes" ] || fail "the key file has no key: $(cat "$work/key")"
layouts=0
for pid in $(children "$daemon"); do
	layouts=$((layouts + 1))
	head -1 "/proc/$pid/maps" | cut -d- -f1 >> "$work/layouts"
	[ "$(ls "/proc/$pid/fd" | sort -n | head -5 | xargs)" = "0 1 2 3 4" ] || fail "descriptors of $pid: $(ls -l "/proc/$pid/fd")"
	tr '\0' '\n' < "/proc/$pid/environ" | grep -E "NOTIFY_SOCKET|HEADRACE_KEY_FILE" && fail "the daemon's environment in $pid"
	[ "$pid" = "$first" ] && continue
	"$python" "$top_srcdir/test/cuda/daemon/scan.py" "$pid" "$token" $key_bytes || fail "secrets in the memory of worker $pid"
	[ "$(ls "/proc/$pid/fd" | wc -l)" = 5 ] || fail "descriptors of $pid: $(ls -l "/proc/$pid/fd")"
done
[ -z "$key_bytes" ] || "$python" "$top_srcdir/test/cuda/daemon/scan.py" "$first" "$key_bytes" || fail "the key is in the memory of a worker"
[ $layouts -ge 3 ] || fail "$layouts workers"
[ "$(sort -u "$work/layouts" | wc -l)" = $layouts ] || fail "workers have the same layout: $(cat "$work/layouts")"

echo "- privileges and resources"
# has PID FIELD VALUE: in every thread.
has() {
	local value
	for value in $(awk -v field="$2:" '$1 == field { print $2 }' "/proc/$1"/task/*/status); do
		[ "$value" = "$3" ] || fail "worker $1: $2 is $value, not $3"
	done
}
for set in CapInh CapPrm CapEff CapBnd CapAmb; do has "$first" $set 0000000000000000; done
has "$first" NoNewPrivs 1
has "$first" Uid "$(id -u nobody)"
[ "$(stat -c %u "/proc/$first/environ")" = 0 ] || fail "the worker is dumpable: a process of its user may read its memory"
limit() { awk -v name="$1" 'index($0, name) == 1 { print $(NF - 2), $(NF - 1) }' "/proc/$first/limits"; }
[ "$(limit "Max core file size")" = "0 0" ] || fail "core files: $(limit "Max core file size")"
read -r soft hard <<< "$(limit "Max open files")"
[ "$soft" -le 8192 ] && [ "$hard" -le 8192 ] || fail "descriptors: $soft $hard"

echo "- system calls"
if [ "$(awk '/^Seccomp:/ { print $2 }' "/proc/$first/status")" = 2 ]; then
	tell s
	[ "$answer" = 1 ] || fail "a packet socket: errno $answer"
	eventually 60 has_line "$work/log" "system call socket .* denied" || fail "a denied call is not in the log"
	# The channel over verbs watches memory by userfaultfd. A container may refuse the call, and a kernel may not have it: below,
	# a worker without the filter gets the same answer.
	tell w
	filtered=$answer
	tell W
	[ "$answer" = 1 ] || fail "userfaultfd for the kernel's faults: errno $answer"
	echo v >&"${session[1]}"
	eventually 60 gone "$first" || fail "a worker lives on after execve"
	eventually 60 has_line "$work/log" "killed for a system call that no worker makes" || fail "the end is not in the log"
	close_session
	stop_daemon
	start --no-seccomp
	open_session
	tell p
	first=${answer% *}
	has "$first" Seccomp 0
	tell w
	[ "$filtered" = "$answer" ] || fail "userfaultfd for user mode: errno $filtered, without the filter $answer"
	close_session
	stop_daemon
	HEADRACE_SECCOMP=off start
	open_session
	tell p
	has "${answer% *}" Seccomp 0
else
	has_line "$work/log" "without libseccomp" || has_line "$work/log" "with a sanitizer" || fail "no filter, and no word of it"
fi
close_session
stop_daemon

echo "- users"
start --root-workers
open_session
tell p
worker=${answer% *}
[ "${answer#* }" = 0 ] || fail "--root-workers: served as user ${answer#* }"
[ "$(awk '/^CapEff/ { print $2 }' "/proc/$worker/status")" = 0000000000080000 ] ||
	fail "a root worker's capabilities: $(grep Cap "/proc/$worker/status")"
close_session
stop_daemon
mkdir "$work/user"
chown 65534 "$work/user"
socket=$work/user/sock
server=unix:$socket
run_as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
[ -z "$key" ] || install -o 65534 -m 600 "$work/key" "$work/user/key"
start_daemon "${run_as[@]}" "$headraced" --socket="$socket" --no-loopback --driver=echo ${key:+--key-file="$work/user/key"}
[ -z "$key" ] || has_line "$work/log" "can read $work/user/key" || fail "a daemon that is not root does not warn of its key"
open_session "${run_as[@]}"
tell p
for set in CapPrm CapEff CapAmb; do has "${answer% *}" $set 0000000000000000; done
close_session
stop_daemon

echo "- GPUs"
socket=$work/sock
server=unix:$socket
start
[ "$(echo g | $knock "$server" new)" = "-1 -1" ] || fail "all GPUs"
[ "$(echo g | $knock "$server/0" new)" = "0 0" ] || fail "GPU 0"
[ "$(echo g | $knock "$server/1" new)" = "1 1" ] || fail "GPU 1"
$knock "$server/2" new < /dev/null 2> "$work/err"
refused 19 "no such GPU index 2: the server has 2" "GPU 2"
stop_daemon
finish
