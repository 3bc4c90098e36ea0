#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2154 # make check sets it
# headrace-perf: what it says of a bad command line, and that its three formats hold the same columns and are well
# formed. No figure is judged here: the machine may be busy.
perf="timeout 180 $top_builddir/headrace-perf"
failures=0
fail() {
	echo "FAILED: $*"
	failures=1
}

# refused PATTERN ARGUMENT...: a bad command line ends with status 64 and a message that says what is wanted.
refused() {
	local pattern=$1 out status
	shift
	out=$($perf "$@" 2>&1 >/dev/null)
	status=$?
	[ $status = 64 ] || fail "headrace-perf $*: status $status, not 64"
	grep -q -e "$pattern" <<< "$out" || fail "headrace-perf $*: says $out"
}

refused 'no test named: want lat' # nothing at all
refused 'nonsense: want one test: lat, bw' nonsense
refused 'bw: want one test' lat bw
refused '--size 0: want up to 64 sizes from 1 to 1G' lat --size 0
refused '--size 8,: want' lat --size 8,
refused '--size 2G: want' lat --size 2G
refused '--size 17179869185G: want' lat --size 17179869185G # 2^34 + 1, which times 2^30 is 2^30 in 64 bits
refused '--size -8: want' lat --size=-8
refused '--size 8b: want' lat --size 8b
refused '--iters 0: want a positive number' lat --iters 0
refused '--window x: want a positive number' bw --window x
refused '--ahead 0: want a positive number' bw --ahead 0
refused '--ahead 65: want a number from 1 to 64' bw --ahead 65
refused '--seconds nan: want a number' lat --seconds nan
refused '--layer mpi: want channel or ch3' lat --layer mpi
refused '--transport ib: want shm, tcp or verbs' lat --transport ib
refused '--design fast: want basic, piggyback, pipeline or zerocopy' lat --design fast
refused '--design basic,: want basic' lat --design basic,
refused '--qps 0: want' lat --qps 0
refused 'are for --transport verbs' lat --transport tcp --qps 2
refused '--rendezvous push: want read, write or none' lat --layer ch3 --rendezvous push
refused 'is for --layer ch3' lat --rendezvous write
refused 'are for --transport verbs' sweep --transport shm
refused 'sweep goes through the queue pairs and depths itself' sweep --depth 4
refused '--window is for bw, rate and sweep' lat --window 3
refused '--ahead is for bw, rate and sweep' lat --ahead 3
refused '--quick is for sweep and peer' bw --quick
refused 'wake and cuda want no options but' wake --size 8
refused 'wake and cuda want no options but' cuda --design basic
refused 'peer wants no options but' peer --iters 3
refused '--peer is for peer' lat --peer 3b
for wrong in 5 3b: 3b:x 3b:4x 3b:x64k 3b:4x64q 4b:4x64k '3b,' 3b:12345x4k '' "$(printf '1,%.0s' {1..40})1"; do
	refused "--peer $wrong: want sweep, or up to 32 of client" peer --peer="$wrong"
done
refused 'more than 32 combinations' lat --qps 1,2,4 --depth 2,4,8,16 --chunk 4k,8k,16k
if $perf --help >/dev/null && $top_builddir/bench/info/headrace-info settings | grep -q HEADRACE_IB_QPS; then
	refused '--qps 1,999: want numbers from 1 to ' lat --qps 1,999
fi

# The three ways of long messages, in the order that was asked for.
ways=$($perf lat --transport tcp --layer ch3 --rendezvous none,read,write --size 300k --iters 20 --csv) || fail "ways: status"
[ "$(awk -F, 'NR > 1 { printf "%s ", $NF }' <<< "$ways")" = "none read write " ] || fail "ways: $ways"

# JSON: every line an object by itself, numbers plausible; CSV: the same columns; and what was asked for, in order.
arguments=(lat --transport tcp --layer 'channel,ch3' --size '8,1k' --iters 40)
json=$($perf "${arguments[@]}" --json) || fail "lat --json: status"
csv=$($perf "${arguments[@]}" --csv) || fail "lat --csv: status"
table=$($perf "${arguments[@]}") || fail "lat: status"
JSON=$json CSV=$csv ${PYTHON:-python3} - << 'EOT' || fail "formats"
import csv, io, json, os

def refuse(name):
    raise ValueError(f"{name} is no JSON")

lines = [json.loads(line, parse_constant=refuse) for line in os.environ["JSON"].splitlines()]
cells = [line for line in lines if not line["test"].startswith("machine: ")]
machine = [line for line in lines if line["test"].startswith("machine: ")]
assert [(c["layer"], c["size"]) for c in cells] == [("channel", 8), ("ch3", 8), ("channel", 1024), ("ch3", 1024)], cells
assert len(machine) == 3, machine
for cell in cells:
    assert cell["test"] == "lat" and cell["transport"] == "tcp" and cell["floor"] == "raw TCP", cell
    assert cell["design"] is None and cell["qps"] is None and cell["MBps"] is None, cell
    assert cell["samples"] == 40 and cell["iters"] == 40, cell
    assert 0 < cell["median_us"] <= cell["p99_us"], cell
    assert 0 < cell["floor_us"] <= cell["floor_p99_us"] and 0 < cell["flag_us"] <= cell["flag_p99_us"], cell
    assert abs(cell["ratio"] - cell["median_us"] / cell["floor_us"]) < 1e-6 * cell["ratio"], cell
    assert cell["placement"] in ("near", "far", "mixed"), cell
rows = list(csv.DictReader(io.StringIO(os.environ["CSV"])))
assert len(rows) == 4 and list(rows[0]) == list(cells[0]), rows
for row, cell in zip(rows, cells):
    assert row["layer"] == cell["layer"] and int(row["size"]) == cell["size"] and row["MBps"] == "", row
EOT
[ "$(grep -c '^channel \|^ch3 ' <<< "$table")" = 4 ] || fail "table: $table"

# A stream: the same bytes through a window of 3 messages, and the floor of shared memory.
JSON=$($perf bw --transport shm --size 4k --iters 100 --window 3 --json) || fail "bw --json: status"
export JSON
${PYTHON:-python3} - << 'EOT' || fail "stream"
import json, os

cell = json.loads(os.environ["JSON"].splitlines()[0])
assert cell["test"] == "bw" and cell["transport"] == "shm" and cell["floor"] == "memcpy" and cell["iters"] == 100, cell
assert abs(cell["MBps"] - cell["size"] / cell["median_us"]) < 1e-6 * cell["MBps"], cell
assert abs(cell["ratio"] - cell["MBps"] / cell["floor_MBps"]) < 1e-6 * cell["ratio"], cell
EOT

# Long messages one by one, and several at a time, also more than there are.
for ahead in 1 64; do
	[ "$($perf bw --layer channel,ch3 --transport shm --size 16k,300k --iters 20 --ahead $ahead --csv | grep -c '^bw,')" = 4 ] ||
		fail "--ahead $ahead"
done

# Ends that sleep get their messages all the same.
[ "$(HEADRACE_SPIN_US=0 $perf lat --layer channel,ch3 --sleep --size 8,300k --iters 50 --csv | grep -c ',shm,')" = 4 ] || fail "sleep"

# A measurement that cannot be made is status 1, not 64.
if ! ls /sys/class/infiniband/* >/dev/null 2>&1 && [ -z "${LD_PRELOAD:-}" ]; then
	$perf lat --transport verbs --size 8 --iters 1 >/dev/null 2>&1
	[ $? = 1 ] || fail "without a device: status"
fi
exit $failures
