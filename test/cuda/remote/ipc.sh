#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Memory and events of another process, whose worker is another one: over a Unix socket and over tcp, with the client's calls
# of both kinds of addresses, under a quota, and for another user.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports
remote_start --listen=127.0.0.1:$port
timeout 120 "$build/test/cuda/remote/ipc" || fail "over a Unix socket"
HEADRACE_SERVER=127.0.0.1:$port HEADRACE_TRANSPORT=tcp timeout 120 "$build/test/cuda/remote/ipc" || fail "over tcp"
remote_stop || exit 1
HEADRACE_PLACED_MEMORY=2 remote_start
timeout 120 "$build/test/cuda/remote/ipc" || fail "memory placed by virtual memory management"
remote_stop || exit 1
HEADRACE_PLACED_MEMORY=0 remote_start
timeout 120 "$build/test/cuda/remote/ipc" || fail "at addresses of the driver"
remote_stop || exit 1
remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/ipc" quota || fail "with a quota"
timeout 120 "$build/test/cuda/remote/ipc" charged || fail "descriptors with a quota"
remote_stop || exit 1
HEADRACE_PLACED_MEMORY=2 remote_start --gpu-memory=16M
timeout 120 "$build/test/cuda/remote/ipc" small || fail "small allocations with a quota"
remote_stop || exit 1

[ "$(id -u)" = 0 ] && setpriv --reuid=65534 --clear-groups true || { echo "without root, no other user is tried"; exit 0; }
# The build tree may lie in a folder that only root can enter.
chmod 755 "$folder"
cp "$build/test/cuda/remote/.libs/ipc" "$build/cuda_remote/client/.libs/libcuda.so.1" "$folder" || exit 1
mkfifo "$folder/until" "$folder/ready2"
"$headraced" --socket="$folder/socket" --driver="$driver" --no-loopback --quiet --ready-fd=3 3>"$folder/ready2" \
	2>>"$folder/log" &
daemon=$!
read -r _ <"$folder/ready2" || fail "headraced did not start"
export LD_LIBRARY_PATH=$folder
other_user=(setpriv --reuid=65534 --regid=65534 --clear-groups timeout 60 "$folder/ipc")
timeout 60 "$folder/ipc" export "$folder/handle" <"$folder/until" >"$folder/said" &
exporter=$!
exec 4>"$folder/until"
for _ in $(seq 600); do
	grep -q ready "$folder/said" && break
	sleep 0.05
done
chmod 644 "$folder/handle" || fail "no handle was exported"
timeout 60 "$folder/ipc" open "$folder/handle" 0 || fail "the same user is refused"
"${other_user[@]}" open "$folder/handle" 400 || fail "another user is not refused"
exec 4>&-
wait $exporter || fail "the exporting program failed"
