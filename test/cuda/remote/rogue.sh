#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A client that sends random calls can end its own connection. It cannot make its worker crash or violate a sanitizer's
# rule (remote.sh looks for the sanitizers' reports), and the daemon serves the next client.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
seed=${HEADRACE_TEST_SEED:-1}
echo "seed $seed (HEADRACE_TEST_SEED chooses another)"
export HEADRACE_TIMEOUT_MS=2000
remote_start
timeout 300 "$build/test/cuda/remote/rogue" "$seed" >"$folder/out" 2>&1 || fail "$(tail -3 "$folder/out")"
tail -1 "$folder/out"
grep -a 'was killed by signal' "$folder/log" && fail "a worker crashed"
unset HEADRACE_TIMEOUT_MS
timeout 60 "$build/test/cuda/remote/hostfn" || fail "the daemon serves no more"
