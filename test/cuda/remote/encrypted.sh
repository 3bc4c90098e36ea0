#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A session over encrypted TCP: copies, and threads that join it. Every connection says that it is encrypted.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
headraced=$build/cuda_remote/server/headraced
free_ports
"$headraced" --make-key="$folder/key" 2>"$folder/err" ||
	{ grep -q libsodium "$folder/err" && { echo "SKIP: this build has no libsodium"; exit 77; }; fail "$(cat "$folder/err")"; }
trap remote_cleanup EXIT
mkfifo "$folder/ready"
"$headraced" --socket="$folder/socket" --listen=127.0.0.1:$port --key-file="$folder/key" --driver="$driver" --no-loopback \
	--quiet --ready-fd=3 3>"$folder/ready" 2>"$folder/log" &
daemon=$!
read -r _ <"$folder/ready" || fail "headraced did not start"
export HEADRACE_SERVER=127.0.0.1:$port HEADRACE_KEY_FILE=$folder/key HEADRACE_ENCRYPT=1 HEADRACE_LOG=info
for test in copies threads; do
	timeout 120 "$build/test/cuda/remote/$test" >"$folder/out" 2>&1 || fail "$test: $(cat "$folder/out")"
	grep -q 'is up over tcp, encrypted' "$folder/out" || fail "$test: no connection was encrypted"
	grep 'is up over' "$folder/out" | grep -v 'tcp, encrypted' && fail "$test: a connection was not encrypted"
done
timeout 60 "$build/test/cuda/remote/managed" far || fail "managed memory over encrypted TCP"
exit 0
