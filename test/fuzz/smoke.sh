#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# smoke.sh SECONDS JOBS PROGRAM...: runs each fuzz target that long, JOBS of them at a time, from its seeds and a fixed
# seed. Prints how many inputs each had and how much it covered; exit status 1 if one found something.
set -euo pipefail
seconds=$1
jobs=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fuzz() {
	local program=$1 name folder
	name=$(basename "$program")
	folder=$work/$name
	mkdir -p "$folder/corpus"
	[ -d "$here/seeds/$name" ] && cp "$here/seeds/$name"/* "$folder/corpus"
	if HEADRACE_LOG=error "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -seed=1 \
		-print_final_stats=1 -artifact_prefix="$folder/" "$folder/corpus" >"$folder/log" 2>&1; then
		printf '%s, %d s: %s inputs, %s\n' "$name" "$seconds" \
			"$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/log")" \
			"$(grep -oE 'cov: [0-9]+ ft: [0-9]+' "$folder/log" | tail -n 1)"
		return 0
	fi
	echo "$name FAILED"
	tail -n 60 "$folder/log"
	for found in "$folder"/crash-* "$folder"/leak-* "$folder"/timeout-* "$folder"/oom-*; do
		[ -e "$found" ] && { basename "$found"; base64 "$found" | head -n 40; }
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
