#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Arrays, textures and surfaces: the test of the software GPU passes behind a worker too, and large copies arrive, over both
# transports of one host, in parts of 256 KB.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
free_ports
remote_start --listen=127.0.0.1:$port

# parts CALL: of the copies of 8 MB.
parts() {
	local n
	n=$(grep -c "call [0-9]* $1" "$folder/calls")
	[ "$n" = 32 ] || fail "8 MB took $n calls $1, want 32"
}

timeout 120 "$build/test/cuda/remote/softgpu_arrays" || exit 1
for server in "$HEADRACE_SERVER" 127.0.0.1:$port; do
	export HEADRACE_SERVER=$server
	timeout 120 "$build/test/cuda/remote/array_copies" || fail "at $server"
	HEADRACE_LOG=debug timeout 120 "$build/test/cuda/remote/array_copies" parts 2>"$folder/calls" || fail "parts, at $server"
	parts array_up
	parts array_down
done
