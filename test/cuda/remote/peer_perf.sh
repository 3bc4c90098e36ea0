#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# headrace-perf peer: its three formats have the versions and sizes that were asked for, in order, with plausible figures.
. "${top_srcdir:?run by make check}/test/cuda/remote/remote.sh"
perf="timeout 100 $build/headrace-perf peer"
HEADRACE_SERVER='' $perf 2>"$folder/err" && fail "without servers: success"
grep -q 'name two servers in HEADRACE_SERVER' "$folder/err" || fail "without servers: $(cat "$folder/err")"
remote_start
remote_start_another second
export HEADRACE_SERVER=$HEADRACE_SERVER,$another
# In the place of headrace-run: the client's library is in the build folder.
export HEADRACE_RUN=env LD_LIBRARY_PATH=$build/cuda_remote/client/.libs
what=(--quick --peer "client,1,3b:2x4k,hybrid" --size "64k,4" --seconds 0.001)
wanted="65536 client,65536 1,65536 3b,65536 hybrid,4 client,4 1,4 3b,4 hybrid,"
$perf "${what[@]}" --csv >"$folder/csv" || fail "--csv: status $?"
[ "$(awk -F, 'NR > 1 { printf "%s %s,", $5, $2 }' "$folder/csv")" = "$wanted" ] || fail "--csv: $(cat "$folder/csv")"
awk -F, 'NF != 12 || (NR > 1 && !($6 >= 3 && $7 > 0 && $8 >= $7 && $11 > 0 && $11 <= 1 && $12 > 0))' "$folder/csv" | grep . && fail "--csv: implausible"
grep -q '^peer,3b,2,4k,65536,' "$folder/csv" || fail "--csv: number and size of buffers"
$perf "${what[@]}" >"$folder/table" || fail "table: status $?"
[ "$(awk 'NR > 1 { printf "%s %s,", $1, $2 }' "$folder/table")" = "$wanted" ] || fail "table: $(cat "$folder/table")"
$perf "${what[@]}" --json >"$folder/json" || fail "--json: status $?"
[ "$(wc -l <"$folder/json")" = 8 ] || fail "--json: $(cat "$folder/json")"
if command -v python3 >/dev/null; then
	python3 -c 'import json, sys
for line in sys.stdin: assert json.loads(line)["median_us"] > 0' <"$folder/json" || fail "--json: $(cat "$folder/json")"
fi

# Versions that the servers do not have are left out, unless they are named.
cat >"$folder/run" <<'END'
#!/bin/sh
case $HEADRACE_PEER in
1 | ?a) exit 4 ;;
esac
exec env "$@"
END
chmod +x "$folder/run"
export HEADRACE_RUN=$folder/run HEADRACE_PEER_MEASURE_MS=50
$perf --quick --size 4 --seconds 0.001 --csv >"$folder/csv" 2>"$folder/err" || fail "missing versions: status $?"
[ "$(awk -F, 'NR > 1 { printf "%s,", $2 }' "$folder/csv")" = "client,2b,3b,4b,hybrid," ] || fail "missing versions: $(cat "$folder/csv")"
[ "$(grep -c 'do not have version .*: left out' "$folder/err")" = 4 ] || fail "missing versions: $(cat "$folder/err")"
$perf --quick --size 4 --seconds 0.001 --peer client,1 >"$folder/csv" 2>"$folder/err" && fail "a missing version that was named: success"
grep -q 'do not have version 1$' "$folder/err" || fail "a missing version that was named: $(cat "$folder/err")"
exit 0
