#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# headraced.conf: what is read, what is refused and how, what SIGHUP changes and what it cannot; the file of the log.
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
socket=$work/sock
server=unix:$socket
conf=$work/headraced.conf
unset HEADRACE_KEY_FILE
write() { printf '%s\n' "$@" > "$conf"; }
start() { start_daemon "$headraced" --config="$conf" "$@"; }
common=("socket = $socket" "no-loopback = yes" "driver = echo")

# wrong WANT LINE…: the file's last line is refused, with its place and the text WANT.
wrong() {
	write "# the first line" "${@:2}"
	timeout 120 "$headraced" --config="$conf" 2> "$work/err" && fail "it starts with \"${*: -1}\""
	grep -Fq -- "$conf:$#: " "$work/err" && grep -Fq -- "$1" "$work/err" || fail "\"${*: -1}\": $(cat "$work/err")"
}

echo "- wrong lines"
wrong "max-clients = many: want a number from 1 to 4096" "max-clients = many"
wrong "max-clients = 5000: want a number from 1 to 4096" "workers = 1" "max-clients=5000"
wrong "encrypt = 1: want yes or no" "encrypt = 1"
wrong '"max-client" is no setting of this file: headraced.conf(5) lists them' "max-client = 4"
wrong '"ready-fd" is no setting of this file: it is an option of the command line only' "ready-fd = 4"
wrong '"private": want NAME = VALUE' "private"
wrong '"= 4": want NAME = VALUE' "= 4"
wrong "log = here: want stderr, journal or the path of a file" "log = here"
wrong "user = : want a value" "user ="
wrong "want ADDRESS or ADDRESS:PORT" "listen = 127.0.0.1:99999"
timeout 120 "$headraced" --config="$work/none" 2> "$work/err"
refused 1 "cannot read $work/none: No such file" "a file that is missing"
printf 'a\0b' > "$conf"
timeout 120 "$headraced" --config="$conf" 2> "$work/err"
refused 1 "not a text file" "a binary file"

echo "- a file, and the command line over it"
write "${common[@]}" "  max-clients	=  1  " "" "# max-clients = 7"
start || finish
mkfifo "$work/in"
$knock "$server" new < "$work/in" > "$work/pid" &
exec 8> "$work/in"
echo p >&8
eventually 60 test -s "$work/pid" || fail "no session"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "as many clients as it takes (1)" "max-clients of the file"

echo "- SIGHUP"
loaded() { [ "$(grep -c "$conf has been reloaded" "$work/log")" = "$1" ]; }
write "${common[@]}" "max-clients = 2" "max-per-user = 1"
kill -HUP "$daemon"
eventually 60 loaded 1 || fail "no reload: $(cat "$work/log")"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "--max-per-user" "max-per-user after a reload"
write "${common[@]}" "max-clients = 9" "workers = lots"
kill -HUP "$daemon"
eventually 60 has_line "$work/log" "has not been reloaded" || fail "a wrong file is taken"
has_line "$work/log" "$conf:5: workers = lots" || fail "the reload does not say what is wrong: $(cat "$work/log")"
$knock "$server" new < /dev/null 2> "$work/err"
refused 16 "--max-per-user" "the old options after a wrong file"
write "socket = $work/other" "no-loopback = yes" "driver = echo" "max-clients = 2"
kill -HUP "$daemon"
eventually 60 loaded 2 || fail "no second reload: $(cat "$work/log")"
has_line "$work/log" "socket has changed: this takes effect when headraced is started again" ||
	fail "it does not name what cannot be reloaded"
has_line "$work/log" "driver has changed" && fail "it names what has not changed"
$knock "$server" new < /dev/null || fail "a second session after the reload"
exec 8>&-
stop_daemon

write "${common[@]}" "max-clients = 1"
start --max-clients=2 --socket="$work/second" || finish
server=unix:$work/second
$knock "$server" status > "$work/null" || fail "--socket does not override"
[ ! -e "$socket" ] || fail "the file's socket is opened beside that of the command line"
stop_daemon
server=unix:$socket

echo "- another key by SIGHUP"
if "$headraced" --make-key="$work/key" 2> "$work/err" && "$headraced" --make-key="$work/key2"; then
	free_ports
	write "${common[@]}" "listen = 127.0.0.1:$port" "key-file = $work/key"
	start || finish
	HEADRACE_KEY_FILE=$work/key $knock 127.0.0.1:$port new < /dev/null || fail "the first key"
	write "${common[@]}" "listen = 127.0.0.1:$port" "key-file = $work/key2"
	kill -HUP "$daemon"
	eventually 60 loaded 1 || fail "no reload: $(cat "$work/log")"
	HEADRACE_KEY_FILE=$work/key2 $knock 127.0.0.1:$port new < /dev/null || fail "the second key"
	HEADRACE_KEY_FILE=$work/key $knock 127.0.0.1:$port new < /dev/null 2> "$work/err"
	refused 13 "wrong key" "the key that was replaced"
	stop_daemon
else
	echo "  (no key: built without libsodium)"
fi

echo "- a log in a file, and its rotation"
write "${common[@]}" "log = $work/file.log"
start || finish
has_line "$work/file.log" "ready, 2 GPUs" || fail "no log in the file"
mv "$work/file.log" "$work/file.log.1"
kill -HUP "$daemon"
eventually 60 has_line "$work/file.log" "has been reloaded" || fail "the log is not opened again"
stop_daemon
[ ! -s "$work/log" ] || fail "on standard error: $(cat "$work/log")"
finish
