#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The comparison with Open MPI runs: one setting, one size, and both contenders are in what it prints.
set -u
[ -x "$top_builddir/bench/compare/compare_mpi" ] || { echo "SKIP: no Open MPI to compare with"; exit 77; }
[ "$(nproc)" -ge 2 ] || { echo "SKIP: two cores are needed"; exit 77; }
# Not in /dev/shm, where other tests look for what the channel might leave behind.
backing=$(mktemp -d) || exit 1
trap 'rm -rf "$backing"' EXIT
# mpirun fails if it cannot create its folder in TMPDIR. compare.py must use a folder of its own, because other programs mpirun
# use TMPDIR too.
touch "$backing/ompi.$(uname -n | cut -d. -f1).$(id -u)"
out=$(TMPDIR=$backing "$PYTHON" "$top_srcdir/bench/compare/compare.py" --programs "$top_builddir/bench/compare" \
	${MPIRUN:+--mpirun "$MPIRUN"} --backing "$backing" \
	--settings vader-none --sizes 1k --rounds 3 --milliseconds 1 --json --verbose) ||
	{ echo "compare.py failed: $out"; exit 1; }
"$PYTHON" -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin if line.strip()] # a here-string has a line also of nothing
# On a busy machine the answers of a cell may all have been disturbed; such a cell has no row.
if not rows:
    print("SKIP: other work disturbed every answer")
    sys.exit(77)
for row in rows:
    assert row["placement"] in ("near", "far") and row["best"] == "vader-none", row
    assert row["us"] > 0 and row["best_us"] > 0 and row["flag_us"] > 0 and row["rounds"] > 0, row
    theirs, ours = row["best_us"], row["us"]
    assert abs(row["ratio"] - (ours / theirs if row["test"] == "lat" else theirs / ours)) < 1e-6, row
' <<<"$out"
