#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check sets it
# Every algorithm of the table that headrace-info prints, forced by HEADRACE_MPI_ALGORITHM, on three and four ranks.
. "$top_srcdir/test/adi/common.sh"
need_mpirun
table=$("$top_builddir/bench/info/headrace-info" collectives) || fail "headrace-info"

# algorithm N: for each collective its N-th algorithm, as the setting wants it. Empty if none has so many.
algorithm() {
	awk -v n="$1" 'NF >= 4 && $2 ~ /^(any|[0-9]+)$/ && !seen[$1, $4]++ && ++count[$1] == n {
		printf "%s%s=%s", comma, $1, $4; comma = "," }' <<<"$table"
}

export HEADRACE_TRANSPORT=shm HEADRACE_MPI_ALGORITHM
turns=0
while HEADRACE_MPI_ALGORITHM=$(algorithm $((turns + 1))) && [ -n "$HEADRACE_MPI_ALGORITHM" ]; do
	turns=$((turns + 1))
	for n in 3 4; do
		case $HEADRACE_MPI_ALGORITHM in
		*reduce* | *bcast=* | *barrier=*)
			ranks "$n" "$programs/collective/collectives" few || fail "collectives, $n ranks, $HEADRACE_MPI_ALGORITHM" ;;
		esac
		case $HEADRACE_MPI_ALGORITHM in
		*gather=* | *scatter=*)
			ranks "$n" "$programs/collective/gathers" || fail "gathers, $n ranks, $HEADRACE_MPI_ALGORITHM" ;;
		esac
		case $HEADRACE_MPI_ALGORITHM in
		*alltoall=*)
			ranks "$n" "$programs/collective/alltoalls" || fail "alltoalls, $n ranks, $HEADRACE_MPI_ALGORITHM" ;;
		esac
	done
done
[ "$turns" -ge 4 ] || fail "the table of headrace-info has only $turns algorithms for a collective: $table"

# A word that names no algorithm is ignored, and each rank's log lists every valid entry, once.
HEADRACE_MPI_ALGORITHM=alltoall=none ranks 2 "$programs/ring" 1 >"$scratch/out" 2>&1 || fail "a word that names no algorithm"
for entry in $(awk 'NF >= 4 && $2 ~ /^(any|[0-9]+)$/ { print $1 "=" $4 }' <<<"$table" | sort -u); do
	[ "$(grep 'alltoall=none is ignored' "$scratch/out" | tr ' ' '\n' | grep -cFx "$entry")" = 2 ] || {
		cat "$scratch/out"
		fail "the valid entries do not have $entry once"
	}
done
