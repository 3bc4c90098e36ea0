#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# smoke.sh SECONDS JOBS PROGRAM...: runs each fuzz target for that time, JOBS of them at a time. Run it in the build tree:
# each target's corpus is kept in test/fuzz/corpus/TARGET there and grows with every run; at first it is the target's
# seeds in the source tree. The seed of the random numbers differs with every run; FUZZ_SEED=N repeats one.
# Prints for each target the seed, how many inputs it had and how much they covered. Exit status 1 if a target found
# something; the input is then in test/fuzz/found/TARGET, and is printed.
set -euo pipefail
seconds=$1
jobs=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
corpora=$PWD/test/fuzz/corpus
findings=$PWD/test/fuzz/found
seed=${FUZZ_SEED:-$((RANDOM * 32768 + RANDOM + 1))}

fuzz() {
	local program=$1 name corpus found log
	name=$(basename "$program")
	corpus=$corpora/$name found=$findings/$name
	log=$found/log
	rm -rf "$found"
	mkdir -p "$corpus" "$found"
	[ ! -d "$here/seeds/$name" ] || cp "$here/seeds/$name"/* "$corpus"
	if HEADRACE_LOG=error "$program" -max_total_time="$seconds" -timeout=120 -rss_limit_mb=2048 -seed="$seed" \
		-print_final_stats=1 -artifact_prefix="$found/" "$corpus" >"$log" 2>&1; then
		printf '%s, %d s, seed %d: %s inputs, %s; corpus %d\n' "$name" "$seconds" "$seed" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
			"$(grep -aoE 'cov: [0-9]+ ft: [0-9]+' "$log" | tail -n 1)" "$(find "$corpus" -type f | wc -l)"
		return 0
	fi
	echo "$name FAILED, seed $seed"
	tail -n 60 "$log"
	for input in "$found"/crash-* "$found"/leak-* "$found"/timeout-* "$found"/oom-*; do
		[ -e "$input" ] || continue
		echo "again: $program $input"
		base64 "$input" | head -n 40
	done
	return 1
}

failed=0
while [ $# -gt 0 ]; do
	pids=()
	for ((i = 0; i < jobs && $# > 0; i++)); do
		fuzz "$1" &
		pids+=($!)
		shift
	done
	for pid in "${pids[@]}"; do
		wait "$pid" || failed=1
	done
done
exit $failed
