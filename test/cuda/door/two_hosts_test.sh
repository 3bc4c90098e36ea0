#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2015,SC2016,SC2086,SC2119,SC2154,SC2317
# Client and daemon on two hosts, with the echo worker: the key lets in, and nothing else does.
. "$top_srcdir/test/cuda/door/daemon.sh"
. "$top_srcdir/test/cuda/door/two_hosts.sh"
headraced=$top_builddir/test/cuda/door/headraced-echo
knock="timeout 120 $top_builddir/test/cuda/door/knock"
"$headraced" --make-key="$work/key" 2> "$work/err" || { echo "SKIP: no key support: built without libsodium"; exit 77; }
"$headraced" --make-key="$work/other"

start_daemon "${on_server[@]}" "$headraced" --socket="$work/sock" --no-loopback --driver=echo --key-file="$work/key" \
	--listen=$server_address || finish

knock_with() { HEADRACE_KEY_FILE=$1 "${on_client[@]}" $knock "$2" "${3:-new}" 2> "$work/err"; }

echo "- the right key"
answer=$(echo p | knock_with "$work/key" $server_address) || fail "the right key: $(cat "$work/err")"
[ "${answer#* }" = "$(id -u nobody)" ] || fail "served as user ${answer#* }"
knock_with "$work/key" $server_address join > "$work/join" || fail "a further connection: $(cat "$work/err")"
[ "$(sort -u "$work/join" | wc -l)" = 1 ] || fail "the joined connection came to another worker"

echo "- no other"
knock_with "$work/other" $server_address < /dev/null
refused 13 "wrong key" "a wrong key"
knock_with "" $server_address < /dev/null
refused 13 "asks for a key" "no key"

echo "- wrong port, and a host that is not there"
knock_with "$work/key" $server_address:9 < /dev/null
refused 111 "no headraced listens there" "wrong port"
HEADRACE_CONNECT_TIMEOUT_MS=300 knock_with "$work/key" 10.77.0.9 < /dev/null
refused 110 "cannot connect" "no host"

echo p | knock_with "$work/key" $server_address > "$work/null" || fail "others suffered"
stop_daemon
[ $status = 0 ] || fail "the daemon ended with $status"
finish
