#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# smoke.sh SECONDS PROGRAM...: runs each fuzz target that long, from an empty corpus and a fixed seed.
set -euo pipefail
seconds=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for program in "$@"; do
	echo "== $program, $seconds s"
	mkdir -p "$work/corpus"
	seeds=$(dirname "$0")/seeds/$(basename "$program")
	[ -d "$seeds" ] && cp "$seeds"/* "$work/corpus"
	HEADRACE_LOG=error "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -seed=1 -print_final_stats=1 \
		-artifact_prefix="$work/" "$work/corpus" >"$work/log" 2>&1 || { tail -n 60 "$work/log"; exit 1; }
	grep -E 'stat::number_of_executed_units|cov:' "$work/log" | tail -n 2
	rm -rf "$work/corpus"
done
