#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# A daemon of root and a client of another user: the worker becomes that user, and ends with the daemon.
[ "$(id -u)" = 0 ] || { echo "SKIP: a worker for another user needs root"; exit 77; }
setpriv --reuid=65534 --clear-groups true || { echo "SKIP: setpriv (util-linux) cannot change the user here"; exit 77; }
. "$top_srcdir/test/cuda/door/daemon.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
# The build tree may lie in a folder that only root can enter.
cp "$top_builddir/test/cuda/door/knock" "$work/knock" && chmod 755 "$work/knock" || exit 1
socket=$work/d/sock
server=unix:$socket
unset HEADRACE_KEY_FILE
mkdir "$work/d"
as_other_user=(timeout 120 setpriv --reuid=65534 --regid=65534 --clear-groups "$work/knock")

start() { start_daemon "$headraced" --socket="$socket" --no-loopback --driver=echo || finish; }

echo "- the worker becomes the client's user"
start
answer=$(echo p | "${as_other_user[@]}" "$server" new)
[ "${answer#* }" = 65534 ] || fail "user of the worker: $answer"
stop_daemon

echo "- and dies with the daemon even so"
start
mkfifo "$work/user"
"${as_other_user[@]}" "$server" new < "$work/user" > "$work/uid" 2> "$work/null" &
client=$!
exec 8> "$work/user"
echo p >&8
eventually 60 test -s "$work/uid"
worker=$(cut -d' ' -f1 "$work/uid")
stop_daemon KILL
eventually 60 gone "$worker" || fail "worker $worker outlives the daemon"
exec 8>&-
wait $client

finish
