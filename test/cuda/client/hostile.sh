#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The client library against a server that breaks the protocol: the session ends, no memory is used after it was given back.
set -euo pipefail
program=$top_builddir/test/cuda/client/hostile
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# Over a socket, which takes less than a chunk at once, a chunk can be received in part.
export HEADRACE_TRANSPORT=tcp HEADRACE_RING_BYTES=64k HEADRACE_LOG=error
for scenario in $("$program"); do
	if ! timeout 60 "$program" "$scenario" "$folder/socket" > "$folder/out" 2>&1 || grep -q Sanitizer "$folder/out"; then
		cat "$folder/out"
		echo "FAILED: $scenario"
		exit 1
	fi
	echo "passed: $scenario"
done
