#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Nonsense from a client ends its connection, never its worker by a signal; the daemon goes on.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
export HEADRACE_TIMEOUT_MS=2000
remote_start 2>"$folder/log"
timeout 100 "$build/test/cuda/remote/rogue" "${HEADRACE_TEST_SEED:-1}" >"$folder/out" 2>&1 || fail "$(tail -3 "$folder/out")"
cat "$folder/out" | tail -1
grep 'signal' "$folder/log" && fail "a worker fell over"
unset HEADRACE_TIMEOUT_MS
timeout 60 "$build/test/cuda/remote/hostfn" || fail "the daemon serves no more"
