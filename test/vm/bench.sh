#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# bench.sh [--rounds N] [--designs LIST] [--vm | --here]
#
# The verbs designs beside Debian's perftest, in one boot of the Soft-RoCE machine (run.sh): one-way latency of 8 bytes
# beside ib_write_lat, bandwidth of 1 MB messages beside ib_read_bw and ib_write_bw. Rounds take turns (perftest, ours,
# perftest, ours, …; 3 by default); the last lines give the medians over the rounds and their ratios.
#   --designs LIST  default basic,piggyback,pipeline,zerocopy
#   --here          on this machine's own device, without a machine in between
#   --with FILE     on this machine, on the libibverbs double: FILE is its with_double.sh
# Exit status: 0; 77 when something is missing, said on stderr; 1 when a measurement failed.
set -u
: "${top_builddir:?set by make check-vm; the build folder}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
rounds=3 designs=basic,piggyback,pipeline,zerocopy where=vm

usage() { sed -n '4,14{s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2; exit 2; }

while [[ $# -gt 0 ]]; do
	case $1 in
	--rounds) rounds=${2:?} && shift ;;
	--designs) designs=${2:?} && shift ;;
	--with) where=${2:?} && shift ;;
	--vm | --here | --inside) where=${1#--} ;;
	*) usage ;;
	esac
	shift
done
[[ $rounds =~ ^[1-9][0-9]*$ && $designs =~ ^[a-z,]+$ ]] || usage

case $where in
vm) exec "$here/run.sh" --timeout 900 bash "${BASH_SOURCE[0]}" --inside --rounds "$rounds" --designs "$designs" ;;
here | inside) ;;
*) exec "$where" bash "${BASH_SOURCE[0]}" --inside --rounds "$rounds" --designs "$designs" ;;
esac

for tool in ib_write_lat ib_read_bw ib_write_bw; do
	command -v "$tool" >/dev/null || { echo "bench: skipped: apt-get install perftest" >&2; exit 77; }
done
log=$(mktemp)
trap 'rm -f "$log"' EXIT
port=18515
perf=$top_builddir/headrace-perf
# The design zerocopy by itself, from the size on that it always had here.
export HEADRACE_IB_ZERO_COPY="${HEADRACE_IB_ZERO_COPY-64k}"

# perftest COLUMN TOOL OPTION…: runs both ends on this machine; prints that column of its result line. The device and
# the GID index are rxe0's; HEADRACE_IB_DEVICE and HEADRACE_IB_GID_INDEX name others. perftest gauges the processor's
# clock first, which fails on a busy host and makes its figures "inf": then it is run again.
perftest()
{
	local column=$1 try
	shift
	for try in 1 2 3 4 5 6; do
		both_ends "$@"
		awk -v column="$column" '/^ *[0-9]+ +[0-9]+ +[0-9.]/ && $column + 0 > 0 { print $column; found = 1 }
			END { exit !found }' "$log" && return
	done
	cat "$log" >&2
	echo "bench: $1 failed $try times" >&2
	return 1
}

# both_ends TOOL OPTION…: the client's output in $log.
both_ends()
{
	local tool=$1 server
	shift
	port=$((port + 1))
	set -- "$tool" -d "${HEADRACE_IB_DEVICE:-rxe0}" -x "${HEADRACE_IB_GID_INDEX:-1}" -F -p "$port" "$@"
	timeout 120 "$@" >"$log.server" 2>&1 &
	server=$!
	for _ in 1 2 3 4 5 6 7 8; do
		sleep 0.5
		timeout 120 "$@" 127.0.0.1 >"$log" 2>&1 && break
	done
	wait "$server"
	rm -f "$log.server"
}

# All figures of one round as lines "NAME VALUE": us one way, MB/s (10^6; perftest's are 2^20).
round()
{
	local value tool
	value=$(perftest 5 ib_write_lat -s 8 -n 2000) || return 1
	echo "ib_write_lat $value"
	# perftest's latency is the median of single messages. So each sample is one message here too: the mean of a
	# batch contains the interruptions of the machine, which the median of single messages leaves out.
	"$perf" lat --design "$designs" --size 8 --iters 400 --csv >"$log" || return 1
	awk -F, 'NR > 1 { print "lat/" $4, $11; raw = $16 } END { if (raw) print "lat/floor", raw }' "$log"
	for tool in ib_write_bw ib_read_bw; do
		value=$(perftest 4 "$tool" -s 1048576 -n 60) || return 1
		awk -v v="$value" -v tool="$tool" 'BEGIN { print tool, v * 1.048576 }'
	done
	# As perftest's passive side sleeps, ours do too; else they take the adapter's processors, which it emulates on.
	"$perf" bw --design "$designs" --size 1M --seconds 2 --sleep --csv >"$log" || return 1
	awk -F, 'NR > 1 { print "bw/" $4, $13; if ($18) print "bw/floor-" $15, $18 }' "$log" | sed 's/RDMA //' | sort -u
}

for ((i = 1; i <= rounds; i++)); do
	echo "round $i of $rounds" >&2
	round >>"$log.all" || { cat "$log" >&2; exit 1; }
done
sort "$log.all" | awk '
	function flush() {
		if (n) median[name] = (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
		if (n) order[++names] = name
		n = 0
	}
	$1 != name { flush(); name = $1 }
	{ # insertion keeps v sorted
		for (i = ++n; i > 1 && v[i - 1] > $2 + 0; i--) v[i] = v[i - 1]
		v[i] = $2 + 0
	}
	END {
		flush()
		print "8 bytes, one way                     us   of ib_write_lat   of raw RDMA write"
		line("ib_write_lat", "ib_write_lat")
		line("raw RDMA write", "lat/floor")
		for (i = 1; i <= names; i++) if (order[i] ~ /^lat\// && order[i] != "lat/floor")
			line(substr(order[i], 5), order[i])
		print "1 MB messages                      MB/s     of ib_read_bw      of ib_write_bw"
		bandwidth = 1
		line("ib_read_bw", "ib_read_bw"); line("ib_write_bw", "ib_write_bw")
		for (i = 1; i <= names; i++) if (order[i] ~ /^bw\//) line(substr(order[i], 4), order[i])
		wanted("8 bytes: piggyback of basic", "lat/piggyback", "lat/basic", "0.60 or less")
		wanted("8 bytes: piggyback of ib_write_lat", "lat/piggyback", "ib_write_lat", "1.10 or less")
		wanted("1 MB: zerocopy of ib_read_bw", "bw/zerocopy", "ib_read_bw", "0.97 or more")
	}
	function wanted(text, a, b, bound) {
		if ((a in median) && (b in median))
			printf "%s: %.3f (wanted %s)\n", text, median[a] / median[b], bound
	}
	function line(label, name) {
		if (!(name in median)) return
		if (bandwidth)
			printf "%-28s %12.1f %17.3f %19.3f\n", label, median[name], median[name] / median["ib_read_bw"],
				median[name] / median["ib_write_bw"]
		else
			printf "%-28s %12.3f %17.2f %19s\n", label, median[name], median[name] / median["ib_write_lat"],
				("lat/floor" in median) ? sprintf("%.2f", median[name] / median["lat/floor"]) : "-"
	}'
rm -f "$log.all"
